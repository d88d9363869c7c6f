/**
 * MPI 4.1, 12.6: errors. An error handler is JavaScript's own: what goes wrong is thrown. What MPI calls erroneous is
 * an error here, of MPI's class, and has written nothing.
 */
import assert from 'node:assert/strict';
import { Assert, Datatype, Lock, Op, Rank, RmaError, Window } from 'onesided';
import { collector, refused, refusedLater, type Trial } from './requirement.ts';

const { requirements, requirement } = collector();
export const errors = requirements;

type Ints = Window<Int32Array>;

/** All calls that access a target. */
const ACCESSES: Record<string, (win: Ints, target: number, disp: number) => void> = {
  put: (win, target, disp) => win.put(Int32Array.of(1), target, disp),
  get: (win, target, disp) => win.get(Int32Array.of(1), target, disp),
  accumulate: (win, target, disp) => win.accumulate(Int32Array.of(1), target, disp, Op.SUM),
  fetchAndOp: (win, target, disp) => win.fetchAndOp(Int32Array.of(1), new Int32Array(1), target, disp, Op.SUM),
  compareAndSwap: (win, target, disp) =>
    win.compareAndSwap(Int32Array.of(1), Int32Array.of(0), new Int32Array(1), target, disp),
};
const LATER_ACCESSES: typeof ACCESSES = {
  getAccumulate: (win, target, disp) => win.getAccumulate(Int32Array.of(1), new Int32Array(1), target, disp, Op.SUM),
  rput: (win, target, disp) => void win.rput(Int32Array.of(1), target, disp),
  rget: (win, target, disp) => void win.rget(Int32Array.of(1), target, disp),
  raccumulate: (win, target, disp) => void win.raccumulate(Int32Array.of(1), target, disp, Op.SUM),
  rgetAccumulate: (win, target, disp) =>
    void win.rgetAccumulate(Int32Array.of(1), new Int32Array(1), target, disp, Op.SUM),
};

/** Each of the calls, in a lockAll epoch. Afterwards nothing has been written. */
async function eachAccess(
  t: Trial,
  accesses: typeof ACCESSES,
  check: (access: (target: number, disp: number) => void) => void,
): Promise<void> {
  await t.window(Int32Array, 4, async (win) => {
    await win.lockAll();
    for (const access of Object.values(accesses)) check((target, disp) => access(win, target, disp));
    await win.unlockAll();
    await t.barrier();
    assert.deepEqual([...win.local], [0, 0, 0, 0]);
  });
}

requirement(
  '12.6.1',
  'calls that start an operation throw errors; calls that wait reject with them',
  'mpich/wincall mpi4py/testGetSetErrhandler',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      assert.throws(() => win.put(Int32Array.of(1), t.next, 0), RmaError);
      if (t.blocks) assert.throws(() => win.flushSync(t.next), RmaError);
      const promise = win.flush(t.next);
      assert.ok(promise instanceof Promise);
      await assert.rejects(promise, RmaError);
    }),
);
requirement(
  '12.6.1',
  'an error has a class, and its message names the call, the window and the rank',
  'mpich-errors/winerr mpich-errors/winerr2',
  (t) =>
    t.window(
      Int32Array,
      1,
      async (win) => {
        await win.fence();
        assert.throws(
          () => win.put(Int32Array.of(1), t.next, 7),
          (error: RmaError) =>
            error.code === 'ERR_RMA_RANGE' &&
            ['put', 'grid', `rank ${t.next}`].every((word) => error.message.includes(word)),
        );
        await win.fence(Assert.NO_SUCCEED);
      },
      { name: 'grid' },
    ),
);
requirement('12.6.1', 'a window remains usable after an error', 'mpich-errors/winerr2', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.fence();
    refused('ERR_RMA_RANGE', () => win.put(Int32Array.of(1), t.next, 7));
    win.put(Int32Array.of(t.rank + 1), t.next, 0);
    await win.fence(Assert.NO_SUCCEED);
    assert.equal(win.local[0], t.previous + 1);
  }),
);

for (const [group, accesses] of [
  ['the calls of MPI 2 and the atomic ones', ACCESSES],
  ['getAccumulate and requests', LATER_ACCESSES],
] as const) {
  requirement(
    '12.6.2',
    `a target that is not a rank of the window is ERR_RANK: ${group}`,
    'mpich/badrma mpich-errors/winerr',
    (t) =>
      eachAccess(t, accesses, (access) => {
        for (const target of [t.size, -1, -2, 1.5, Number.NaN, 2 ** 32, '0' as unknown as number])
          refused('ERR_RANK', () => access(target, 0));
      }),
  );
  requirement(
    '12.6.2',
    `a displacement that is negative or not a whole number is ERR_DISP: ${group}`,
    'mpich/badrma',
    (t) =>
      eachAccess(t, accesses, (access) => {
        for (const disp of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '1' as unknown as number])
          refused('ERR_DISP', () => access(t.next, disp));
      }),
  );
  requirement('12.6.2', `elements outside the part are ERR_RMA_RANGE: ${group}`, 'mpich/badrma', (t) =>
    eachAccess(t, accesses, (access) => {
      for (const disp of [4, 5, 2 ** 31, 2 ** 40]) refused('ERR_RMA_RANGE', () => access(t.next, disp));
    }),
  );
  requirement('12.6.2', `access without an epoch is ERR_RMA_SYNC: ${group}`, 'mpich-errors/win_sync_op', (t) =>
    t.window(Int32Array, 4, async (win) => {
      for (const access of Object.values(accesses)) refused('ERR_RMA_SYNC', () => access(win, t.next, 0));
      await win.lock(t.next, Lock.SHARED);
      await win.unlock(t.next);
      for (const access of Object.values(accesses)) refused('ERR_RMA_SYNC', () => access(win, t.next, 0));
      await t.barrier();
      assert.deepEqual([...win.local], [0, 0, 0, 0]);
    }),
  );
}
requirement(
  '12.6.2',
  'access to a target that is not locked is ERR_RMA_SYNC, even while another target is locked',
  'mpich-errors/win_sync_op',
  (t) =>
    t.window(Int32Array, 4, async (win) => {
      await win.lock(t.next, Lock.SHARED);
      for (const access of Object.values(ACCESSES)) refused('ERR_RMA_SYNC', () => access(win, t.rank, 0));
      await win.unlock(t.next);
      await t.barrier();
    }),
);
requirement('12.6.2', 'fence while a lock is held is ERR_RMA_SYNC', 'mpich-errors/win_sync_lock_fence', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.lock(t.rank, Lock.SHARED);
    await refusedLater('ERR_RMA_SYNC', () => win.fence());
    if (t.blocks) refused('ERR_RMA_SYNC', () => win.fenceSync());
    await win.unlock(t.rank);
    await win.lockAll();
    await refusedLater('ERR_RMA_SYNC', () => win.fence());
    await win.unlockAll();
  }),
);
requirement(
  '12.6.2',
  'lock in a fence epoch that has operations is ERR_RMA_SYNC',
  'mpich-errors/win_sync_lock_fence',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await win.fence();
      win.put(Int32Array.of(1), t.next, 0);
      await refusedLater('ERR_RMA_SYNC', () => win.lock(t.next, Lock.SHARED));
      await refusedLater('ERR_RMA_SYNC', () => win.lockAll());
      await win.fence(Assert.NO_SUCCEED);
    }),
);
requirement(
  '12.6.2',
  'lock between start and complete, and start while a lock is held, are ERR_RMA_SYNC',
  'mpich-errors/win_sync_lock_at',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      const self = t.comm.group.include([t.rank]);
      await win.post(self);
      await win.start(self);
      win.get(Int32Array.of(1), t.rank, 0);
      await refusedLater('ERR_RMA_SYNC', () => win.lock(t.rank, Lock.SHARED));
      await refusedLater('ERR_RMA_SYNC', () => win.lockAll());
      await win.complete();
      await win.wait();
      await win.lock(t.next, Lock.SHARED);
      await refusedLater('ERR_RMA_SYNC', () => win.start(self));
      await win.unlock(t.next);
      await t.barrier();
    }),
);
requirement(
  '12.6.2',
  'a rank cannot lock a target again that it has locked, not even by lockAll',
  'mpich-errors/win_sync_lock_pt mpich-errors/win_sync_nested',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await win.lock(t.next, Lock.SHARED);
      await refusedLater('ERR_RMA_SYNC', () => win.lock(t.next, Lock.SHARED));
      if (t.blocks) refused('ERR_RMA_SYNC', () => win.lockSync(t.next, Lock.EXCLUSIVE));
      await refusedLater('ERR_RMA_SYNC', () => win.lockAll());
      await win.unlock(t.next);
      await win.lockAll();
      await refusedLater('ERR_RMA_SYNC', () => win.lock(t.next, Lock.SHARED));
      await refusedLater('ERR_RMA_SYNC', () => win.lockAll());
      await win.unlockAll();
    }),
);
requirement('12.6.2', 'unlock of a target that is not locked is ERR_RMA_SYNC', 'mpich-errors/win_sync_unlock', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await refusedLater('ERR_RMA_SYNC', () => win.unlock(t.next));
    await refusedLater('ERR_RMA_SYNC', () => win.unlockAll());
    await win.lock(t.next, Lock.SHARED);
    await refusedLater('ERR_RMA_SYNC', () => win.unlockAll());
    await win.unlock(t.next);
    await refusedLater('ERR_RMA_SYNC', () => win.unlock(t.next));
    await win.lockAll();
    await refusedLater('ERR_RMA_SYNC', () => win.unlock(t.next));
    await win.unlockAll();
  }),
);
requirement(
  '12.6.2',
  'complete without start, and wait and test without post, are ERR_RMA_SYNC',
  'mpich-errors/win_sync_complete',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await refusedLater('ERR_RMA_SYNC', () => win.complete());
      await refusedLater('ERR_RMA_SYNC', () => win.wait());
      refused('ERR_RMA_SYNC', () => win.test());
      if (t.blocks) refused('ERR_RMA_SYNC', () => win.completeSync());
      if (t.blocks) refused('ERR_RMA_SYNC', () => win.waitSync());
    }),
);
requirement('12.6.2', 'a second start or post in an open epoch is ERR_RMA_SYNC', 'mpich-errors/win_sync_nested', (t) =>
  t.window(Int32Array, 1, async (win) => {
    const self = t.comm.group.include([t.rank]);
    await win.post(self);
    await refusedLater('ERR_RMA_SYNC', () => win.post(self));
    await win.start(self);
    await refusedLater('ERR_RMA_SYNC', () => win.start(self));
    await win.complete();
    await win.wait();
  }),
);
requirement(
  '12.6.2',
  'free while a lock is held is ERR_RMA_SYNC, and the window remains usable',
  'mpich-errors/win_sync_free_pt',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await win.lock(t.next, Lock.SHARED);
      await refusedLater('ERR_RMA_SYNC', () => win.free());
      if (t.blocks) refused('ERR_RMA_SYNC', () => win.freeSync());
      win.put(Int32Array.of(t.rank), t.next, 0);
      await win.unlock(t.next);
      await t.barrier();
      assert.equal(win.local[0], t.previous);
    }),
);
requirement(
  '12.6.2',
  'free between start and complete, or between post and wait, is ERR_RMA_SYNC',
  'mpich-errors/win_sync_free_at',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      const self = t.comm.group.include([t.rank]);
      await win.post(self);
      await refusedLater('ERR_RMA_SYNC', () => win.free());
      await win.start(self);
      await refusedLater('ERR_RMA_SYNC', () => win.free());
      await win.complete();
      await win.wait();
    }),
);
requirement('12.6.2', 'an unknown lock type is ERR_LOCKTYPE', 'mpich-errors/winerr', (t) =>
  t.window(Int32Array, 1, async (win) => {
    for (const type of [0, 3, -1, 1.5, Number.NaN, undefined, 'shared'])
      await refusedLater('ERR_LOCKTYPE', () => win.lock(t.next, type as never));
  }),
);
requirement(
  'beyond',
  'numbers that programs compute by accident are not wildcards: −1 is an error as a target and as a color',
  '',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      const { comm } = t;
      const one = Int32Array.of(1);
      await win.lockAll();
      for (const rank of [-1, -2, ~0, -t.size, t.ranks.indexOf(t.size), 1 << 31, Rank.UNDEFINED, Rank.NULL + 1]) {
        refused('ERR_RANK', () => win.put(one, rank, 0));
        refused('ERR_RANK', () => win.putNotify(one, rank, 0));
        refused('ERR_RANK', () => win.sharedQuery(rank));
        refused('ERR_RANK', () => win.progress('put', rank));
        refused('ERR_RANK', () => comm.send(one, rank));
        await refusedLater('ERR_RANK', () => win.flush(rank));
        await refusedLater('ERR_RANK', () => win.flushLocal(rank));
        await refusedLater('ERR_RANK', () => comm.receive(one, rank));
      }
      await win.unlockAll();
      for (const rank of [-1, -2, Rank.UNDEFINED]) {
        await refusedLater('ERR_RANK', () => win.lock(rank, Lock.SHARED));
        await refusedLater('ERR_RANK', () => win.unlock(rank));
        await refusedLater('ERR_RANK', () => comm.broadcast(one, rank));
        refused('ERR_RANK', () => comm.group.include([rank]));
      }
      for (const color of [-1, -2, Rank.NULL]) await refusedLater('ERR_ARG', () => comm.split(color));
      assert.equal(await comm.split(Rank.UNDEFINED), undefined);
      await t.barrier();
    }),
);
requirement(
  '12.6.2',
  'an argument that is not a group, or a group with ranks outside the window, is ERR_GROUP or ERR_RANK',
  '',
  async (t) => {
    const half = (await t.comm.split(t.rank % 2))!;
    const win = (await Window.allocate(half, Int32Array, 1)) as Window<Int32Array>;
    const other = t.comm.group.include([t.next]);
    const either = (error: Error & { code?: string }): boolean => {
      if (!['ERR_GROUP', 'ERR_RANK'].includes(String(error.code))) throw error;
      return true;
    };
    for (const group of t.size > 1 && (t.size % 2 === 0 || t.rank < t.size - 1)
      ? [other, undefined, [0]]
      : [undefined, [0]]) {
      await assert.rejects(async () => await win.start(group as typeof other), either);
      await assert.rejects(async () => await win.post(group as typeof other), either);
    }
    await win.free();
    await half.finalize();
  },
);
requirement(
  '12.6.2',
  'a window must be made over memory, and an origin must be a typed array',
  'mpich-errors/winerr',
  async (t) => {
    for (const memory of [undefined, 7, [1, 2], {}]) {
      await refusedLater('ERR_BUFFER', () => Window.create(t.comm, memory as unknown as Int32Array));
    }
    await t.window(Int32Array, 1, async (win) => {
      await win.fence();
      for (const origin of [null, 7, [1], {}, new DataView(new ArrayBuffer(4))])
        refused('ERR_BUFFER', () => win.put(origin as unknown as Int32Array, t.next, 0));
      await win.fence(Assert.NO_SUCCEED);
    });
  },
);
requirement(
  '12.6.2',
  'wrong arguments at one rank end a collective call at all ranks',
  'mpich-errors/winerr2',
  async (t) => {
    await assert.rejects(() => Window.allocate(t.comm, Int32Array, t.rank === t.size - 1 ? -1 : 4));
    await t.window(Int32Array, 1, async (win) => {
      await win.fence();
      await win.fence(Assert.NO_SUCCEED);
    });
  },
);
requirement('12.6.2', 'a misaligned atomic access is ERR_DISP', '', (t) =>
  t.window(
    Int32Array,
    4,
    async (win) => {
      await win.lockAll();
      refused('ERR_DISP', () => win.accumulate(Int32Array.of(1), t.next, 2, Op.SUM));
      refused('ERR_DISP', () => win.fetchAndOp(Int32Array.of(1), new Int32Array(1), t.next, 5, Op.SUM));
      win.put(Int32Array.of(1), t.next, 2);
      await win.unlockAll();
      await t.barrier();
      assert.deepEqual([...new Uint8Array(win.local.buffer, win.local.byteOffset, 8)], [0, 0, 1, 0, 0, 0, 0, 0]);
    },
    { dispUnit: 1 },
  ),
);
requirement(
  '12.6.2',
  'an origin that overlaps the target elements is ERR_RMA_CONFLICT',
  'mpich/selfrma armci/test_acc_overlap',
  (t) =>
    t.window(Int32Array, 8, async (win) => {
      await win.lockAll();
      refused('ERR_RMA_CONFLICT', () => win.put(win.local.subarray(0, 4), t.rank, 2));
      refused('ERR_RMA_CONFLICT', () => win.get(win.local.subarray(0, 4), t.rank, 3));
      refused('ERR_RMA_CONFLICT', () => win.accumulate(win.local.subarray(0, 4), t.rank, 0, Op.SUM));
      win.put(win.local.subarray(0, 4), t.rank, 4);
      await win.unlockAll();
    }),
);
requirement('12.6.2', 'a target layout that names an element twice is refused by put', '', (t) =>
  t.window(Int32Array, 8, async (win) => {
    await win.fence();
    const type = Datatype.indexedBlock(2, [0, 1], Datatype.INT32);
    assert.throws(
      () => win.put(Int32Array.of(1, 2, 3, 4), t.next, 0, { target: { type } }),
      (error: Error & { code?: string }) => ['ERR_TYPE', 'ERR_RMA_CONFLICT'].includes(String(error.code)),
    );
    await win.fence(Assert.NO_SUCCEED);
    assert.ok(win.local.every((value) => value === 0));
  }),
);
requirement('12.6.2', 'a deadline or a signal ends a wait, and the call can be repeated', '', (t) =>
  t.window(Int32Array, 1, async (win) => {
    if (t.rank === 0) {
      await win.lock(0, Lock.EXCLUSIVE);
      await t.barrier();
      await t.barrier();
      await win.unlock(0);
    } else {
      await t.barrier();
      await refusedLater('ERR_RMA_TIMEOUT', () => win.lock(0, Lock.SHARED, 0, { timeout: 10 }));
      const reason = new Error('enough');
      await assert.rejects(win.lock(0, Lock.SHARED, 0, { signal: AbortSignal.abort(reason) }), reason);
      await t.barrier();
      await win.lock(0, Lock.SHARED);
      await win.unlock(0);
    }
    await t.barrier();
  }),
);
