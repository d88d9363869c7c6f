/**
 * Rank 2 of three dies; rank 0 has deferred its lock, and takes one of a window without that rank: it gets it. The
 * unlock of the dead rank says that it is dead. Prints `locked` and `told`. `--lock=SCHEME`; default: `two-sided`.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { init, Lock, type LockSchemeName, Window } from 'onesided';
import { argument } from './support/cases.ts';

const lock = (argument('lock') ?? 'two-sided') as LockSchemeName;
const world = await init();
const all = await Window.allocate(world, Int32Array, 4, { info: { lock, lock_defer: true } });
const pair = (await world.split(world.rank === 2 ? 1 : 0))!;
const other = await Window.allocate(pair, Int32Array, 4);
await world.barrier();
if (world.rank === 2) process.kill(process.pid, 'SIGKILL');
if (world.rank === 0) {
  await all.lock(2, Lock.EXCLUSIVE);
  // As long as it lives, its adapter or its thread would give the lock, and take the put.
  while (!world.failed.includes(2)) await sleep(1);
  await other.lock(1, Lock.EXCLUSIVE);
  await other.unlock(1);
  await other.lockAll();
  await other.unlockAll();
  console.log('locked');
  const putAndUnlock = async (): Promise<void> => {
    all.put(Int32Array.of(1), 2, 0);
    await all.unlock(2);
  };
  await assert.rejects(putAndUnlock, { code: 'ERR_RMA_RANK_FAILED' });
  console.log('told');
}
await pair.barrier();
await sleep(100);
process.exit(0);
