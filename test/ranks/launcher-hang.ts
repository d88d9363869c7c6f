/**
 * A job that hangs: rank 1 has a lock of its own part and never comes to the fence; rank 0 waits for that in the
 * blocking form, rank 2 in that which returns a promise, rank 3, which has another one, for the lock. Rank 1 computes.
 * With fewer ranks, the first ones. `--tell`: each says `hangs` before.
 */
import { init, Lock, Window } from 'onesided';

const world = await init();
const win = await Window.allocate(world, Float64Array, 1);
const locks = await Window.allocate(world, Float64Array, 1);
if (world.rank === 1) await locks.lock(1, Lock.EXCLUSIVE);
await world.barrier();
if (process.argv.includes('--tell')) await new Promise((said) => process.stdout.write('hangs\n', said));
if (world.rank === 0) win.fenceSync();
if (world.rank === 2) await win.fence();
if (world.rank === 3) {
  await locks.lock(3, Lock.SHARED);
  await locks.lock(1, Lock.SHARED);
}
const words = new Int32Array(new SharedArrayBuffer(4));
for (;;) Atomics.wait(words, 0, 0, 1000);
