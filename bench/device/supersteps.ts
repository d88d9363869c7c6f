/**
 * `npm run bench:rdma -- --supersteps`: supersteps of onesided/bsp by datagrams, beside those by reliable connections,
 * between two hosts with a Soft-RoCE device each, and a cable that loses packets (BSP over TCP/IP, T5).
 *
 *     node build/programs/bench/device/supersteps.js [--steps 20] [--json]
 *
 * Runs on both hosts at the same time, in the guests that ../device.mjs boots: `ONESIDED_TEST_HOST` says on which one.
 * Each has two of the four processes, every other one, so that all neighbours are on the other host: a device does
 * not send what is for itself. Needs root and tc. What comes is dropped at random (`gact`).
 *
 * Reliable connections may fail here: the Soft-RoCE of Linux 6.1 ends them with `IBV_WC_REM_INV_REQ_ERR` when a packet
 * of a longer message is lost. So does `ib_send_bw -s 65536` of perftest.
 */
import { spawnSync } from 'node:child_process';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { BspOptions } from 'onesided/bsp';
import { cells, type Found, machineOf, type Row, together } from '../ethernet/found.ts';
import { LONG, type Measured } from '../figures/shifts.ts';
import { ProgramError, ROOT, run } from '../programs.ts';

const { values } = parseArgs({
  options: { steps: { type: 'string', default: '20' }, json: { type: 'boolean', default: false } },
});
const HOST = Number(process.env['ONESIDED_TEST_HOST']);
const steps = Number(values.steps);
const PROCESSES = 4;
const WARM = 3;
/** Of a job: processors are emulated. */
const SECONDS = 600;
/** Microseconds: about what a packet takes on an emulated processor. */
const SLOT = 250;
const LOSSES = [0, 0.1, 1, 5];

const WAYS: Readonly<Record<string, BspOptions>> = {
  chunks: { delivery: 'packed' },
  'packets, unpaced': { delivery: 'packed', pacing: { slot: 0 } },
  'datagrams, unpaced': { delivery: 'datagrams', pacing: { slot: 0 } },
  'datagrams in slots': { delivery: 'datagrams', pacing: { slot: SLOT, Q: 2 } },
};

function tc(...args: readonly string[]): void {
  const { status, stderr, error } = spawnSync('tc', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`tc ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
}

/** Drops so many percent of what comes from the other host, at random. */
function lose(percent: number): void {
  tc('qdisc', 'del', 'dev', 'eth0', 'ingress');
  tc('qdisc', 'add', 'dev', 'eth0', 'ingress');
  if (percent === 0) return;
  const filter = ['filter', 'add', 'dev', 'eth0', 'ingress', 'protocol', 'all', 'matchall'];
  tc(...filter, 'action', 'gact', 'ok', 'random', 'netrand', 'drop', `${Math.round(100 / percent)}`);
}

/** One for each job: both hosts start the same ones. */
let port = 7300;

/** @returns on host 0 what was found */
async function measured(options: BspOptions): Promise<Found | undefined> {
  port++;
  const shift = JSON.stringify({ words: LONG, warm: WARM, steps, options });
  const own = Array.from({ length: PROCESSES / 2 }, (_, k) => 2 * k + HOST);
  const outputs = await Promise.all(
    own.map((rank) =>
      run(process.execPath, [join(ROOT, 'build/programs/bench/ranks/supersteps.js'), '--options', shift], {
        env: {
          ONESIDED_PROVIDER: 'rdma-core',
          ONESIDED_RANK: `${rank}`,
          ONESIDED_SIZE: `${PROCESSES}`,
          ONESIDED_ROOT_ADDRESS: `10.9.0.1:${port}`,
          ONESIDED_SECRET: 'a secret of this benchmark',
          ONESIDED_TIMEOUT: `${SECONDS}`,
        },
        seconds: SECONDS + 60,
      }),
    ),
  );
  const [, found] = /^supersteps: (.*)$/m.exec(outputs[0]) ?? [];
  return found === undefined ? undefined : together(JSON.parse(found) as Measured[][]);
}

const load = loadavg()[0];
tc('qdisc', 'add', 'dev', 'eth0', 'ingress');
const rows: Row[] = [];
for (const loss of LOSSES) {
  lose(loss);
  for (const [way, options] of Object.entries(WAYS)) {
    const row = { network: `${loss} %`, relation: `shift, ${4 * LONG} bytes`, way };
    try {
      const found = await measured(options);
      if (found === undefined) continue;
      rows.push({ ...row, ...found });
    } catch (error) {
      if (!(error instanceof ProgramError)) throw error;
      rows.push({ ...row, failed: error.message });
    }
    const { asks = 0, resent = 0, errors } = rows.at(-1)!;
    console.log([...cells(rows.at(-1)!), `asks ${asks}, sent again ${resent}, values wrong ${errors}`].join(' · '));
  }
}
if (values.json && HOST === 0) {
  console.log(`onesided-bench: ${JSON.stringify({ ...machineOf(PROCESSES, steps, load), rows })}`);
}
