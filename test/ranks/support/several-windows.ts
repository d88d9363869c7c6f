/**
 * Windows beside each other, on several communicators, without locks, refused and freed. Cases of window-epochs.ts.
 */
import assert from 'node:assert/strict';
import { Assert, type Communicator, Lock, Op, Rank, Window, type WindowInfo } from 'onesided';
import { argument } from './cases.ts';
import { FENCE_SCHEMES } from './kinds.ts';
import { next, othersBeforeZero } from './turns.ts';
import { allocated } from './windows.ts';

/** `--fences=all`, or the two that most windows have. */
export const FENCES = argument('fences') === 'all' ? FENCE_SCHEMES : FENCE_SCHEMES.slice(0, 2);
const SYNC = { code: 'ERR_RMA_SYNC' };

const throwsSync = (call: () => unknown): void => assert.throws(call, SYNC);

export async function noLocks(world: Communicator): Promise<void> {
  for (const no_locks of [true, 'true'] as const) {
    await allocated(world, 1, { no_locks }, async (win) => {
      throwsSync(() => win.lockSync(0, Lock.SHARED));
      await assert.rejects(win.lockAll(), SYNC);
      await win.fence();
      win.put(Float64Array.of(3), next(world), 0);
      await win.fence(Assert.NO_SUCCEED);
      assert.equal(win.local[0], 3);
    });
  }
}

/** Fences of several windows under way at once, awaited in another order at each rank. */
export async function severalWindows(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const windows = await Promise.all(
    [...FENCES, ...FENCES].map((fence, i) =>
      Window.allocate(world, Int32Array, size, { info: { fence }, name: `number ${i}` }),
    ),
  );
  await Promise.all(windows.map((win) => win.fence()));
  for (let round = 1; round <= 10; round++) {
    for (const [i, win] of windows.entries()) win.put(Int32Array.of(1000 * i + round), (rank + i) % size, rank);
    // Rank 0 begins when it has seen that the others cannot complete without it.
    if (rank === 0) await othersBeforeZero(world);
    const fences = windows.map((win) => win.fence());
    if (rank !== 0) {
      throwsSync(() => windows[0].put(Int32Array.of(1), 0, 0));
      await assert.rejects(windows[round % 4].fence(), SYNC);
      await othersBeforeZero(world);
    }
    for (let i = 0; i < fences.length; i++) await fences[(i * 3 + rank) % fences.length];
    for (const [i, win] of windows.entries()) {
      const source = (((rank - i) % size) + size) % size;
      assert.equal(win.local[source], 1000 * i + round);
    }
    await world.barrier();
  }
  await Promise.all(windows.map((win) => win.fence(Assert.NO_SUCCEED)));
  for (const win of windows) await win.free();
}

export async function windowsOnOtherCommunicators(world: Communicator): Promise<void> {
  const { rank, size } = world;
  // Odd and even ranks, in descending order of their ranks in the world; who is a multiple of three stays out.
  const part = await world.split(rank % 3 === 0 ? Rank.UNDEFINED : rank % 2, -rank);
  assert.equal(part === undefined, rank % 3 === 0);
  if (part !== undefined) {
    const members = Array.from({ length: size }, (_, r) => size - 1 - r).filter(
      (r) => r % 3 !== 0 && r % 2 === rank % 2,
    );
    assert.deepEqual([...part.group.worldRanks], members);
    for (const fence of FENCES) {
      await allocated(part, 1, { fence }, async (win) => {
        await win.fence();
        win.put(Float64Array.of(part.rank), (part.rank + 1) % part.size, 0);
        await win.fence(Assert.NO_SUCCEED);
        assert.equal(win.local[0], (part.rank - 1 + part.size) % part.size);
        await part.barrier();
        await win.lock(0, Lock.EXCLUSIVE);
        win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
        await win.unlock(0);
        assert.throws(() => win.lockSync(part.size, Lock.SHARED), { code: 'ERR_RANK' });
        await part.barrier();
        if (part.rank === 0) assert.equal(win.local[0], part.size - 1 + part.size);
      });
    }
    await part.finalize();
    await assert.rejects(part.barrier(), { code: 'ERR_COMM' });
    await assert.rejects(Window.allocate(part, Int8Array, 1), { code: 'ERR_COMM' });
  }
  const twin = await world.dup();
  assert.deepEqual([twin.rank, twin.size], [rank, size]);
  const [a, b] = [await Window.allocate(world, Int32Array, 1), await Window.allocate(twin, Int32Array, 1)];
  const both = [a.fence(), b.fence()];
  await both[rank % 2];
  await both[1 - (rank % 2)];
  a.put(Int32Array.of(1), next(world), 0);
  b.put(Int32Array.of(2), next(world), 0);
  await Promise.all([b.fence(Assert.NO_SUCCEED), a.fence(Assert.NO_SUCCEED)]);
  assert.deepEqual([a.local[0], b.local[0]], [1, 2]);
  await b.free();
  await a.free();
  await twin.finalize();
  await world.barrier();
}

/** A rank that refuses its arguments makes the call fail everywhere, and the communicator goes on working. */
export async function refusedWindows(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const mine = { code: rank === size - 1 ? 'ERR_SIZE' : 'ERR_WIN' };
  await assert.rejects(Window.allocate(world, Int32Array, rank === size - 1 ? -1 : 4), mine);
  const local = { code: rank === 0 ? 'ERR_BUFFER' : 'ERR_WIN' };
  const memory = world.allocMem(Int32Array, 4);
  await assert.rejects(Window.create(world, rank === 0 ? ('memory' as never) : memory), local);
  if (size > 1) {
    const fence = FENCES[rank === 0 ? 0 : 1];
    await assert.rejects(Window.create(world, memory, { info: { fence } }), { code: 'ERR_INFO_VALUE' });
    await assert.rejects(Window.create(world, memory, { info: { no_locks: rank === 0 } }), { code: 'ERR_INFO_VALUE' });
  }
  await assert.rejects(Window.create(world, memory, { info: { '': 'queue' } as WindowInfo }), {
    code: 'ERR_INFO_KEY',
  });
  const win = await Window.create(world, memory);
  await win.fence();
  win.put(Int32Array.of(9), next(world), 3);
  await win.fence(Assert.NO_SUCCEED);
  assert.deepEqual([...memory], [0, 0, 0, 9]);
  await win.free();
  world.freeMem(memory);
}

export async function freedWindow(world: Communicator): Promise<void> {
  const win = await Window.allocate(world, Int32Array, 4);
  await win.fence(Assert.NO_SUCCEED);
  await win.lockAll();
  win.put(Int32Array.of(1), next(world), 0);
  await win.unlockAll();
  await win.free();
  await win.free();
  const one = new Int32Array(1);
  const freed = { code: 'ERR_WIN' };
  const calls: (() => unknown)[] = [
    () => win.put(one, 0, 0),
    () => win.get(one, 0, 0),
    () => win.accumulate(one, 0, 0, Op.SUM),
    () => win.fetchAndOp(one, new Int32Array(1), 0, 0, Op.SUM),
    () => win.compareAndSwap(one, one, new Int32Array(1), 0, 0),
    () => win.fenceSync(),
    () => win.lockSync(0, Lock.SHARED),
    () => win.unlockSync(0),
    () => win.lockAllSync(),
    () => win.unlockAllSync(),
    () => win.flushSync(0),
    () => win.flushAllSync(),
    () => win.sync(),
  ];
  for (const call of calls) assert.throws(call, freed);
  const waits = [
    win.fence(),
    win.lock(0, Lock.SHARED),
    win.unlock(0),
    win.lockAll(),
    win.unlockAll(),
    win.flush(0),
    win.flushAll(),
  ];
  for (const wait of waits) await assert.rejects(wait, freed);
}
