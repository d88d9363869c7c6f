/** MPI 4.1, 12.5.4 to 12.5.6: flush and sync, assertions, and epochs of one window beside each other. */
import assert from 'node:assert/strict';
import { Assert, Lock, Op, Rank, type Window } from 'onesided';
import { collector, members, refused, refusedLater, sumTo } from './requirement.ts';

const { requirements, requirement } = collector();
export const flushes = requirements;

// ---- 12.5.4 flush and sync ------------------------------------------------------------------------------------------

const write = {
  put: (win, target) => win.put(Int32Array.of(9), target, 1),
  accumulate: (win, target) => win.accumulate(Int32Array.of(9), target, 1, Op.REPLACE),
  getAccumulate: (win, target) => win.getAccumulate(Int32Array.of(9), new Int32Array(1), target, 1, Op.REPLACE),
  fetchAndOp: (win, target) => win.fetchAndOp(Int32Array.of(9), new Int32Array(1), target, 1, Op.REPLACE),
  compareAndSwap: (win, target) => win.compareAndSwap(Int32Array.of(9), Int32Array.of(0), new Int32Array(1), target, 1),
} satisfies Record<string, (win: Window<Int32Array>, target: number) => void>;
for (const [call, program] of Object.entries({
  put: 'put',
  accumulate: 'acc',
  getAccumulate: 'gacc',
  fetchAndOp: 'fop',
  compareAndSwap: 'cas',
})) {
  requirement(
    '12.5.4',
    `flush completes ${call} at the target: a third rank then gets the new value`,
    `mpich/${program}_flush_get`,
    (t) =>
      t.window(Int32Array, 2, async (win) => {
        await win.lockAll();
        write[call as keyof typeof write](win, t.next);
        await win.flush(t.next);
        await t.barrier();
        const found = new Int32Array(1);
        win.get(found, (t.rank + 2) % t.size, 1);
        await win.flush((t.rank + 2) % t.size);
        assert.equal(found[0], 9);
        await win.unlockAll();
        await t.barrier();
      }),
  );
}
requirement(
  '12.5.4',
  'after flush, the results of gets and fetches are there',
  'mpich/flush mpich/get_acc_flush mpich/lock_dt_flush',
  (t) =>
    t.window(Int32Array, 4, async (win) => {
      win.local.set([t.rank, 1, 2, 3]);
      await t.barrier();
      await win.lock(t.next, Lock.SHARED);
      const found = new Int32Array(4);
      win.get(found, t.next, 0);
      await win.flush(t.next);
      assert.deepEqual([...found], [t.next, 1, 2, 3]);
      win.fetchAndOp(Int32Array.of(0), found.subarray(3), t.next, 0, Op.NO_OP);
      if (t.blocks) win.flushSync(t.next);
      else await win.flush(t.next);
      assert.equal(found[3], t.next);
      await win.unlock(t.next);
      await t.barrier();
    }),
);
requirement(
  '12.5.4',
  'after flushLocal, origins may be used again and results are there',
  'mpich/get_flushlocal mpich/lock_dt_flushlocal mpich/lockall_dt_flushlocal mpich/large_acc_flush_local',
  (t) =>
    t.window(Int32Array, 2 * t.size + 1, async (win) => {
      win.local[2 * t.size] = 7 + t.rank;
      await t.barrier();
      await win.lockAll();
      const origin = new Int32Array(1);
      for (const target of t.ranks) {
        origin[0] = 10 * t.rank + target;
        win.put(origin, target, 2 * t.rank);
        await win.flushLocal(target);
        origin[0] = -1;
        // What was put may still be on its way: what is got lies elsewhere.
        const found = new Int32Array(1);
        win.accumulate(Int32Array.of(1), target, 2 * t.rank + 1, Op.SUM);
        win.get(found, target, 2 * t.size);
        if (t.blocks) win.flushLocalSync(target);
        else await win.flushLocal(target);
        assert.equal(found[0], 7 + target);
      }
      await win.unlockAll();
      await t.barrier();
      for (const rank of t.ranks)
        assert.deepEqual([...win.local.subarray(2 * rank, 2 * rank + 2)], [10 * rank + t.rank, 1]);
    }),
);
requirement(
  '12.5.4',
  'flushAll and flushLocalAll do the same for all targets',
  'mpich/lockall_dt_flush mpich/lockall_dt_flushall mpich/lockall_dt_flushlocalall mpi4py/testFlushSync',
  (t) =>
    t.window(Int32Array, t.size, async (win) => {
      await win.lockAll();
      const origin = Int32Array.of(t.rank + 1);
      for (const target of t.ranks) win.put(origin, target, t.rank);
      await win.flushLocalAll();
      origin[0] = -1;
      await win.flushAll();
      if (t.blocks) {
        win.flushAllSync();
        win.flushLocalAllSync();
      } else {
        await win.flushAll();
        await win.flushLocalAll();
      }
      await t.barrier();
      assert.deepEqual(
        [...win.local],
        t.ranks.map((rank) => rank + 1),
      );
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.5.4',
  'flush without operations does nothing, even for the rank itself and for Rank.NULL',
  'mpich/flush mpi4py/testFlushSync',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await win.lockAll();
      for (const target of t.ranks) {
        await win.flush(target);
        await win.flushLocal(target);
      }
      await win.flush(Rank.NULL);
      await win.flushLocal(Rank.NULL);
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.5.3',
  'a lock on Rank.NULL opens an epoch in which access to Rank.NULL does nothing',
  'mpich/rmanull',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await refused('ERR_RMA_SYNC', () => win.put(Int32Array.of(1), Rank.NULL, 0));
      for (const type of [Lock.SHARED, Lock.EXCLUSIVE]) {
        await win.lock(Rank.NULL, type);
        win.put(Int32Array.of(1), Rank.NULL, 0);
        await refused('ERR_RMA_SYNC', () => win.put(Int32Array.of(1), t.next, 0));
        await win.unlock(Rank.NULL);
      }
      await refused('ERR_RMA_SYNC', () => win.put(Int32Array.of(1), Rank.NULL, 0));
    }),
);
requirement(
  '12.5.4',
  'flush belongs to passive target epochs: elsewhere it is refused',
  'mpich-errors/win_sync_op',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await refusedLater('ERR_RMA_SYNC', () => win.flush(t.next));
      await refusedLater('ERR_RMA_SYNC', () => win.flushAll());
      await refusedLater('ERR_RMA_SYNC', () => win.flushLocal(t.next));
      await refusedLater('ERR_RMA_SYNC', () => win.flushLocalAll());
      await win.fence();
      win.put(Int32Array.of(1), t.next, 0);
      await refusedLater('ERR_RMA_SYNC', () => win.flush(t.next));
      await win.fence(Assert.NO_SUCCEED);
    }),
);

// ---- 12.5.5 assertions ----------------------------------------------------------------------------------------------

requirement('12.5.5', 'every assertion of fence is accepted if it is true', 'mpich/fence_shm mpi4py/testFence', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.fence(Assert.NO_PRECEDE);
    win.put(Int32Array.of(t.rank), t.next, 0);
    await win.fence(Assert.NO_STORE);
    assert.equal(win.local[0], t.previous);
    await win.fence(Assert.NO_STORE | Assert.NO_PUT);
    const found = new Int32Array(1);
    win.get(found, t.next, 0);
    await win.fence(Assert.NO_STORE | Assert.NO_PUT | Assert.NO_SUCCEED);
    assert.equal(found[0], t.rank);
    await win.fence(Assert.NO_PRECEDE | Assert.NO_SUCCEED);
  }),
);
requirement('12.5.5', 'NO_SUCCEED leaves no epoch open', 'mpich/epochtest', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.fence();
    await win.fence(Assert.NO_SUCCEED);
    refused('ERR_RMA_SYNC', () => win.put(Int32Array.of(1), t.next, 0));
    await win.lock(t.next, Lock.SHARED);
    await win.unlock(t.next);
    await t.barrier();
  }),
);
requirement('12.5.5', 'NO_PRECEDE is refused if operations precede', '', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.fence();
    win.put(Int32Array.of(1), t.next, 0);
    await refusedLater('ERR_ASSERT', () => win.fence(Assert.NO_PRECEDE));
    await win.fence(Assert.NO_SUCCEED);
  }),
);
requirement(
  '12.5.5',
  'NO_CHECK of lock and lockAll is accepted if no lock conflicts',
  'mpich/linked_list_bench_lock_shr_nocheck mpich/lockopts',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await win.lock(t.next, Lock.EXCLUSIVE, Assert.NO_CHECK);
      win.put(Int32Array.of(t.rank), t.next, 0);
      await win.unlock(t.next);
      await t.barrier();
      assert.equal(win.local[0], t.previous);
      await t.barrier();
      await win.lockAll(Assert.NO_CHECK);
      win.accumulate(Int32Array.of(1), t.next, 0, Op.SUM);
      await win.unlockAll();
      await t.barrier();
      assert.equal(win.local[0], t.previous + 1);
    }),
);
requirement('12.5.5', 'NO_STORE and NO_PUT of post are accepted if they are true', 'mpich/putpscw1', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.post(members(t, [t.previous]), Assert.NO_STORE | Assert.NO_PUT);
    await win.start(members(t, [t.next]));
    const found = Int32Array.of(5);
    win.get(found, t.next, 0);
    await win.complete();
    await win.wait();
    assert.equal(found[0], 0);
  }),
);
requirement('12.5.5', 'a call refuses assertions that are not defined for it', '', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await refusedLater('ERR_ASSERT', () => win.fence(Assert.NO_CHECK));
    await refusedLater('ERR_ASSERT', () => win.lock(t.next, Lock.SHARED, Assert.NO_PRECEDE));
    await refusedLater('ERR_ASSERT', () => win.lockAll(Assert.NO_STORE));
    await refusedLater('ERR_ASSERT', () => win.start(members(t, []), Assert.NO_PUT));
    await refusedLater('ERR_ASSERT', () => win.post(members(t, []), Assert.NO_SUCCEED));
    await refusedLater('ERR_ASSERT', () => win.fence(1 << 20));
  }),
);

// ---- 12.5.6 and in between ------------------------------------------------------------------------------------------

requirement(
  '12.5.6',
  'epochs of fence, start and post, lock and lockAll may follow each other on one window',
  'mpich/mixedsync mpich/epochtest',
  (t) =>
    t.window(Int32Array, 4, async (win) => {
      for (let round = 1; round <= 3; round++) {
        await win.fence();
        win.put(Int32Array.of(round), t.next, 0);
        await win.fence(Assert.NO_SUCCEED);
        await win.post(members(t, [t.previous]));
        await win.start(members(t, [t.next]));
        win.put(Int32Array.of(round), t.next, 1);
        await win.complete();
        await win.wait();
        await t.barrier();
        await win.lock(t.next, Lock.EXCLUSIVE);
        win.put(Int32Array.of(round), t.next, 2);
        await win.unlock(t.next);
        await win.lockAll();
        win.put(Int32Array.of(round), t.next, 3);
        await win.unlockAll();
        await t.barrier();
        assert.deepEqual([...win.local], [round, round, round, round]);
        await t.barrier();
      }
    }),
);
requirement('12.5.6', 'fence and lock epochs may follow each other on one window', 'mpich/mixedsync', (t) =>
  t.window(Int32Array, 2, async (win) => {
    for (let round = 1; round <= 5; round++) {
      await win.fence(Assert.NO_PRECEDE);
      win.accumulate(Int32Array.of(1), t.next, 0, Op.SUM);
      await win.fence(Assert.NO_SUCCEED);
      await win.lock(t.next, Lock.SHARED);
      win.accumulate(Int32Array.of(1), t.next, 1, Op.SUM);
      await win.unlock(t.next);
      await t.barrier();
      assert.deepEqual([...win.local], [round, round]);
      await t.barrier();
    }
  }),
);
requirement('12.5.6', 'a sum over all ranks is the same in every kind of epoch', 'mpich/test1 mpich/test1_am', (t) =>
  t.window(Int32Array, 5, async (win) => {
    const one = Int32Array.of(t.rank + 1);
    await win.fence();
    win.accumulate(one, 0, 0, Op.SUM);
    await win.fence(Assert.NO_SUCCEED);
    await win.lockAll();
    win.accumulate(one, 0, 1, Op.SUM);
    await win.unlockAll();
    for (const [i, type] of [Lock.SHARED, Lock.EXCLUSIVE].entries()) {
      await win.lock(0, type);
      win.accumulate(one, 0, 2 + i, Op.SUM);
      await win.unlock(0);
    }
    // Nobody exposes what others still lock.
    await t.barrier();
    if (t.rank === 0) await win.post(t.comm.group);
    await win.start(t.comm.group.include([0]));
    win.accumulate(one, 0, 4, Op.SUM);
    await win.complete();
    if (t.rank === 0) await win.wait();
    await t.barrier();
    if (t.rank === 0) assert.deepEqual([...win.local], new Array(5).fill(sumTo(t.size)));
  }),
);
