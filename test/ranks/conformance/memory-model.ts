/** MPI 4.1, 12.4: the memory model. Ours is the unified one: public and private copy of a part are the same memory. */
import assert from 'node:assert/strict';
import { Assert, Lock, Op, Window } from 'onesided';
import { collector, peek } from './requirement.ts';

const { requirements, requirement } = collector();
export const memoryModel = requirements;

requirement(
  '12.4',
  'after a fence, other ranks get what a rank stored into its own part before it',
  'mpich/getfence1',
  (t) =>
    t.window(Float64Array, 64, async (win) => {
      for (let round = 0; round < 10; round++) {
        win.local.fill(100 * t.rank + round);
        await win.fence();
        const found = new Float64Array(64);
        win.get(found, t.next, 0);
        await win.fence();
        assert.ok(found.every((value) => value === 100 * t.next + round));
      }
      await win.fence(Assert.NO_SUCCEED);
    }),
);
requirement(
  '12.4',
  'once the origin has flushed a put and announced it, the target loads the new value without a call',
  'mpich/flush mpich/at_complete',
  (t) =>
    t.window(Int32Array, 8, async (win) => {
      await win.lockAll();
      const token = new Uint8Array(1);
      for (let round = 1; round <= 10; round++) {
        win.put(Int32Array.of(10 * t.rank + round), t.next, 0);
        await win.flush(t.next);
        t.comm.send(token, t.next);
        await t.comm.receive(token, t.previous);
        win.sync();
        assert.equal(win.local[0], 10 * t.previous + round);
        await t.barrier();
      }
      await win.unlockAll();
    }),
);
requirement(
  '12.4',
  'a rank that only loads eventually sees a value that another rank puts',
  'mpich/win_shared_put_flush_load',
  (t) =>
    t.window(Int32Array, 2, async (win) => {
      await win.lockAll();
      win.put(Int32Array.of(1), t.next, 0);
      await win.flush(t.next);
      while (Atomics.load(win.local, 0) === 0) await new Promise((resolve) => setImmediate(resolve));
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement('12.4', 'the owner may load from its part while others get from it', 'mpich/strided_get_indexed', (t) =>
  t.window(Int32Array, 8, async (win) => {
    win.local.fill(t.rank);
    await win.fence();
    for (const target of t.ranks) {
      win.get(new Int32Array(8), target, 0);
      assert.ok(win.local.every((value) => value === t.rank));
    }
    await win.fence(Assert.NO_SUCCEED);
  }),
);
requirement(
  '12.4',
  'stores next to elements that others put do not disturb them, not even at adjacent bytes',
  'mpich/lockcontention3 mpich/mixedsync',
  (t) =>
    t.window(Uint8Array, 16 * t.size, async (win) => {
      await win.fence();
      // Odd bytes are stored by the owner, even ones put by the others.
      for (let round = 0; round < 20; round++) {
        for (let i = 0; i < 8; i++) {
          win.local[16 * t.rank + 2 * i + 1] = round + i;
          for (const target of t.ranks) win.put(Uint8Array.of(t.rank + 1), target, 16 * t.rank + 2 * i);
        }
        // What is put twice is undefined within an epoch.
        if (round < 19) await win.fence();
      }
      await win.fence(Assert.NO_SUCCEED);
      for (const rank of t.ranks) {
        for (let i = 0; i < 8; i++) {
          assert.equal(win.local[16 * rank + 2 * i], rank + 1);
          assert.equal(win.local[16 * rank + 2 * i + 1], rank === t.rank ? 19 + i : 0);
        }
      }
    }),
);
requirement(
  '12.4',
  "a rank's own stores under a lock on itself are ordered with other ranks' locked accesses",
  'mpich/lockcontention2 mpich/wintest',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      for (let i = 0; i < 20; i++) {
        await win.lock(0, Lock.EXCLUSIVE);
        if (t.rank === 0) win.local[0]++;
        else {
          const value = new Int32Array(1);
          win.get(value, 0, 0);
          await win.flush(0);
          win.put(Int32Array.of(value[0] + 1), 0, 0);
        }
        await win.unlock(0);
      }
      await t.barrier();
      await win.lock(0, Lock.SHARED);
      assert.equal(await peek(win, 0, 0), 20 * t.size);
      await win.unlock(0);
      await t.barrier();
    }),
);
requirement('12.4', 'sync may be called any number of times in any passive target epoch', 'mpi4py/testFlushSync', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.lockAll();
    for (let i = 0; i < 3; i++) win.sync();
    await win.unlockAll();
    await win.lock(t.next, Lock.SHARED);
    win.sync();
    await win.unlock(t.next);
    await t.barrier();
  }),
);
requirement(
  '12.4',
  'a part that is visible through two overlapping windows is the same memory',
  'mpich/overlap_wins_acc mpich/overlap_wins_gacc mpich/overlap_wins_fop mpich/overlap_wins_cas',
  async (t) => {
    const memory = t.comm.allocMem(Int32Array, 4);
    const windows = [await Window.create(t.comm, memory), await Window.create(t.comm, memory)];
    for (const win of windows) await win.lockAll();
    for (const win of windows) {
      win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
      win.fetchAndOp(Int32Array.of(1), new Int32Array(1), 0, 1, Op.SUM);
      win.compareAndSwap(Int32Array.of(5), Int32Array.of(0), new Int32Array(1), 0, 2);
      await win.flush(0);
      // Accumulates through different windows are not atomic towards each other (12.7).
      await t.barrier();
    }
    for (const win of windows) {
      assert.deepEqual(
        [await peek(win, 0, 0), await peek(win, 0, 1), await peek(win, 0, 2)],
        [2 * t.size, 2 * t.size, 5],
      );
    }
    for (const win of windows) await win.unlockAll();
    for (const win of windows) await win.free();
    t.comm.freeMem(memory);
  },
);
