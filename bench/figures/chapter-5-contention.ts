/**
 * The figure of the dissertation's §5.3.2: ranks of a node that want one lock. What decides are costs that it does not
 * give, so they are varied together over the ranges of the fabric's file.
 */
import { Assert, type Communicator, Window, type WindowInfo } from 'onesided';
import { type Fabric, runTasks } from 'onesided/fabrics';
import { type Figure, forEach, type Series, show } from './figure.ts';
import { EMPTY, EVERY, FILES, listed, NODES, pairsOf, SAMPLES, seed } from './migrating-locks.ts';
import { mean } from './programs.ts';

/** With the dissertation's own lock by the processor. */
const ONE_WORD: WindowInfo = { ...EVERY, lock_cpu: 'one-word' };
const [TWO_SIDED, PATIENT] = EMPTY.map(([, info]) => info);
/** In the fabric's file: the ends of the ranges of numbers that decide here. */
const WAITER = [0.1, 0.6] as const;
const POST = [0.1, 0.4] as const;
const LATENCY = [0.3, 1] as const;
const ATOMIC = [0.25, 1] as const;
const LOOPBACK = [0.2, 0.8] as const;
const CORES = [1, 2, 3, 4, 5, 8, 12, 15];

/**
 * Exclusive locks of rank 0's part as §4.1 has them: a compare-and-swap, again at once until it succeeds, and one that
 * gives the word back, for which nobody waits. @returns microseconds of both, the mean; `null` of rank 0
 */
async function hasty(world: Communicator): Promise<number | null> {
  // 64 bits, which the adapter swaps itself.
  const win = await Window.allocate(world, BigInt64Array, 1, { info: PATIENT });
  const [mine, free] = [BigInt64Array.of(BigInt(world.rank)), BigInt64Array.of(0n)];
  const [found, given] = [new BigInt64Array(1), new BigInt64Array(1)];
  const pair = async (): Promise<void> => {
    do {
      win.compareAndSwap(mine, free, found, 0, 0);
      await win.flush(0);
    } while (found[0] !== 0n);
    win.compareAndSwap(free, mine, given, 0, 0);
  };
  await win.lockAll(Assert.NO_CHECK);
  if (world.rank > 0) await pair();
  await world.barrier();
  const began = world.now();
  for (let i = 0; world.rank > 0 && i < SAMPLES; i++) await pair();
  const took = (world.now() - began) / SAMPLES;
  await world.barrier();
  await win.unlockAll();
  await win.free();
  return world.rank > 0 ? took : null;
}

const byLocks = (info: WindowInfo, fabric: Fabric = NODES): Promise<number[]> =>
  forEach(CORES, (n) => pairsOf(n + 1, { info, target: 0 }, fabric));
const byHasty = (fabric: Fabric = NODES): Promise<number[]> =>
  forEach(CORES, async (n) => mean(await runTasks(n + 1, hasty, { fabric, seed })));
const withNode = (node: Partial<Fabric['node']>, adapter: Partial<Fabric['adapter']> = {}): Fabric => ({
  ...NODES,
  node: { ...NODES.node, ...node },
  adapter: { ...NODES.adapter, ...adapter },
});

/** Whether hybrid takes the least time with up to three cores, and two-sided with five and more. */
const areFastest = (twoSided: readonly number[], hybrid: readonly number[]): boolean =>
  CORES.every((n, k) => (n > 3 || hybrid[k] <= twoSided[k]) && (n < 5 || twoSided[k] <= hybrid[k]));

const isSlowest = (oneSided: readonly number[], ...others: readonly (readonly number[])[]): boolean =>
  oneSided.every((time, k) => others.every((other) => time >= other[k]));

/** Least, middle and most. */
const three = ([least, most]: readonly [number, number], middle: number): number[] => [least, middle, most];

interface Tried {
  readonly machines: number;
  readonly fastest: number;
  /** Of one-sided as in the dissertation, and as in this library. */
  readonly slowest: readonly [number, number];
  readonly both: readonly [number, number];
}

/** On how many machines which part holds. */
async function machinesTried(): Promise<Tried> {
  const { node, adapter } = NODES;
  let [machines, fastest] = [0, 0];
  const [slowest, both] = [[0, 0] as [number, number], [0, 0] as [number, number]];
  for (const post of three(POST, node.post!)) {
    for (const latency of three(LATENCY, node.latency)) {
      const costs = { post, completion: post, latency };
      const twoSided = await byLocks(TWO_SIDED, withNode(costs));
      const hybrids = await forEach([...three(WAITER, node.waiter), 0.45], (waiter) =>
        byLocks(ONE_WORD, withNode({ ...costs, waiter })),
      );
      for (const atomic of three(ATOMIC, adapter.atomic)) {
        for (const loopback of LOOPBACK) {
          // What waiters of the processor's lock add is none of one-sided's costs.
          const fabric = withNode(costs, { atomic, loopback });
          const oneSided = [await byHasty(fabric), await byLocks(PATIENT, fabric)];
          for (const hybrid of hybrids) {
            const first = areFastest(twoSided, hybrid);
            machines++;
            if (first) fastest++;
            for (const as of [0, 1] as const) {
              const last = isSlowest(oneSided[as], twoSided, hybrid);
              if (last) slowest[as]++;
              if (first && last) both[as]++;
            }
          }
        }
      }
    }
  }
  return { machines, fastest, slowest, both };
}

export const lockContention: Figure = {
  id: 'D5.5',
  claim: 'n cores on one lock: hybrid best up to three, two-sided beyond four, one-sided worst',
  source: 'dissertation figure 5.8',
  caption:
    'Ranks of a node lock and unlock the same part, by the number of those that do. Hybrid takes one word, on which ' +
    "all spin, and one-sided tries again at once, as the dissertation's do; dashed: with the least and the most that " +
    "a waiter may add to a hand-over, with this library's queue lock, and with its back-off.",
  expected:
    'with one word and without back-off: hybrid the fastest with 1, 2 and 3 cores, two-sided with 5 and more; ' +
    'one-sided the slowest everywhere',
  schemes: [
    ...FILES,
    'src/sync/lock/one-word-lock.ts',
    'src/sync/lock/queue-lock.ts',
    'src/sync/lock/lock-back-off.ts',
  ],
  async verdict() {
    const [twoSided, hybrid] = [await byLocks(TWO_SIDED), await byLocks(ONE_WORD)];
    return areFastest(twoSided, hybrid) && isSlowest(await byHasty(), twoSided, hybrid);
  },
  async measure() {
    const [twoSided, oneSided, hybrid] = [await byLocks(TWO_SIDED), await byHasty(), await byLocks(ONE_WORD)];
    const measured: readonly Series[] = [
      { name: 'two-sided', values: twoSided },
      { name: 'one-sided', values: oneSided },
      { name: 'hybrid', values: hybrid },
    ];
    const patient = await byLocks(PATIENT);
    const ends = await forEach([...WAITER], async (waiter) => ({
      name: `hybrid, ${waiter} µs a waiter`,
      like: 'hybrid',
      values: await byLocks(ONE_WORD, withNode({ waiter })),
    }));
    const queue = { name: 'hybrid, queue lock', like: 'hybrid', values: await byLocks(EVERY) };
    const crossing = (values: readonly number[]): string => {
      const k = CORES.findIndex((_, at) => twoSided[at] < values[at]);
      return k < 0 ? 'nowhere up to 15' : `from ${k === 0 ? 1 : `${CORES[k - 1]} to ${CORES[k]}`} cores on`;
    };
    const { waiter, post, latency } = NODES.node;
    const first = areFastest(twoSided, hybrid);
    const last = isSlowest(oneSided, twoSided, hybrid);
    const { machines, fastest, slowest, both } = await machinesTried();
    return {
      chart: {
        kind: 'lines',
        x: { name: 'cores that want the lock', places: CORES },
        y: { name: 'lock and unlock (µs)' },
        series: [...measured, { name: 'one-sided, back-off', like: 'one-sided', values: patient }, ...ends, queue],
      },
      measured:
        `µs: 2 cores ${listed(measured, 1)}; 5 cores ${listed(measured, 4)}; 15 cores ${listed(measured, 7)}. ` +
        `Hybrid and two-sided are ${first ? '' : 'not '}the fastest where the claim says so; one-sided is ` +
        `${last ? '' : 'not '}the slowest everywhere`,
      holds: first && last,
      note:
        'the dissertation does not say how much each waiting core adds to a hand-over (`node.waiter`, free). ' +
        `Two-sided is faster than hybrid ${crossing(hybrid)} if it is ${waiter} µs, ` +
        `${ends.map(({ values }, k) => `${crossing(values)} if ${WAITER[k]}`).join(', ')}; with the queue lock, ` +
        `${crossing(queue.values)}. Nor does it say what a message within a node costs (here ` +
        `${show(2 * post! + latency)} µs one way), or an atomic operation by the adapter. Over the ranges of these ` +
        `five numbers ${machines} combinations were tried: hybrid and two-sided are the fastest where the claim says ` +
        `so on ${fastest}, one-sided is the slowest everywhere on ${slowest[0]}, both on ${both[0]}. With this ` +
        `library's back-off one-sided takes ${show(patient.at(-1)!)} instead of ${show(oneSided.at(-1)!)} µs with 15 ` +
        `cores, and is the slowest everywhere on ${slowest[1]}, both on ${both[1]}. Criterion, locks and costs of ` +
        'messages were changed: hybrid had this library’s queue lock first, and one-sided its back-off',
    };
  },
};
