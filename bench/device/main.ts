/**
 * `npm run bench:rdma`: our verbs and windows on an RDMA device, beside programs in C on the same device, and barriers
 * by a thread beside those by messages. Usually run in the guest that ../device.mjs boots.
 *
 *     npm run bench:rdma -- [--json FILE] [--filter ID] [--rounds 5] [--quick] [--instructions] [--check]
 *
 * A row's programs run in turn, ours and the one in C, several rounds; what counts is the median of the rounds'
 * medians. A ratio above 1 means that we are ahead. With --instructions, times are instructions, of which one core
 * executes one in each nanosecond (../device.mjs). Each program does the same again and again then, so one round of few
 * samples suffices; rows of which both ranks wait for each other are left out, since on one core it would be the
 * scheduler that is measured.
 *
 * The device is the one that `ONESIDED_DEVICE=name:port:gid` names.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { rdmaDevices } from 'onesided/verbs';
import { installed } from '../peers.ts';
import { ProgramError, type Report, ROOT, reportIn, run } from '../programs.ts';
import { judge, type RowResult, summarize } from '../statistics.ts';
import { closing, heading, Status, tableRow } from '../table.ts';
import { type Device, runPerftest } from './perftest.ts';
import { DEVICE_ROWS, type DeviceRow } from './rows.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    filter: { type: 'string', default: '' },
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    instructions: { type: 'boolean', default: false },
    check: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds ?? (values.quick || values.instructions ? 1 : 5));
if (!Number.isInteger(rounds) || rounds < 1)
  throw new Error(`--rounds must be an integer of at least 1, not '${values.rounds}'`);
const filters = values.filter.split(',');
const rows = DEVICE_ROWS.filter(
  ({ id, together }) => filters.some((filter) => id.includes(filter)) && !(together && values.instructions),
);
if (rows.length === 0)
  throw new Error(
    `no row's id contains '${values.filter}'; the rows are ${DEVICE_ROWS.map(({ id }) => id).join(', ')}`,
  );

/** Samples, their milliseconds, and those of the warm-up: compiling takes long on an emulated processor. */
const LENGTH = values.instructions ? ['3', '20', '400'] : values.quick ? ['3', '50', '1000'] : ['5', '100', '3000'];
/** The same for windows, counted in instructions: their loops have more code, and are executed less often. */
const WINDOW_LENGTH = values.instructions ? ['3', '40', '2500'] : LENGTH;
/** The same for long iterations: with the warm-up of others, half of their time went into compiling. */
const LONG_LENGTH = values.instructions ? ['3', '40', '15000'] : LENGTH;
/** Iterations of one sample of perftest. */
const ITERATIONS = { ib_write_lat: 5000, ib_atomic_lat: 5000, ib_write_bw: 1000 };
/** An emulated processor, and a machine that has other things to do. */
const SECONDS = 300;

const [name = '', port = '1', gidIndex = '0'] = (process.env['ONESIDED_DEVICE'] ?? '').split(':');
const device: Device = { name, port: Number(port), gidIndex: Number(gidIndex) };
const found = rdmaDevices().devices.find((candidate) => candidate.name === name);
if (found === undefined) throw new Error(`ONESIDED_DEVICE=name:port:gid must name a device, and is '${name}'`);

async function runOurs(
  { ours: { program, args: usual }, long, ranks = 2 }: DeviceRow,
  other?: readonly string[],
): Promise<Report> {
  const args = other ?? usual;
  const length = long ? LONG_LENGTH : program === 'ranks/rma' ? WINDOW_LENGTH : LENGTH;
  // The verbs' ranks exchange their addresses through shared memory, and open the device by themselves.
  const provider = program === 'ranks/verbs' ? [] : ['--provider', 'rdma-core'];
  const launch = [
    ...[
      join(ROOT, 'dist/cli/main.js'),
      'run',
      '-n',
      String(ranks),
      '--ranks',
      'processes',
      ...provider,
      '--timeout',
      String(SECONDS),
    ],
    join(ROOT, `build/programs/bench/${program}.js`),
    '--',
  ];
  if (program !== 'hpcc/random-access')
    return reportIn(await run(process.execPath, [...launch, ...args, ...length], { seconds: SECONDS }));
  const folder = mkdtempSync(join(tmpdir(), 'onesided-bench-'));
  try {
    const file = join(folder, 'result.json');
    await run(process.execPath, [...launch, ...args, '--quiet', '--json', file], { seconds: SECONDS });
    const { gups, verified } = JSON.parse(readFileSync(file, 'utf8')) as { gups: number; verified: boolean };
    if (!verified) throw new ProgramError('RandomAccess was not verified');
    return { samples: [gups] };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function runPeer(row: DeviceRow, peer: NonNullable<DeviceRow['peer']>): Promise<Report> {
  if (peer.name === 'messages') return runOurs(row, peer.args);
  if (peer.name === 'verbs')
    return reportIn(
      await run(join(ROOT, 'build/peers/verbs'), [peer.row, ...LENGTH.slice(0, 2)], { seconds: SECONDS }),
    );
  const iterations = ITERATIONS[peer.command] / (values.quick || values.instructions ? 5 : 1);
  const samples: number[] = [];
  while (samples.length < (values.instructions ? 1 : Number(LENGTH[0])))
    samples.push(...(await runPerftest(peer.command, peer.bytes, iterations, device, SECONDS)).samples);
  return { samples };
}

async function measureRow(row: DeviceRow): Promise<RowResult> {
  const ours: number[][] = [];
  const theirs: number[][] = [];
  const notes: string[] = [];
  const attempt = async (who: string, samples: number[][], work: () => Promise<Report>): Promise<void> => {
    try {
      samples.push([...(await work()).samples]);
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      notes.push(`${who} failed: ${error.message}`);
    }
  };
  const { peer } = row;
  const missing = peer?.name === 'perftest' && !installed(peer.command);
  if (missing) notes.push('perftest is not installed: apt-get install perftest');
  for (let round = 1; round <= rounds && notes.length === (missing ? 1 : 0); round++) {
    await attempt('onesided', ours, () => runOurs(row));
    if (peer !== undefined && !missing) await attempt(peer.name, theirs, () => runPeer(row, peer));
  }
  const summary = summarize(theirs);
  return judge(row, {
    onesided: summarize(ours),
    peers: peer === undefined || summary === undefined ? {} : { [peer.name]: summary },
    memcpy: undefined,
    beside: undefined,
    notes,
  });
}

const loadBefore = loadavg()[0];
const status = new Status(process.stdout);
const PEERS = ['perftest', 'verbs', 'messages'];
status.print(heading(PEERS));
const results: RowResult[] = [];
const begun = performance.now();
for (const row of rows) {
  const result = await measureRow(row);
  results.push(result);
  status.print(tableRow(result, PEERS));
  for (const note of result.notes) status.print(`    ${note}`);
}
const failures = results.filter(
  ({ ok, onesided, notes }) => ok === false || onesided === undefined || notes.length > 0,
);
status.print(closing(results, Math.round((performance.now() - begun) / 1e3), values.check));
if (values.json) {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.versions.node,
    onesided: version,
    ranks: 'processes',
    clock: values.instructions ? 'an instruction a nanosecond' : 'time',
    device: { ...device, transport: found.transport, firmware: found.firmware ?? '' },
    peers: {
      perftest: 'ib_write_lat, ib_atomic_lat, ib_write_bw',
      verbs: 'bench/peers/verbs.c on libibverbs',
      messages: 'barriers by messages',
    },
    rounds,
    loadBefore,
    date: new Date().toISOString(),
  };
  // Who started this takes it from here: a guest has no file to write to.
  console.log(`onesided-bench: ${JSON.stringify({ machine, rows: results })}`);
}
if (values.check && failures.length > 0) process.exitCode = 1;
