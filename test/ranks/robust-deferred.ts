/**
 * Rank 2 of three dies; rank 0 has deferred its lock, and takes one of a window without that rank: it gets it. Prints
 * `locked`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { init, Lock, Window } from 'onesided';

const world = await init();
const all = await Window.allocate(world, Int32Array, 4, { info: { lock: 'two-sided', lock_defer: true } });
const pair = (await world.split(world.rank === 2 ? 1 : 0))!;
const other = await Window.allocate(pair, Int32Array, 4);
await world.barrier();
if (world.rank === 2) process.kill(process.pid, 'SIGKILL');
if (world.rank === 0) {
  await all.lock(2, Lock.EXCLUSIVE);
  await other.lock(1, Lock.EXCLUSIVE);
  await other.unlock(1);
  await other.lockAll();
  await other.unlockAll();
  console.log('locked');
}
await pair.barrier();
await sleep(100);
process.exit(0);
