/** MPI 4.1, 12.3.4: fetchAndOp and compareAndSwap. */
import assert from 'node:assert/strict';
import { Op, type TypedArray, type Window } from 'onesided';
import {
  fenced,
  INTEGER_TYPES,
  lockedAll,
  NUMBER_TYPES,
  type Numbers,
  operation,
  RESULTS,
} from './epochs-and-arrays.ts';
import { collector, iota, peek, refused } from './requirement.ts';

const { requirements, requirement } = collector();
export const singleElements = requirements;

requirement(
  '12.3.4',
  'fetchAndOp returns the previous value and applies the operation, on every number type',
  'mpich/fetch_and_op_char mpich/fetch_and_op_short mpich/fetch_and_op_int mpich/fetch_and_op_double ' +
    'mpich/fetch_and_op_long_double',
  async (t) => {
    for (const Type of NUMBER_TYPES) {
      await t.window<Numbers>(Type, 1, async (win) => {
        const seen: number[] = [];
        await lockedAll(t, win, async () => {
          for (let i = 0; i < 15; i++) {
            const before = Type.of(0);
            win.fetchAndOp(Type.of(1), before, 0, 0, Op.SUM);
            await win.flush(0);
            seen.push(before[0]);
          }
        });
        const counts = new Int32Array(t.size * 15);
        await t.comm.allgather(Int32Array.from(seen), counts);
        assert.deepEqual(
          [...counts].sort((a, b) => a - b),
          iota(15 * t.size),
        );
      });
    }
  },
);
requirement('12.3.4', 'fetchAndOp applies every operation', 'mpich/fetch_and_op_int', (t) =>
  t.window(Int32Array, 12, async (win) => {
    win.local.fill(6);
    const before = Object.keys(RESULTS).map(() => new Int32Array(1));
    await fenced(win, () => {
      for (const [i, name] of Object.keys(RESULTS).entries()) {
        win.fetchAndOp(Int32Array.of(3), before[i], t.next, i, operation(name));
      }
    });
    for (const [i, name] of Object.keys(RESULTS).entries()) assert.equal(before[i][0], 6, name);
    assert.deepEqual([...win.local], Object.values(RESULTS));
  }),
);
requirement('12.3.4', 'fetchAndOp takes one element', '', (t) =>
  t.window(Int32Array, 4, (win) =>
    fenced(win, () => {
      refused('ERR_BUFFER', () => win.fetchAndOp(new Int32Array(2), new Int32Array(2), t.next, 0, Op.SUM));
      refused('ERR_TYPE', () =>
        win.fetchAndOp(new Int32Array(1), new Uint32Array(1) as unknown as Int32Array, t.next, 0, Op.SUM),
      );
    }),
  ),
);
requirement(
  '12.3.4',
  'a tree of fetchAndOp counters counts every rank once',
  'mpich/fetchandadd mpich/fetchandadd_am mpich/fetchandadd_tree mpich/fetchandadd_tree_am armci/test_rmw_fadd',
  (t) =>
    t.window(Int32Array, t.size, async (win) => {
      const taken: number[] = [];
      await lockedAll(t, win, async () => {
        for (let i = 0; i < 20; i++) {
          // The leaf counts this rank's own, the root those of all.
          const own = new Int32Array(1);
          win.fetchAndOp(Int32Array.of(1), own, t.rank, t.rank, Op.SUM);
          const all = new Int32Array(1);
          win.fetchAndOp(Int32Array.of(1), all, 0, 0, Op.SUM);
          await win.flushAll();
          assert.ok(t.rank === 0 || own[0] === i);
          taken.push(all[0]);
        }
      });
      assert.ok(taken.every((value, i) => i === 0 || value > taken[i - 1]));
      if (t.rank === 0) assert.equal(win.local[0], 20 * t.size + 20);
    }),
);
requirement(
  '12.3.4',
  'compareAndSwap replaces an equal value, and returns the previous value in either case',
  'mpich/compare_and_swap',
  (t) =>
    t.window(Int32Array, 2, async (win) => {
      win.local[0] = t.rank;
      const results = [new Int32Array(1), new Int32Array(1)];
      await fenced(win, () => {
        win.compareAndSwap(Int32Array.of(50), Int32Array.of(t.next), results[0], t.next, 0);
        win.compareAndSwap(Int32Array.of(60), Int32Array.of(t.next), results[1], t.next, 0);
      });
      assert.deepEqual([results[0][0], results[1][0]], [t.next, 50]);
      assert.deepEqual([...win.local], [50, 0]);
    }),
);
requirement('12.3.4', 'if many ranks compareAndSwap one element, exactly one wins', 'mpich/compare_and_swap', (t) =>
  t.window(Int32Array, 20, async (win) => {
    const won: number[] = [];
    await lockedAll(t, win, async () => {
      for (let i = 0; i < 20; i++) {
        const result = new Int32Array(1);
        win.compareAndSwap(Int32Array.of(t.rank + 1), Int32Array.of(0), result, 0, i);
        await win.flush(0);
        if (result[0] === 0) won.push(i);
      }
    });
    const count = new Int32Array(1);
    await t.comm.allreduce(Int32Array.of(won.length), count, Op.SUM);
    assert.equal(count[0], 20);
    const found = new Int32Array(20);
    await fenced(win, () => win.get(found, 0, 0));
    for (const i of won) assert.equal(found[i], t.rank + 1);
  }),
);
requirement('12.3.4', 'compareAndSwap works on all integer types and on bytes', 'mpich/compare_and_swap', async (t) => {
  for (const Type of INTEGER_TYPES) {
    await t.window<Numbers>(Type, 3, async (win) => {
      win.local.fill(7);
      await fenced(win, () => win.compareAndSwap(Type.of(100), Type.of(7), Type.of(0), t.next, 1));
      assert.deepEqual([...win.local], [7, 100, 7]);
    });
  }
  await t.window(BigUint64Array, 1, async (win) => {
    await fenced(win, () =>
      win.compareAndSwap(BigUint64Array.of(2n ** 63n), new BigUint64Array(1), new BigUint64Array(1), t.next, 0),
    );
    assert.equal(win.local[0], 2n ** 63n);
  });
});
requirement('12.3.4', 'compareAndSwap refuses floating-point types', 'mpich-errors/cas_type_check', (t) =>
  t.window(Float64Array, 1, (win) =>
    fenced(win, () => {
      const one = (): Float64Array => new Float64Array(1);
      refused('ERR_TYPE', () => (win as Window).compareAndSwap(one() as TypedArray, one(), one(), t.next, 0));
    }),
  ),
);
requirement(
  '12.3.4',
  'a list built by compareAndSwap contains every element once',
  'mpich/linked_list mpich/linked_list_fop mpich/linked_list_lockall mpich/linked_list_bench_lock_all ' +
    'mpich/linked_list_bench_lock_shr mpich/linked_list_bench_lock_shr_nocheck',
  (t) =>
    // At rank 0 the head; at each rank the successor of each of its elements. An element's name is 1 + 10 × rank +
    // number.
    t.window(Int32Array, 11, async (win) => {
      await lockedAll(t, win, async () => {
        for (let i = 0; i < 10; i++) {
          const mine = Int32Array.of(1 + 10 * t.rank + i);
          for (;;) {
            const head = Int32Array.of(await peek(win, 0, 10));
            win.accumulate(head, t.rank, i, Op.REPLACE);
            await win.flush(t.rank);
            const before = new Int32Array(1);
            win.compareAndSwap(mine, head, before, 0, 10);
            await win.flush(0);
            if (before[0] === head[0]) break;
          }
        }
      });
      const seen = new Set<number>();
      await win.lockAll();
      for (let name = await peek(win, 0, 10); name !== 0; ) {
        assert.ok(!seen.has(name));
        seen.add(name);
        name = await peek(win, Math.floor((name - 1) / 10), (name - 1) % 10);
      }
      await win.unlockAll();
      assert.equal(seen.size, 10 * t.size);
      await t.barrier();
    }),
);
requirement(
  '12.3.4',
  'a queue lock built from atomic calls excludes all other ranks',
  'mpich/mutex_bench mpich/mutex_bench_shared mpich/mutex_bench_shm mpich/mutex_bench_shm_ordered ' +
    'mpich/mcs_mutex armci/test_mutex armci/test_mutex_rmw armci/test_mutex_contention armci/test_mutex_trylock',
  (t) =>
    // MCS: at rank 0 the tail (0), and what is guarded (1); at each rank: blocked (2), next (3). Ranks are named from
    // 1.
    t.window(Int32Array, 4, async (win) => {
      const me = Int32Array.of(t.rank + 1);
      const none = Int32Array.of(0);
      const old = new Int32Array(1);
      await win.lockAll();
      for (let i = 0; i < 10; i++) {
        win.accumulate(none, t.rank, 3, Op.REPLACE);
        win.accumulate(Int32Array.of(1), t.rank, 2, Op.REPLACE);
        // A predecessor must not write here before this is done: MPI orders nothing between two targets.
        await win.flush(t.rank);
        win.fetchAndOp(me, old, 0, 0, Op.REPLACE);
        await win.flushAll();
        if (old[0] !== 0) {
          win.accumulate(me, old[0] - 1, 3, Op.REPLACE);
          await win.flush(old[0] - 1);
          while ((await peek(win, t.rank, 2)) !== 0) await new Promise((resolve) => setImmediate(resolve));
        }
        const guarded = new Int32Array(1);
        win.get(guarded, 0, 1);
        await win.flush(0);
        win.put(Int32Array.of(guarded[0] + 1), 0, 1);
        await win.flush(0);
        win.compareAndSwap(none, me, old, 0, 0);
        await win.flush(0);
        if (old[0] !== t.rank + 1) {
          let successor = 0;
          while ((successor = await peek(win, t.rank, 3)) === 0) await new Promise((resolve) => setImmediate(resolve));
          win.accumulate(none, successor - 1, 2, Op.REPLACE);
          await win.flush(successor - 1);
        }
      }
      await t.barrier();
      assert.equal(await peek(win, 0, 1), 10 * t.size);
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.3.4',
  'ranks take tasks from a shared counter until there are none',
  'mpich/adlb_mimic1 mpich/ircpi',
  (t) =>
    t.window(Int32Array, 60, async (win) => {
      await lockedAll(t, win, async () => {
        const task = new Int32Array(1);
        for (;;) {
          win.fetchAndOp(Int32Array.of(1), task, 0, 59, Op.SUM);
          await win.flush(0);
          if (task[0] >= 59) break;
          win.accumulate(Int32Array.of(task[0] * task[0]), 0, task[0], Op.SUM);
        }
      });
      if (t.rank === 0)
        assert.deepEqual(
          [...win.local.subarray(0, 59)],
          iota(59).map((i) => i * i),
        );
    }),
);
