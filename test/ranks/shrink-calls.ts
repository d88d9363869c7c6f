/** One rank of several dies; what the others can do with what they had made before, and how they end. Args: HOW. */
import assert from 'node:assert/strict';
import { isMainThread } from 'node:worker_threads';
import { type Communicator, init, Window } from 'onesided';

const world = await init();
const win = await Window.allocate(world, Int32Array, 4);
await win.fence();
await win.fence();
const half = (await world.split(world.rank % 2))!;
await world.barrier();
assert.deepEqual(world.failed, []);
assert.equal(await world.agree(world.rank !== 0), false);
assert.equal(await world.agree(0xf0 | world.rank), 0xf0);
assert.equal(world.agreeSync(true), true);
for (const wrong of [1.5, 2 ** 33, '1', undefined])
  await assert.rejects(world.agree(wrong as never), { code: 'ERR_ARG' });
if (world.rank === 1) {
  if (isMainThread) process.kill(process.pid, 'SIGKILL');
  process.exit(7);
}
await assert.rejects(world.barrier(), { code: 'ERR_RMA_RANK_FAILED', rank: 1 });
// One rank's deadlines are too short, wherever they end its calls; the next call goes on.
let comm!: Communicator;
for (let short = 1; short < 32; short++) {
  let made: Communicator | undefined;
  for (let i = 0; i < short && made === undefined && world.rank === short % world.size; i++)
    made = await world.shrink({ timeout: 0.001 }).catch((error: { code: string }) => {
      assert.equal(error.code, 'ERR_RMA_TIMEOUT');
      return undefined;
    });
  comm = made ?? (await world.shrink());
}
assert.deepEqual(world.failed, [1]);
assert.equal(comm.size, world.size - 1);
assert.equal(comm.rank, world.rank - (world.rank > 1 ? 1 : 0));
await assert.rejects(win.fence(), { code: 'ERR_RMA_RANK_FAILED' });
await win.free();
await win.free();
await assert.rejects(half.size > 1 && world.rank % 2 === 1 ? half.barrier() : world.barrier(), {
  code: 'ERR_RMA_RANK_FAILED',
});
if (world.rank % 2 === 0) await half.barrier();
const fresh = await Window.allocate(comm, Int32Array, 4);
await fresh.lockAll();
fresh.put(Int32Array.of(comm.rank + 1), (comm.rank + 1) % comm.size, 0);
await fresh.unlockAll();
await comm.barrier();
assert.equal(fresh.local[0], ((comm.rank + comm.size - 1) % comm.size) + 1);
await fresh.free();
console.log(JSON.stringify({ rank: world.rank, size: comm.size }));
// Ends with those that are left.
await world.finalize();
