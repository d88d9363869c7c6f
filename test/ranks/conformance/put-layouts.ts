/** MPI 4.1, 12.3.1: datatypes on both sides. */
import assert from 'node:assert/strict';
import { Datatype, Lock } from 'onesided';
import { fenced, puts } from './epochs-and-arrays.ts';
import { collector, iota, refused } from './requirement.ts';

const { requirements, requirement } = collector();
export const putLayouts = requirements;

const { INT32, FLOAT64, BYTE } = Datatype;

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
