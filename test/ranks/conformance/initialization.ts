/** MPI 4.1, 12.2: windows are made, described, and freed. */
import assert from 'node:assert/strict';
import { Assert, Datatype, Lock, Op, Rank, Window } from 'onesided';
import { collector, peek, refused, refusedLater, sumTo, type Trial } from './requirement.ts';

const { requirements, requirement, shared } = collector();
export const initialization = requirements;

/** Each rank puts its number into its neighbour's first element. */
async function ring(t: Trial, win: Window<Float64Array>): Promise<void> {
  await win.fence();
  win.put(Float64Array.of(100 + t.rank), t.next, 0);
  await win.fence(Assert.NO_SUCCEED);
  assert.equal(win.local[0], 100 + t.previous);
}

const iota = (n: number, first = 0): number[] => Array.from({ length: n }, (_, i) => first + i);

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
    t.using(Window.create(t.comm, new Int32Array(4)), async (win) => {
      await win.lockAll();
      await t.barrier();
      if (t.rank === 0) {
        const end = performance.now() + 60_000;
        if (!t.blocks) await t.comm.compute(5000);
        else while (Atomics.load(win.local, 0) < t.size - 1 && performance.now() < end);
        assert.deepEqual([...win.local.subarray(0, 2)], [t.size - 1, 9]);
      } else {
        const found = new Int32Array(1);
        win.put(Int32Array.of(9), 0, 1);
        await win.flush(0);
        win.get(found, 0, 1);
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

// ---- 12.2.3 allocate shared -----------------------------------------------------------------------------------------

shared('12.2.3', 'every rank can load from a shared part and store to it', 'mpich/win_shared mpich/fence_shm', (t) =>
  t.using(Window.allocateShared(t.comm, Float64Array, 4), async (w) => {
    const win = w as Window<Float64Array>;
    await win.lockAll();
    win.local[0] = t.rank + 1;
    win.sync();
    await t.barrier();
    win.sync();
    for (const rank of t.ranks) assert.equal(win.sharedQuery(rank)[0], rank + 1);
    await t.barrier();
    win.sharedQuery(t.next)[1] = 50 + t.rank;
    win.sync();
    await t.barrier();
    win.sync();
    assert.equal(win.local[1], 50 + t.previous);
    await win.unlockAll();
  }),
);
shared(
  '12.2.3',
  'sharedQuery returns each part with the length that its rank asked for',
  'mpich/win_shared_zerobyte',
  (t) =>
    t.using(Window.allocateShared(t.comm, Int32Array, t.rank % 2 === 0 ? 0 : 3), (w) => {
      const win = w as Window<Int32Array>;
      for (const rank of t.ranks) assert.equal(win.sharedQuery(rank).length, rank % 2 === 0 ? 0 : 3);
    }),
);
shared(
  '12.2.3',
  'sharedQuery of Rank.NULL returns the part of the first rank that has memory',
  'mpich/win_shared_query_null',
  (t) =>
    t.using(Window.allocateShared(t.comm, Int32Array, t.rank === 0 ? 0 : 2), async (w) => {
      const win = w as Window<Int32Array>;
      await win.fence();
      if (t.rank === 1) win.local[0] = 77;
      await win.fence(Assert.NO_SUCCEED);
      assert.equal(win.sharedQuery(Rank.NULL)[0], 77);
      assert.equal(win.sharedQuery(Rank.NULL).length, 2);
    }),
  2,
);
shared('12.2.3', 'the parts of a shared window are contiguous', 'mpich/win_shared_create_allocshm', (t) =>
  t.using(Window.allocateShared(t.comm, Float64Array, 3), async (w) => {
    const win = w as Window<Float64Array>;
    await win.fence();
    win.local.fill(t.rank + 1);
    await win.fence(Assert.NO_SUCCEED);
    const { buffer, byteOffset } = win.sharedQuery(0);
    const whole = new Float64Array(buffer, byteOffset, 3 * t.size);
    assert.deepEqual(
      [...whole],
      t.ranks.flatMap((rank) => [rank + 1, rank + 1, rank + 1]),
    );
  }),
);
shared(
  '12.2.3',
  'with alloc_shared_noncontig, parts need not be contiguous, and are still shared',
  'mpich/win_shared_noncontig mpich/win_shared_noncontig_put mpich/win_shared_create_no_allocshm',
  (t) =>
    t.using(Window.allocateShared(t.comm, Float64Array, 3, { info: { alloc_shared_noncontig: true } }), async (w) => {
      const win = w as Window<Float64Array>;
      await win.fence();
      win.put(Float64Array.of(t.rank + 1), t.next, 2);
      await win.fence(Assert.NO_SUCCEED);
      for (const rank of t.ranks) {
        assert.equal(win.sharedQuery(rank)[2], ((rank + t.size - 1) % t.size) + 1);
      }
    }),
);
shared('12.2.3', 'put, get and atomic calls work on a shared window', 'mpich/win_shared_put_flush_get', (t) =>
  t.using(Window.allocateShared(t.comm, Float64Array, 4), async (w) => {
    const win = w as Window<Float64Array>;
    await ring(t, win);
    await t.barrier();
    await win.lockAll();
    win.accumulate(Float64Array.of(t.rank + 1), 0, 1, Op.SUM);
    await win.flush(0);
    await t.barrier();
    assert.equal(await peek(win, 0, 1), sumTo(t.size));
    await win.unlockAll();
  }),
);
for (const [call, issue] of Object.entries({
  put: (win, target) => win.put(Int32Array.of(9), target, 0),
  accumulate: (win, target) => win.accumulate(Int32Array.of(9), target, 0, Op.SUM),
  getAccumulate: (win, target) => win.getAccumulate(Int32Array.of(9), new Int32Array(1), target, 0, Op.SUM),
  fetchAndOp: (win, target) => win.fetchAndOp(Int32Array.of(9), new Int32Array(1), target, 0, Op.SUM),
  compareAndSwap: (win, target) => win.compareAndSwap(Int32Array.of(9), Int32Array.of(0), new Int32Array(1), target, 0),
} satisfies Record<string, (win: Window<Int32Array>, target: number) => void>)) {
  const short = { put: 'put', accumulate: 'acc', getAccumulate: 'gacc', fetchAndOp: 'fop', compareAndSwap: 'cas' };
  shared(
    '12.2.3',
    `after ${call} and flush, another rank loads the new value from a shared part`,
    `mpich/win_shared_${short[call as keyof typeof short]}_flush_load`,
    (t) =>
      t.using(Window.allocateShared(t.comm, Int32Array, 1), async (w) => {
        const win = w as Window<Int32Array>;
        await win.lockAll();
        // To the neighbour; the one after it looks.
        issue(win, t.next);
        await win.flush(t.next);
        await t.barrier();
        win.sync();
        for (const rank of t.ranks) assert.equal(win.sharedQuery(rank)[0], 9);
        await win.unlockAll();
      }),
  );
}
shared(
  '12.2.3',
  'where ranks share memory, the parts of an allocated window can be queried and loaded, too',
  'mpich/win_shared_query',
  (t) =>
    t.window(Int32Array, 2, async (win) => {
      await win.fence();
      win.local[1] = t.rank + 1;
      await win.fence(Assert.NO_SUCCEED);
      for (const rank of t.ranks) assert.equal(win.sharedQuery(rank)[1], rank + 1);
      await t.barrier();
    }),
);
requirement('12.2.3', 'sharedQuery on a dynamic window is an error', 'mpich/win_shared_query', (t) =>
  t.using(Window.createDynamic(t.comm), (win) => refused('ERR_RMA_FLAVOR', () => win.sharedQuery(t.rank))),
);
shared('12.2.3', 'sharedQuery of a rank that does not exist is an error', 'mpich/win_shared_query', (t) =>
  t.using(Window.allocateShared(t.comm, Int32Array, 1), (w) => {
    const win = w as Window<Int32Array>;
    for (const rank of [t.size, -7, 0.5]) refused('ERR_RANK', () => win.sharedQuery(rank));
  }),
);

// ---- 12.2.4 dynamic -------------------------------------------------------------------------------------------------

/** A dynamic window with one attached memory at each rank, and the addresses of all. */
async function attached(
  t: Trial,
  use: (win: Window, memory: Int32Array, addresses: Float64Array) => unknown,
): Promise<void> {
  const win = (await Window.createDynamic(t.comm)) as Window;
  const memory = t.comm.allocMem(Int32Array, 8);
  const addresses = new Float64Array(t.size);
  await t.comm.allgather(Float64Array.of(win.attach(memory)), addresses);
  await use(win, memory, addresses);
  await t.barrier();
  win.detach(memory);
  await win.free();
  t.comm.freeMem(memory);
}

requirement(
  '12.2.4',
  'other ranks access attached memory at its address plus an offset in bytes',
  'mpich/win_dynamic_put_flush_get mpich/aint',
  (t) =>
    attached(t, async (win, memory, addresses) => {
      await win.lockAll();
      win.put(Int32Array.of(t.rank + 1, t.rank + 2), t.next, addresses[t.next] + 8);
      await win.flush(t.next);
      const back = new Int32Array(2);
      win.get(back, t.next, addresses[t.next] + 8);
      await win.unlockAll();
      assert.deepEqual([...back], [t.rank + 1, t.rank + 2]);
      await t.barrier();
      assert.deepEqual([...memory.subarray(0, 4)], [0, 0, t.previous + 1, t.previous + 2]);
    }),
);
requirement(
  '12.2.4',
  'atomic calls work on attached memory',
  'mpich/win_dynamic_acc mpich/win_dynamic_acc_flush_get mpich/win_dynamic_gacc_flush_get ' +
    'mpich/win_dynamic_fop_flush_get mpich/win_dynamic_cas_flush_get',
  (t) =>
    attached(t, async (win, _memory, addresses) => {
      const old = new Int32Array(1);
      await win.lockAll();
      win.accumulate(Int32Array.of(1), 0, addresses[0], Op.SUM);
      win.fetchAndOp(Int32Array.of(1), old, 0, addresses[0] + 4, Op.SUM);
      win.getAccumulate(Int32Array.of(1), new Int32Array(1), 0, addresses[0] + 8, Op.SUM);
      win.compareAndSwap(Int32Array.of(5), Int32Array.of(0), new Int32Array(1), 0, addresses[0] + 12);
      await win.flushAll();
      await t.barrier();
      const found = new Int32Array(4);
      win.get(found, 0, addresses[0]);
      await win.unlockAll();
      assert.deepEqual([...found], [t.size, t.size, t.size, 5]);
    }),
);
requirement(
  '12.2.4',
  'regions that are adjacent in memory are adjacent in the window: one access can cross from one into the other',
  '',
  async (t) => {
    const win = (await Window.createDynamic(t.comm)) as Window;
    const memory = t.comm.allocMem(Int32Array, 32);
    const addresses = new Float64Array(t.size);
    await t.comm.allgather(Float64Array.of(win.attach(memory.subarray(0, 16))), addresses);
    win.attach(memory.subarray(16, 24));
    await t.barrier();
    await win.lockAll();
    win.put(Int32Array.from(iota(16)), t.next, addresses[t.next] + 4 * 8);
    await win.flush(t.next);
    win.accumulate(Int32Array.of(100, 100), t.next, addresses[t.next] + 4 * 15, Op.SUM);
    await win.flush(t.next);
    const found = new Int32Array(18);
    win.get(found, t.next, addresses[t.next] + 4 * 6);
    await win.flush(t.next);
    refused('ERR_RMA_RANGE', () => win.put(new Int32Array(17), t.next, addresses[t.next] + 4 * 8));
    await win.unlockAll();
    assert.deepEqual([...found], [0, 0, ...iota(7), 107, 108, ...iota(7, 9)]);
    await t.barrier();
    win.detach(memory.subarray(0, 16));
    win.detach(memory.subarray(16, 24));
    await win.free();
    t.comm.freeMem(memory);
  },
);
requirement(
  '12.2.4',
  'attaching is local: a rank can attach more memory while others access its part',
  'mpich/linked_list',
  async (t) => {
    const win = (await Window.createDynamic(t.comm)) as Window;
    const memories = t.ranks.map(() => t.comm.allocMem(Int32Array, 4));
    await win.lockAll();
    for (const [i, memory] of memories.entries()) {
      const addresses = new Float64Array(t.size);
      memory[0] = 10 * t.rank + i;
      await t.comm.allgather(Float64Array.of(win.attach(memory)), addresses);
      const found = new Int32Array(1);
      win.get(found, t.next, addresses[t.next]);
      await win.flush(t.next);
      assert.equal(found[0], 10 * t.next + i);
      await t.barrier();
    }
    await win.unlockAll();
    await t.barrier();
    for (const memory of memories) win.detach(memory);
    await win.free();
  },
);
requirement(
  '12.2.4',
  'a rank can attach any number of regions, in any order, and detach any of them',
  '',
  async (t) => {
    const win = await Window.createDynamic(t.comm);
    const count = 1100;
    // Every other pair of words.
    const whole = t.comm.allocMem(Int32Array, 4 * count);
    const memories = Array.from({ length: count }, (_, i) => whole.subarray(4 * i, 4 * i + 2));
    const places = new Float64Array(count);
    for (let i = 0; i < count; i++) {
      const one = (i * 7) % count;
      places[one] = win.attach(memories[one]);
    }
    const all = new Float64Array(count * t.size);
    await t.comm.allgather(places, all);
    const at = (i: number): number => all[count * t.next + i];
    const some = Array.from({ length: 40 }, () => 2 * t.shared.below(count / 2));
    await win.lockAll();
    for (const i of some) win.put(Int32Array.of(i), t.next, at(i) + 4);
    refused('ERR_RMA_RANGE', () => win.put(new Int32Array(3), t.next, at(0)));
    await win.unlockAll();
    await t.barrier();
    for (const i of some) assert.equal(memories[i][1], i);
    for (let i = 1; i < count; i += 2) win.detach(memories[i]);
    await t.barrier();
    await win.lockAll();
    for (const i of some) {
      win.put(Int32Array.of(-i), t.next, at(i) + 4);
      refused('ERR_RMA_RANGE', () => win.put(Int32Array.of(1), t.next, at(i + 1)));
    }
    await win.unlockAll();
    await t.barrier();
    for (const i of some) assert.equal(memories[i][1] + i, 0);
    for (let i = 0; i < count; i += 2) win.detach(memories[i]);
    await win.free();
    t.comm.freeMem(whole);
  },
);
requirement('12.2.4', 'memory is out of range before it is attached and after it is detached', '', (t) =>
  attached(t, async (win, _memory, addresses) => {
    await win.lockAll();
    refused('ERR_RMA_RANGE', () => win.put(Int32Array.of(1), t.next, addresses[t.next] + 32));
    refused('ERR_RMA_RANGE', () => win.put(new Int32Array(9), t.next, addresses[t.next]));
    await win.unlockAll();
  }),
);
requirement(
  '12.2.4',
  'one call can access several attached regions with a layout that spans them',
  'mpich/win_dynamic_put_flush_get mpich/win_dynamic_acc_flush_get',
  async (t) => {
    const win = (await Window.createDynamic(t.comm)) as Window;
    const memories = [t.comm.allocMem(Int32Array, 4), t.comm.allocMem(Int32Array, 4)];
    const places = new Float64Array(2 * t.size);
    await t.comm.allgather(
      Float64Array.from(memories, (memory) => win.attach(memory)),
      places,
    );
    const [one, other] = places.subarray(2 * t.next, 2 * t.next + 2);
    const first = Math.min(one, other);
    const type = Datatype.hindexedBlock(1, [one - first, other - first], Datatype.INT32);
    await win.lockAll();
    win.put(Int32Array.of(5, 6), t.next, first, { target: { type } });
    await win.flush(t.next);
    win.accumulate(Int32Array.of(10, 10), t.next, first, Op.SUM, { target: { type } });
    await win.unlockAll();
    await t.barrier();
    assert.deepEqual(
      memories.map((memory) => memory[0]),
      [15, 16],
    );
    for (const memory of memories) win.detach(memory);
    await win.free();
  },
);
requirement(
  '12.2.4',
  'ordinary memory can be attached, detached, and attached again elsewhere',
  'mpich/win_dynamic_acc',
  async (t) => {
    const win = (await Window.createDynamic(t.comm)) as Window;
    const memory = new Int32Array(4);
    const addresses = new Float64Array(t.size);
    for (let round = 1; round <= 3; round++) {
      await t.comm.allgather(Float64Array.of(win.attach(memory)), addresses);
      await win.lockAll();
      win.accumulate(Int32Array.of(1), t.next, addresses[t.next] + 4, Op.SUM);
      await win.unlockAll();
      await t.barrier();
      assert.equal(memory[1], round);
      win.detach(memory);
      await t.barrier();
      await win.lockAll();
      refused('ERR_RMA_RANGE', () => win.put(Int32Array.of(1), t.next, addresses[t.next]));
      await win.unlockAll();
      await t.barrier();
    }
    await win.free();
  },
);
requirement('12.2.4', 'it is an error to attach memory that is attached, or to detach memory that is not', '', (t) =>
  attached(t, (win, memory) => {
    refused('ERR_RMA_ATTACH', () => win.attach(memory));
    refused('ERR_RMA_ATTACH', () => win.detach(new Int32Array(4)));
  }),
);
requirement('12.2.4', 'attach and detach on a window that is not dynamic are errors', '', (t) =>
  t.window(Float64Array, 1, (win) => {
    refused('ERR_RMA_FLAVOR', () => win.attach(new Float64Array(1)));
    refused('ERR_RMA_FLAVOR', () => win.detach(new Float64Array(1)));
  }),
);
requirement('12.2.4', 'fence works on a dynamic window', 'mpich/win_flavors', (t) =>
  attached(t, async (win, memory, addresses) => {
    await win.fence();
    win.put(Int32Array.of(t.rank + 1), t.next, addresses[t.next]);
    await win.fence(Assert.NO_SUCCEED);
    assert.equal(memory[0], t.previous + 1);
  }),
);

// ---- 12.2.5 free ----------------------------------------------------------------------------------------------------

requirement('12.2.5', 'a freed window refuses every call', 'mpi4py/testFree', async (t) => {
  const win = await Window.allocate(t.comm, Float64Array, 1);
  await win.free();
  refused('ERR_WIN', () => win.put(new Float64Array(1), 0, 0));
  refused('ERR_WIN', () => win.get(new Float64Array(1), 0, 0));
  refused('ERR_WIN', () => win.accumulate(new Float64Array(1), 0, 0, Op.SUM));
  refused('ERR_WIN', () => win.fetchAndOp(new Float64Array(1), new Float64Array(1), 0, 0, Op.SUM));
  await refusedLater('ERR_WIN', () => win.fence());
  await refusedLater('ERR_WIN', () => win.lock(0, Lock.SHARED));
  await refusedLater('ERR_WIN', () => win.flushAll());
  refused('ERR_WIN', () => win.sync());
});
requirement(
  '12.2.5',
  'free returns only when all ranks have called it, so that no access comes too late',
  '',
  async (t) => {
    const win = await Window.allocate(t.comm, Float64Array, 1);
    await win.lockAll();
    for (let i = 0; i < 100; i++) win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
    await win.unlockAll();
    const counted = t.rank === 0 ? t.comm.allocMem(Float64Array, 1) : undefined;
    await win.free();
    if (counted !== undefined) t.comm.freeMem(counted);
  },
);
requirement(
  '12.2.5',
  'operations that are pending when a fence epoch ends are complete before free returns',
  'armci/test_malloc',
  async (t) => {
    const memory = t.comm.allocMem(Float64Array, t.size);
    const win = await Window.create(t.comm, memory);
    await win.fence();
    for (const target of t.ranks) win.put(Float64Array.of(t.rank + 1), target, t.rank);
    await win.fence(Assert.NO_SUCCEED);
    await win.free();
    assert.deepEqual(
      [...memory],
      t.ranks.map((rank) => rank + 1),
    );
    t.comm.freeMem(memory);
  },
);
requirement('12.2.5', 'memory that is part of a window cannot be freed', 'mpich/allocmem', async (t) => {
  const memory = t.comm.allocMem(Float64Array, 1);
  const win = await Window.create(t.comm, memory);
  refused('ERR_BUFFER', () => t.comm.freeMem(memory));
  await win.free();
  t.comm.freeMem(memory);
});

// ---- 12.2.6 attributes ----------------------------------------------------------------------------------------------

requirement(
  '12.2.6',
  'a window reports the base and size of its part, its unit and its flavour',
  'mpich/baseattrwin mpich/win_flavors mpi4py/testGetAttributes mpi4py/testGetMemory',
  async (t) => {
    await t.window(Int16Array, 6, (win) => {
      assert.deepEqual([win.local.length, win.dispUnit, win.flavor], [6, 2, 'allocate']);
    });
    const memory = t.comm.allocMem(Int16Array, 6);
    await t.using(Window.create(t.comm, memory, { dispUnit: 1 }), (win) => {
      assert.equal(win.local.buffer, memory.buffer);
      assert.deepEqual([win.local.length, win.dispUnit, win.flavor], [6, 1, 'create']);
    });
    t.comm.freeMem(memory);
  },
);
shared('12.2.6', 'shared and dynamic windows report their flavour, too', 'mpich/win_flavors', async (t) => {
  await t.using(Window.allocateShared(t.comm, Int32Array, 1), (win) => assert.equal(win.flavor, 'shared'));
  await t.using(Window.createDynamic(t.comm), (win) => {
    assert.equal(win.flavor, 'dynamic');
    assert.equal(win.local.length, 0);
  });
});
requirement('12.2.6', 'a window reports its memory model: unified', 'armci/test_win_model', (t) =>
  t.window(Int32Array, 1, (win) => assert.equal(win.model, 'unified')),
);
requirement(
  '12.2.6',
  "a window's group has the ranks of its communicator, in the same order",
  'mpich/getgroup',
  async (t) => {
    const reversed = (await t.comm.split(0, -t.rank))!;
    const win = await Window.allocate(reversed, Float64Array, 1);
    assert.ok(win.group.equals(reversed.group));
    assert.equal(win.group.rank, t.size - 1 - t.rank);
    assert.deepEqual(win.group.translate([0], t.comm.group), [t.size - 1]);
    await win.free();
    await reversed.finalize();
  },
);
requirement('12.2.6', 'a window has a name, which appears in its errors', 'mpich/winname mpi4py/testGetSetName', (t) =>
  t.window(
    Float64Array,
    1,
    (win) => {
      assert.equal(win.name, 'scores');
      assert.throws(() => win.put(new Float64Array(1), 0, 0), /scores/);
    },
    { name: 'scores' },
  ),
);
requirement('12.2.6', 'the name of a window can be changed', 'mpich/winname mpi4py/testGetSetName', (t) =>
  t.window(Float64Array, 1, (win) => {
    win.name = 'later';
    assert.equal(win.name, 'later');
    assert.throws(() => win.put(new Float64Array(1), 0, 0), /later/);
  }),
);

// ---- 12.2.7 info ----------------------------------------------------------------------------------------------------

requirement('12.2.7', 'getInfo returns the hints in use, whether given or by default', 'mpich/win_info', async (t) => {
  await t.window(
    Float64Array,
    1,
    (win) => {
      const info = win.getInfo();
      assert.equal(String(info['no_locks']), 'true');
      assert.equal(String(info['same_size']), 'true');
      assert.equal(String(info['accumulate_ops']), 'same_op');
    },
    { info: { no_locks: true, same_size: true, accumulate_ops: 'same_op' } },
  );
  await t.window(Float64Array, 1, (win) => {
    const info = win.getInfo();
    assert.equal(String(info['no_locks']), 'false');
    assert.equal(String(info['accumulate_ordering']), 'rar,raw,war,waw');
    assert.equal(String(info['accumulate_ops']), 'same_op_no_op');
  });
});
requirement('12.2.7', 'setInfo changes, at all ranks, a hint that may change', 'mpich/win_info', (t) =>
  t.window(Float64Array, 1, async (win) => {
    await win.setInfo({ accumulate_ordering: 'none' });
    assert.equal(String(win.getInfo()['accumulate_ordering']), 'none');
  }),
);
requirement(
  '12.2.7',
  'setInfo ignores a hint that can no longer change, and getInfo shows this',
  'mpich/win_info',
  (t) =>
    t.window(Float64Array, 1, async (win) => {
      const before = win.getInfo();
      win.setInfo({ no_locks: true, same_size: 'true', fence: 'deferred', accumulate_ordering: 'none' });
      assert.deepEqual(win.getInfo(), { ...before, accumulate_ordering: 'none' });
      await win.lock(t.next, Lock.SHARED);
      await win.unlock(t.next);
      await ring(t, win);
    }),
);
requirement(
  '12.2.7',
  'a window with no_locks refuses locks, and everything else works',
  'mpich/badrma mpich/lockopts',
  (t) =>
    t.window(
      Float64Array,
      1,
      async (win) => {
        await refusedLater('ERR_RMA_SYNC', () => win.lock(t.next, Lock.SHARED));
        await refusedLater('ERR_RMA_SYNC', () => win.lockAll());
        await ring(t, win);
      },
      { info: { no_locks: 'true' } },
    ),
);
requirement('12.2.7', 'same_size and same_disp_unit are accepted if they are true', 'mpich/win_info', (t) =>
  t.window(Float64Array, 4, (win) => ring(t, win), { info: { same_size: 'true', same_disp_unit: true } }),
);
requirement(
  '12.2.7',
  'every accumulate_ordering that MPI defines is accepted, and no other',
  'mpich/acc_ordering',
  async (t) => {
    for (const accumulate_ordering of ['none', 'rar', 'raw,war', 'rar,raw,war,waw']) {
      await t.window(Float64Array, 1, (win) => ring(t, win), { info: { accumulate_ordering } });
    }
    for (const accumulate_ordering of ['strict', '', 'raw;war', 'none,rar']) {
      await refusedLater('ERR_INFO_VALUE', () =>
        Window.allocate(t.comm, Float64Array, 1, { info: { accumulate_ordering } }),
      );
    }
  },
);
requirement('12.2.7', 'mpi_accumulate_granularity takes a number of bytes', '', (t) =>
  t.window(Float64Array, 1, (win) => ring(t, win), { info: { mpi_accumulate_granularity: 8 } }),
);
requirement('12.2.7', 'unknown hints are ignored, and getInfo does not return them', 'mpich/win_info', async (t) => {
  const info = { no_lock: true, mpi_minimum_memory_alignment: '64', planning: 'issue-order', colour: 7 } as object;
  await t.window(
    Float64Array,
    1,
    async (win) => {
      win.setInfo({ 'made up': '1' } as object);
      for (const key of [...Object.keys(info), 'made up']) assert.ok(!(key in win.getInfo()), key);
      await ring(t, win);
    },
    { info },
  );
  for (const key of ['', 'x'.repeat(256)]) {
    await refusedLater('ERR_INFO_KEY', () =>
      Window.allocate(t.comm, Float64Array, 1, { info: { [key]: '1' } as object }),
    );
  }
});
