/** MPI 4.1, 12.3: the communication calls. */
import assert from 'node:assert/strict';
import {
  Assert,
  Datatype,
  Lock,
  Op,
  Rank,
  Request,
  type TypedArray,
  type TypedArrayConstructor,
  Window,
} from 'onesided';
import { keepsBits } from './bits.ts';
import { collector, peek, refused, sumTo, type Trial } from './requirement.ts';

const { requirements, requirement } = collector();
export const communication = requirements;

const { INT32, FLOAT64, BYTE } = Datatype;

/** Numbers that every element type has. */
type Numbers =
  | Int8Array
  | Uint8Array
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | Float32Array
  | Float64Array;

interface NumberType extends TypedArrayConstructor<Numbers> {
  of(...values: number[]): Numbers;
}

const INTEGER_TYPES = [Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array, Uint32Array] as NumberType[];
const NUMBER_TYPES = [...INTEGER_TYPES, Float32Array, Float64Array] as NumberType[];

/** One fence epoch. */
async function fenced<T extends TypedArray>(win: Window<T>, issue: () => unknown): Promise<void> {
  await win.fence(Assert.NO_PRECEDE);
  await issue();
  await win.fence(Assert.NO_SUCCEED);
}

/** One lockAll epoch, after which all ranks have ended theirs. */
async function lockedAll<T extends TypedArray>(t: Trial, win: Window<T>, issue: () => unknown): Promise<void> {
  await win.lockAll();
  await issue();
  await win.unlockAll();
  await t.barrier();
}

const iota = (n: number, first = 0): number[] => Array.from({ length: n }, (_, i) => first + i);

/** Arrays of every kind over the same bytes. */
const views = (bytes: Uint8Array): TypedArray[] =>
  [...NUMBER_TYPES, Uint8ClampedArray, BigInt64Array].map(
    (type) =>
      new (type as TypedArrayConstructor)(bytes.buffer, bytes.byteOffset, bytes.length / type.BYTES_PER_ELEMENT),
  );

requirement('12.3', 'a layout determines the type of the elements, whatever array contains them', '', (t) =>
  t.window(Uint8Array, 256, async (win) => {
    const { FLOAT32, INT16, UINT64, DOUBLE_INT } = Datatype;
    const pair = Datatype.struct({ x: FLOAT64, n: INT32 });
    const types = [INT32, FLOAT64, FLOAT32, INT16, UINT64, BYTE, pair, Datatype.vector(2, 1, 2, INT32), DOUBLE_INT];
    for (const [i, type] of types.entries()) {
      const count = Math.floor(64 / type.extent);
      const layout = { type, count };
      for (const [v, origin] of views(new Uint8Array(64).map((_, b) => (b * 7 + i) % 64)).entries()) {
        const says = `${type} in a ${origin.constructor.name}`;
        const into = views(new Uint8Array(64))[v];
        const again = views(new Uint8Array(64))[v];
        const data = (array: TypedArray): number[] => [...type.pack(array, count)];
        await win.lock(t.next, Lock.EXCLUSIVE);
        win.put(origin, t.next, 0, { origin: layout, target: layout });
        await win.flush(t.next);
        win.get(into, t.next, 0, { origin: layout, target: layout });
        if (type.base >= 0) {
          const both = { origin: layout, target: layout };
          win.accumulate(origin, t.next, 64, Op.REPLACE, both);
          win.getAccumulate(origin, again, t.next, 128, Op.REPLACE, { ...both, result: layout });
          await win.flush(t.next);
          win.getAccumulate(null, again, t.next, 64, Op.NO_OP, { target: layout, result: layout });
        }
        await win.unlock(t.next);
        assert.deepEqual(data(into), data(origin), says);
        if (type.base >= 0) assert.deepEqual(data(again), data(origin), says);
        refused('ERR_BUFFER', () => type.pack(origin, count + 1 + 64));
        await win.lock(t.next, Lock.SHARED);
        refused('ERR_BUFFER', () => win.put(origin, t.next, 0, { origin: { type, count: count + 1 } }));
        await win.unlock(t.next);
      }
    }
  }),
);
requirement('12.3.4', 'fetchAndOp with NO_OP needs no origin', '', (t) =>
  t.window(Int32Array, 1, async (win) => {
    win.local[0] = 5 + t.rank;
    await t.barrier();
    const found = new Int32Array(1);
    await win.lock(t.next, Lock.SHARED);
    win.fetchAndOp(null, found, t.next, 0, Op.NO_OP);
    refused('ERR_BUFFER', () => win.fetchAndOp(null, found, t.next, 0, Op.SUM));
    await win.unlock(t.next);
    assert.equal(found[0], 5 + t.next);
    await t.barrier();
  }),
);
requirement('12.3.4', 'an immense number of overlapping elements is refused before any is touched', '', (t) =>
  t.window(Uint8Array, 8, async (win) => {
    const side = { type: Datatype.resized(Datatype.UINT8, 0, 0), count: 2 ** 50 };
    await lockedAll(t, win, () => {
      refused('ERR_TYPE', () => win.accumulate(new Uint8Array(8), t.next, 0, Op.SUM, { origin: side, target: side }));
    });
    assert.deepEqual([...win.local], iota(8).fill(0));
    // A pebibyte: there is no room for it, whatever the version of Node lets an array be.
    const again = Datatype.resized(Datatype.hvector(2 ** 16, 1, 0, FLOAT64), 0, 0);
    refused('ERR_SIZE', () => again.pack(new Float64Array(1), 2 ** 31 - 1));
  }),
);

// ---- 12.3.1, 12.3.2: put and get ------------------------------------------------------------------------------------

requirement(
  '12.3.1',
  'put writes consecutive elements at a displacement, and nothing around them',
  'mpich/putfence1',
  (t) =>
    t.window(Float64Array, 16, async (win) => {
      win.local.fill(-1);
      await fenced(win, () => win.put(Float64Array.from(iota(10, t.rank)), t.next, 3));
      assert.deepEqual([...win.local], [-1, -1, -1, ...iota(10, t.previous), -1, -1, -1]);
    }),
);
requirement('12.3.2', 'get reads consecutive elements at a displacement', 'mpich/getfence1 mpich/test4', (t) =>
  t.window(Float64Array, 16, async (win) => {
    win.local.set(iota(16, 100 * t.rank));
    const found = new Float64Array(5).fill(-1);
    await fenced(win, () => win.get(found.subarray(0, 4), t.next, 9));
    assert.deepEqual([...found], [...iota(4, 100 * t.next + 9), -1]);
  }),
);
requirement(
  '12.3.1',
  'put and get transfer every element type, of 0 to 9 elements, to every rank',
  'mpi4py/testPutGet',
  async (t) => {
    for (const Type of NUMBER_TYPES) {
      await t.window<Numbers>(Type, 10 * t.size, async (win) => {
        for (let count = 0; count < 10; count += 3) {
          const origin = Type.of(...iota(count, 1 + t.rank));
          await fenced(win, () => {
            for (const target of t.ranks) win.put(origin, target, 10 * t.rank);
          });
          const into = Type.of(...iota(count + 1).map(() => 99));
          await fenced(win, () => win.get(into.subarray(0, count), t.next, 10 * t.rank));
          assert.deepEqual([...into], [...iota(count, 1 + t.rank), 99]);
        }
      });
    }
  },
);
requirement(
  '12.3.1',
  'transfers arrive whole at all lengths around those where the way of copying changes',
  'mpich/rma_contig',
  (t) =>
    t.window(Uint8Array, 70_000, async (win) => {
      for (const length of [1, 2, 3, 7, 8, 9, 31, 63, 64, 65, 127, 255, 4095, 4097, 65_535, 65_537]) {
        const at = t.shared.below(9);
        const origin = Uint8Array.from({ length }, (_, i) => i * 7 + length + t.rank);
        const back = new Uint8Array(length);
        await fenced(win, () => win.put(origin, t.next, at));
        await fenced(win, () => win.get(back, t.next, at));
        assert.ok(Buffer.compare(back, origin) === 0, `${length} bytes at ${at} from rank ${t.next}`);
        assert.ok(
          win.local.subarray(at, at + length).every((byte, i) => byte === ((i * 7 + length + t.previous) & 255)),
        );
      }
    }),
);
requirement('12.3.1', 'several megabytes can be put and got', 'mpich/test5 mpich/test5_am mpich/win_large_shm', (t) =>
  t.window(Float64Array, 1 << 18, async (win) => {
    const origin = Float64Array.from({ length: 1 << 18 }, (_, i) => i + t.rank);
    const back = new Float64Array(1 << 18);
    await fenced(win, () => win.put(origin, t.next, 0));
    assert.ok(win.local.every((value, i) => value === i + t.previous));
    await fenced(win, () => win.get(back, t.next, 0));
    assert.ok(back.every((value, i) => value === i + t.rank));
  }),
);
requirement(
  '12.3.1',
  'many small puts in one epoch all arrive',
  'mpich/manyrma2 mpich/test2_am mpich/contention_put',
  (t) =>
    t.window(Int32Array, 200 * t.size, async (win) => {
      await fenced(win, () => {
        for (let i = 0; i < 200; i++)
          for (const target of t.ranks) win.put(Int32Array.of(1000 * t.rank + i), target, 200 * t.rank + i);
      });
      assert.deepEqual(
        [...win.local],
        t.ranks.flatMap((rank) => iota(200, 1000 * rank)),
      );
    }),
);
requirement('12.3.2', 'many gets in one epoch all arrive', 'mpich/manyget mpich/contention_putget', (t) =>
  t.window(Int32Array, 256, async (win) => {
    win.local.set(iota(256, 1000 * t.rank));
    const found = t.ranks.map(() => new Int32Array(256));
    await fenced(win, () => {
      for (const target of t.ranks) for (let i = 0; i < 256; i++) win.get(found[target].subarray(i, i + 1), target, i);
    });
    for (const target of t.ranks) assert.deepEqual([...found[target]], iota(256, 1000 * target));
  }),
);
requirement('12.3.1', 'the origin may be the target', 'mpich/selfrma mpich/contig_displ mpich/transpose6', (t) =>
  t.window(Int32Array, 8, async (win) => {
    const found = new Int32Array(1);
    await fenced(win, () => {
      win.put(Int32Array.of(5, 6), t.rank, 0);
      win.accumulate(Int32Array.of(7), t.rank, 2, Op.SUM);
    });
    await fenced(win, () => win.get(found, t.rank, 1));
    assert.deepEqual([...win.local.subarray(0, 3), found[0]], [5, 6, 7, 6]);
  }),
);
requirement(
  '12.3',
  'a target of Rank.NULL makes every call do nothing',
  'mpich/rmanull mpich/locknull mpi4py/testPutProcNull mpi4py/testGetProcNull ' +
    'mpi4py/testAccumulateProcNullReplace mpi4py/testAccumulateProcNullSum',
  (t) =>
    t.window(Int32Array, 2, async (win) => {
      const result = Int32Array.of(8);
      const nothing = (): void => {
        win.put(Int32Array.of(1), Rank.NULL, 0);
        win.get(result, Rank.NULL, 0);
        win.accumulate(Int32Array.of(1), Rank.NULL, 0, Op.SUM);
        win.accumulate(Int32Array.of(1), Rank.NULL, 0, Op.REPLACE);
        win.fetchAndOp(Int32Array.of(1), result, Rank.NULL, 0, Op.SUM);
        win.compareAndSwap(Int32Array.of(1), Int32Array.of(0), result, Rank.NULL, 0);
      };
      await fenced(win, nothing);
      await lockedAll(t, win, nothing);
      await win.lock(Rank.NULL, Lock.EXCLUSIVE);
      await win.unlock(Rank.NULL);
      assert.deepEqual([...win.local, result[0]], [0, 0, 8]);
    }),
);
requirement(
  '12.3',
  'getAccumulate and the request-based calls accept Rank.NULL and are complete at once',
  'mpich/rmanull',
  (t) =>
    t.window(Int32Array, 2, (win) =>
      lockedAll(t, win, async () => {
        const result = Int32Array.of(8);
        win.getAccumulate(Int32Array.of(1), result, Rank.NULL, 0, Op.SUM);
        const requests = [
          win.rput(Int32Array.of(1), Rank.NULL, 0),
          win.rget(result, Rank.NULL, 0),
          win.raccumulate(Int32Array.of(1), Rank.NULL, 0, Op.SUM),
          win.rgetAccumulate(Int32Array.of(1), result, Rank.NULL, 0, Op.SUM),
        ];
        for (const request of requests) assert.equal(request.test(), true);
        await Request.waitAll(requests);
        assert.equal(result[0], 8);
      }),
    ),
);
requirement('12.3', 'calls with no elements transfer nothing, even at the end of a part', 'mpich/rmazero', (t) =>
  t.window(Int32Array, 2, async (win) => {
    const none = new Int32Array(0);
    const layout = { origin: { type: INT32, count: 0 }, target: { type: INT32, count: 0 } };
    await fenced(win, () => {
      win.put(none, t.next, 0);
      win.put(none, t.next, 2);
      win.get(none, t.next, 2);
      win.accumulate(none, t.next, 2, Op.SUM);
      win.put(Int32Array.of(3), t.next, 0, layout);
      win.get(Int32Array.of(3), t.next, 0, layout);
      win.accumulate(Int32Array.of(3), t.next, 0, Op.SUM, layout);
    });
    assert.deepEqual([...win.local], [0, 0]);
  }),
);
requirement('12.3', 'origins may be views with an offset, and Buffers', 'mpich/put_base', (t) =>
  t.window(Uint8Array, 8, async (win) => {
    await fenced(win, () => {
      win.put(Buffer.from('abc').subarray(1), t.next, 0);
      win.put(new Uint8Array(Uint8Array.of(1, 2, 3, 4).buffer, 2, 2), t.next, 4);
    });
    assert.deepEqual([...win.local], [98, 99, 0, 0, 3, 4, 0, 0]);
  }),
);

// ---- 12.3.1: datatypes ----------------------------------------------------------------------------------------------

/**
 * Everybody puts, everybody looks: the origin's elements with these numbers lie at these places of the target, in
 * order.
 */
async function puts(
  t: Trial,
  origin: { type: Datatype; count: number } | undefined,
  target: { type: Datatype; count: number } | undefined,
  taken: readonly number[],
  placed: readonly number[],
): Promise<void> {
  const layout = { ...(origin && { origin }), ...(target && { target }) };
  await t.window(Int32Array, 40, async (win) => {
    const source = Int32Array.from(iota(origin === undefined ? taken.length : 40, 100 * t.rank));
    await fenced(win, () => win.put(source, t.next, 0, layout));
    const expected = new Int32Array(40);
    for (const [i, place] of placed.entries()) expected[place] = 100 * t.previous + taken[i];
    assert.deepEqual([...win.local], [...expected]);
    // And back: the same elements, at the places they came from.
    const back = new Int32Array(source.length).fill(-1);
    await fenced(win, () => win.get(back, t.next, 0, layout));
    const found = new Int32Array(source.length).fill(-1);
    for (const i of taken) found[i] = 100 * t.rank + i;
    assert.deepEqual([...back], [...found]);
  });
}

requirement('12.3.1', 'a vector at the target scatters consecutive elements', 'mpich/test1_dt mpich/transpose2', (t) =>
  puts(t, undefined, { type: Datatype.vector(4, 2, 5, INT32), count: 1 }, iota(8), [0, 1, 5, 6, 10, 11, 15, 16]),
);
requirement('12.3.1', 'a vector at the origin gathers', 'mpich/transpose3', (t) =>
  puts(t, { type: Datatype.vector(4, 1, 3, INT32), count: 1 }, undefined, [0, 3, 6, 9], [0, 1, 2, 3]),
);
requirement(
  '12.3.1',
  'the layouts of origin and target may differ if their elements agree in number and type',
  'mpich/transpose1 mpich/transpose7',
  (t) =>
    puts(
      t,
      { type: Datatype.vector(3, 2, 4, INT32), count: 1 },
      { type: Datatype.vector(2, 3, 10, INT32), count: 1 },
      [0, 1, 4, 5, 8, 9],
      [0, 1, 2, 10, 11, 12],
    ),
);
requirement('12.3.1', 'a count repeats a layout at multiples of its extent', 'mpich/transpose4', (t) =>
  puts(t, undefined, { type: Datatype.vector(2, 1, 3, INT32), count: 3 }, iota(6), [0, 3, 4, 7, 8, 11]),
);
requirement('12.3.1', 'an indexed block puts elements at arbitrary places', 'mpich/putfidx', (t) =>
  puts(t, undefined, { type: Datatype.indexedBlock(2, [10, 0, 20], INT32), count: 1 }, iota(6), [10, 11, 0, 1, 20, 21]),
);
requirement('12.3.1', 'a negative stride runs backwards', 'mpich/transpose5', (t) =>
  t.window(Int32Array, 12, async (win) => {
    const type = Datatype.indexedBlock(1, [9, 6, 3], INT32);
    await fenced(win, () => win.put(Int32Array.of(1, 2, 3), t.next, 0, { target: { type } }));
    const back = new Int32Array(3);
    await fenced(win, () => win.get(back, t.next, 9, { target: { type: Datatype.vector(3, 1, -3, INT32) } }));
    assert.deepEqual([...back], [1, 2, 3]);
    assert.deepEqual([...win.local], [0, 0, 0, 3, 0, 0, 2, 0, 0, 1, 0, 0]);
  }),
);
requirement(
  '12.3.1',
  'hvector, indexed, hindexed and hindexedBlock lay elements out as MPI says',
  'mpich/strided_get_indexed',
  async (t) => {
    const places: [Datatype, number[]][] = [
      [Datatype.hvector(3, 2, 16, INT32), [0, 1, 4, 5, 8, 9]],
      [Datatype.indexed([1, 3, 2], [0, 10, 5], INT32), [0, 10, 11, 12, 5, 6]],
      [Datatype.hindexed([2, 4], [8, 40], INT32), [2, 3, 10, 11, 12, 13]],
      [Datatype.hindexedBlock(3, [4, 80], INT32), [1, 2, 3, 20, 21, 22]],
    ];
    for (const [type, placed] of places) await puts(t, undefined, { type, count: 1 }, iota(6), placed);
  },
);
requirement(
  '12.3.1',
  'a subarray of a matrix can be put in C order and in Fortran order',
  'mpich/strided_acc_subarray',
  async (t) => {
    const rows = Datatype.subarray([5, 8], [2, 3], [1, 2], INT32);
    await puts(t, undefined, { type: rows, count: 1 }, iota(6), [10, 11, 12, 18, 19, 20]);
    const columns = Datatype.subarray([8, 5], [3, 2], [2, 1], INT32, 'F');
    await puts(t, undefined, { type: columns, count: 1 }, iota(6), [10, 11, 12, 18, 19, 20]);
  },
);
requirement('12.3.1', 'resized changes where the next instance begins', 'mpich/transpose3', async (t) => {
  const column = Datatype.resized(Datatype.vector(3, 1, 4, INT32), 0, 4);
  await puts(t, undefined, { type: column, count: 4 }, iota(12), [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]);
});
requirement('12.3.1', 'a duplicate of a datatype has the same layout', '', (t) =>
  puts(t, undefined, { type: Datatype.dup(Datatype.vector(3, 1, 2, INT32)), count: 1 }, iota(3), [0, 2, 4]),
);
requirement('12.3.1', 'datatypes nest', 'mpich/lock_dt', (t) =>
  puts(
    t,
    undefined,
    { type: Datatype.vector(2, 1, 3, Datatype.vector(2, 2, 3, INT32)), count: 1 },
    iota(8),
    [0, 1, 3, 4, 15, 16, 18, 19],
  ),
);
requirement('12.3.2', 'a struct of different base types can be put and got', 'mpich/get_struct', (t) =>
  t.window(Uint8Array, 64, async (win) => {
    const type = Datatype.struct([1, 2], [0, 8], [FLOAT64, INT32]);
    assert.deepEqual([type.size, type.extent], [16, 16]);
    const origin = new DataView(new ArrayBuffer(48));
    for (let i = 0; i < 3; i++) {
      origin.setFloat64(16 * i, t.rank + i / 8, true);
      origin.setInt32(16 * i + 8, 10 * t.rank + i, true);
      origin.setInt32(16 * i + 12, -i, true);
    }
    const bytes = new Uint8Array(origin.buffer);
    const layout = { origin: { type, count: 3 }, target: { type, count: 3 } };
    await fenced(win, () => win.put(bytes, t.next, 16, layout));
    const back = new Uint8Array(48);
    await fenced(win, () => win.get(back, t.next, 16, layout));
    assert.deepEqual(back, bytes);
    assert.equal(new DataView(win.local.buffer, win.local.byteOffset).getFloat64(32, true), t.previous + 1 / 8);
  }),
);
requirement(
  '12.3.1',
  'a strided patch of a matrix can be put to another matrix and got back, under locks',
  'mpich/strided_putget_indexed mpich/strided_putget_indexed_shared armci/test_puts_gets ' +
    'armci/test_puts armci/test_putv',
  (t) =>
    t.window(Float64Array, 16 * 16, async (win) => {
      const patch = { type: Datatype.vector(4, 6, 16, FLOAT64), count: 1 };
      const source = Float64Array.from(iota(256, 1000 * t.rank));
      await win.lock(t.next, Lock.EXCLUSIVE);
      win.put(source, t.next, 16 * 3 + 5, { origin: patch, target: patch });
      await win.unlock(t.next);
      const back = new Float64Array(24);
      await win.lock(t.next, Lock.SHARED);
      win.get(back, t.next, 16 * 3 + 5, { target: patch });
      await win.unlock(t.next);
      const expected = iota(4).flatMap((row) => iota(6, 1000 * t.rank + 16 * row));
      assert.deepEqual([...back], expected);
      await t.barrier();
    }),
);
requirement(
  '12.3.1',
  'the whole span of the target layout is checked against the part, not only its first instance',
  'mpich/badrma',
  (t) =>
    t.window(Int32Array, 10, async (win) => {
      await fenced(win, () => {
        const type = Datatype.vector(2, 1, 4, INT32);
        win.put(Int32Array.of(1, 2), t.next, 5, { target: { type } });
        refused('ERR_RMA_RANGE', () => win.put(Int32Array.of(1, 2), t.next, 6, { target: { type } }));
        refused('ERR_RMA_RANGE', () => win.put(new Int32Array(4), t.next, 1, { target: { type, count: 2 } }));
      });
      assert.deepEqual([...win.local], [0, 0, 0, 0, 0, 1, 0, 0, 0, 2]);
    }),
);
requirement(
  '12.3.1',
  'elements that differ between origin and target are refused',
  'mpich-errors/acc_op_type_check',
  (t) =>
    t.window(Int32Array, 8, async (win) => {
      await fenced(win, () => {
        const origin = new Int32Array(4);
        refused('ERR_TYPE', () => win.put(origin, t.next, 0, { target: { type: INT32, count: 3 } }));
        refused('ERR_TYPE', () => win.put(origin, t.next, 0, { target: { type: FLOAT64, count: 4 } }));
        refused('ERR_TYPE', () =>
          win.put(origin, t.next, 0, { origin: { type: FLOAT64, count: 2 }, target: { type: INT32, count: 4 } }),
        );
      });
      assert.ok(win.local.every((value) => value === 0));
    }),
);
requirement('12.3.1', 'bytes are put as bytes, whatever the element type of the origin', '', (t) =>
  t.window(Uint8Array, 8, async (win) => {
    const layout = { origin: { type: BYTE, count: 8 }, target: { type: BYTE, count: 8 } };
    await fenced(win, () => win.put(Float64Array.of(t.rank + 1), t.next, 0, layout));
    assert.equal(new Float64Array(win.local.slice().buffer)[0], t.previous + 1);
  }),
);
requirement('12.3.2', 'put accepts an origin layout whose elements overlap', '', (t) =>
  t.window(Int32Array, 8, async (win) => {
    const twice = { type: Datatype.indexedBlock(2, [0, 1], INT32), count: 1 };
    await fenced(win, () => win.put(Int32Array.of(1, 2, 3), t.next, 0, { origin: twice }));
    assert.deepEqual([...win.local.subarray(0, 4)], [1, 2, 2, 3]);
  }),
);

// ---- 12.3.4: accumulate ---------------------------------------------------------------------------------------------

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

/** What each operation makes of the target's 6 and the origin's 3. */
const RESULTS: Record<string, number> = {
  SUM: 9,
  PROD: 18,
  MIN: 3,
  MAX: 6,
  LAND: 1,
  LOR: 1,
  LXOR: 0,
  BAND: 2,
  BOR: 7,
  BXOR: 5,
  REPLACE: 3,
  NO_OP: 6,
};
/** One that is defined on the elements of whoever asks. */
const operation = (name: string): typeof Op.SUM => Op[name as 'SUM'];
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

// ---- 12.3.4: getAccumulate ------------------------------------------------------------------------------------------

/**
 * What all ranks have fetched from three elements, to which they have added 1, 10 and 2: each element has been seen in
 * each of its states once. Elements are atomic, calls are not, so the three need not fit together.
 */
async function eachStateOnce(t: Trial, fetched: readonly Numbers[]): Promise<void> {
  const all = new Float64Array(t.size * fetched.length * 3);
  await t.comm.allgather(Float64Array.from(fetched.flatMap((values) => [...values])), all);
  for (const [place, step] of [1, 10, 2].entries()) {
    assert.deepEqual(
      [...all].filter((_, i) => i % 3 === place).sort((a, b) => a - b),
      iota(t.size * fetched.length).map((i) => i * step),
    );
  }
}

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

// ---- 12.3.4: fetchAndOp, compareAndSwap -----------------------------------------------------------------------------

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

// ---- 12.3.5: requests -----------------------------------------------------------------------------------------------

requirement(
  '12.3.5',
  'when the request of an rput is complete, its origin may be used again',
  'mpich/rput_local_comp mpich/reqops',
  (t) =>
    t.window(Int32Array, 4, async (win) => {
      await win.lockAll();
      const origin = Int32Array.of(t.rank + 1);
      const request = win.rput(origin, t.next, 1);
      await request.wait();
      origin[0] = -1;
      await win.flush(t.next);
      await t.barrier();
      assert.equal(await peek(win, t.rank, 1), t.previous + 1);
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.3.5',
  'when the request of an rget is complete, its result is there',
  'mpich/reqops mpich/req_example',
  (t) =>
    t.window(Int32Array, 4, async (win) => {
      await win.fence();
      win.local.set([1, 2, 3, t.rank]);
      await win.fence(Assert.NO_SUCCEED);
      await win.lockAll();
      const into = new Int32Array(2);
      const second = win.rget(into, t.next, 2);
      if (t.blocks) second.waitSync();
      else await second.wait();
      assert.deepEqual([...into], [3, t.next]);
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.3.5',
  'when the request of an raccumulate is complete, its origin may be used again',
  'mpich/racc_local_comp mpich/reqops',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await lockedAll(t, win, async () => {
        const origin = Int32Array.of(0);
        for (let i = 1; i <= 5; i++) {
          origin[0] = i;
          await win.raccumulate(origin, 0, 0, Op.SUM).wait();
        }
      });
      if (t.rank === 0) assert.equal(win.local[0], 15 * t.size);
    }),
);
requirement('12.3.5', 'when the request of an rgetAccumulate is complete, its result is there', 'mpich/reqops', (t) =>
  t.window(Int32Array, 3, async (win) => {
    const fetched: Numbers[] = [];
    await lockedAll(t, win, async () => {
      for (let i = 0; i < 5; i++) {
        const result = Int32Array.of(-1, -1, -1);
        await win.rgetAccumulate(Int32Array.of(1, 10, 2), result, 0, 0, Op.SUM).wait();
        fetched.push(result.slice());
      }
    });
    await eachStateOnce(t, fetched);
    if (t.rank === 0) assert.deepEqual([...win.local], [5 * t.size, 50 * t.size, 10 * t.size]);
  }),
);
requirement('12.3.5', 'test of a request becomes true, and stays true', 'mpich/rget_testall', (t) =>
  t.window(Int32Array, 64, async (win) => {
    await win.lockAll();
    const into = t.ranks.map(() => new Int32Array(64));
    const requests = t.ranks.map((target) => win.rget(into[target], target, 0));
    for (const request of requests) {
      while (!request.test()) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(request.test(), true);
      await request.wait();
    }
    await win.unlockAll();
    await t.barrier();
  }),
);
requirement('12.3.5', 'waitAll waits for requests of every kind', 'mpich/reqops mpich/req_example', (t) =>
  t.window(Int32Array, 4 * t.size, async (win) => {
    await lockedAll(t, win, async () => {
      const requests: Request[] = [];
      for (const target of t.ranks) {
        requests.push(win.rput(Int32Array.of(t.rank + 1), target, 4 * t.rank));
        requests.push(win.raccumulate(Int32Array.of(1), target, 4 * t.rank + 1, Op.SUM));
      }
      await Request.waitAll(requests);
      await Request.waitAll([]);
      await win.flushAll();
      const into = new Int32Array(2);
      await Request.waitAll([win.rget(into, t.next, 4 * t.rank)]);
      assert.deepEqual([...into], [t.rank + 1, 1]);
    });
    assert.deepEqual(
      [...win.local],
      t.ranks.flatMap((rank) => [rank + 1, 1, 0, 0]),
    );
  }),
);
requirement('12.3.5', 'waitAny in a loop returns each request once, if those returned are replaced by null', '', (t) =>
  t.window(Int32Array, 4, async (win) => {
    await lockedAll(t, win, async () => {
      const requests: (Request | null)[] = iota(4).map((i) => win.rput(Int32Array.of(i + 1), t.next, i));
      const named = new Set<number>();
      for (;;) {
        const index = await Request.waitAny(requests);
        if (index === Rank.UNDEFINED) break;
        named.add(index);
        requests[index] = null;
      }
      assert.deepEqual([...named].sort(), iota(4));
      assert.equal(Request.testAll(requests), true);
      await Request.waitAll([null]);
      if (t.blocks) assert.equal(Request.waitAnySync([]), Rank.UNDEFINED);
    });
    assert.deepEqual([...win.local], [1, 2, 3, 4]);
  }),
);
requirement('12.3.5', 'waitAny returns a request that is complete', 'mpich/reqops', (t) =>
  t.window(Int32Array, 4, async (win) => {
    await lockedAll(t, win, async () => {
      const requests = [win.rput(Int32Array.of(1), t.next, 0), win.rput(Int32Array.of(2), t.next, 1)];
      const index = await Request.waitAny(requests);
      assert.ok(index === 0 || index === 1);
      assert.equal(requests[index].test(), true);
      await Request.waitAll(requests);
    });
    assert.deepEqual([...win.local], [1, 2, 0, 0]);
  }),
);
requirement('12.3.5', 'a request may be waited for after the epoch has ended', 'mpich/rget_unlock', (t) =>
  t.window(Int32Array, 2, async (win) => {
    win.local[0] = t.rank;
    await t.barrier();
    await win.lock(t.next, Lock.SHARED);
    const into = Int32Array.of(-1, -1);
    const request = win.rget(into, t.next, 0);
    await win.unlock(t.next);
    assert.equal(into[0], t.next);
    await request.wait();
    assert.equal(request.test(), true);
    await t.barrier();
  }),
);
requirement(
  '12.3.5',
  'request-based calls belong to passive target epochs: in a fence epoch they are refused',
  'mpich/reqops',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      refused('ERR_RMA_SYNC', () => win.rput(Int32Array.of(1), t.next, 0));
      await win.fence();
      refused('ERR_RMA_SYNC', () => win.rput(Int32Array.of(1), t.next, 0));
      refused('ERR_RMA_SYNC', () => win.rget(Int32Array.of(1), t.next, 0));
      refused('ERR_RMA_SYNC', () => win.raccumulate(Int32Array.of(1), t.next, 0, Op.SUM));
      await win.fence(Assert.NO_SUCCEED);
    }),
);
requirement('12.3.5', 'request-based calls accept layouts', 'mpich/rget_testall', (t) =>
  t.window(Int32Array, 8, async (win) => {
    const target = { type: Datatype.vector(2, 1, 3, INT32), count: 1 };
    await lockedAll(t, win, async () => {
      await win.rput(Int32Array.of(5, 6), t.next, 1, { target }).wait();
      await win.flush(t.next);
      const into = new Int32Array(2);
      await win.rget(into, t.next, 1, { target }).wait();
      assert.deepEqual([...into], [5, 6]);
    });
    assert.deepEqual([...win.local], [0, 5, 0, 0, 6, 0, 0, 0]);
  }),
);
requirement('12.3.5', 'all ranks compute pi with request-based calls', 'mpich/ircpi mpich/req_example_shm', (t) =>
  t.window(Float64Array, 1, async (win) => {
    let sum = 0;
    for (let i = t.rank; i < 2000; i += t.size) sum += 4 / (1 + ((i + 0.5) / 2000) ** 2) / 2000;
    await lockedAll(t, win, () => win.raccumulate(Float64Array.of(sum), 0, 0, Op.SUM).wait());
    if (t.rank === 0) assert.ok(Math.abs(win.local[0] - Math.PI) < 1e-6);
  }),
);

// ---- beyond the chapter ---------------------------------------------------------------------------------------------

requirement('beyond', 'putNotify increments a counter at the target after its data is visible', '', (t) =>
  t.window(Int32Array, 8, async (win) => {
    await win.lockAll();
    for (let i = 1; i <= 5; i++) {
      win.putNotify(Int32Array.of(100 * t.rank + i), t.next, i);
      await win.waitNotify(1);
      assert.equal(win.local[i], 100 * t.previous + i);
    }
    win.putNotify(Int32Array.of(1), t.next, 6);
    win.putNotify(Int32Array.of(2), t.next, 7);
    await win.waitNotify(2);
    assert.equal(win.testNotify(1), false);
    assert.deepEqual([...win.local.subarray(6)], [1, 2]);
    await win.unlockAll();
    await t.barrier();
  }),
);
requirement('beyond', 'additions of all ranks to one floating-point element are exact', 'mpich/test3_am', (t) =>
  t.window(Float64Array, 1, async (win) => {
    await lockedAll(t, win, () => {
      for (let i = 0; i < 50; i++) win.accumulate(Float64Array.of(0.5), 0, 0, Op.SUM);
    });
    if (t.rank === 0) assert.equal(win.local[0], 25 * t.size);
  }),
);
