/** MPI 4.1, 12.7: semantics and correctness. */
import assert from 'node:assert/strict';
import { Assert, Datatype, Lock, Op, Request, type TransferLayout, type Window } from 'onesided';
import type { Random } from '../support/random.ts';
import { collector, peek, sumTo, type Trial } from './requirement.ts';

const { requirements, requirement } = collector();
export const semantics = requirements;

/** Between accesses of several ranks that shall come at the same time. */
const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

// ---- 12.7 which accesses may come at the same time ------------------------------------------------------------------

requirement(
  '12.7',
  'puts of several ranks to different adjacent elements all persist',
  'mpich/contention_put mpich/manyrma2_shm',
  (t) =>
    t.window(Uint8Array, 64 * t.size, async (win) => {
      await win.lockAll();
      for (let i = 0; i < 64; i++)
        for (const target of t.ranks) win.put(Uint8Array.of(t.rank + i), target, i * t.size + t.rank);
      await win.unlockAll();
      await t.barrier();
      assert.ok(win.local.every((byte, at) => byte === (at % t.size) + Math.floor(at / t.size)));
    }),
);
requirement(
  '12.7',
  'gets and puts to different elements of one part may run at the same time',
  'mpich/contention_putget',
  (t) =>
    t.window(Float64Array, 100 * (t.size + 1), async (win) => {
      win.local.subarray(100 * t.size).fill(t.rank);
      await t.barrier();
      await win.lockAll();
      for (let i = 0; i < 20; i++) {
        for (const target of t.ranks) {
          const found = new Float64Array(100);
          win.put(new Float64Array(100).fill(i), target, 100 * t.rank);
          win.get(found, target, 100 * t.size);
          await win.flush(target);
          assert.ok(found.every((value) => value === target));
        }
      }
      await win.unlockAll();
      await t.barrier();
      assert.ok(win.local.subarray(0, 100 * t.size).every((value) => value === 19));
    }),
);

// ---- 12.7.1 atomicity -----------------------------------------------------------------------------------------------

requirement(
  '12.7.1',
  'accumulates with the same operation lose no update, whatever the type',
  'mpich/accfence1 armci/test_accs armci/test_accs_dla',
  async (t) => {
    for (const Type of [Int8Array, Int16Array, Int32Array, Float32Array, Float64Array] as Float64ArrayConstructor[]) {
      await t.window(Type, 9, async (win) => {
        await win.lockAll();
        for (let i = 0; i < 15; i++) {
          win.accumulate(
            Type.from({ length: 9 }, () => 1),
            0,
            0,
            Op.SUM,
          );
          if (i % 5 === 0) await breathe();
        }
        await win.unlockAll();
        await t.barrier();
        if (t.rank === 0) assert.ok(win.local.every((value) => value === 15 * t.size));
      });
    }
  },
);
requirement('12.7.1', 'a read by NO_OP never sees half an element', 'mpich/atomic_get', (t) =>
  t.window(BigInt64Array, 1, async (win) => {
    const patterns = [0n, 0x0101_0101_0101_0101n, 0x7f7f_7f7f_7f7f_7f7fn, -1n];
    await win.lockAll();
    const found = new BigInt64Array(1);
    for (let i = 0; i < 200; i++) {
      if (t.rank === 0) win.accumulate(BigInt64Array.of(patterns[i % 4]), 0, 0, Op.REPLACE);
      else {
        win.fetchAndOp(new BigInt64Array(1), found, 0, 0, Op.NO_OP);
        await win.flushLocal(0);
        assert.ok(patterns.includes(found[0]));
      }
      if (i % 50 === 0) await breathe();
    }
    await win.unlockAll();
    await t.barrier();
  }),
);
requirement('12.7.1', 'fetchAndOp and accumulate are atomic with respect to each other', 'mpich/atomic_rmw_fop', (t) =>
  t.window(Float64Array, 1, async (win) => {
    let last = -1;
    await win.lockAll();
    for (let i = 0; i < 30; i++) {
      const before = new Float64Array(1);
      if (i % 2 === 0) win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
      else {
        win.fetchAndOp(Float64Array.of(1), before, 0, 0, Op.SUM);
        await win.flush(0);
        assert.ok(before[0] > last);
        last = before[0];
      }
    }
    await win.unlockAll();
    await t.barrier();
    if (t.rank === 0) assert.equal(win.local[0], 30 * t.size);
  }),
);
requirement(
  '12.7.1',
  'compareAndSwap is atomic with respect to fetchAndOp and accumulate',
  'mpich/atomic_rmw_cas',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await win.lockAll();
      for (let i = 0; i < 30; i++) {
        const found = new Int32Array(1);
        if (i % 3 === 0) win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
        else if (i % 3 === 1) win.fetchAndOp(Int32Array.of(1), found, 0, 0, Op.SUM);
        else {
          for (;;) {
            const value = await peek(win, 0, 0);
            win.compareAndSwap(Int32Array.of(value + 1), Int32Array.of(value), found, 0, 0);
            await win.flush(0);
            if (found[0] === value) break;
          }
        }
      }
      await win.unlockAll();
      await t.barrier();
      if (t.rank === 0) assert.equal(win.local[0], 30 * t.size);
    }),
);
requirement(
  '12.7.1',
  'getAccumulates are atomic with respect to each other, element by element',
  'mpich/atomic_rmw_gacc',
  (t) =>
    t.window(Int32Array, 16, async (win) => {
      const taken = new Int32Array(16 * 20);
      await win.lockAll();
      for (let i = 0; i < 20; i++) {
        win.getAccumulate(new Int32Array(16).fill(1), taken.subarray(16 * i, 16 * i + 16), 0, 0, Op.SUM);
        if (i % 7 === 0) await breathe();
      }
      await win.unlockAll();
      const all = new Int32Array(taken.length * t.size);
      await t.comm.allgather(taken, all);
      for (let place = 0; place < 16; place++) {
        const values = [...all].filter((_, i) => i % 16 === place).sort((a, b) => a - b);
        assert.deepEqual(
          values,
          values.map((_, i) => i),
        );
      }
    }),
);
requirement('12.7.1', 'the owner can make atomic updates like any other rank', 'mpich/fetchandadd', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.lockAll();
    for (const target of t.ranks) for (let i = 0; i < 10; i++) win.accumulate(Int32Array.of(1), target, 0, Op.SUM);
    await win.unlockAll();
    await t.barrier();
    assert.equal(win.local[0], 10 * t.size);
  }),
);

// ARMCI-MPI tests three ways of naming elements of a patch: consecutive, every other one, and from an offset.
const PATCH = 16;
const WAYS = [
  (element: number): number => element,
  (element: number): number => 2 * element,
  (element: number): number => 8 + element,
];
const LAYOUTS: (TransferLayout | undefined)[] = [
  undefined,
  { target: { type: Datatype.vector(PATCH, 1, 2, Datatype.INT32) } },
  {
    target: {
      type: Datatype.indexedBlock(
        1,
        Int32Array.from({ length: PATCH }, (_, i) => 8 + i),
        Datatype.INT32,
      ),
    },
  },
];

function shuffled(random: Random): number[] {
  const order = [0, 1, 2];
  for (let i = 2; i > 0; i--) {
    const j = random.below(i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

requirement(
  '12.7.1',
  'accumulates of overlapping patches all count, from every rank and by every kind of layout',
  'armci/test_acc_overlap',
  (t) =>
    t.window(Int32Array, 2 * PATCH, async (win) => {
      await win.lockAll();
      for (let i = 0; i < 12; i++) {
        for (const way of shuffled(t.random))
          win.accumulate(new Int32Array(PATCH).fill((way + 1) * (t.rank + 1)), 0, 0, Op.SUM, LAYOUTS[way]);
      }
      await win.unlockAll();
      await t.barrier();
      if (t.rank !== 0) return;
      const expected = new Int32Array(2 * PATCH);
      for (const [way, placeOf] of WAYS.entries())
        for (let element = 0; element < PATCH; element++) expected[placeOf(element)] += 12 * (way + 1) * sumTo(t.size);
      assert.deepEqual([...win.local], [...expected]);
    }),
);

// ---- 12.7.2 ordering ------------------------------------------------------------------------------------------------

requirement(
  '12.7.2',
  "one rank's accumulates on an element take effect in the order in which they were issued",
  'mpich/acc_ordering',
  (t) =>
    t.window(Int32Array, t.size, async (win) => {
      await win.lockAll();
      for (let i = 1; i <= 40; i++) win.accumulate(Int32Array.of(i), t.next, t.rank, Op.REPLACE);
      await win.flush(t.next);
      assert.equal(await peek(win, t.next, t.rank), 40);
      win.accumulate(Int32Array.of(5), t.next, t.rank, Op.SUM);
      win.accumulate(Int32Array.of(2), t.next, t.rank, Op.PROD);
      win.accumulate(Int32Array.of(7), t.next, t.rank, Op.MIN);
      win.accumulate(Int32Array.of(1), t.next, t.rank, Op.SUM);
      await win.flush(t.next);
      assert.equal(await peek(win, t.next, t.rank), 8);
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.7.2',
  'a fetch sees the accumulates that its rank issued before it, without a flush (raw, rar)',
  'mpich/acc_ordering mpich/get_acc_local',
  (t) =>
    t.window(Int32Array, t.size, async (win) => {
      await win.lockAll();
      const seen: Int32Array[] = [];
      for (let i = 0; i < 20; i++) {
        win.accumulate(Int32Array.of(i), t.next, t.rank, Op.REPLACE);
        const found = new Int32Array(1);
        win.fetchAndOp(Int32Array.of(0), found, t.next, t.rank, Op.NO_OP);
        seen.push(found);
      }
      await win.flush(t.next);
      assert.deepEqual(
        seen.map(([value]) => value),
        seen.map((_, i) => i),
      );
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.7.2',
  'a fetch does not see the accumulates that its rank issues after it (war)',
  'mpich/acc_ordering',
  (t) =>
    t.window(Int32Array, t.size, async (win) => {
      await win.lockAll();
      const found = new Int32Array(1);
      win.fetchAndOp(Int32Array.of(0), found, t.next, t.rank, Op.NO_OP);
      win.accumulate(Int32Array.of(1), t.next, t.rank, Op.SUM);
      await win.flush(t.next);
      assert.equal(found[0], 0);
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.7.2',
  'overlapping accumulates of different layouts keep their order at each element (location consistency)',
  'armci/test_location_consistency',
  (t) =>
    t.window(Int32Array, 2 * PATCH, async (win) => {
      await win.lockAll();
      for (let round = 1; round <= 8; round++) {
        const write = t.random.below(3);
        const read = t.random.below(3);
        const model = new Int32Array(2 * PATCH);
        win.accumulate(new Int32Array(2 * PATCH), t.next, 0, Op.REPLACE);
        win.accumulate(new Int32Array(PATCH).fill(20 + round), t.next, 0, Op.REPLACE, LAYOUTS[write]);
        for (let element = 0; element < PATCH; element++) model[WAYS[write](element)] = 20 + round;
        for (const way of shuffled(t.random)) {
          win.accumulate(new Int32Array(PATCH).fill(way + 1), t.next, 0, Op.SUM, LAYOUTS[way]);
          for (let element = 0; element < PATCH; element++) model[WAYS[way](element)] += way + 1;
        }
        const found = new Int32Array(PATCH);
        win.getAccumulate(new Int32Array(PATCH), found, t.next, 0, Op.NO_OP, LAYOUTS[read]);
        await win.flush(t.next);
        assert.deepEqual(
          [...found],
          Array.from({ length: PATCH }, (_, element) => model[WAYS[read](element)]),
        );
      }
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.7.2',
  'put, accumulate and get take effect in order if there is a flush between them',
  'armci/test_location_consistency armci/test_puts_gets_dla armci/test_onesided',
  (t) =>
    t.window(Int32Array, 2 * PATCH, async (win) => {
      await win.lockAll();
      for (let round = 1; round <= 6; round++) {
        const read = t.random.below(3);
        const model = new Int32Array(2 * PATCH).fill(round);
        win.put(model, t.next, 0);
        await win.flush(t.next);
        for (const way of shuffled(t.random)) {
          win.accumulate(new Int32Array(PATCH).fill(way + 1), t.next, 0, Op.SUM, LAYOUTS[way]);
          for (let element = 0; element < PATCH; element++) model[WAYS[way](element)] += way + 1;
        }
        await win.flush(t.next);
        const found = new Int32Array(PATCH);
        win.get(found, t.next, 0, LAYOUTS[read]);
        await win.flush(t.next);
        assert.deepEqual(
          [...found],
          Array.from({ length: PATCH }, (_, element) => model[WAYS[read](element)]),
        );
      }
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement('12.7.2', 'with accumulate_ordering none, every update still counts', 'mpich/acc_ordering', (t) =>
  t.window(
    Int32Array,
    1,
    async (win) => {
      await win.lockAll();
      for (let i = 0; i < 50; i++) win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
      await win.unlockAll();
      await t.barrier();
      if (t.rank === 0) assert.equal(win.local[0], 50 * t.size);
    },
    { info: { accumulate_ordering: 'none' } },
  ),
);
requirement('12.7.2', 'a rank that loads sees the values of two flushed puts in their order', '', (t) =>
  // A sequence number is put after the data that it stands for.
  t.window(Int32Array, 2, async (win) => {
    await win.lockAll();
    for (let i = 1; i <= 30; i++) {
      win.put(Int32Array.of(i), t.next, 0);
      await win.flush(t.next);
      win.put(Int32Array.of(i), t.next, 1);
      await win.flush(t.next);
      const sequence = Atomics.load(win.local, 1);
      assert.ok(Atomics.load(win.local, 0) >= sequence);
    }
    await win.unlockAll();
    await t.barrier();
    assert.deepEqual([...win.local], [30, 30]);
  }),
);

// ---- 12.7.3 progress ------------------------------------------------------------------------------------------------

requirement(
  '12.7.3',
  'accesses complete while the target computes without calling the library',
  'mpich/nb_test mpich/wintest',
  (t) =>
    t.window(Int32Array, 4 + t.size, async (win) => {
      await win.lockAll();
      await t.barrier();
      if (t.rank === 0) {
        // Until all others have come through, or for some seconds where they cannot. No call of the library is made
        // here.
        const served = t.info.lock === 'two-sided' || (t.info.update ?? 'by-requests') !== 'by-requests';
        const end = performance.now() + (served ? 5000 : 60_000);
        if (!t.blocks) await t.comm.compute(5000 * t.slowness);
        else while (Atomics.load(win.local, 0) < t.size - 1 && performance.now() < end);
        // An agent serves when its rank comes back.
        if (!served) assert.equal(Atomics.load(win.local, 0), t.size - 1);
      } else {
        win.put(Int32Array.of(5), 0, 4 + t.rank);
        win.accumulate(Int32Array.of(1), 0, 2, Op.SUM);
        const found = new Int32Array(1);
        win.get(found, 0, 3);
        await win.flush(0);
        win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
        await win.flush(0);
      }
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.7.3',
  'locks are acquired and released while the target computes without calling the library',
  'mpich/lockcontention',
  (t) =>
    t.window(Int32Array, 2, async (win) => {
      await t.barrier();
      if (t.rank === 0) {
        const served =
          ['two-sided', 'hybrid'].includes(t.info.lock ?? '') || (t.info.update ?? 'by-requests') !== 'by-requests';
        const end = performance.now() + (served ? 5000 : 60_000);
        if (!t.blocks) await t.comm.compute(5000 * t.slowness);
        else while (Atomics.load(win.local, 0) < t.size - 1 && performance.now() < end);
        // An agent gives locks out when its rank comes back.
        if (!served) assert.equal(Atomics.load(win.local, 0), t.size - 1);
      } else {
        await win.lock(0, Lock.EXCLUSIVE);
        win.put(Int32Array.of(t.rank), 0, 1);
        await win.unlock(0);
        await win.lock(0, Lock.EXCLUSIVE);
        win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
        await win.unlock(0);
      }
      await t.barrier();
    }),
);
requirement('12.7.3', 'other ranks can access the part of a rank that waits in a fence', 'mpich/at_complete', (t) =>
  t.window(Int32Array, 2, async (win) => {
    await win.fence();
    if (t.rank !== 0) {
      for (let i = 0; i < 10; i++) {
        win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
        await breathe();
      }
    }
    await win.fence(Assert.NO_SUCCEED);
    if (t.rank === 0) assert.equal(win.local[0], 10 * (t.size - 1));
  }),
);
requirement('12.7.3', 'a request that is only tested completes', 'mpich/nb_test mpich/rget_testall', (t) =>
  t.window(Int32Array, 1, async (win) => {
    await win.lockAll();
    const requests = t.ranks.map((target) => win.raccumulate(Int32Array.of(1), target, 0, Op.SUM));
    while (!Request.testAll(requests)) await breathe();
    await Request.waitAll(requests);
    await win.unlockAll();
    await t.barrier();
    assert.equal(win.local[0], t.size);
  }),
);
requirement(
  '12.7.3',
  "two ranks that lock each other's parts both make progress",
  'mpich/lock_nested mpich/lockcontention2',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      for (let i = 0; i < 15; i++) {
        await win.lock(t.next, Lock.EXCLUSIVE);
        win.accumulate(Int32Array.of(1), t.next, 0, Op.SUM);
        await win.unlock(t.next);
      }
      await t.barrier();
      assert.equal(win.local[0], 15);
    }),
);
requirement('12.7.3', 'waiting calls leave the event loop free', '', (t) =>
  // Rank 0 comes to the fence when all others have said, from within their wait, that they are there.
  t.window(Int32Array, 1, async (win) => {
    const token = new Uint8Array(1);
    // Tasks of one thread have no timers in virtual time.
    if (!t.blocks) return;
    if (t.rank === 0) for (const source of t.others) await t.comm.receive(token, source);
    else setTimeout(() => t.comm.send(token, 0), 1);
    await win.fence(Assert.NO_SUCCEED);
  }),
);

// ---- 12.7.4 compilers -----------------------------------------------------------------------------------------------

requirement(
  '12.7.4',
  'loads from local are not kept in registers across synchronization',
  'mpich/test1 mpich/win_shared_put_flush_load',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      const { local } = win;
      // Warm enough that it is compiled.
      const read = (): number => local[0] + local[0];
      for (let i = 0; i < 20_000; i++) assert.ok(read() === 0);
      await win.fence();
      for (let i = 1; i <= 5; i++) {
        win.put(Int32Array.of(i), t.next, 0);
        if (t.blocks) win.fenceSync();
        else await win.fence();
        assert.equal(read(), 2 * i);
        if (t.blocks) win.fenceSync();
        else await win.fence();
      }
      await win.fence(Assert.NO_SUCCEED);
    }),
);
requirement(
  '12.7.4',
  'no call changes its origin, or the value that it compares with',
  'mpi4py/testPutGet mpi4py/testAccumulate mpi4py/testGetAccumulate',
  (t) =>
    t.window(Int32Array, 4, async (win) => {
      const origin = Int32Array.of(t.rank + 1);
      const compare = Int32Array.of(0);
      await win.lockAll();
      for (const target of t.ranks) {
        win.accumulate(origin, target, 0, Op.SUM);
        win.fetchAndOp(origin, new Int32Array(1), target, 0, Op.SUM);
        win.getAccumulate(origin, new Int32Array(1), target, 0, Op.SUM);
        win.compareAndSwap(origin, compare, new Int32Array(1), target, 1);
      }
      win.rput(origin, t.rank, 2);
      win.put(origin, t.rank, 3);
      await win.unlockAll();
      assert.deepEqual([...origin, ...compare], [t.rank + 1, 0]);
      await t.barrier();
      assert.equal(win.local[0], 3 * sumTo(t.size));
    }),
);

/** Used by several: a strided transposition from one rank to the next. */
async function transposed(
  t: Trial,
  win: Window<Float64Array>,
  side: number,
  issue: () => Promise<void>,
): Promise<void> {
  await issue();
  for (let row = 0; row < side; row++)
    for (let column = 0; column < side; column++)
      assert.equal(win.local[row * side + column], 1000 * t.previous + column * side + row);
}

requirement(
  '12.7',
  'a matrix can be transposed in transit, in every kind of epoch',
  'mpich/transpose1 mpich/transpose2 mpich/transpose3 mpich/transpose4 mpich/transpose5 mpich/transpose6 ' +
    'mpich/transpose7 armci/transp1D',
  (t) => {
    const side = 12;
    const matrix = Float64Array.from({ length: side * side }, (_, i) => 1000 * t.rank + i);
    const column = Datatype.vector(side, 1, side, Datatype.FLOAT64);
    return t.window(Float64Array, side * side, async (win) => {
      const putAll = (): void => {
        for (let row = 0; row < side; row++)
          win.put(matrix.subarray(row * side, (row + 1) * side), t.next, row, { target: { type: column } });
      };
      await transposed(t, win, side, async () => {
        await win.fence();
        putAll();
        await win.fence(Assert.NO_SUCCEED);
      });
      await t.barrier();
      win.local.fill(0);
      await t.barrier();
      await transposed(t, win, side, async () => {
        await win.lock(t.next, Lock.EXCLUSIVE);
        putAll();
        await win.unlock(t.next);
        await t.barrier();
      });
      await t.barrier();
      win.local.fill(0);
      await t.barrier();
      await transposed(t, win, side, async () => {
        await win.post(t.comm.group.include([t.previous]));
        await win.start(t.comm.group.include([t.next]));
        putAll();
        await win.complete();
        await win.wait();
      });
      await t.barrier();
      win.local.fill(0);
      await t.barrier();
      await transposed(t, win, side, async () => {
        await win.lockAll();
        putAll();
        await win.unlockAll();
        await t.barrier();
      });
      await t.barrier();
    });
  },
);
