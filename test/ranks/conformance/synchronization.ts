/** MPI 4.1, 12.5: the synchronization calls. */
import assert from 'node:assert/strict';
import { Assert, Datatype, Lock, Op, Rank, Window } from 'onesided';
import { FENCE_SCHEMES, FENCES_BY_HINT } from '../support/kinds.ts';
import { collector, peek, refused, refusedLater, sumTo, type Trial } from './requirement.ts';

const { requirements, requirement, shared } = collector();
export const synchronization = requirements;

// ---- 12.5.1 fence ---------------------------------------------------------------------------------------------------

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

// ---- 12.5.2 start, complete, post, wait -----------------------------------------------------------------------------

/** A group of these ranks. */
const members = (t: Trial, ranks: readonly number[]) => t.comm.group.include(ranks);

/** All ranks but this one access this one and are accessed by it. */
async function exposeToAll(t: Trial, win: Window, issue: () => unknown, sync = false): Promise<void> {
  const group = members(t, t.others);
  if (sync && t.blocks) {
    win.postSync(group);
    win.startSync(group);
    await issue();
    win.completeSync();
    win.waitSync();
  } else {
    await win.post(group);
    await win.start(group);
    await issue();
    await win.complete();
    await win.wait();
  }
}

requirement(
  '12.5.2',
  'data that is put between start and complete is at the target after its wait',
  'mpich/putpscw1 mpich/test2',
  (t) =>
    t.window(Int32Array, t.size, async (win) => {
      for (const sync of [false, true]) {
        await exposeToAll(
          t,
          win,
          () => {
            for (const target of t.others) win.put(Int32Array.of(t.rank + (sync ? 100 : 1)), target, t.rank);
          },
          sync,
        );
        for (const rank of t.others) assert.equal(win.local[rank], rank + (sync ? 100 : 1));
      }
    }),
);
requirement('12.5.2', 'gets have their results after complete', 'mpich/test2_am mpich/wintest_shm', (t) =>
  t.window(Int32Array, 1, async (win) => {
    win.local[0] = t.rank + 1;
    const found = t.ranks.map(() => new Int32Array(1));
    await exposeToAll(t, win, () => {
      for (const target of t.others) win.get(found[target], target, 0);
    });
    for (const rank of t.others) assert.equal(found[rank][0], rank + 1);
  }),
);
requirement('12.5.2', 'accumulates of several origins in one exposure epoch all count', 'mpich/accpscw1', (t) =>
  t.window(Int32Array, 4, async (win) => {
    for (let round = 1; round <= 5; round++) {
      await exposeToAll(t, win, () => {
        for (const target of t.others) win.accumulate(Int32Array.of(1, 2, 3, 4), target, 0, Op.SUM);
      });
      assert.deepEqual(
        [...win.local],
        [1, 2, 3, 4].map((value) => value * round * (t.size - 1)),
      );
    }
  }),
);
requirement(
  '12.5.2',
  'one rank only accesses while the others only expose their parts, and vice versa',
  'mpi4py/testStartCompletePostWait',
  (t) =>
    t.window(Int32Array, t.size, async (win) => {
      if (t.rank === 0) {
        const group = members(t, t.others);
        await win.start(group);
        for (const target of t.others) win.put(Int32Array.of(40 + target), target, 0);
        await win.complete();
        await win.post(group);
        await win.wait();
        assert.deepEqual(
          t.others.map((rank) => win.local[rank]),
          t.others.map((rank) => 60 + rank),
        );
      } else {
        const group = members(t, [0]);
        await win.post(group);
        await win.wait();
        assert.equal(win.local[0], 40 + t.rank);
        await win.start(group);
        win.put(Int32Array.of(60 + t.rank), 0, t.rank);
        await win.complete();
      }
    }),
);
requirement(
  '12.5.2',
  'test becomes true when the origins have completed, and the epoch has then ended',
  'mpi4py/testStartCompletePostTest',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      if (t.rank === 0) {
        const group = members(t, t.others);
        await win.start(group);
        await t.barrier();
        for (const target of t.others) win.put(Int32Array.of(9), target, 0);
        await win.complete();
        await t.barrier();
      } else {
        await win.post(members(t, [0]));
        assert.equal(win.test(), false);
        await t.barrier();
        await t.barrier();
        // Over a network, what the origin has said can come later than a barrier, which other connections carry.
        if (win.progress('accumulate', 0) === 'origin') assert.equal(win.test(), true);
        else while (!win.test()) await t.pause(1);
        assert.equal(win.local[0], 9);
        refused('ERR_RMA_SYNC', () => win.test());
      }
    }),
  2,
);
requirement(
  '12.5.2',
  'an empty group is allowed on both sides',
  'mpich/nullpscw mpich/nullpscw_shm mpi4py/testStartComplete mpi4py/testPostWait',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      const empty = members(t, []);
      await win.start(empty);
      await win.complete();
      await win.post(empty);
      await win.wait();
      await win.post(empty);
      assert.equal(win.test(), true);
    }),
);
requirement('12.5.2', 'a rank may access itself', 'mpich/selfrma', (t) =>
  t.window(Int32Array, 1, async (win) => {
    const self = members(t, [t.rank]);
    await win.post(self);
    await win.start(self);
    win.put(Int32Array.of(6), t.rank, 0);
    await win.complete();
    await win.wait();
    assert.equal(win.local[0], 6);
  }),
);
requirement(
  '12.5.2',
  'post may come before or after the start that it matches',
  'mpich/pscw_ordering mpich/pscw_ordering_shm',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      for (let round = 0; round < 4; round++) {
        if (t.rank === 0) {
          if (round % 2 === 0) await t.pause(5);
          await win.start(members(t, t.others));
          for (const target of t.others) win.put(Int32Array.of(round), target, 0);
          await win.complete();
        } else {
          if (round % 2 === 1) await t.pause(5);
          await win.post(members(t, [0]));
          await win.wait();
          assert.equal(win.local[0], round);
        }
      }
    }),
);
requirement(
  '12.5.2',
  'posts of several epochs are matched in order, even if an origin lags behind',
  'mpich/pscw_ordering',
  (t) =>
    // Each rank exposes to the one before; rank 0 is slow to start.
    t.window(Int32Array, 1, async (win) => {
      for (let round = 1; round <= 10; round++) {
        if (t.rank === 0 && round % 3 === 0) await t.pause(2);
        await win.post(members(t, [t.previous]));
        await win.start(members(t, [t.next]));
        win.put(Int32Array.of(100 * t.rank + round), t.next, 0);
        await win.complete();
        await win.wait();
        assert.equal(win.local[0], 100 * t.previous + round);
      }
    }),
);
requirement('12.5.2', 'the groups of origins and targets may differ and overlap', 'mpich/putpscw1', (t) =>
  t.window(Int32Array, t.size, async (win) => {
    // Even ranks access all odd ones; then odd ones all even ones.
    for (const parity of [0, 1]) {
      const origins = t.ranks.filter((rank) => rank % 2 === parity);
      const targets = t.ranks.filter((rank) => rank % 2 !== parity);
      if (t.rank % 2 === parity) {
        await win.start(members(t, targets));
        for (const target of targets) win.put(Int32Array.of(t.rank + 1), target, t.rank);
        await win.complete();
      } else {
        await win.post(members(t, origins));
        await win.wait();
        for (const rank of origins) assert.equal(win.local[rank], rank + 1);
      }
    }
  }),
);
requirement('12.5.2', 'a message may be received between post and wait', '', (t) =>
  t.window(Int32Array, 1, async (win) => {
    const token = new Uint8Array(1);
    await win.post(members(t, [t.previous]));
    t.comm.send(token, t.next);
    await t.comm.receive(token, t.previous);
    await win.start(members(t, [t.next]));
    win.put(Int32Array.of(3), t.next, 0);
    await win.complete();
    await win.wait();
    assert.equal(win.local[0], 3);
  }),
);
requirement('12.5.2', 'epochs on two windows may be open at the same time', 'mpich/manyrma3', (t) =>
  t.window(Int32Array, 1, async (one) => {
    const two = (await Window.allocate(t.comm, Int32Array, 1)) as Window<Int32Array>;
    const from = members(t, [t.previous]);
    const to = members(t, [t.next]);
    await one.post(from);
    await two.post(from);
    await one.start(to);
    await two.start(to);
    two.put(Int32Array.of(2), t.next, 0);
    one.put(Int32Array.of(1), t.next, 0);
    await two.complete();
    await one.complete();
    await one.wait();
    await two.wait();
    assert.deepEqual([one.local[0], two.local[0]], [1, 2]);
    await two.free();
  }),
);
requirement(
  '12.5.2',
  'only the targets of the group may be accessed',
  'mpich-errors/win_sync_op',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await win.post(members(t, [t.previous]));
      await win.start(members(t, [t.next]));
      refused('ERR_RMA_SYNC', () => win.put(Int32Array.of(1), t.previous, 0));
      refused('ERR_RMA_SYNC', () => win.get(Int32Array.of(1), t.rank, 0));
      await win.complete();
      await win.wait();
    }),
  3,
);
requirement(
  '12.5.2',
  'put accepts a layout between start and complete',
  'mpich/putpscw1',
  (t) =>
    t.window(Int32Array, 8, async (win) => {
      await exposeToAll(t, win, () =>
        win.put(Int32Array.of(1, 2), t.next, 1, { target: { type: Datatype.vector(2, 1, 4, Datatype.INT32) } }),
      );
      assert.deepEqual([...win.local], [0, 1, 0, 0, 0, 2, 0, 0]);
    }),
  2,
);
requirement('12.5.2', 'NO_CHECK on both sides is accepted if the posts came first', 'mpich/pscw_ordering', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.post(members(t, [t.previous]), Assert.NO_CHECK);
    await t.barrier();
    await win.start(members(t, [t.next]), Assert.NO_CHECK);
    win.put(Int32Array.of(4), t.next, 0);
    await win.complete();
    await win.wait();
    assert.equal(win.local[0], 4);
  }),
);

// ---- 12.5.3 lock ----------------------------------------------------------------------------------------------------

requirement(
  '12.5.3',
  'an exclusive lock excludes all other locks',
  'mpich/lockcontention mpich/lockcontention2 mpich/transpose4 mpich/test4_am',
  (t) =>
    t.window(Int32Array, 2, async (win) => {
      for (let i = 0; i < 20; i++) {
        if (i % 2 === 0) await win.lock(0, Lock.EXCLUSIVE);
        else if (t.blocks) win.lockSync(0, Lock.EXCLUSIVE);
        else await win.lock(0, Lock.EXCLUSIVE);
        const found = new Int32Array(2);
        win.get(found, 0, 0);
        await win.flush(0);
        assert.equal(found[0], found[1]);
        win.put(Int32Array.of(found[0] + 1), 0, 0);
        await win.flush(0);
        win.put(Int32Array.of(found[1] + 1), 0, 1);
        await win.unlock(0);
      }
      await t.barrier();
      await win.lock(0, Lock.SHARED);
      assert.equal(await peek(win, 0, 0), 20 * t.size);
      await win.unlock(0);
      await t.barrier();
    }),
);
requirement('12.5.3', 'several ranks can hold shared locks at the same time', 'mpich/lockcontention3', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.lock(0, Lock.SHARED);
    // Nobody could come to here if one held the others back.
    await t.barrier();
    win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
    await win.flush(0);
    await t.barrier();
    assert.equal(await peek(win, 0, 0), t.size);
    await win.unlock(0);
    await t.barrier();
  }),
);
requirement('12.5.3', 'an exclusive lock waits for shared locks, and vice versa', 'mpich/lockcontention3', (t) =>
  t.window(Int32Array, 2, async (win) => {
    for (let i = 0; i < 10; i++) {
      const type = (i + t.rank) % 3 === 0 ? Lock.EXCLUSIVE : Lock.SHARED;
      await win.lock(0, type);
      if (type === Lock.EXCLUSIVE) {
        const found = new Int32Array(2);
        win.get(found, 0, 0);
        await win.flush(0);
        win.put(Int32Array.of(found[0] + 1), 0, 0);
        await win.flush(0);
        win.put(Int32Array.of(found[1] + 1), 0, 1);
      } else {
        const found = new Int32Array(2);
        win.get(found, 0, 0);
        await win.flush(0);
        assert.equal(found[0], found[1]);
      }
      await win.unlock(0);
    }
    await t.barrier();
  }),
);
requirement(
  '12.5.3',
  'operations that were issued under a lock are complete at origin and target after unlock',
  'mpich/lockopts mpich/lock_dt',
  (t) =>
    t.window(Float64Array, t.size * 4, async (win) => {
      const origin = Float64Array.of(t.rank, t.rank + 0.5);
      await win.lock(t.next, Lock.SHARED);
      win.put(origin, t.next, 4 * t.rank);
      await win.unlock(t.next);
      origin.fill(-1);
      await t.barrier();
      await win.lock(t.rank, Lock.SHARED);
      assert.deepEqual([...win.local.subarray(4 * t.previous, 4 * t.previous + 2)], [t.previous, t.previous + 0.5]);
      await win.unlock(t.rank);
      await t.barrier();
    }),
);
requirement('12.5.3', 'the target takes no part in an access', 'mpich/wintest mpich/test4', (t) =>
  t.window(Int32Array, t.size, async (win) => {
    if (t.rank !== 0) {
      await win.lock(0, Lock.SHARED);
      win.put(Int32Array.of(t.rank), 0, t.rank);
      await win.unlock(0);
      t.comm.send(new Uint8Array(1), 0);
    } else {
      const token = new Uint8Array(1);
      for (const source of t.others) await t.comm.receive(token, source);
      await win.lock(0, Lock.SHARED);
      assert.deepEqual([...win.local], t.ranks);
      await win.unlock(0);
    }
  }),
);
requirement('12.5.3', 'a rank can lock its own part', 'mpich/selfrma mpich/lockopts', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.lock(t.rank, Lock.EXCLUSIVE);
    win.put(Int32Array.of(3), t.rank, 0);
    await win.flush(t.rank);
    win.accumulate(Int32Array.of(4), t.rank, 0, Op.SUM);
    await win.unlock(t.rank);
    assert.equal(win.local[0], 7);
  }),
);
requirement(
  '12.5.3',
  'a rank can hold locks on several targets, and release them in any order',
  'mpich/lock_nested',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      for (const target of t.ranks) await win.lock(target, Lock.SHARED);
      for (const target of t.ranks) win.accumulate(Int32Array.of(1), target, 0, Op.SUM);
      for (const target of t.ranks) if (target % 2 === 0) await win.unlock(target);
      refused('ERR_RMA_SYNC', () => win.put(Int32Array.of(1), 0, 0));
      for (const target of t.ranks) if (target % 2 === 1) await win.unlock(target);
      await t.barrier();
      assert.equal(win.local[0], t.size);
    }),
);
requirement('12.5.3', 'locks on two windows are independent', 'mpich/lock_nested', (t) =>
  t.window(Int32Array, 1, async (one) => {
    const two = await Window.allocate(t.comm, Int32Array, 1);
    await one.lock(0, Lock.SHARED);
    await two.lock(0, Lock.EXCLUSIVE);
    two.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
    one.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
    await two.unlock(0);
    await one.unlock(0);
    await t.barrier();
    if (t.rank === 0) assert.deepEqual([one.local[0], two.local[0]], [t.size, t.size]);
    await two.free();
  }),
);
requirement(
  '12.5.3',
  'lockAll gives access to all targets, and several ranks can hold it',
  'mpich/lockall_dt mpich/linked_list_lockall',
  (t) =>
    t.window(Int32Array, t.size, async (win) => {
      if (t.blocks) win.lockAllSync();
      else await win.lockAll();
      await t.barrier();
      for (const target of t.ranks) win.put(Int32Array.of(t.rank + 1), target, t.rank);
      if (t.blocks) win.unlockAllSync();
      else await win.unlockAll();
      await t.barrier();
      assert.deepEqual(
        [...win.local],
        t.ranks.map((rank) => rank + 1),
      );
    }),
);
requirement(
  '12.5.3',
  'lockAll and exclusive locks exclude each other',
  'mpich/lockcontention3 mpich/linked_list_bench_lock_excl',
  (t) =>
    t.window(Int32Array, 2, async (win) => {
      for (let i = 0; i < 6; i++) {
        const found = new Int32Array(2);
        if ((i + t.rank) % 2 === 0) {
          await win.lockAll();
          win.get(found, 0, 0);
          await win.flushAll();
          assert.equal(found[0], found[1]);
          await win.unlockAll();
        } else {
          await win.lock(0, Lock.EXCLUSIVE);
          win.get(found, 0, 0);
          await win.flush(0);
          win.put(Int32Array.of(found[0] + 1), 0, 0);
          await win.flush(0);
          win.put(Int32Array.of(found[1] + 1), 0, 1);
          await win.unlock(0);
        }
      }
      await t.barrier();
    }),
);
requirement(
  '12.5.3',
  'many strided updates by many ranks under exclusive locks all count',
  'mpich/lock_contention_dt mpich/lock_x_dt',
  (t) =>
    t.window(Int32Array, 30, async (win) => {
      const layout = { target: { type: Datatype.vector(10, 1, 3, Datatype.INT32) } };
      for (let i = 0; i < 10; i++) {
        const found = new Int32Array(10);
        await win.lock(0, Lock.EXCLUSIVE);
        win.get(found, 0, 1, layout);
        await win.flush(0);
        win.put(
          found.map((value, k) => value + k),
          0,
          1,
          layout,
        );
        await win.unlock(0);
      }
      await t.barrier();
      if (t.rank === 0)
        assert.deepEqual(
          [...win.local],
          Array.from({ length: 30 }, (_, i) => (i % 3 === 1 ? 10 * t.size * Math.floor(i / 3) : 0)),
        );
    }),
);
requirement('12.5.3', 'shared locks do not starve an exclusive lock, nor the reverse', 'mpich/lockcontention3', (t) =>
  t.window(Int32Array, 1, async (win) => {
    // Everybody must come through, whoever else keeps coming.
    for (let i = 0; i < 15; i++) {
      const type = t.rank === 0 ? Lock.EXCLUSIVE : Lock.SHARED;
      await win.lock(0, type);
      win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
      await win.unlock(0);
    }
    await t.barrier();
    if (t.rank === 0) assert.equal(win.local[0], 15 * t.size);
  }),
);
requirement('12.5.3', 'lockAll succeeds while other ranks keep locking their parts in turn', '', (t) =>
  t.window(Int32Array, 1, async (win) => {
    if (t.rank === 0) {
      for (let i = 0; i < 4; i++) {
        await win.lockAll();
        // The last one tells the others to end.
        for (const target of t.others) win.accumulate(Int32Array.of(i), target, 0, Op.REPLACE);
        await win.unlockAll();
      }
    } else {
      for (let told = 0; told < 3; ) {
        await win.lock(t.rank, Lock.EXCLUSIVE);
        await t.pause(0.2);
        told = win.local[0];
        await win.unlock(t.rank);
      }
    }
    await t.barrier();
  }),
);
requirement('12.5.3', 'a part cannot be locked and exposed at the same time', '', (t) =>
  t.window(Int32Array, 1, async (win) => {
    const previous = t.comm.group.include([t.previous]);
    const next = t.comm.group.include([t.next]);
    await win.post(previous);
    await refusedLater('ERR_RMA_SYNC', () => win.lock(t.rank, Lock.SHARED));
    await refusedLater('ERR_RMA_SYNC', () => win.lockAll());
    await win.start(next);
    win.put(Int32Array.of(t.rank + 1), t.next, 0);
    await win.complete();
    await win.wait();
    assert.equal(win.local[0], t.previous + 1);
    await win.lock(t.rank, Lock.SHARED);
    await refusedLater('ERR_RMA_SYNC', () => win.post(previous));
    await win.unlock(t.rank);
    await win.lockAll();
    await refusedLater('ERR_RMA_SYNC', () => win.post(previous));
    await win.unlockAll();
  }),
);
requirement('12.5.3', 'locked opens an epoch that ends with its block', '', (t) =>
  t.window(Int32Array, 2, async (win) => {
    const epoch = await win.locked(t.next);
    epoch.put(Int32Array.of(t.rank + 1), 1);
    await epoch[Symbol.asyncDispose]();
    refused('ERR_RMA_SYNC', () => win.put(Int32Array.of(1), t.next, 0));
    await t.barrier();
    assert.equal(win.local[1], t.previous + 1);
  }),
);

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
    t.window(Int32Array, 2 * t.size, async (win) => {
      await win.lockAll();
      const origin = new Int32Array(1);
      for (const target of t.ranks) {
        origin[0] = 10 * t.rank + target;
        win.put(origin, target, 2 * t.rank);
        await win.flushLocal(target);
        origin[0] = -1;
        const found = new Int32Array(1);
        win.accumulate(Int32Array.of(1), target, 2 * t.rank + 1, Op.SUM);
        win.get(found, target, 2 * t.rank);
        if (t.blocks) win.flushLocalSync(target);
        else await win.flushLocal(target);
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
