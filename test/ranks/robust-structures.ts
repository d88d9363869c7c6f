/** Rank 0 ends while the others wait for what only it could give them. `--what=mutex|queue` */
import { writeSync } from 'node:fs';
import { init, type RmaError } from 'onesided';
import { BoundedQueue, Mutex } from 'onesided/sync';
import { argument } from './support/cases.ts';

const world = await init();
const mutex = await Mutex.create(world, { owner: 1 });
const queue = await BoundedQueue.create(world, Int32Array, 1, { owner: 1 });
if (world.rank === 0) await mutex.lock();
await world.barrier();
if (world.rank === 0) {
  const until = performance.now() + 100;
  while (performance.now() < until);
  process.exit(3);
}
const began = performance.now();
try {
  await (argument('what') === 'mutex' ? mutex.lock() : queue.pop());
} catch (error) {
  const milliseconds = performance.now() - began;
  // At once: the job is about to be ended.
  writeSync(1, `${JSON.stringify({ rank: world.rank, code: (error as RmaError).code, milliseconds })}\n`);
  throw error;
}
