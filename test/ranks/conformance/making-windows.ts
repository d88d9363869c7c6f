/** MPI 4.1, 12.2.1, 12.2.2: windows over memory, and windows with memory. */
import assert from 'node:assert/strict';
import { Assert, Datatype, Op, Window } from 'onesided';
import { collector, peek, refused, refusedLater, ring } from './requirement.ts';

const { requirements, requirement } = collector();
export const makingWindows = requirements;

// ---- 12.2.1 create --------------------------------------------------------------------------------------------------

requirement(
  '12.2.1',
  'create makes a window over memory from allocMem, and keeps its contents',
  'mpich/allocmem mpi4py/testGetMemory armci/test_win_create',
  async (t) => {
    const memory = t.comm.allocMem(Float64Array, 8);
    memory[3] = t.rank + 0.5;
    await t.using(Window.create(t.comm, memory), async (win) => {
      assert.equal(win.local[3], t.rank + 0.5);
      await win.fence();
      const found = new Float64Array(1);
      win.get(found, t.next, 3);
      await win.fence(Assert.NO_SUCCEED);
      assert.equal(found[0], t.next + 0.5);
      await ring(t, win);
    });
    assert.equal(memory[0], 100 + t.previous);
    t.comm.freeMem(memory);
  },
);
requirement('12.2.1', 'create makes a window over an ordinary array of the program', 'mpich/test1 mpich/wintest', (t) =>
  t.using(Window.create(t.comm, new Float64Array(8)), (win) => ring(t, win as Window<Float64Array>)),
);
requirement(
  '12.2.1',
  'a part may begin anywhere in the memory that contains it',
  'mpich/put_base mpich/put_bottom',
  (t) =>
    t.using(Window.create(t.comm, Buffer.alloc(64).subarray(5, 37)), async (win) => {
      await win.fence();
      win.put(Buffer.from([7, 8, 9 + t.rank]), t.next, 29);
      await win.fence(Assert.NO_SUCCEED);
      assert.deepEqual([...win.local.subarray(28)], [0, 7, 8, 9 + t.previous]);
    }),
);
requirement(
  '12.2.1',
  'atomic calls on ordinary memory lose no update, whether of the owner or of other ranks',
  'mpich/test3',
  (t) =>
    t.using(Window.create(t.comm, new Int32Array(4)), async (win) => {
      const old = new Int32Array(1);
      await win.lockAll();
      for (let i = 0; i < 20; i++) {
        for (const target of t.ranks) {
          win.accumulate(Int32Array.of(1), target, 0, Op.SUM);
          win.fetchAndOp(Int32Array.of(1), old, target, 1, Op.SUM);
          for (;;) {
            const value = await peek(win, target, 2);
            win.compareAndSwap(Int32Array.of(value + 1), Int32Array.of(value), old, target, 2);
            await win.flush(target);
            if (old[0] === value) break;
          }
        }
      }
      await win.unlockAll();
      await t.barrier();
      assert.deepEqual([...win.local], [20 * t.size, 20 * t.size, 20 * t.size, 0]);
    }),
);
requirement(
  '12.2.1',
  'ordinary memory can be accessed while its owner computes without calling the library',
  'mpich/put_base mpich/wintest',
  (t) =>
    t.using(Window.create(t.comm, new Int32Array(1 + t.size)), async (win) => {
      await win.lockAll();
      await t.barrier();
      if (t.rank === 0) {
        const end = performance.now() + 60_000;
        if (!t.blocks) await t.comm.compute(5000 * t.slowness);
        else while (Atomics.load(win.local, 0) < t.size - 1 && performance.now() < end);
        const others = t.ranks.slice(1);
        assert.equal(Atomics.load(win.local, 0), t.size - 1);
        for (const rank of others) assert.equal(Atomics.load(win.local, rank), 9);
      } else {
        const found = new Int32Array(1);
        win.put(Int32Array.of(9), 0, t.rank);
        await win.flush(0);
        win.get(found, 0, t.rank);
        await win.flush(0);
        assert.equal(found[0], 9);
        win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
        await win.flush(0);
      }
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.2.1',
  'some ranks may contribute memory from allocMem, and others ordinary memory',
  'mpich/allocmem',
  async (t) => {
    const memory = t.rank % 2 === 0 ? t.comm.allocMem(Float64Array, 2) : new Float64Array(2);
    await t.using(Window.create(t.comm, memory), (win) => ring(t, win as Window<Float64Array>));
    assert.equal(memory[0], 100 + t.previous);
  },
);
requirement('12.2.1', 'put and get move a layout with gaps to and from ordinary memory', 'mpich/test1_dt', (t) =>
  t.using(Window.create(t.comm, new Int32Array(12)), async (win) => {
    const target = { type: Datatype.vector(4, 1, 3, Datatype.INT32) };
    const back = new Int32Array(4);
    await win.fence();
    win.put(Int32Array.of(1, 2, 3, 4 + t.rank), t.next, 1, { target });
    await win.fence();
    win.get(back, t.next, 1, { target });
    await win.fence(Assert.NO_SUCCEED);
    assert.deepEqual([...back], [1, 2, 3, 4 + t.rank]);
    assert.deepEqual([...win.local], [0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4 + t.previous, 0]);
  }),
);
requirement('12.2.1', 'ranks may contribute parts of different sizes', 'mpich/getgroup armci/test_malloc_irreg', (t) =>
  t.window(Int32Array, 3 * t.rank + 1, async (win) => {
    await win.fence();
    for (const target of t.ranks) win.accumulate(Int32Array.of(1), target, 3 * target, Op.SUM);
    await win.fence();
    assert.equal(win.local.length, 3 * t.rank + 1);
    assert.equal(win.local[3 * t.rank], t.size);
    refused('ERR_RMA_RANGE', () => win.put(Int32Array.of(1), t.next, 3 * t.next + 1));
    await win.fence(Assert.NO_SUCCEED);
  }),
);
requirement(
  '12.2.1',
  "a displacement counts in the target's unit, which each rank chooses for its part",
  'mpich/test2',
  (t) =>
    t.window(
      Int32Array,
      8,
      async (win) => {
        const unitOf = (rank: number): number => [1, 2, 4][rank % 3];
        assert.equal(win.dispUnit, unitOf(t.rank));
        await win.fence();
        win.put(Int32Array.of(t.rank + 1), t.next, 20 / unitOf(t.next));
        await win.fence(Assert.NO_SUCCEED);
        assert.deepEqual([...win.local], [0, 0, 0, 0, 0, t.previous + 1, 0, 0]);
      },
      { dispUnit: [1, 2, 4][t.rank % 3] },
    ),
);
requirement(
  '12.2.1',
  'a rank that contributes no memory can access the memory of others',
  'mpich/win_zero mpich/rmazero',
  (t) =>
    t.window(Float64Array, t.rank === 0 ? t.size : 0, async (win) => {
      await win.fence();
      win.put(Float64Array.of(t.rank + 1), 0, t.rank);
      if (t.size > 1) refused('ERR_RMA_RANGE', () => win.put(Float64Array.of(1), 1, 0));
      await win.fence(Assert.NO_SUCCEED);
      assert.deepEqual([...win.local], t.rank === 0 ? t.ranks.map((rank) => rank + 1) : []);
    }),
);
requirement(
  '12.2.1',
  'a window to which no rank contributes memory can be made, synchronized and freed',
  'mpich/win_zero',
  (t) =>
    t.window(Float64Array, 0, async (win) => {
      await win.fence();
      win.put(new Float64Array(0), t.next, 0);
      await win.fence(Assert.NO_SUCCEED);
      await win.lockAll();
      await win.flushAll();
      await win.unlockAll();
    }),
);
requirement(
  '12.2.1',
  'the same memory may belong to several windows, and is visible through each',
  'mpich/overlap_wins_put',
  async (t) => {
    const memory = t.comm.allocMem(Int32Array, 16);
    const all = await Window.create(t.comm, memory);
    const half = await Window.create(t.comm, memory.subarray(8));
    await all.lockAll();
    await half.lockAll();
    all.accumulate(Int32Array.of(1), t.next, 9, Op.SUM);
    await all.flush(t.next);
    half.accumulate(Int32Array.of(10), t.next, 1, Op.SUM);
    await half.flush(t.next);
    await t.barrier();
    assert.equal(await peek(all, t.rank, 9), 11);
    assert.equal(await peek(half, t.rank, 1), 11);
    await all.unlockAll();
    await half.unlockAll();
    await half.free();
    await all.free();
    t.comm.freeMem(memory);
  },
);
requirement('12.2.1', 'windows can be made and freed many times', 'mpich/window_creation mpich/manyrma3', async (t) => {
  for (let i = 0; i < 20; i++) {
    const one = await Window.allocate(t.comm, Float64Array, 4);
    const two = await Window.allocate(t.comm, Float64Array, 4);
    await ring(t, one as Window<Float64Array>);
    if (i % 2 === 0) await two.free();
    await one.free();
    if (i % 2 === 1) await two.free();
  }
});
requirement(
  '12.2.1',
  'a window on some of the ranks involves only those',
  'armci/test_malloc_group armci/test_groups armci/test_group_split',
  async (t) => {
    const half = (await t.comm.split(t.rank % 2, -t.rank))!;
    const win = await Window.allocate(half, Float64Array, half.size);
    assert.equal(win.group.size, half.size);
    await win.fence();
    for (let target = 0; target < half.size; target++) win.put(Float64Array.of(t.rank + 1), target, half.rank);
    await win.fence(Assert.NO_SUCCEED);
    const members = t.ranks.filter((rank) => rank % 2 === t.rank % 2).reverse();
    assert.deepEqual(
      [...win.local],
      members.map((rank) => rank + 1),
    );
    await win.free();
    await half.finalize();
  },
);
requirement(
  '12.2.1',
  'a displacement unit that is negative or not a whole number is refused at all ranks',
  '',
  async (t) => {
    for (const dispUnit of [-1, -4, 1.5, Number.NaN]) {
      await refusedLater('ERR_DISP', () => Window.allocate(t.comm, Float64Array, 4, { dispUnit }));
    }
  },
);

requirement(
  '12.2.1',
  'with a displacement unit of 0, every displacement means the start of the part',
  '',
  async (t) => {
    await t.window(
      Int32Array,
      2,
      async (win) => {
        await win.fence(Assert.NO_PRECEDE);
        win.put(Int32Array.of(t.rank + 1), t.next, 1000 * t.rank);
        refused('ERR_RMA_RANGE', () => win.put(new Int32Array(3), t.next, 0));
        await win.fence(Assert.NO_SUCCEED);
        assert.deepEqual([...win.local], [t.previous + 1, 0]);
      },
      { dispUnit: 0 },
    );
  },
);
requirement(
  '12.2.1',
  'a window can be made over any memory: a buffer, a DataView, the middle of an array, or none',
  '',
  async (t) => {
    const bytes = t.comm.allocMem(Uint8Array, 64);
    const { buffer, byteOffset } = bytes;
    const memories = [
      t.rank === 0 ? null : new DataView(buffer, byteOffset + 8, 16),
      new DataView(buffer, byteOffset, 64),
      bytes.subarray(4, 20),
    ];
    for (const memory of memories) {
      const win = (await Window.create(t.comm, memory as DataView)) as Window;
      const length = memory?.byteLength ?? 0;
      assert.ok(win.local instanceof Uint8Array);
      assert.equal(win.local.byteLength, length);
      await win.fence();
      if (t.next !== 0 || memory !== memories[0]) win.put(Uint8Array.of(t.rank + 1), t.next, 3);
      await win.fence(Assert.NO_SUCCEED);
      if (length > 0) assert.equal(win.local[3], t.previous + 1);
      await win.free();
    }
    t.comm.freeMem(bytes);
    for (const memory of ['memory', {}, 7]) {
      await refusedLater('ERR_BUFFER', () => Window.create(t.comm, memory as never));
    }
  },
);

// ---- 12.2.2 allocate ------------------------------------------------------------------------------------------------

requirement('12.2.2', 'allocate gives each rank its own memory, of the size it asked for', 'mpich/win_flavors', (t) =>
  t.window(Float64Array, 5 + t.rank, async (win) => {
    assert.equal(win.local.length, 5 + t.rank);
    assert.ok(win.local.every((value) => value === 0));
    win.local.fill(t.rank + 1);
    await ring(t, win);
    assert.ok(win.local.subarray(1).every((value) => value === t.rank + 1));
  }),
);
requirement('12.2.2', 'every element type can be allocated', 'mpich/wintest', async (t) => {
  for (const Type of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array]) {
    await t.window<Int8Array>(Type as unknown as Int8ArrayConstructor, 4, async (win) => {
      assert.equal(win.dispUnit, Type.BYTES_PER_ELEMENT);
      await win.fence();
      win.put(Type.of(1, 2, 3 + t.rank) as unknown as Int8Array, t.next, 1);
      await win.fence(Assert.NO_SUCCEED);
      assert.deepEqual([...win.local], [0, 1, 2, 3 + t.previous]);
    });
  }
  await t.window(BigInt64Array, 2, async (win) => {
    await win.fence();
    win.put(BigInt64Array.of(-(2n ** 60n) - BigInt(t.rank)), t.next, 1);
    await win.fence(Assert.NO_SUCCEED);
    assert.equal(win.local[1], -(2n ** 60n) - BigInt(t.previous));
  });
});
requirement(
  '12.2.2',
  'a size that no array can have is refused at all ranks, and the communicator remains usable',
  '',
  async (t) => {
    for (const length of [-1, 1.5, Number.NaN, 2 ** 60]) {
      await assert.rejects(() => Window.allocate(t.comm, Float64Array, length));
    }
    await t.window(Float64Array, 2, (win) => ring(t, win));
  },
);
requirement(
  '12.2.2',
  'a window of several mebibytes can be accessed to its last byte',
  'mpich/win_large_shm mpich/test5',
  (t) =>
    t.window(Uint8Array, 4 << 20, async (win) => {
      const block = new Uint8Array(1 << 20).fill(t.rank + 1);
      await win.fence();
      win.put(block, t.next, 3 << 20);
      await win.fence(Assert.NO_SUCCEED);
      assert.equal(win.local[(3 << 20) - 1], 0);
      assert.ok(win.local.subarray(3 << 20).every((byte) => byte === t.previous + 1));
    }),
);
