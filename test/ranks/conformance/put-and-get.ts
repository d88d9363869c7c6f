/** MPI 4.1, 12.3, 12.3.1, 12.3.2: what all calls have in common; put and get. */
import assert from 'node:assert/strict';
import { Datatype, Lock, Op, Rank, Request, type TypedArray, type TypedArrayConstructor } from 'onesided';
import { fenced, lockedAll, NUMBER_TYPES, type Numbers } from './epochs-and-arrays.ts';
import { collector, iota, refused } from './requirement.ts';

const { requirements, requirement } = collector();
export const putAndGet = requirements;

const { INT32, FLOAT64, BYTE } = Datatype;

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
