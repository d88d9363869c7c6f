/** MPI 4.1, 12.3.4: getAccumulate. */
import assert from 'node:assert/strict';
import { Assert, Datatype, Op } from 'onesided';
import { eachStateOnce, fenced, lockedAll, type Numbers, type NumberType } from './epochs-and-arrays.ts';
import { collector, iota, refused } from './requirement.ts';

const { requirements, requirement } = collector();
export const getAccumulates = requirements;

const { INT32, FLOAT64 } = Datatype;

for (const [name, Type] of Object.entries({
  short: Int16Array,
  int: Int32Array,
  double: Float64Array,
}) as unknown as [string, NumberType][]) {
  requirement(
    '12.3.4',
    `getAccumulate returns the previous elements and applies the operation (${name})`,
    `mpich/get_accumulate_${name} mpi4py/testGetAccumulate`,
    (t) =>
      t.window<Numbers>(Type, 8, async (win) => {
        const fetched: Numbers[] = [];
        await lockedAll(t, win, async () => {
          for (let i = 0; i < 10; i++) {
            const result = Type.of(-1, -1, -1);
            win.getAccumulate(Type.of(1, 10, 2), result, 0, 2, Op.SUM);
            await win.flush(0);
            fetched.push(result);
          }
        });
        await eachStateOnce(t, fetched);
        if (t.rank === 0) assert.deepEqual([...win.local].slice(0, 5), [0, 0, 10 * t.size, 100 * t.size, 20 * t.size]);
      }),
  );
}
requirement(
  '12.3.4',
  'getAccumulate on 64-bit integers returns the previous elements',
  'mpich/get_accumulate_long',
  (t) =>
    t.window(BigInt64Array, 2, async (win) => {
      const result = new BigInt64Array(2);
      await lockedAll(t, win, () => win.getAccumulate(BigInt64Array.of(1n, -(2n ** 40n)), result, 0, 0, Op.SUM));
      assert.ok(result[0] >= 0n && result[0] < t.size);
      assert.equal(result[1] % 2n ** 40n, 0n);
      if (t.rank === 0) assert.deepEqual([...win.local].map(Number), [t.size, -t.size * 2 ** 40]);
    }),
);
requirement(
  '12.3.4',
  'getAccumulate takes a layout on each of its three sides',
  'mpich/get_accumulate_int_derived mpich/get_accumulate_double_derived mpich/get_accumulate_short_derived ' +
    'mpich/get_accumulate_long_derived mpich/strided_getacc_indexed mpich/strided_getacc_indexed_shared',
  (t) =>
    t.window(Int32Array, 8, async (win) => {
      win.local.set(iota(8, 10));
      await win.fence();
      const result = new Int32Array(6);
      const layout = {
        origin: { type: Datatype.vector(3, 1, 2, INT32), count: 1 },
        result: { type: Datatype.indexedBlock(1, [5, 3, 1], INT32), count: 1 },
        target: { type: Datatype.vector(3, 1, 3, INT32), count: 1 },
      };
      win.getAccumulate(Int32Array.of(1, 0, 2, 0, 3), result, t.next, 1, Op.SUM, layout);
      await win.fence(Assert.NO_SUCCEED);
      assert.deepEqual([...result], [0, 17, 0, 14, 0, 11]);
      assert.deepEqual([...win.local], [10, 12, 12, 13, 16, 15, 16, 20]);
    }),
);
requirement('12.3.4', 'getAccumulate with NO_OP is an atomic get', 'mpich/atomic_get mpich/get_acc_local', (t) =>
  t.window(Float64Array, 3, async (win) => {
    win.local.set([t.rank, 2, 3]);
    const result = new Float64Array(3);
    await fenced(win, () => win.getAccumulate(new Float64Array(3).fill(9), result, t.next, 0, Op.NO_OP));
    assert.deepEqual([...result, ...win.local], [t.next, 2, 3, t.rank, 2, 3]);
    result.fill(-1);
    await fenced(win, () => win.getAccumulate(null, result, t.next, 0, Op.NO_OP));
    assert.deepEqual([...result], [t.next, 2, 3]);
  }),
);
requirement('12.3.4', 'getAccumulate with REPLACE swaps', 'mpich/get_accumulate_int', (t) =>
  t.window(Int32Array, 1, async (win) => {
    win.local[0] = -1;
    await t.barrier();
    const result = new Int32Array(1);
    await lockedAll(t, win, () => win.getAccumulate(Int32Array.of(t.rank), result, 0, 0, Op.REPLACE));
    const all = new Int32Array(t.size);
    await t.comm.allgather(result, all);
    // Everybody took what somebody else had left: all but one of the values, and the first one.
    const left = [...all].filter((value) => value !== -1);
    assert.equal(left.length, t.size - 1);
    assert.equal(new Set(left).size, t.size - 1);
    if (t.rank === 0) assert.ok(!left.includes(win.local[0]));
  }),
);
requirement('12.3.4', 'getAccumulate of no elements does nothing', 'mpi4py/testGetAccumulate', (t) =>
  t.window(Int32Array, 1, (win) =>
    fenced(win, () => win.getAccumulate(new Int32Array(0), new Int32Array(0), t.next, 0, Op.SUM)),
  ),
);
requirement('12.3.4', 'an accumulate of an empty layout does nothing, whatever the operation', '', (t) =>
  t.window(Uint8Array, 16, async (win) => {
    const { LONG_INT, DOUBLE_INT, vector } = Datatype;
    win.local.fill(7);
    const none = new Uint8Array(0);
    const some = new Uint8Array(16).fill(9);
    await lockedAll(t, win, async () => {
      for (const op of [Op.MINLOC, Op.MAXLOC, Op.SUM, Op.REPLACE, Op.NO_OP, Op.BXOR]) {
        for (const empty of [
          { type: LONG_INT, count: 0 },
          { type: vector(0, 1, 1, LONG_INT), count: 1 },
          { type: vector(0, 1, 1, DOUBLE_INT), count: 3 },
          { type: Datatype.struct([], [], []) },
          { type: Datatype.struct([0, 0], [0, 8], [INT32, FLOAT64]), count: 2 },
        ]) {
          for (const target of [t.next, t.rank]) {
            const both = { origin: empty, target: empty };
            const all = { ...both, result: empty };
            win.accumulate(some, target, 0, op, both);
            win.accumulate(none, target, 0, op, { target: empty });
            win.accumulate(some, target, 0, op, { origin: empty });
            win.getAccumulate(some, none, target, 0, op, both);
            win.getAccumulate(some, some.slice(), target, 0, op, all);
            win.getAccumulate(none, none, target, 0, op, { result: empty, target: empty });
            await win.raccumulate(some, target, 0, op, both).wait();
            await win.rgetAccumulate(some, some.slice(), target, 0, op, all).wait();
          }
        }
      }
      win.getAccumulate(null, none, t.next, 0, Op.NO_OP, { target: { type: LONG_INT, count: 0 } });
      win.getAccumulate(null, some, t.next, 0, Op.NO_OP, { result: { type: LONG_INT, count: 0 } });
      // Without a layout, the array says what the elements are.
      refused('ERR_OP', () => win.accumulate(none, t.next, 0, Op.MINLOC as never));
      const one = { type: LONG_INT, count: 1 };
      refused('ERR_TYPE', () => win.accumulate(none, t.next, 0, Op.MINLOC, { target: one }));
    });
    assert.deepEqual([...win.local], iota(16).fill(7));
    assert.deepEqual([...some], iota(16).fill(9));
  }),
);
requirement('12.3.4', 'a result that overlaps the origin, or has another length, is refused', 'mpich/badrma', (t) =>
  t.window(Int32Array, 4, (win) =>
    fenced(win, () => {
      const both = new Int32Array(4);
      for (const result of [both, both.subarray(1, 3), new Int32Array(1), new Int32Array(3)]) {
        assert.throws(
          () => win.getAccumulate(both.subarray(0, 2), result, t.next, 0, Op.SUM),
          (error: Error & { code?: string }) => {
            if (/not a function/.test(error.message)) throw error;
            return ['ERR_BUFFER', 'ERR_TYPE'].includes(String(error.code));
          },
        );
      }
    }),
  ),
);

requirement('12.3.4', 'a target layout may begin before the displacement', '', async (t) => {
  // Twelve elements, enough for the addon, each three backwards from the last.
  for (const [Type, base] of [
    [Int16Array, Datatype.INT16],
    [Int32Array, Datatype.INT32],
    [Float32Array, Datatype.FLOAT32],
    [Float64Array, Datatype.FLOAT64],
  ] as const) {
    await t.window<Numbers>(Type, 40, async (win) => {
      const target = { type: Datatype.vector(3, 1, -3, base), count: 4 };
      const found = new Type(12);
      const origin = Type.from(iota(12, 1));
      await fenced(win, () => {
        if (t.rank === 0) win.accumulate(origin, t.next, 12, Op.SUM, { target });
      });
      await fenced(win, () => {
        if (t.rank === 0) win.getAccumulate(origin, found, t.next, 12, Op.SUM, { target });
      });
      const expected = new Array<number>(40).fill(0);
      // The extent of the type is from its lowest element to the end of its highest.
      for (let i = 0; i < 12; i++) expected[12 + 7 * Math.floor(i / 3) - 3 * (i % 3)] += 2 * (i + 1);
      if (t.rank === 1 % t.size) assert.deepEqual([...win.local], expected);
      if (t.rank === 0) assert.deepEqual([...found], [...origin]);
    });
  }
});
