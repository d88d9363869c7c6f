/** MPI 4.1, 12.5.3: locks. */
import assert from 'node:assert/strict';
import { Datatype, Lock, Op, Window } from 'onesided';
import { collector, peek, refused, refusedLater } from './requirement.ts';

const { requirements, requirement } = collector();
export const locks = requirements;

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
