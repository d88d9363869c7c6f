// @ts-check
/**
 * Tasks of uneven size, shared out as ranks become free. Every rank has a queue of tasks, which is one counter in its
 * window. A rank takes its own tasks first, and then steals from the others. Taking a task is one fetchAndOp, wherever
 * the queue is.
 *
 *     npx onesided run -n 4 examples/task-pool.js -- 50
 */
import assert from 'node:assert/strict';
import { init, Op, Window } from 'onesided';

const TASKS = Number(process.argv[2] ?? 50);

const world = await init();
const { rank, size } = world;
/** Word 0: the next task of this rank's queue. Then, for each task, 1 + the rank that did it. */
const win = await Window.allocate(world, Int32Array, 1 + TASKS);
const one = Int32Array.of(1);
const me = Int32Array.of(1 + rank);
const taken = new Int32Array(1);

/** Counts primes below a limit that differs a lot from task to task. @param {number} owner @param {number} task */
function compute(owner, task) {
  const limit = 100 * (1 + ((owner * 31 + task * 17) % 50));
  let primes = 0;
  for (let n = 2; n < limit; n++) {
    let d = 2;
    while (d * d <= n && n % d !== 0) d++;
    if (d * d > n) primes++;
  }
  return primes;
}

let done = 0;
let stolen = 0;
await win.lockAll();
for (let step = 0; step < size; step++) {
  const owner = (rank + step) % size;
  for (;;) {
    win.fetchAndOp(one, taken, owner, 0, Op.SUM);
    await win.flush(owner);
    const task = taken[0];
    if (task >= TASKS) break; // this queue is empty
    compute(owner, task);
    win.accumulate(me, owner, 1 + task, Op.REPLACE);
    done++;
    if (owner !== rank) stolen++;
  }
}
await win.flushAll();
await world.barrier(); // the accumulates of all ranks are complete
win.sync(); // and the following loads see their values
const doneBy = win.local.subarray(1);
assert.ok(
  doneBy.every((who) => who >= 1 && who <= size),
  'a task was not done',
);
await win.unlockAll();

const total = new Int32Array(1);
await world.allreduce(Int32Array.of(done), total, Op.SUM);
assert.equal(total[0], TASKS * size);
console.log(`rank ${rank} did ${done} tasks, ${stolen} of them stolen`);

await win.free();
await world.finalize();
