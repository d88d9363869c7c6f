/** MPI 4.1, 12.5.1: fence. */
import assert from 'node:assert/strict';
import { Assert, Op, Window } from 'onesided';
import { FENCE_SCHEMES, FENCES_BY_HINT } from '../support/kinds.ts';
import { collector, peek } from './requirement.ts';

const { requirements, requirement, shared } = collector();
export const fences = requirements;

requirement(
  '12.5.1',
  'fence completes the operations of every rank, at origins and targets',
  'mpich/fence mpich/putfence1 mpi4py/testFence',
  (t) =>
    t.window(Int32Array, 3 * t.size, async (win) => {
      const found = t.ranks.map(() => new Int32Array(1));
      win.local[3 * t.rank + 2] = 7 + t.rank;
      await win.fence();
      for (const target of t.ranks) {
        win.put(Int32Array.of(t.rank + 1), target, 3 * t.rank);
        win.accumulate(Int32Array.of(2), target, 1, Op.SUM);
        win.get(found[target], target, 3 * target + 2);
      }
      await win.fence(Assert.NO_SUCCEED);
      for (const rank of t.ranks) {
        assert.equal(win.local[3 * rank], rank + 1);
        assert.equal(found[rank][0], 7 + rank);
      }
      assert.equal(win.local[1], 2 * t.size);
    }),
);
requirement('12.5.1', 'fence epochs may follow each other back to back', 'mpich/epochtest', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.fence();
    for (let i = 1; i <= 30; i++) {
      win.put(Int32Array.of(1000 * i + t.rank), t.next, 0);
      if (i % 2 === 0) await win.fence();
      else if (t.blocks) win.fenceSync();
      else await win.fence();
      assert.equal(win.local[0], 1000 * i + t.previous);
      // The load must come before the next put: that is a fence's work, too.
      await win.fence();
    }
    await win.fence(Assert.NO_SUCCEED);
  }),
);
requirement(
  '12.5.1',
  "a fence without operations is a barrier of the window's ranks",
  'mpich/nullpscw mpich/fence',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      const other = await Window.allocate(t.comm, Int32Array, 1);
      await other.lockAll();
      for (let i = 1; i <= 10; i++) {
        other.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
        await other.flush(0);
        await win.fence();
        assert.equal(await peek(other, 0, 0), i * t.size);
        await win.fence();
      }
      await other.unlockAll();
      await win.fence(Assert.NO_SUCCEED);
      await other.free();
    }),
);
requirement('12.5.1', 'fences of two windows are independent of each other', 'mpich/manyrma3 mpich/wintest', (t) =>
  t.window(Int32Array, 1, async (one) => {
    const two = await Window.allocate(t.comm, Int32Array, 1);
    await one.fence();
    await two.fence();
    one.put(Int32Array.of(t.rank + 1), t.next, 0);
    two.put(Int32Array.of(t.rank + 11), t.next, 0);
    await two.fence(Assert.NO_SUCCEED);
    assert.equal(two.local[0], t.previous + 11);
    await one.fence(Assert.NO_SUCCEED);
    assert.equal(one.local[0], t.previous + 1);
    await two.free();
  }),
);
requirement('12.5.1', "fence is collective over the window's ranks, not over the job", 'mpich/epochtest', async (t) => {
  const half = (await t.comm.split(t.rank % 2))!;
  const win = await Window.allocate(half, Int32Array, 1);
  // One half makes more fences than the other.
  for (let i = 0; i < 3 + 4 * (t.rank % 2); i++) await win.fence();
  win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
  await win.fence(Assert.NO_SUCCEED);
  if (half.rank === 0) assert.equal(win.local[0], half.size);
  await win.free();
  await half.finalize();
});
for (const fence of FENCE_SCHEMES) {
  const add = FENCES_BY_HINT.includes(fence) ? requirement : shared;
  add(
    '12.5.1',
    `the fence ${fence} completes puts in epochs that follow each other back to back`,
    'mpich/fence_shm mpich/transpose3_shm mpich/test2_shm mpich/test3_shm mpich/test2_am_shm mpich/test3_am_shm',
    (t) =>
      t.window(
        Float64Array,
        t.size,
        async (win) => {
          await win.fence();
          for (let round = 1; round <= 5; round++) {
            for (const target of t.ranks) win.put(Float64Array.of(10 * t.rank + round), target, t.rank);
            await win.fence();
            assert.deepEqual(
              [...win.local],
              t.ranks.map((rank) => 10 * rank + round),
            );
            await win.fence();
          }
          await win.fence(Assert.NO_SUCCEED);
        },
        { info: { fence } },
      ),
  );
}
