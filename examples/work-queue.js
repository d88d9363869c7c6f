// @ts-check
/**
 * Producers and consumers: half of the ranks make tasks; the others carry them out, and write their results into one
 * list that a mutex guards. A bounded queue holds back producers that are too fast.
 *
 *     npx onesided run -n 4 examples/work-queue.js -- 200
 */
import assert from 'node:assert/strict';
import { init, Lock, Window } from 'onesided';
import { BoundedQueue, Counter, Mutex } from 'onesided/sync';

const TASKS = Number(process.argv[2] ?? 200);

const world = await init();
const { rank, size } = world;
const producers = Math.ceil(size / 2);
const tasks = await BoundedQueue.create(world, Int32Array, 16, { length: 2, name: 'tasks' });
const finished = await Counter.create(world);
const mutex = await Mutex.create(world);
/** At rank 0: the number of results, then the results. Not atomic: only the holder of the mutex changes it. */
const results = await Window.allocate(world, Float64Array, rank === 0 ? 1 + TASKS * producers : 0);

async function produce() {
  for (let i = 0; i < TASKS; i++) await tasks.push(Int32Array.of(rank, i)); // waits while 16 are in the queue
  if (finished.add() === producers - 1) tasks.close(); // the last producer
}

async function consume() {
  let done = 0;
  for await (const [producer, i] of tasks) {
    const result = producer * TASKS + i;
    await mutex.withLock(async () => {
      const count = new Float64Array(1);
      await results.lock(0, Lock.EXCLUSIVE);
      results.get(count, 0, 0);
      await results.flush(0);
      results.put(Float64Array.of(result), 0, 1 + count[0]);
      results.put(Float64Array.of(count[0] + 1), 0, 0);
      await results.unlock(0);
    });
    done++;
  }
  return done;
}

/** A single rank is both. */
const [, done] = await Promise.all([
  rank < producers ? produce() : undefined,
  rank >= producers || size === 1 ? consume() : 0,
]);
console.log(`rank ${rank} ${rank < producers ? `has made ${TASKS} tasks` : `has done ${done} tasks`}`);

await world.barrier();
if (rank === 0) {
  results.sync();
  assert.equal(results.local[0], TASKS * producers);
  const sorted = results.local.slice(1).sort();
  assert.ok(
    sorted.every((result, i) => result === i),
    'every task was done once',
  );
}
await Promise.all([results.free(), tasks.free(), mutex.free(), finished.free()]);
await world.finalize();
