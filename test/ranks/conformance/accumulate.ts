/** MPI 4.1, 12.3.4: accumulate. */
import assert from 'node:assert/strict';
import { Assert, Datatype, Lock, Op, Window } from 'onesided';
import { keepsBits } from './bits.ts';
import {
  fenced,
  INTEGER_TYPES,
  lockedAll,
  type Numbers,
  type NumberType,
  operation,
  RESULTS,
} from './epochs-and-arrays.ts';
import { collector, iota, refused, sumTo } from './requirement.ts';

const { requirements, requirement } = collector();
export const accumulates = requirements;

const { INT32, FLOAT64 } = Datatype;

requirement(
  '12.3.4',
  'accumulates of all ranks on the same elements all count',
  'mpich/accfence1 mpich/test3 mpich/accfence2 mpich/accfence2_am',
  (t) =>
    t.window(Int32Array, 64, async (win) => {
      await fenced(win, () => {
        for (const target of t.ranks) win.accumulate(Int32Array.from(iota(64, t.rank)), target, 0, Op.SUM);
      });
      assert.deepEqual(
        [...win.local],
        iota(64).map((i) => t.size * i + sumTo(t.size - 1)),
      );
    }),
);

const OF_FLOATS = ['SUM', 'PROD', 'MIN', 'MAX', 'REPLACE', 'NO_OP'];

requirement(
  '12.3.4',
  'accumulate applies every operation to every integer type',
  'mpi4py/testAccumulate',
  async (t) => {
    for (const Type of INTEGER_TYPES) {
      const names = Object.keys(RESULTS);
      await t.window<Numbers>(Type, names.length, async (win) => {
        win.local.fill(6);
        await fenced(win, () => {
          for (const [i, name] of names.entries()) win.accumulate(Type.of(3), t.next, i, operation(name));
        });
        assert.deepEqual([...win.local], Object.values(RESULTS), Type.name);
      });
    }
  },
);
requirement('12.3.4', 'accumulate applies every operation to 64-bit integers', 'mpich/fetch_and_op_long', async (t) => {
  for (const Type of [BigInt64Array, BigUint64Array] as BigInt64ArrayConstructor[]) {
    const names = Object.keys(RESULTS);
    await t.window(Type, names.length, async (win) => {
      win.local.fill(6n);
      await fenced(win, () => {
        for (const [i, name] of names.entries()) win.accumulate(Type.of(3n), t.next, i, operation(name));
      });
      assert.deepEqual([...win.local].map(Number), Object.values(RESULTS), Type.name);
    });
  }
});
requirement(
  '12.3.4',
  'accumulate applies arithmetic to floating-point types, and refuses bitwise operations',
  'mpi4py/testAccumulate',
  async (t) => {
    for (const Type of [Float32Array, Float64Array] as NumberType[]) {
      await t.window<Numbers>(Type, OF_FLOATS.length, async (win) => {
        win.local.fill(6);
        await fenced(win, () => {
          for (const [i, name] of OF_FLOATS.entries()) win.accumulate(Type.of(3), t.next, i, operation(name));
          for (const op of [Op.BAND, Op.BOR, Op.BXOR, Op.LAND, Op.LOR, Op.LXOR])
            refused('ERR_OP', () => win.accumulate(Type.of(3), t.next, 0, op));
        });
        assert.deepEqual(
          [...win.local],
          OF_FLOATS.map((name) => RESULTS[name]),
        );
      });
    }
  },
);
requirement('12.3.4', 'REPLACE is an atomic put of any layout', 'mpich/acc_loc', (t) =>
  t.window(Float64Array, 8, async (win) => {
    const type = Datatype.vector(3, 1, 2, FLOAT64);
    await fenced(win, () => win.accumulate(Float64Array.of(1, 2, t.rank), t.next, 1, Op.REPLACE, { target: { type } }));
    assert.deepEqual([...win.local], [0, 1, 0, 2, 0, t.previous, 0, 0]);
  }),
);
requirement(
  '12.3.4',
  'values that REPLACE moves, a fetch returns or NO_OP leaves keep all their bits, even those of NaNs',
  '',
  async (t) => {
    await t.window(Uint8Array, 640, (win) => keepsBits(t, win));
    await t.window(Uint8Array, 640, (win) => keepsBits(t, win), { info: { fence: 'deferred' } });
  },
);
requirement(
  '12.3.4',
  'values that REPLACE moves to memory of the program, or that are fetched from it, keep all their bits',
  '',
  (t) => t.using(Window.create(t.comm, new Uint8Array(new ArrayBuffer(640))), (win) => keepsBits(t, win)),
);
requirement(
  '12.3.4',
  'accumulate adds to a strided patch',
  'mpich/strided_acc_indexed mpich/strided_acc_onelock armci/test_accs armci/test_onesided_shared',
  (t) =>
    t.window(Float64Array, 16 * 16, async (win) => {
      const type = Datatype.vector(5, 3, 16, FLOAT64);
      await win.lock(0, Lock.EXCLUSIVE);
      win.accumulate(Float64Array.from(iota(15, t.rank)), 0, 2 * 16 + 4, Op.SUM, { target: { type } });
      await win.unlock(0);
      await t.barrier();
      await win.lock(0, Lock.SHARED);
      const back = new Float64Array(15);
      win.get(back, 0, 2 * 16 + 4, { target: { type } });
      const all = new Float64Array(256);
      win.get(all, 0, 0);
      await win.unlock(0);
      assert.deepEqual(
        [...back],
        iota(15).map((i) => t.size * i + sumTo(t.size - 1)),
      );
      assert.equal(all.filter((value) => value !== 0).length, 15 - (t.size === 1 ? 1 : 0));
    }),
);
requirement(
  '12.3.4',
  'accumulate gathers a strided origin into a scattered target',
  'mpich/derived_acc_flush_local',
  (t) =>
    t.window(Int32Array, 16, async (win) => {
      const origin = { type: Datatype.vector(4, 1, 2, INT32), count: 1 };
      const target = { type: Datatype.indexedBlock(1, [9, 3, 5, 1], INT32), count: 1 };
      await lockedAll(t, win, async () => {
        win.accumulate(Int32Array.of(1, -1, 2, -1, 3, -1, 4), 0, 0, Op.SUM, { origin, target });
        await win.flushLocal(0);
      });
      if (t.rank === 0)
        assert.deepEqual(
          [...win.local],
          [0, 4, 0, 2, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0].map((value) => value * t.size),
        );
    }),
);
requirement(
  '12.3.4',
  'small and large accumulates on the same part all count',
  'mpich/large_small_acc mpich/large_acc_flush_local',
  (t) =>
    t.window(Int32Array, 20_000, async (win) => {
      await lockedAll(t, win, async () => {
        const large = new Int32Array(20_000).fill(1);
        for (let i = 0; i < 4; i++) {
          win.accumulate(large, 0, 0, Op.SUM);
          win.accumulate(Int32Array.of(10), 0, 5 * i, Op.SUM);
          await win.flushLocal(0);
        }
      });
      if (t.rank === 0) {
        assert.equal(win.local[15], 14 * t.size);
        assert.equal(win.local[19_999], 4 * t.size);
        assert.equal(win.local[16], 4 * t.size);
      }
    }),
);
requirement('12.3.4', 'a struct of one base type with gaps can be accumulated', 'mpich/acc_pairtype', (t) =>
  t.window(Int32Array, 12, async (win) => {
    const type = Datatype.struct([1, 1], [0, 8], [INT32, INT32]);
    await fenced(win, () =>
      win.accumulate(Int32Array.of(1, 2, 3, 4), t.next, 0, Op.SUM, { target: { type, count: 2 } }),
    );
    assert.deepEqual([...win.local.subarray(0, 6)], [1, 0, 2, 3, 0, 4]);
  }),
);
requirement('12.3.4', 'MINLOC and MAXLOC keep the value and the index of the winner', 'mpich/acc_pairtype', (t) =>
  t.window(Int32Array, 4, async (win) => {
    win.local.set([1000, -1, -1000, -1]);
    const type = Datatype.TWO_INT;
    const layout = { origin: { type }, target: { type } };
    await win.fence();
    const bytes = (...values: number[]): Uint8Array => new Uint8Array(Int32Array.of(...values).buffer);
    win.accumulate(bytes(50 - t.rank, t.rank), 0, 0, Op.MINLOC, layout);
    win.accumulate(bytes(7, t.rank), 0, 2, Op.MAXLOC, layout);
    await win.fence(Assert.NO_SUCCEED);
    if (t.rank === 0) assert.deepEqual([...win.local], [51 - t.size, t.size - 1, 7, 0]);
  }),
);
requirement('12.3.4', 'MAXLOC works on pairs of a double and an int', 'mpich/acc_pairtype', (t) =>
  t.window(Float64Array, 2, async (win) => {
    const type = Datatype.DOUBLE_INT;
    const pair = new DataView(new ArrayBuffer(type.extent));
    pair.setFloat64(0, t.rank + 0.5, true);
    pair.setInt32(8, 10 + t.rank, true);
    await win.fence();
    win.accumulate(new Uint8Array(pair.buffer), 0, 0, Op.MAXLOC, { origin: { type }, target: { type } });
    await win.fence(Assert.NO_SUCCEED);
    if (t.rank !== 0) return;
    assert.equal(win.local[0], t.size - 0.5);
    assert.equal(new Int32Array(win.local.buffer, win.local.byteOffset, 4)[2], 9 + t.size);
  }),
);
requirement('12.3.4', 'only predefined operations are accepted', 'mpich-errors/acc_op_type_check', (t) =>
  t.window(Int32Array, 1, (win) =>
    fenced(win, () => {
      for (const op of ['SUM', (a: number, b: number) => a + b, { ...Op.SUM }, undefined])
        refused('ERR_OP', () => win.accumulate(Int32Array.of(1), t.next, 0, op as never));
    }),
  ),
);
