/**
 * Locks that ranks fight for, on a machine that may have other work: what bench/peers/contended.c does, operation
 * for operation.
 *
 *   onesided run -n N build/programs/bench/ranks/contended.js -- lock|map SAMPLES [MS]
 *
 * - `lock`: each rank takes the exclusive lock of rank 0's part, gets a counter, puts it back plus one, and unlocks;
 * - `map`: 10,000 values of 256 bytes lie in the ranks' parts in turn. Nine of ten operations read one under the shared
 *   lock of its part, every tenth writes one under the exclusive lock. The first and the last word of a value are the
 *   same, and that is checked.
 *
 * All ranks work for MS milliseconds (400) a sample. The sample is this time divided by the operations of all ranks:
 * means of short blocks would tell how long an operation takes while its rank has a core.
 */
import { type Communicator, init, Lock, Op, Window } from 'onesided';

const VALUES = 10_000;
const WORDS = 64;
/** Operations between two looks at the clock. */
const BATCH = 16;
const WARM_UP_MS = 1000;

/** Makes one operation. */
type Work = () => void;

interface Task {
  readonly work: Work;
  /** Throws if something was lost. @param operations of all ranks */
  check(operations: number): void;
  free(): Promise<void>;
}

async function counter(world: Communicator): Promise<Task> {
  const window = await Window.allocate(world, Float64Array, 512);
  const value = new Float64Array(1);
  return {
    work() {
      window.lockSync(0, Lock.EXCLUSIVE);
      window.get(value, 0, 0);
      window.flushSync(0);
      value[0]++;
      window.put(value, 0, 0);
      window.unlockSync(0);
    },
    check(operations) {
      if (world.rank === 0 && window.local[0] !== operations)
        throw new Error(`the counter says ${window.local[0]} after ${operations} operations`);
    },
    free: () => window.free(),
  };
}

async function map(world: Communicator): Promise<Task> {
  const { rank, size } = world;
  const window = await Window.allocate(world, Int32Array, Math.ceil(VALUES / size) * WORDS);
  const value = new Int32Array(WORDS);
  let seed = 12345 + rank;
  let turn = 0;
  return {
    work() {
      seed = (Math.imul(seed, 1664525) + 1013904223) | 0;
      const key = (seed >>> 8) % VALUES;
      const target = key % size;
      const at = Math.floor(key / size) * WORDS;
      if (++turn % 10 !== 0) {
        window.lockSync(target, Lock.SHARED);
        window.get(value, target, at);
        window.flushSync(target);
        window.unlockSync(target);
        if (value[0] !== value[WORDS - 1]) throw new Error(`value ${key} is half of one and half of another`);
      } else {
        value.fill(seed);
        window.lockSync(target, Lock.EXCLUSIVE);
        window.put(value, target, at);
        window.unlockSync(target);
      }
    },
    check() {},
    free: () => window.free(),
  };
}

/** @returns operations that this rank has made meanwhile */
function workFor(ms: number, work: Work): number {
  const end = performance.now() + ms;
  let operations = 0;
  while (performance.now() < end) {
    for (let i = 0; i < BATCH; i++) work();
    operations += BATCH;
  }
  return operations;
}

const [what, samples = '5', ms = '400'] = process.argv.slice(2);
const world = await init();
const task = await (what === 'lock' ? counter : map)(world);
const [mine, all] = [new Float64Array(1), new Float64Array(1)];
const together = (duration: number): number => {
  world.barrierSync();
  mine[0] = workFor(duration, task.work);
  world.allreduceSync(mine, all, Op.SUM);
  return all[0];
};
let total = together(WARM_UP_MS);
const found: number[] = [];
for (let sample = 0; sample < Number(samples); sample++) {
  const operations = together(Number(ms));
  total += operations;
  found.push((1e6 * Number(ms)) / operations);
}
task.check(total);
world.barrierSync();
await task.free();
if (world.rank === 0)
  console.log(
    JSON.stringify({ row: what, unit: 'ns', iterations: Math.round(total / Number(samples)), samples: found }),
  );
await world.finalize();
