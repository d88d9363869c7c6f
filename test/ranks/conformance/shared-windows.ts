/** MPI 4.1, 12.2.3: windows whose parts all ranks load and store. */
import assert from 'node:assert/strict';
import { Assert, Op, Rank, Window } from 'onesided';
import { collector, peek, refused, ring, sumTo } from './requirement.ts';

const { requirements, requirement, shared } = collector();
export const sharedWindows = requirements;

shared('12.2.3', 'every rank can load from a shared part and store to it', 'mpich/win_shared mpich/fence_shm', (t) =>
  t.using(Window.allocateShared(t.comm, Float64Array, 4), async (w) => {
    const win = w as Window<Float64Array>;
    await win.lockAll();
    win.local[0] = t.rank + 1;
    win.sync();
    await t.barrier();
    win.sync();
    for (const rank of t.ranks) assert.equal(win.sharedQuery(rank)[0], rank + 1);
    await t.barrier();
    win.sharedQuery(t.next)[1] = 50 + t.rank;
    win.sync();
    await t.barrier();
    win.sync();
    assert.equal(win.local[1], 50 + t.previous);
    await win.unlockAll();
  }),
);
shared(
  '12.2.3',
  'sharedQuery returns each part with the length that its rank asked for',
  'mpich/win_shared_zerobyte',
  (t) =>
    t.using(Window.allocateShared(t.comm, Int32Array, t.rank % 2 === 0 ? 0 : 3), (w) => {
      const win = w as Window<Int32Array>;
      for (const rank of t.ranks) assert.equal(win.sharedQuery(rank).length, rank % 2 === 0 ? 0 : 3);
    }),
);
shared(
  '12.2.3',
  'sharedQuery of Rank.NULL returns the part of the first rank that has memory',
  'mpich/win_shared_query_null',
  (t) =>
    t.using(Window.allocateShared(t.comm, Int32Array, t.rank === 0 ? 0 : 2), async (w) => {
      const win = w as Window<Int32Array>;
      await win.fence();
      if (t.rank === 1) win.local[0] = 77;
      await win.fence(Assert.NO_SUCCEED);
      assert.equal(win.sharedQuery(Rank.NULL)[0], 77);
      assert.equal(win.sharedQuery(Rank.NULL).length, 2);
    }),
  2,
);
shared('12.2.3', 'the parts of a shared window are contiguous', 'mpich/win_shared_create_allocshm', (t) =>
  t.using(Window.allocateShared(t.comm, Float64Array, 3), async (w) => {
    const win = w as Window<Float64Array>;
    await win.fence();
    win.local.fill(t.rank + 1);
    await win.fence(Assert.NO_SUCCEED);
    const { buffer, byteOffset } = win.sharedQuery(0);
    const whole = new Float64Array(buffer, byteOffset, 3 * t.size);
    assert.deepEqual(
      [...whole],
      t.ranks.flatMap((rank) => [rank + 1, rank + 1, rank + 1]),
    );
  }),
);
shared(
  '12.2.3',
  'with alloc_shared_noncontig, parts need not be contiguous, and are still shared',
  'mpich/win_shared_noncontig mpich/win_shared_noncontig_put mpich/win_shared_create_no_allocshm',
  (t) =>
    t.using(Window.allocateShared(t.comm, Float64Array, 3, { info: { alloc_shared_noncontig: true } }), async (w) => {
      const win = w as Window<Float64Array>;
      await win.fence();
      win.put(Float64Array.of(t.rank + 1), t.next, 2);
      await win.fence(Assert.NO_SUCCEED);
      for (const rank of t.ranks) {
        assert.equal(win.sharedQuery(rank)[2], ((rank + t.size - 1) % t.size) + 1);
      }
    }),
);
shared('12.2.3', 'put, get and atomic calls work on a shared window', 'mpich/win_shared_put_flush_get', (t) =>
  t.using(Window.allocateShared(t.comm, Float64Array, 4), async (w) => {
    const win = w as Window<Float64Array>;
    await ring(t, win);
    await t.barrier();
    await win.lockAll();
    win.accumulate(Float64Array.of(t.rank + 1), 0, 1, Op.SUM);
    await win.flush(0);
    await t.barrier();
    assert.equal(await peek(win, 0, 1), sumTo(t.size));
    await win.unlockAll();
  }),
);
for (const [call, issue] of Object.entries({
  put: (win, target) => win.put(Int32Array.of(9), target, 0),
  accumulate: (win, target) => win.accumulate(Int32Array.of(9), target, 0, Op.SUM),
  getAccumulate: (win, target) => win.getAccumulate(Int32Array.of(9), new Int32Array(1), target, 0, Op.SUM),
  fetchAndOp: (win, target) => win.fetchAndOp(Int32Array.of(9), new Int32Array(1), target, 0, Op.SUM),
  compareAndSwap: (win, target) => win.compareAndSwap(Int32Array.of(9), Int32Array.of(0), new Int32Array(1), target, 0),
} satisfies Record<string, (win: Window<Int32Array>, target: number) => void>)) {
  const short = { put: 'put', accumulate: 'acc', getAccumulate: 'gacc', fetchAndOp: 'fop', compareAndSwap: 'cas' };
  shared(
    '12.2.3',
    `after ${call} and flush, another rank loads the new value from a shared part`,
    `mpich/win_shared_${short[call as keyof typeof short]}_flush_load`,
    (t) =>
      t.using(Window.allocateShared(t.comm, Int32Array, 1), async (w) => {
        const win = w as Window<Int32Array>;
        await win.lockAll();
        // To the neighbour; the one after it looks.
        issue(win, t.next);
        await win.flush(t.next);
        await t.barrier();
        win.sync();
        for (const rank of t.ranks) assert.equal(win.sharedQuery(rank)[0], 9);
        await win.unlockAll();
      }),
  );
}
shared(
  '12.2.3',
  'where ranks share memory, the parts of an allocated window can be queried and loaded, too',
  'mpich/win_shared_query',
  (t) =>
    t.window(Int32Array, 2, async (win) => {
      await win.fence();
      win.local[1] = t.rank + 1;
      await win.fence(Assert.NO_SUCCEED);
      for (const rank of t.ranks) assert.equal(win.sharedQuery(rank)[1], rank + 1);
      await t.barrier();
    }),
);
requirement('12.2.3', 'sharedQuery on a dynamic window is an error', 'mpich/win_shared_query', (t) =>
  t.using(Window.createDynamic(t.comm), (win) => refused('ERR_RMA_FLAVOR', () => win.sharedQuery(t.rank))),
);
shared('12.2.3', 'sharedQuery of a rank that does not exist is an error', 'mpich/win_shared_query', (t) =>
  t.using(Window.allocateShared(t.comm, Int32Array, 1), (w) => {
    const win = w as Window<Int32Array>;
    for (const rank of [t.size, -7, 0.5]) refused('ERR_RANK', () => win.sharedQuery(rank));
  }),
);
