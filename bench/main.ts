/**
 * `npm run bench`: our windows beside MPICH and Open MPI, in one run.
 *
 *     npm run bench -- [--json FILE] [--filter ID] [--rounds 3] [--quick] [--ranks threads] [--tcp] [--check]
 *
 * A row's programs run in turn, ours, MPICH's, Open MPI's, several rounds; what counts is the median of the rounds'
 * medians. The rules that hold on all sides stand in peers/rma.c. A ratio above 1 always means that we are ahead of the
 * best peer.
 *
 *   --filter ID   rows whose id contains this; several with commas
 *   --quick       one round with few and short samples
 *   --ranks threads   our ranks are worker threads
 *   --tcp         ranks reach each other by TCP alone, on the loopback interface: ours through libfabric, the peers by
 *                 what they have for it, and two processes with a socket as the limit
 *   --check       exit code 1 if a row misses its threshold in rows.ts
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, tmpdir, totalmem, type } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runHpcc } from './hpcc-peer.ts';
import { inRange, oneOf, orExplain, wholeNumber } from './options.ts';
import {
  installed,
  LPF,
  lmdbIsInstalled,
  PEERS,
  type Peer,
  runLmdb,
  runMemcpy,
  runPeer,
  runSockets,
  TCP_PEERS,
} from './peers.ts';
import { ProgramError, type Report, ROOT, reportIn, run } from './programs.ts';
import { type RankProgram, ROWS, type Row, TCP_ROWS } from './rows.ts';
import { judge, type RowResult, type Summary, summarize } from './statistics.ts';
import { closing, digits, heading, Status, tableRow } from './table.ts';

const { values, rounds, rows } = orExplain(
  () => {
    const { values } = parseArgs({
      options: {
        json: { type: 'string' },
        filter: { type: 'string', default: '' },
        rounds: { type: 'string' },
        quick: { type: 'boolean', default: false },
        ranks: { type: 'string', default: 'processes' },
        tcp: { type: 'boolean', default: false },
        check: { type: 'boolean', default: false },
      },
    });
    const rounds = wholeNumber(values.rounds ?? (values.quick ? '1' : '3'));
    inRange('--rounds', rounds, 1, 1000);
    oneOf('--ranks', values.ranks, ['processes', 'threads']);
    const filters = values.filter.split(',');
    if (values.tcp && values.ranks !== 'processes') throw new Error('--tcp is between processes');
    const known = values.tcp ? TCP_ROWS : ROWS;
    const rows = known.filter(({ id }) => filters.some((filter) => id.includes(filter)));
    if (rows.length === 0)
      throw new Error(`no row's id contains '${values.filter}'; the rows are ${known.map(({ id }) => id).join(', ')}`);
    return { values, rounds, rows };
  },
  fileURLToPath(import.meta.url),
);

/** Samples and their milliseconds. */
const LENGTH = values.quick ? ['3', '10'] : ['5', '20'];
const IDLE_SECONDS = values.quick ? '1' : '2';

/** Of programs that fight for locks: so long that each rank has had and lost its core many times. */
const CONTENDED = values.quick ? ['3', '100'] : ['5', '400'];

/** Our programs that write their result into a file, and take a number of samples. */
const WRITE_RESULTS = ['ranks/lu', 'ranks/summa', 'ranks/mg', 'ranks/cg'];
/** Of these, those that take so little that V8 is still compiling when they are done, unless they run some times. */
const WARMED = ['ranks/mg', 'ranks/cg'];
const WARM_UPS = values.quick ? '2' : '10';
/** The peers' programs whose samples have no length. */
const COMPUTE = ['lu', 'summa', 'mg', 'cg'];

/** Arguments that say how long a program measures. */
function lengthOf(program: string, args: readonly string[]): readonly string[] {
  if (program === 'hpcc/random-access') return [];
  if (WARMED.includes(program)) return ['--samples', LENGTH[0], '--warm-ups', WARM_UPS];
  if (WRITE_RESULTS.includes(program)) return ['--samples', LENGTH[0]];
  if (COMPUTE.includes(program)) return [LENGTH[0]];
  if (program.endsWith('contended')) return CONTENDED;
  if (program.endsWith('footprint')) return args[0] === 'memory' ? [] : [IDLE_SECONDS];
  return LENGTH;
}

/** How our ranks reach each other, and how the peers' do. */
const PROVIDER = values.tcp ? ['--provider', 'libfabric'] : [];
const ALL_PEERS = values.tcp ? TCP_PEERS : PEERS;

async function runOurs({ program, args, field = 'milliseconds' }: RankProgram, ranks: number): Promise<Report> {
  const launch = [
    ...[join(ROOT, 'dist/cli/main.js'), 'run', '-n', String(ranks), '--ranks', values.ranks, '--timeout', '100'],
    ...PROVIDER,
    join(ROOT, `build/programs/bench/${program}.js`),
    '--',
  ];
  if (program !== 'hpcc/random-access' && !WRITE_RESULTS.includes(program)) {
    return reportIn(await run(process.execPath, [...launch, ...args, ...lengthOf(program, args)]));
  }
  const folder = mkdtempSync(join(tmpdir(), 'onesided-bench-'));
  try {
    const file = join(folder, 'result.json');
    await run(process.execPath, [...launch, ...args, ...lengthOf(program, args), '--quiet', '--json', file]);
    const result = JSON.parse(readFileSync(file, 'utf8')) as Record<string, number | readonly number[]>;
    return { samples: [result[field]].flat() };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Runs something while other programs keep a core busy each. */
async function beside(others: number, work: () => Promise<void>): Promise<void> {
  const busy = Array.from({ length: others }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
  try {
    await work();
  } finally {
    for (const program of busy) program.kill('SIGKILL');
  }
}

/** Rounds of samples that were taken once and may be wanted by several rows. */
const taken = new Map<string, number[][]>();
const notes = new Map<string, string>();
const libraries: Record<string, string> = {};
const absent = ALL_PEERS.filter(({ compiler, launcher }) => !installed(compiler) || !installed(launcher));
const present = ALL_PEERS.filter((peer) => !absent.includes(peer));
const lpf = LPF.filter(({ compiler, launcher }) => installed(compiler) && installed(launcher));
const hpcc = installed('hpcc') && installed('mpirun.openmpi');
const hasLmdb = lmdbIsInstalled();
const usesLmdb = ({ peer }: Row): boolean => peer?.program === 'contended' && peer.args[0] === 'map';
const usesFallback = new Set<string>();

async function runRowOnPeer(peer: Peer, row: Row, key: string): Promise<Report | undefined> {
  const { program, args } = row.peer!;
  if (program === 'hpcc')
    return hpcc && peer.name === 'openmpi' ? runHpcc(peer, Number(args[0]), row.ranks) : undefined;
  const all = [...args, ...lengthOf(program, args)];
  if (!usesFallback.has(key)) {
    try {
      return await runPeer(peer, program, all, row.ranks);
    } catch (error) {
      if (!(error instanceof ProgramError) || peer.fallback === undefined) throw error;
      usesFallback.add(key);
      notes.set(
        key,
        `${peer.name} as installed fails (${error.message}); measured with ${peer.fallback.words} instead`,
      );
    }
  }
  return runPeer(peer, program, all, row.ranks, peer.fallback!.env);
}

async function measureRow(row: Row, status: Status, label: string): Promise<RowResult> {
  const ours: number[][] = [];
  const memcpy: number[][] = [];
  const lmdb: number[][] = [];
  const sockets: Record<'spin' | 'sleep', number[][]> = { spin: [], sleep: [] };
  const failed = new Map<string, string>();
  const wanted =
    row.peer === undefined
      ? []
      : row.peer.program === 'hpcc'
        ? ALL_PEERS.filter(({ name }) => name === 'openmpi')
        : row.peer.program === 'bsp'
          ? lpf
          : present;
  const keyOf = (peer: Peer): string =>
    `${peer.name} ${row.peer?.program} ${row.peer?.args.join(' ')} ${row.ranks} ${row.busy ?? 0}`;
  const already = new Set(wanted.map(keyOf).filter((key) => taken.has(key)));

  for (let round = 1; round <= rounds; round++) {
    const attempt = async (name: string, work: () => Promise<void>): Promise<void> => {
      if (failed.has(name)) return;
      status.show(`${label} ${row.id}: round ${round} of ${rounds}, ${name}`);
      try {
        await beside(row.busy ?? 0, work);
      } catch (error) {
        if (!(error instanceof ProgramError)) throw error;
        failed.set(name, `${name} failed: ${error.message}`);
      }
    };
    await attempt('onesided', async () => {
      ours.push([...(await runOurs(row.ours, row.ranks)).samples]);
    });
    for (const peer of wanted) {
      const key = keyOf(peer);
      if (already.has(key)) continue;
      await attempt(peer.name, async () => {
        const report = await runRowOnPeer(peer, row, key);
        if (report === undefined) return;
        if (report.library !== undefined) libraries[peer.name] = report.library;
        taken.set(key, [...(taken.get(key) ?? []), [...report.samples]]);
      });
    }
    if (usesLmdb(row) && hasLmdb) {
      await attempt('lmdb', async () => {
        lmdb.push([...(await runLmdb(row.ranks, CONTENDED)).samples]);
      });
    }
    for (const how of row.sockets === undefined ? [] : (['spin', 'sleep'] as const)) {
      await attempt(`sockets, ${how}`, async () => {
        const report = await runSockets([row.sockets!, how, ...LENGTH]);
        if (report !== undefined) sockets[how].push([...report.samples]);
      });
    }
    if (row.memcpy !== undefined) {
      await attempt('memcpy', async () => {
        const report = await runMemcpy([row.memcpy!, ...LENGTH]);
        if (report !== undefined) memcpy.push([...report.samples]);
      });
    }
  }

  const peers: Record<string, Summary> = {};
  for (const peer of wanted) {
    const summary = summarize(taken.get(keyOf(peer)) ?? []);
    if (summary !== undefined) peers[peer.name] = summary;
  }
  const ofLmdb = summarize(lmdb);
  if (ofLmdb !== undefined) peers['lmdb'] = ofLmdb;
  const remarks = wanted.map((peer) => notes.get(keyOf(peer))).filter((note) => note !== undefined);
  // The table has no column for these.
  for (const name of [...LPF.map(({ name }) => name), 'lmdb'])
    if (peers[name] !== undefined) remarks.push(`${name}: ${digits(peers[name].median)}`);
  for (const [how, words] of [
    ['spin', 'look again and again'],
    ['sleep', 'sleep'],
  ] as const) {
    const limit = summarize(sockets[how]);
    if (limit !== undefined) remarks.push(`two processes with a socket that ${words}: ${digits(limit.median)}`);
  }
  const onesided = failed.has('onesided') ? undefined : summarize(ours);
  if (onesided !== undefined) measured.set(row.id, onesided);
  return judge(row, {
    onesided,
    peers,
    memcpy: summarize(memcpy),
    beside: row.beside === undefined ? undefined : measured.get(row.beside),
    notes: [...failed.values(), ...remarks],
  });
}

/** Our medians, by row. */
const measured = new Map<string, Summary>();

const loadBefore = loadavg()[0];
const status = new Status(process.stdout);
const names = PEERS.map(({ name }) => name);
for (const { name, packages } of absent)
  status.print(`${name} is not installed, so its column stays empty: apt-get install ${packages}`);
if (!hpcc && rows.some(({ peer }) => peer?.program === 'hpcc')) {
  status.print('hpcc is not installed, so the GUPS rows have no peer: apt-get install hpcc openmpi-bin');
}
if (!hasLmdb && rows.some(usesLmdb)) {
  status.print('lmdb is not installed, so the map rows are not compared with it: npm install --no-save lmdb');
}
if (lpf.length === 0 && rows.some(({ peer }) => peer?.program === 'bsp')) {
  status.print('lpfcc is not in the path, and LPF_HOME does not name a folder with it: the bsp rows have no peer');
}
if (loadBefore > 0.5) {
  status.print(
    `the machine is busy (load ${loadBefore.toFixed(1)}): other programs distort the results, ` +
      'most of all those of the peers, whose ranks spin',
  );
}
status.print(heading(names));
const results: RowResult[] = [];
const begun = performance.now();
for (const [i, row] of rows.entries()) {
  const result = await measureRow(row, status, `[${i + 1}/${rows.length}]`);
  results.push(result);
  status.print(tableRow(result, names));
  for (const note of result.notes) status.print(`    ${note}`);
}

const failures = results.filter(({ ok, onesided }) => ok === false || onesided === undefined);
status.print(closing(results, Math.round((performance.now() - begun) / 1e3), values.check));
if (values.json !== undefined) {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    node: process.versions.node,
    onesided: version,
    ranks: values.ranks,
    peers: { ...libraries, ...(hpcc ? { hpcc: 'MPI RandomAccess on Open MPI, in the gups rows' } : {}) },
    missing: [
      ...absent.map(({ name, packages }) => ({ name, packages })),
      ...(hpcc ? [] : [{ name: 'hpcc', packages: 'hpcc openmpi-bin' }]),
    ],
    rounds,
    loadBefore,
    date: new Date().toISOString(),
  };
  writeFileSync(values.json, `${JSON.stringify({ machine, rows: results }, null, 2)}\n`);
}
if (values.check && failures.length > 0) process.exitCode = 1;
