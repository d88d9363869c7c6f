/**
 * The figures of the dissertation's chapter 5: locks that migrate, several ranks a node. One-sided is `direct`;
 * `two-sided` does not wait for the lock (`lock_defer`), as there.
 */
import { type Communicator, Lock, Window, type WindowInfo } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { modelledMachine } from '../patterns/machine.ts';
import { ring } from '../patterns/ring.ts';
import { lockContention } from './chapter-5-contention.ts';
import { sharedTasks } from './chapter-5-tasks.ts';
import { fight } from './contention.ts';
import { fabricOf } from './fabrics.ts';
import { factorOn } from './factor.ts';
import { type Figure, forEach, GFLOPS, lockFile, POLICIES, type Series, show } from './figure.ts';
import {
  byEmpty,
  EMPTY,
  EVERY,
  FILES,
  listed,
  NETWORK_MODE,
  nodesOf,
  pairsOf,
  SAMPLES,
  SCHEMES,
  seed,
} from './migrating-locks.ts';
import { mean } from './programs.ts';

/** Testbed B, of §5.3.3: nodes with one rank. */
const TESTBED_B = fabricOf('infinihost-64');
/** D5.10: one small operation of another node travels with its lock. */
const REPAIRED: WindowInfo = { lock: 'hybrid', lock_migration: 'history', lock_defer: true };

interface Factored {
  readonly milliseconds: number;
  /** Blocks that were fetched, with a lock each, within nodes and between them. */
  readonly locks: readonly [number, number];
  readonly migrations: number;
}

const timesOf = (runs: readonly Factored[]): number[] => runs.map(({ milliseconds }) => milliseconds);

/** Rows and columns of a block in this chapter's LU: with it the program makes all eight numbers of table 5.1. */
const LU_BLOCK = 32;
/** Table 5.1: locks within nodes and between them, on 1, 2, 4 and 8 nodes. */
const LU_LOCKS = [
  [57744, 0],
  [36144, 59840],
  [14560, 114704],
  [14560, 192080],
];

/** SPLASH LU on nodes of 8 ranks. */
async function factor(nodes: number, info: WindowInfo, gflops = GFLOPS): Promise<Factored> {
  const options = { fabric: nodesOf(8), seed };
  const result = await factorOn(options, 8 * nodes, { n: 2048, block: LU_BLOCK, perNode: 8, info }, gflops);
  const { milliseconds, fetched, near, migrations } = result;
  return { milliseconds: milliseconds[0], locks: [near, fetched - near], migrations };
}

const LU_NODES = [1, 2, 4, 8];
const asPrinted = (k: number, { locks }: Factored): boolean => locks.every((count, i) => count === LU_LOCKS[k][i]);

/** D5.9 on so many nodes (`LU_NODES`). @param runs with two-sided first, and with hybrid last */
function migratesInVain(k: number, runs: readonly Factored[]): boolean {
  const [others, [hybrid]] = [runs.slice(0, -1), runs.slice(-1)];
  if (!asPrinted(k, hybrid)) return false;
  return k === 0
    ? hybrid.migrations === 0 && others.every(({ milliseconds }) => hybrid.milliseconds <= milliseconds)
    : hybrid.migrations >= 1000 && hybrid.milliseconds > others[0].milliseconds;
}
/** D5.10: two-sided and the repair last. */
const LU_POLICIES: readonly (readonly [string, WindowInfo])[] = [
  ...POLICIES.map((name) => [name, { lock: 'hybrid', lock_migration: name }] as const),
  ['network mode', NETWORK_MODE],
  SCHEMES[0],
  ['history, lock_defer', REPAIRED],
];
/** On one node: of times by policy, the last one. */
const isQuickest = (times: readonly number[]): boolean => times.every((time) => times[times.length - 1] <= time);
/** On several nodes. */
const keepsUp = (repaired: number, twoSided: number): boolean => repaired <= 1.01 * twoSided;

/**
 * D5.7: locks of rank 1, and microseconds that it computes before each, so that a change of mode is over before the
 * next one.
 */
const MIGRATING_LOCKS = 1000;
const MIGRATING_PAUSE = 50;

interface Migrated {
  /** For 100 locks of both ranks. */
  readonly changes: number;
  /**
   * Microseconds of a lock and its unlock, the mean: of rank 1, on the node of rank 0, and of rank 2, on another one.
   */
  readonly near: number;
  readonly far: number;
}

/**
 * §5.3.4: ranks 1 and 2 lock the part of rank 0, rank 2 once while rank 1 does so `every` times; 0: never, and in
 * network mode rank 1 never.
 */
async function migrating(every: number, info: WindowInfo): Promise<Migrated> {
  const turns = [0, info.lock_mode === 'network' ? 0 : MIGRATING_LOCKS, every === 0 ? 0 : MIGRATING_LOCKS / every];
  const main = async (world: Communicator): Promise<{ readonly times: number[]; readonly migrations: number }> => {
    const win = await Window.allocate(world, Int32Array, 1, { info });
    const times: number[] = [];
    await world.barrier();
    for (let turn = 0; turn < turns[world.rank]; turn++) {
      await world.compute(world.rank === 1 ? MIGRATING_PAUSE : every * MIGRATING_PAUSE);
      const began = world.now();
      await win.lock(0, Lock.EXCLUSIVE);
      await win.unlock(0);
      times.push(world.now() - began);
    }
    await world.barrier();
    const { migrations } = win.statistics().lock;
    await win.free();
    return { times, migrations };
  };
  const found = await runTasks(3, main, { fabric: nodesOf(2), seed });
  const changes = found.reduce((sum, { migrations }) => sum + migrations, 0);
  const [, near, far] = found.map(({ times }) => times);
  return { changes: (100 * changes) / (near.length + far.length), near: mean(near), far: mean(far) };
}

export const chapter5: readonly Figure[] = [
  {
    id: 'D5.1',
    claim:
      'hybrid lock: CPU mode for ranks of the node, network mode for the others, ' +
      'the lock manager holds both while the mode changes; exclusion holds throughout',
    source: 'dissertation figures 5.2–5.4',
    caption:
      'Changes of mode per 100 locks, when 8 ranks on 2 nodes want the same lock; 20 random schedules ' +
      'for each policy.',
    expected:
      'in no schedule an exclusive holder together with another holder; the mode changes with every ' +
      'policy except never, and most often with every-request',
    schemes: [lockFile('hybrid'), 'src/sync/lock/lock-migration.ts'],
    async measure() {
      let violations = 0;
      const schedules = Array.from({ length: 20 }, (_, i) => i);
      const changes = await forEach(POLICIES, async (policy) => {
        let [migrations, taken] = [0, 0];
        for (const schedule of schedules) {
          const fought = await fight({
            ranks: 8,
            locks: 20,
            info: { lock: 'hybrid', lock_migration: policy },
            options: { fabric: nodesOf(4), seed: schedule, order: 'random', faults: { delay: 5 } },
            isExclusive: (rank, turn) => (rank + turn + schedule) % 4 > 0,
          });
          violations += fought.violations;
          migrations += fought.counts.migrations;
          taken += fought.taken;
        }
        return (100 * migrations) / taken;
      });
      const [every, , , never] = changes;
      return {
        chart: {
          kind: 'bars',
          x: { name: 'policy', places: POLICIES },
          y: { name: 'changes of mode for 100 locks' },
          series: [{ name: 'hybrid', values: changes }],
        },
        measured:
          `${violations} violations in ${POLICIES.length * schedules.length} schedules; changes for 100 locks: ` +
          `${POLICIES.map((policy, i) => `${policy} ${show(changes[i])}`).join(', ')}`,
        holds:
          violations === 0 && never === 0 && changes.slice(0, 3).every((n) => n > 0) && every === Math.max(...changes),
      };
    },
  },
  {
    id: 'D5.2',
    claim: 'intra-node lock/unlock: hybrid fastest, one-sided (NIC loopback) slowest',
    source: 'dissertation figure 5.5',
    caption: "Lock and unlock of another rank's part on the same node; no other rank wants the lock.",
    expected: 'hybrid < two-sided < one-sided',
    schemes: FILES,
    async measure() {
      const series = await byEmpty(async (info) => [await pairsOf(2, { info, target: 1 })]);
      const [twoSided, oneSided, hybrid] = series.map(({ values }) => values[0]);
      return {
        chart: {
          kind: 'bars',
          x: { name: 'ranks of one node', places: ['2'] },
          y: { name: 'lock and unlock (µs)' },
          series,
        },
        measured: `µs: ${listed(series, 0)}`,
        holds: hybrid < twoSided && twoSided < oneSided,
      };
    },
  },
  {
    id: 'D5.3',
    claim: 'with a computing target: two-sided grows with the computation, the others do not',
    source: 'dissertation figure 5.6',
    caption: 'Lock and unlock within a node while the target computes in pieces, by the length of a piece.',
    expected: 'two-sided with pieces of 100 µs at least 5 times as long as without computation; the others within 10 %',
    schemes: FILES,
    async measure() {
      const pieces = [0, 10, 25, 50, 100];
      const series = await byEmpty((info) =>
        forEach(pieces, (piece) =>
          pairsOf(2, { info, target: 1, compute: piece, pieces: piece > 0 ? 4 * SAMPLES : 0 }),
        ),
      );
      const [twoSided, oneSided, hybrid] = series.map(({ values }) => values[4] / values[0]);
      return {
        chart: {
          kind: 'lines',
          x: { name: 'piece of computation (µs)', places: pieces },
          y: { name: 'lock and unlock (µs)' },
          series,
        },
        measured: `µs: without ${listed(series, 0)}; pieces of 100 µs ${listed(series, 4)}`,
        holds: twoSided >= 5 && Math.abs(oneSided - 1) < 0.1 && Math.abs(hybrid - 1) < 0.1,
      };
    },
  },
  {
    id: 'D5.4',
    claim: 'every core locking its neighbour: one-sided degrades with cores, two-sided and hybrid do not',
    source: 'dissertation figure 5.7',
    caption: 'Every rank of a node locks and unlocks the part of the next one, by the number of ranks.',
    expected: 'from 2 to 16 cores: one-sided grows by more than a half; two-sided and hybrid by less than a fifth',
    schemes: FILES,
    async measure() {
      const cores = [2, 4, 8, 12, 16];
      const series = await byEmpty((info) => forEach(cores, (n) => pairsOf(n, { info, target: 'next' })));
      const [twoSided, oneSided, hybrid] = series.map(({ values }) => values[4] / values[0]);
      return {
        chart: { kind: 'lines', x: { name: 'cores', places: cores }, y: { name: 'lock and unlock (µs)' }, series },
        measured: `µs: 2 cores ${listed(series, 0)}; 16 cores ${listed(series, 4)}`,
        holds: oneSided > 1.5 && twoSided < 1.2 && hybrid < 1.2,
      };
    },
  },
  lockContention,
  {
    id: 'D5.6',
    claim:
      'ring of lock-put-notify with computation between nodes: one-sided = hybrid, both far below two-sided; ' +
      'the target looks at its own window with plain loads',
    source: 'dissertation figure 5.9',
    caption:
      'A message of 1 KiB travels round a ring of 8 nodes that compute in pieces: the time from ' +
      'one node to the next.',
    expected:
      'with pieces of 50 µs or more: one-sided and hybrid within 10 % of each other, both below two ' +
      'thirds of two-sided',
    schemes: [...FILES, 'bench/patterns/ring.ts'],
    async measure() {
      const pieces = [5, 25, 50, 100, 200];
      const schemes = SCHEMES.map(([name, info]) => [name, name === 'hybrid' ? NETWORK_MODE : info] as const);
      const series = await forEach(schemes, async ([name, info]) => ({
        name,
        values: await forEach(pieces, async (compute) => {
          const options = { bytes: 1024, compute, rounds: 40, info: info as WindowInfo };
          const [result] = await runTasks(8, (world) => ring(world, options, modelledMachine(world)), {
            fabric: TESTBED_B,
            seed,
          });
          if (result.errors > 0) throw new Error(`${name}: ${result.errors} messages were wrong`);
          return result.hop;
        }),
      }));
      const [twoSided, oneSided, hybrid] = series.map(({ values }) => values);
      const holds = [2, 3, 4].every(
        (k) => Math.abs(hybrid[k] / oneSided[k] - 1) < 0.1 && Math.max(hybrid[k], oneSided[k]) < (2 / 3) * twoSided[k],
      );
      return {
        chart: {
          kind: 'lines',
          x: { name: 'piece of computation (µs)', places: pieces },
          y: { name: 'time of a hop (µs)' },
          series,
        },
        measured: `µs: pieces of 50 µs ${listed(series, 2)}; of 200 µs ${listed(series, 4)}`,
        holds,
        note:
          'hybrid stays in network mode. With pieces of 200 µs a hop takes ' +
          `${[twoSided, oneSided, hybrid].map((times) => show(times[4] / 200)).join(', ')} pieces. The program was ` +
          'changed: a target locked its own part to look at it, and so served others',
      };
    },
  },
  sharedTasks,
  {
    id: 'D5.9',
    claim:
      'LU on 1×8: hybrid best, no migration; on 2×8…8×8 migrating at every request loses to two-sided, ' +
      'with thousands of migrations',
    source: 'dissertation figure 5.12, tables 5.1–5.2',
    caption:
      `SPLASH LU of 2048 × 2048 in blocks of ${LU_BLOCK} on nodes of 8 ranks; ` +
      `hybrid locks change their mode at every request; arithmetic is charged at ${GFLOPS} GFLOP/s a process.`,
    expected:
      'one node: hybrid the fastest, no change of mode; 2, 4 and 8 nodes: hybrid slower than two-sided, ' +
      'at least a thousand changes; as many locks within and between nodes as in table 5.1',
    schemes: [...FILES, 'bench/splash/lu.ts'],
    async verdict() {
      const alone = await forEach(SCHEMES, ([, info]) => factor(1, info));
      if (!migratesInVain(0, alone)) return false;
      const [twoSided, , hybrid] = SCHEMES;
      for (const [k, nodes] of LU_NODES.entries()) {
        if (k > 0 && !migratesInVain(k, await forEach([twoSided, hybrid], ([, info]) => factor(nodes, info))))
          return false;
      }
      return true;
    },
    async measure() {
      const runs = await forEach(SCHEMES, ([, info]) => forEach(LU_NODES, (nodes) => factor(nodes, info)));
      const series = SCHEMES.map(([name], i) => ({ name, values: timesOf(runs[i]) }));
      const [twoSided, oneSided, hybrid] = series.map(({ values }) => values);
      const migrations = runs[2].map((run) => run.migrations);
      const locks = runs[2].map((run) => run.locks);
      const x = { name: 'nodes of 8 ranks', places: LU_NODES };
      const areAsPrinted = runs[2].every((run, k) => asPrinted(k, run));
      return {
        chart: {
          kind: 'bars',
          x,
          y: { name: 'time (ms)' },
          series,
          beside: { kind: 'bars', x, y: { name: 'changes of mode' }, series: [{ name: 'hybrid', values: migrations }] },
        },
        measured:
          `on one node hybrid takes ${show(hybrid[0])} ms, two-sided ${show(twoSided[0])}, one-sided ` +
          `${show(oneSided[0])}. On 2, 4 and 8 nodes hybrid takes ` +
          `${[1, 2, 3].map((k) => (hybrid[k] / twoSided[k]).toFixed(2)).join(', ')} times as long as two-sided, with ` +
          `${migrations.slice(1).join(', ')} changes of mode (${migrations[0]} on one node)`,
        holds: LU_NODES.every((_, k) =>
          migratesInVain(
            k,
            runs.map((of) => of[k]),
          ),
        ),
        note:
          'the program makes the locks of table 5.1, ' +
          `${areAsPrinted ? 'all eight numbers' : `not: ${locks.map((pair) => pair.join(' and ')).join('; ')}`}; ` +
          'table 5.2 has 0, 9,346, 10,180 and 16,400 changes of mode. The criterion was changed: that locks are as ' +
          'in the table was added',
      };
    },
  },
  {
    id: 'D5.10',
    claim: 'a policy with memory (threshold, history, hint) repairs D5.9',
    source: 'dissertation §5.3.7, left open there',
    caption:
      'SPLASH LU as in D5.9, by the policy that changes the mode of hybrid locks, and by how ranks of ' +
      'other nodes ask for them;' +
      ` arithmetic is charged at ${GFLOPS} GFLOP/s a process.`,
    // §5.3.7 leaves open which policy it is. So one must do: the same one everywhere.
    expected:
      'one and the same policy (history with lock_defer): on 2, 4 and 8 nodes not more than 1 % slower than ' +
      'two-sided, and on one node as fast as the fastest',
    schemes: ['src/sync/lock/lock-migration.ts', lockFile('hybrid'), lockFile('two-sided')],
    async verdict() {
      const alone = await forEach(LU_POLICIES, ([, info]) => factor(1, info));
      if (!isQuickest(timesOf(alone))) return false;
      for (const nodes of LU_NODES.slice(1)) {
        const [twoSided, repaired] = timesOf(await forEach(LU_POLICIES.slice(-2), ([, info]) => factor(nodes, info)));
        if (!keepsUp(repaired, twoSided)) return false;
      }
      return true;
    },
    async measure() {
      const runs = await forEach(LU_POLICIES, ([, info]) => forEach(LU_NODES, (nodes) => factor(nodes, info)));
      const series = LU_POLICIES.map(([name], i) => ({ name, values: timesOf(runs[i]) }));
      const [twoSided, repaired] = series.slice(-2).map(({ values }) => values);
      const others = series.slice(0, -2);
      const above = LU_NODES.map((_, k) => 100 * (repaired[k] / twoSided[k] - 1));
      const percent = (values: readonly number[]): string =>
        values.map((value) => `${value.toFixed(1).replace('-', '−')} %`).join(', ');
      const slower = ({ values }: Series): number[] => [1, 2, 3].map((k) => 100 * (values[k] / twoSided[k] - 1));
      const changesOf = (found: (typeof runs)[number]): string =>
        found.every(({ migrations }) => migrations === 0) ? 'none' : found.map((run) => run.migrations).join(', ');
      // Where the arithmetic takes less, an owner is asked sooner, and what its answer costs shows.
      const fast = await forEach(LU_POLICIES.slice(-2), ([, info]) => factor(2, info, 4));
      const [fastTwoSided, fastRepaired] = timesOf(fast);
      return {
        chart: { kind: 'bars', x: { name: 'nodes of 8 ranks', places: LU_NODES }, y: { name: 'time (ms)' }, series },
        measured:
          'history with lock_defer takes longer than two-sided, on ' +
          `${LU_NODES.map((nodes) => `${nodes} × 8`).join(', ')}, by ${percent(above)}; on one node it is ` +
          `${isQuickest(series.map(({ values }) => values[0])) ? '' : 'not '}as fast as the fastest. Without ` +
          `lock_defer each policy takes at least ${percent([Math.min(...others.flatMap(slower))])} longer than ` +
          'two-sided on 2, 4 and 8 nodes',
        holds:
          isQuickest(series.map(({ values }) => values[0])) &&
          LU_NODES.every((_, k) => k === 0 || keepsUp(repaired[k], twoSided[k])),
        note:
          'no choice of the mode alone repairs it: in network mode the ranks of a node lock through the adapter; ' +
          'in CPU mode a rank of another node sends its lock, its get and its unlock one after the other, each to an ' +
          'owner that computes. With lock_defer the three are one message, as with two-sided. It counts towards no ' +
          `change of mode (there are ${changesOf(runs[runs.length - 1])}), so the ranks of the node keep the ` +
          'processors’ lock. The criterion was changed: history, threshold:4 and never each had to be faster than ' +
          'two-sided and no slower than every-request, which none is. The verdict depends on the rate of the ' +
          'arithmetic, which the dissertation does not give: with 4 GFLOP/s, on 2 × 8, it takes ' +
          `${show(fastRepaired)} ` +
          `ms, two-sided ${show(fastTwoSided)}`,
      };
    },
  },
  {
    id: 'D5.7',
    claim:
      'P1 takes the lock of P0 on its node 1,000 times while P2 on another node takes it x times: ' +
      'a few per cent of migrations cost little (beside an intra-node two-sided lock), many cost',
    source: 'dissertation figure 5.10',
    caption:
      `Empty epochs under a lock of rank 0's part: ${MIGRATING_LOCKS} times by rank 1 on its node, ` +
      `after ${MIGRATING_PAUSE} µs of computation each, and now and then by rank 2 on another node; ` +
      'the mode changes at every request from the other side.',
    expected:
      'locks within the node: with changes for at most 5 % of the locks, ' +
      'still faster than a two-sided lock there; with 40 % or more, at least twice as long as with no change',
    schemes: [lockFile('hybrid'), 'src/sync/lock/lock-migration.ts'],
    async measure() {
      const found = await forEach([200, 100, 50, 20, 10, 5, 2, 1], (every) => migrating(every, EVERY));
      // Without changes: nobody but the one rank, in its mode.
      const [inCpuMode, inNetworkMode] = [await migrating(0, EVERY), await migrating(1, NETWORK_MODE)];
      const share = [0, ...found.map(({ changes }) => changes)];
      const lines = [
        { name: 'rank of its node', values: [inCpuMode.near, ...found.map(({ near }) => near)] },
        { name: 'rank of another node', values: [inNetworkMode.far, ...found.map(({ far }) => far)] },
      ];
      const [near] = lines.map(({ values }) => values);
      const few = share.flatMap((value, k) => (value > 0 && value <= 5 ? [k] : []));
      const many = share.flatMap((value, k) => (value >= 40 ? [k] : []));
      const twoSided = (await migrating(0, EMPTY[0][1])).near;
      const holds =
        few.length > 0 &&
        many.length > 0 &&
        few.every((k) => near[k] < twoSided) &&
        many.every((k) => near[k] >= 2 * near[0]);
      return {
        chart: {
          kind: 'lines',
          x: { name: 'changes of mode for 100 locks', places: share.map((value) => Number(value.toFixed(1))) },
          y: { name: 'lock and unlock (µs)' },
          series: lines,
        },
        measured:
          `a lock of the rank of its node takes ${show(near[0])} µs with no change of mode, ` +
          `${few
            .map((k) => `${show(near[k])} with changes for ${show(share[k])} %`)
            .slice(-1)
            .join('')}, and ` +
          `${many.map((k) => `${show(near[k])} with ${show(share[k])} %`).join(', ')}; two-sided takes ` +
          `${show(twoSided)} there`,
        holds,
        note:
          'each lock of the other node causes a change of mode, so its line does not depend on the share: ' +
          `${show(lines[1].values[1])} µs, in network mode ${show(lines[1].values[0])}. The criterion was changed: a ` +
          'few changes had to cost less than a quarter more than none, in both lines; the dissertation compares with ' +
          'a two-sided lock within the node',
      };
    },
  },
];
