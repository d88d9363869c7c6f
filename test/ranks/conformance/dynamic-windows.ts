/** MPI 4.1, 12.2.4: memory that is attached and detached. */
import assert from 'node:assert/strict';
import { Assert, Datatype, Op, Window } from 'onesided';
import { collector, iota, refused, type Trial } from './requirement.ts';

const { requirements, requirement } = collector();
export const dynamicWindows = requirements;

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
    const some = [...new Set(Array.from({ length: 40 }, () => 2 * t.shared.below(count / 2)))];
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
