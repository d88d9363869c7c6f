/** MPI 4.1, 12.5.2: start, complete, post, wait and test. */
import assert from 'node:assert/strict';
import { Assert, Datatype, Op, Window } from 'onesided';
import { collector, members, refused, type Trial } from './requirement.ts';

const { requirements, requirement } = collector();
export const generalActiveTarget = requirements;

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
