/**
 * Epochs: what opens and ends them, what may be called in them, and what is visible after them; the deadlines and
 * aborts of every call that waits. Each case leaves nothing behind, and the next one begins where it ended.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Assert, type Communicator, Lock, Op, Rank, type WaitOptions, Window, type WindowInfo } from 'onesided';
import { argument, caseOf, each, runCases } from './support/cases.ts';
import { FENCE_SCHEMES } from './support/kinds.ts';
import { allocated } from './support/windows.ts';

/** `--fences=all`, or the two that most windows have. */
const FENCES = argument('fences') === 'all' ? FENCE_SCHEMES : FENCE_SCHEMES.slice(0, 2);
const INFOS = FENCES.map((fence) => ({ fence }));

const LATE = { code: 'ERR_RMA_TIMEOUT' };
const SYNC = { code: 'ERR_RMA_SYNC' };
const SOON: WaitOptions = { timeout: 30 };

/**
 * Rank 0 goes on when all others have come to here. Not a barrier of the communicator: those have deadlines to be
 * tested.
 */
async function othersBeforeZero(world: Communicator): Promise<void> {
  const token = new Uint8Array(1);
  if (world.rank !== 0) return world.send(token, 0);
  for (let source = 1; source < world.size; source++) await world.receive(token, source);
}

async function zeroBeforeOthers(world: Communicator): Promise<void> {
  const token = new Uint8Array(1);
  if (world.rank !== 0) return world.receive(token, 0);
  for (let target = 1; target < world.size; target++) world.send(token, target);
}

function next({ rank, size }: Communicator): number {
  return (rank + 1) % size;
}

function previous({ rank, size }: Communicator): number {
  return (rank - 1 + size) % size;
}

function value(win: Window, target: number, disp: number): number {
  const result = new Float64Array(1);
  win.fetchAndOp(new Float64Array(1), result, target, disp, Op.NO_OP);
  win.flushSync(target);
  return result[0];
}

const throwsSync = (call: () => unknown): void => assert.throws(call, SYNC);

async function fenceAssertions(world: Communicator, info: WindowInfo): Promise<void> {
  await allocated(world, 4, info, async (win) => {
    const put = (): void => win.put(Float64Array.of(world.rank + 1), next(world), 0);
    throwsSync(put);
    await win.fence(Assert.NO_PRECEDE);
    put();
    await assert.rejects(win.fence(Assert.NO_PRECEDE), { code: 'ERR_ASSERT' });
    assert.throws(() => win.fenceSync(Assert.NO_PRECEDE | Assert.NO_SUCCEED), { code: 'ERR_ASSERT' });
    put();
    await win.fence(Assert.NO_SUCCEED | Assert.NO_STORE);
    assert.equal(win.local[0], previous(world) + 1);
    throwsSync(put);
    throwsSync(() => win.get(new Float64Array(1), next(world), 0));
    throwsSync(() => win.accumulate(new Float64Array(1), next(world), 0, Op.SUM));
    throwsSync(() => win.put(Float64Array.of(1), Rank.NULL, 0));
    win.fenceSync(Assert.NO_PRECEDE | Assert.NO_PUT);
    put();
    win.fenceSync(Assert.NO_SUCCEED);
    for (const wrong of [Assert.NO_CHECK, 32, -1, 0.5, Number.NaN, 2 ** 40]) {
      await assert.rejects(win.fence(wrong), { code: 'ERR_ASSERT' });
      assert.throws(() => win.fenceSync(wrong), { code: 'ERR_ASSERT' });
    }
  });
}

async function contributionsOfAll(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  await allocated(world, size + 2, info, async (win) => {
    for (let round = 1; round <= 20; round++) {
      await win.fence();
      for (let target = 0; target < size; target++) {
        win.put(Float64Array.of(100 * round + rank), target, rank);
        win.accumulate(Float64Array.of(rank + 1), target, size, Op.SUM);
        win.accumulate(Float64Array.of(rank), target, size + 1, Op.MAX);
      }
      if (round % 2 === 0) win.fenceSync(Assert.NO_SUCCEED);
      else await win.fence(Assert.NO_SUCCEED);
      const expected = Array.from({ length: size }, (_, source) => 100 * round + source);
      assert.deepEqual([...win.local], [...expected, (round * size * (size + 1)) / 2, size - 1]);
    }
  });
}

async function locks(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  await allocated(world, 4, info, async (win) => {
    const target = size - 1;
    throwsSync(() => win.unlockSync(target));
    await assert.rejects(win.unlock(target), SYNC);
    throwsSync(() => win.flushSync(target));
    await assert.rejects(win.flushAll(), SYNC);
    for (let i = 0; i < 10; i++) {
      // Read, add one, write: correct only if nobody comes between.
      const one = new Float64Array(1);
      if (i % 2 === 0) await win.lock(target, Lock.EXCLUSIVE);
      else win.lockSync(target, Lock.EXCLUSIVE);
      throwsSync(() => win.lockSync(target, Lock.SHARED));
      throwsSync(() => win.lockAllSync());
      throwsSync(() => win.fenceSync());
      win.get(one, target, 0);
      if (i % 3 === 0) await win.flush(target);
      else win.flushSync(target);
      one[0]++;
      win.put(one, target, 0);
      if (i % 2 === 0) await win.unlock(target);
      else win.unlockSync(target);
      throwsSync(() => win.put(one, target, 0));
    }
    await world.barrier();
    await win.lock(target, Lock.SHARED);
    assert.equal(value(win, target, 0), 10 * size);
    // A lock of one target gives no access to another.
    if (size > 1) {
      throwsSync(() => win.put(Float64Array.of(1), (target + 1) % size, 0));
      throwsSync(() => win.flushSync((target + 1) % size));
      await win.lock((target + 1) % size, Lock.SHARED);
      win.accumulate(Float64Array.of(1), (target + 1) % size, 1, Op.SUM);
      win.unlockSync((target + 1) % size);
    }
    // Shared: all are in here at once, or this barrier would not end.
    await world.barrier();
    win.unlockSync(target);
    await assert.rejects(win.unlock(target), SYNC);
    if (size > 1 && rank === (target + 1) % size) {
      win.lockSync(rank, Lock.SHARED);
      assert.equal(value(win, rank, 1), size);
      win.unlockSync(rank);
    }
    await win.lock(Rank.NULL, Lock.EXCLUSIVE);
    win.unlockSync(Rank.NULL);
    for (const wrong of [0, 3, -1, 1.5, Number.NaN, '1', undefined]) {
      await assert.rejects(win.lock(0, wrong as never), { code: 'ERR_LOCKTYPE' });
      assert.throws(() => win.lockSync(0, wrong as never), { code: 'ERR_LOCKTYPE' });
    }
    for (const wrong of [size, -2, 0.5, Number.NaN, 2 ** 32]) {
      await assert.rejects(win.lock(wrong, Lock.SHARED), { code: 'ERR_RANK' });
      assert.throws(() => win.unlockSync(wrong), { code: 'ERR_RANK' });
    }
    for (const wrong of [Assert.NO_PUT, 64, -1])
      await assert.rejects(win.lock(0, Lock.SHARED, wrong), { code: 'ERR_ASSERT' });
    // Nothing of it is left.
    win.lockSync(0, Lock.EXCLUSIVE);
    win.unlockSync(0);
    await world.barrier();
  });
}

async function lockAll(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  await allocated(world, size, info, async (win) => {
    throwsSync(() => win.unlockAllSync());
    for (let i = 0; i < 6; i++) {
      if (i % 2 === 0) await win.lockAll();
      else win.lockAllSync();
      throwsSync(() => win.lockSync(0, Lock.SHARED));
      throwsSync(() => win.unlockSync(0));
      throwsSync(() => win.fenceSync());
      throwsSync(() => win.lockAllSync());
      for (let target = 0; target < size; target++) win.accumulate(Float64Array.of(1), target, rank, Op.SUM);
      if (i % 3 === 0) await win.flushAll();
      if (i % 3 === 1) win.flushLocalAllSync();
      if (i % 3 === 2) for (let target = 0; target < size; target++) await win.flushLocal(target);
      for (let target = 0; target < size; target++) assert.equal(value(win, target, rank), i + 1);
      if (i % 2 === 0) win.unlockAllSync();
      else await win.unlockAll();
    }
    // Without a lock: everybody promises not to conflict.
    await win.lockAll(Assert.NO_CHECK);
    for (let target = 0; target < size; target++) win.accumulate(Float64Array.of(1), target, rank, Op.SUM);
    await win.unlockAll();
    await world.barrier();
    assert.deepEqual([...win.local], new Array(size).fill(7));
    await world.barrier();
    win.lockSync(next(world), Lock.EXCLUSIVE, Assert.NO_CHECK);
    win.put(Float64Array.of(-1), next(world), 0);
    win.unlockSync(next(world));
    await world.barrier();
    assert.equal(win.local[0], -1);
  });
}

/** Data first, then a flag that the target waits for: what MPI's memory model promises of flush. */
async function flushOrdersPuts(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  await allocated(world, 65, info, async (win) => {
    await win.lockAll();
    for (let round = 1; round <= 50; round++) {
      win.put(new Float64Array(64).fill(round), next(world), 0);
      if (round % 2 === 0) win.flushSync(next(world));
      else await win.flush(next(world));
      win.accumulate(Float64Array.of(round), next(world), 64, Op.REPLACE);
      // It may leave as late as that.
      win.flushSync(next(world));
      while (value(win, rank, 64) < round) await sleep(0);
      win.sync();
      assert.deepEqual([...win.local.subarray(0, 64)], new Array(64).fill(round));
      // So that the previous rank does not write again before this one has looked.
      await world.barrier();
    }
    await win.unlockAll();
    assert.equal(win.local[64], 50 * Math.sign(size));
  });
}

async function locksOfManyTargets(world: Communicator): Promise<void> {
  const { size } = world;
  await allocated(world, 1, {}, async (win) => {
    const everyone = Array.from({ length: size }, (_, target) => target);
    await Promise.all(everyone.map((target) => win.lock(target, Lock.SHARED)));
    for (const target of everyone) win.accumulate(Float64Array.of(1), target, 0, Op.SUM);
    await Promise.all(everyone.map((target) => win.unlock(target)));
    await world.barrier();
    assert.equal(win.local[0], size);
    await world.barrier();
    // In ascending order nobody waits in a circle.
    for (const target of everyone) await win.lock(target, Lock.EXCLUSIVE);
    for (const target of everyone) win.put(Float64Array.of(value(win, target, 0) + 1), target, 0);
    for (const target of everyone) win.unlockSync(target);
    await world.barrier();
    assert.equal(win.local[0], 2 * size);
  });
}

/** Two promises for one unlock must not release the lock twice. */
async function unlockOnce(world: Communicator, info: WindowInfo): Promise<void> {
  await allocated(world, 256, info, async (win) => {
    const target = next(world);
    win.lockSync(target, Lock.EXCLUSIVE);
    for (let i = 0; i < 256; i++) win.put(Float64Array.of(i), target, i);
    const twice = await Promise.allSettled([win.unlock(target), win.unlock(target)]);
    assert.deepEqual(
      twice.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    );
    await world.barrier();
    assert.equal(win.local[255], 255);
    await win.lockAll();
    win.put(Float64Array.of(1), target, 0);
    const all = await Promise.allSettled([win.unlockAll(), win.unlockAll()]);
    assert.deepEqual(
      all.map(({ status }) => status),
      ['fulfilled', 'rejected'],
    );
    win.lockSync(target, Lock.EXCLUSIVE);
    win.unlockSync(target);
    await world.barrier();
  });
}

async function mixedEpochs(world: Communicator, info: WindowInfo): Promise<void> {
  await allocated(world, 2, info, async (win) => {
    // A fence epoch in which nothing was issued gives way to a lock.
    await win.fence();
    await win.lock(next(world), Lock.SHARED);
    win.accumulate(Float64Array.of(1), next(world), 0, Op.SUM);
    await win.unlock(next(world));
    throwsSync(() => win.put(Float64Array.of(1), next(world), 0));
    await win.fence();
    win.put(Float64Array.of(5), next(world), 1);
    throwsSync(() => win.lockSync(next(world), Lock.SHARED));
    await assert.rejects(win.lockAll(), SYNC);
    await assert.rejects(win.free(), SYNC);
    await win.fence(Assert.NO_SUCCEED);
    assert.deepEqual([...win.local], [1, 5]);
    await win.lockAll();
    await assert.rejects(win.free(), SYNC);
    await win.unlockAll();
    await world.barrier();
  });
}

async function noLocks(world: Communicator): Promise<void> {
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

async function emptyParts(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const own = rank % 2 === 0 ? 0 : 3;
  const win = await Window.allocate(world, Int32Array, own, { info });
  assert.equal(win.local.length, own);
  await win.fence();
  for (let target = 0; target < size; target++) {
    win.put(new Int32Array(0), target, 0);
    win.get(new Int32Array(0), target, target % 2 === 0 ? 0 : 3);
    win.accumulate(new Int32Array(0), target, 0, Op.SUM);
    if (target % 2 === 0) assert.throws(() => win.put(Int32Array.of(1), target, 0), { code: 'ERR_RMA_RANGE' });
    else {
      assert.throws(() => win.put(Int32Array.of(1), target, 3), { code: 'ERR_RMA_RANGE' });
      win.accumulate(Int32Array.of(1), target, 2, Op.SUM);
    }
  }
  await win.fence(Assert.NO_SUCCEED);
  assert.deepEqual([...win.local], own === 0 ? [] : [0, 0, size]);
  for (let target = 0; target < size; target++) {
    await win.lock(target, Lock.EXCLUSIVE);
    await win.unlock(target);
  }
  await win.free();
  const memory = world.allocMem(Uint8Array, 0);
  const none = await Window.create(world, memory, { info });
  none.fenceSync();
  await none.fence(Assert.NO_SUCCEED);
  await none.free();
  world.freeMem(memory);
}

/** Fences of several windows under way at once, awaited in another order at each rank. */
async function severalWindows(world: Communicator): Promise<void> {
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

async function windowsOnOtherCommunicators(world: Communicator): Promise<void> {
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
async function refusedWindows(world: Communicator): Promise<void> {
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

async function freedWindow(world: Communicator): Promise<void> {
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

/** The forms in which a wait can end early. */
const ENDINGS: readonly { name: string; sync: boolean; options: () => WaitOptions; error: object }[] = [
  { name: 'promise, deadline', sync: false, options: () => SOON, error: LATE },
  { name: 'Sync, deadline', sync: true, options: () => SOON, error: LATE },
  {
    name: 'promise, abort',
    sync: false,
    options: () => ({ signal: AbortSignal.timeout(30) }),
    error: { name: 'TimeoutError' },
  },
  {
    name: 'promise, aborted before',
    sync: false,
    options: () => ({ signal: AbortSignal.abort(new RangeError('enough')) }),
    error: { message: 'enough' },
  },
  {
    name: 'Sync, aborted before',
    sync: true,
    options: () => ({ signal: AbortSignal.abort(new RangeError('enough')) }),
    error: { message: 'enough' },
  },
];

/** Whether a call ends with an error, in one of its forms. */
async function endsEarly(
  ending: (typeof ENDINGS)[number],
  promise: (o: WaitOptions) => Promise<unknown>,
  sync: (o: WaitOptions) => unknown,
): Promise<void> {
  if (ending.sync) assert.throws(() => sync(ending.options()), ending.error);
  else await assert.rejects(promise(ending.options()), ending.error);
}

/** A fence that ended early is still under way, and goes on. */
async function fencesThatEndEarly(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  await allocated(world, 2, info, async (win) => {
    await win.fence();
    for (const [i, ending] of ENDINGS.entries()) {
      win.put(Float64Array.of(i + 10), next(world), 0);
      if (rank !== 0) {
        for (let times = 0; times < 2; times++) {
          await endsEarly(
            ending,
            (options) => win.fence(0, options),
            (options) => win.fenceSync(0, options),
          );
          throwsSync(() => win.put(Float64Array.of(1), next(world), 0));
          throwsSync(() => win.lockSync(next(world), Lock.SHARED));
        }
      }
      await othersBeforeZero(world);
      if (i % 2 === 0) await win.fence();
      else win.fenceSync();
      assert.equal(win.local[0], i + 10, ending.name);
      await win.fence();
    }
    await win.fence(Assert.NO_SUCCEED);
  });
}

/** A lock that was not got is not held, and whoever stood behind in the line gets it. */
async function locksThatEndEarly(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  await allocated(world, 2, info, async (win) => {
    const target = size - 1;
    for (const type of [Lock.EXCLUSIVE, Lock.SHARED]) {
      for (const ending of ENDINGS) {
        if (rank === 0) win.lockSync(target, Lock.EXCLUSIVE);
        await world.barrier();
        if (rank !== 0) {
          await endsEarly(
            ending,
            (options) => win.lock(target, type, 0, options),
            (options) => win.lockSync(target, type, 0, options),
          );
          await assert.rejects(win.unlock(target), SYNC);
          throwsSync(() => win.put(Float64Array.of(1), target, 0));
          await endsEarly(
            ending,
            (options) => win.lockAll(0, options),
            (options) => win.lockAllSync(0, options),
          );
          throwsSync(() => win.unlockAllSync());
        }
        await othersBeforeZero(world);
        if (rank === 0) {
          // Nobody else holds anything: with all locks of all targets in one hand this would wait for ever.
          for (let other = 0; other < size; other++) {
            if (other === target) continue;
            win.lockSync(other, Lock.EXCLUSIVE, 0, { timeout: 60_000 });
            win.unlockSync(other);
          }
          win.unlockSync(target);
        }
        await win.lock(target, type, 0, { timeout: 60_000 });
        win.accumulate(Float64Array.of(1), target, 0, Op.SUM);
        await win.unlock(target);
        await world.barrier();
      }
    }
    if (rank === target) assert.equal(win.local[0], 2 * ENDINGS.length * size);
  });
}

/** One gives up in the midst of the line; those before and behind it get the lock in their order. */
async function leavingTheLine(world: Communicator): Promise<void> {
  const { rank, size } = world;
  if (size < 4) return;
  await allocated(world, 1 + size, {}, async (win) => {
    const ticket = (): number => {
      const result = new Float64Array(1);
      win.fetchAndOp(Float64Array.of(1), result, 0, 0, Op.SUM);
      win.flushSync(0);
      return result[0];
    };
    // Rank 0 holds it; 1, 2, 3, … line up in this order, and 2 leaves.
    if (rank === 0) win.lockSync(0, Lock.EXCLUSIVE);
    await world.barrier();
    const token = new Uint8Array(1);
    const leave = new AbortController();
    let waits: Promise<void> | undefined;
    if (rank > 0) {
      if (rank > 1) await world.receive(token, rank - 1);
      waits = win.lock(0, Lock.EXCLUSIVE, 0, { signal: leave.signal });
      waits.catch(() => {});
      await sleep(1);
      if (rank + 1 < size) world.send(token, rank + 1);
      else world.send(token, 0);
    } else await world.receive(token, size - 1);
    await world.barrier();
    if (rank === 2) {
      leave.abort(new Error('I leave'));
      await assert.rejects(waits!, { message: 'I leave' });
      await assert.rejects(win.unlock(0), SYNC);
    }
    await world.barrier();
    if (rank === 0) {
      ticket();
      win.unlockSync(0);
    } else if (rank !== 2) {
      await waits;
      win.put(Float64Array.of(ticket()), 0, 1 + rank);
      win.unlockSync(0);
    }
    await world.barrier();
    if (rank === 0) {
      const order = [...win.local].slice(1);
      assert.deepEqual(
        order.map((place, r) => (r === 0 || r === 2 ? 0 : place)),
        Array.from({ length: size }, (_, r) => (r === 0 || r === 2 ? 0 : r < 2 ? r : r - 1)),
      );
    }
    await win.lock(0, Lock.SHARED, 0, { timeout: 60_000 });
    win.unlockSync(0);
    await world.barrier();
  });
}

async function barriersThatEndEarly(world: Communicator): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  for (const ending of ENDINGS) {
    if (rank !== 0) {
      for (let times = 0; times < 2; times++) {
        await endsEarly(
          ending,
          (options) => world.barrier(options),
          (options) => world.barrierSync(options),
        );
      }
    }
    await othersBeforeZero(world);
    await world.barrier();
    await world.barrier();
  }
  const token = new Uint8Array(1);
  for (const ending of ENDINGS) {
    if (rank !== 0) {
      await endsEarly(
        ending,
        (options) => world.receive(token, 0, options),
        (options) => world.receiveSync(token, 0, options),
      );
    }
    await othersBeforeZero(world);
    // The message that nobody waits for any more is the next one's.
    if (rank === 0) for (let target = 1; target < size; target++) world.send(Uint8Array.of(7), target);
    else {
      world.receiveSync(token, 0);
      assert.equal(token[0], 7);
    }
  }
}

/**
 * A collective that some have left cannot be completed by the others: the communicator says so from then on; others go
 * on working.
 */
async function collectivesThatEndEarly(world: Communicator): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  type Call = (comm: Communicator, o: WaitOptions) => [Promise<unknown>, undefined] | [undefined, () => unknown];
  const [one, all] = [new Int32Array(1), new Int32Array(size)];
  const counts = new Array<number>(size).fill(1);
  const calls: Call[] = [
    (comm, o) => [comm.allreduce(one, new Int32Array(1), Op.SUM, o), undefined],
    (comm, o) => [undefined, () => comm.allreduceSync(one, new Int32Array(1), Op.SUM, o)],
    (comm, o) => [comm.broadcast(one, 0, o), undefined],
    (comm, o) => [undefined, () => comm.broadcastSync(one, 0, o)],
    (comm, o) => [comm.reduceScatter(all, one, Op.SUM, undefined, o), undefined],
    (comm, o) => [comm.allgather(one, all, o), undefined],
    (comm, o) => [comm.alltoall(all, new Int32Array(size), o), undefined],
    (comm, o) => [comm.alltoallv(all, counts, new Int32Array(size), counts, o), undefined],
    (comm, o) => [comm.split(0, 0, o), undefined],
    (comm, o) => [Window.allocate(comm, Int32Array, 1, o), undefined],
  ];
  for (const call of calls) {
    const comm = await world.dup();
    if (rank !== 0) {
      const [promise, sync] = call(comm, SOON);
      if (promise !== undefined) await assert.rejects(promise, LATE);
      else assert.throws(sync, LATE);
      await assert.rejects(comm.barrier(), { code: 'ERR_COMM' });
    }
    await world.barrier();
  }
}

async function optionsAreChecked(world: Communicator): Promise<void> {
  await allocated(world, 1, {}, async (win) => {
    await win.fence(Assert.NO_SUCCEED);
    for (const wrong of [
      { timeout: '1' },
      { timeout: -1 },
      { timeout: Number.NaN },
      { signal: {} },
      { signal: 5 },
      5,
      'soon',
    ] as unknown as WaitOptions[]) {
      const refused = (error: unknown): boolean =>
        (error instanceof TypeError || error instanceof RangeError) && (error as { code?: string }).code === 'ERR_ARG';
      const calls: [(() => Promise<unknown>) | undefined, (() => unknown) | undefined][] = [
        [() => win.fence(0, wrong), () => win.fenceSync(0, wrong)],
        [() => win.lock(0, Lock.SHARED, 0, wrong), () => win.lockSync(0, Lock.SHARED, 0, wrong)],
        [() => win.lockAll(0, wrong), () => win.lockAllSync(0, wrong)],
        [() => world.barrier(wrong), () => world.barrierSync(wrong)],
        [() => world.broadcast(new Int8Array(1), 0, wrong), () => world.broadcastSync(new Int8Array(1), 0, wrong)],
        [() => world.receive(new Int8Array(1), 0, wrong), () => world.receiveSync(new Int8Array(1), 0, wrong)],
        [() => world.split(0, 0, wrong), undefined],
      ];
      for (const [promise, sync] of calls) {
        if (promise !== undefined) await assert.rejects(promise(), refused);
        if (sync !== undefined) assert.throws(sync, refused);
      }
    }
    // Nothing was begun by any of them.
    await world.barrier();
    await win.fence();
    win.put(Float64Array.of(4), next(world), 0);
    await win.fence(Assert.NO_SUCCEED);
    assert.equal(win.local[0], 4);
    await zeroBeforeOthers(world);
  });
}

/** A target's own part: no lock or epoch is needed to load and store it, but calls to it obey the same rules. */
async function ownPart(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank } = world;
  await allocated(world, 8, info, async (win) => {
    win.local.set([1, 2, 3, 4]);
    await win.lock(rank, Lock.EXCLUSIVE);
    const conflict = { code: 'ERR_RMA_CONFLICT' };
    const attempts: (() => void)[] = [
      () => win.put(win.local.subarray(0, 2), rank, 1),
      () => win.get(win.local.subarray(0, 2), rank, 0),
      () => win.accumulate(win.local.subarray(3, 4), rank, 3, Op.SUM),
    ];
    for (const attempt of attempts) assert.throws(attempt, conflict);
    win.put(win.local.subarray(0, 2), rank, 4);
    await win.flush(rank);
    await win.unlock(rank);
    assert.deepEqual([...win.local], [1, 2, 3, 4, 1, 2, 0, 0]);
    await world.barrier();
  });
}

await runCases([
  ...each(INFOS, 'a fence opens and ends what its assertions leave open', fenceAssertions, ['fences']),
  ...each(INFOS, 'after a fence each part has what all ranks have put and added', contributionsOfAll, ['fences']),
  ...each(INFOS, 'a lock lets in whom its kind says, and nothing is allowed without it', locks, ['passive']),
  ...each(INFOS, 'lockAll opens all parts to all ranks', lockAll, ['passive']),
  ...each(INFOS, 'what was put before a flush is there before what is put after it', flushOrdersPuts, ['passive']),
  caseOf('a rank holds locks of many targets at once', locksOfManyTargets, ['passive']),
  ...each(INFOS, 'two unlocks at once release a lock once, and one is refused', unlockOnce, ['passive']),
  ...each(INFOS, 'a fence epoch without operations gives way to locks', mixedEpochs, ['passive']),
  caseOf('a window with no_locks refuses locks, and its fences work', noLocks, ['making']),
  ...each(INFOS, 'a part without elements has epochs, and refuses elements', emptyParts, ['passive']),
  caseOf('fences of several windows may be under way at once', severalWindows, ['making']),
  caseOf('windows on parts of the world have the ranks of their communicator', windowsOnOtherCommunicators, ['making']),
  caseOf('a window that one rank refuses is made by none', refusedWindows, ['making']),
  caseOf('a freed window refuses every call', freedWindow, ['making']),
  ...each(INFOS, 'a fence that ends early is under way, and goes on', fencesThatEndEarly, ['fences']),
  ...each(INFOS, 'a lock that ends early is not held, and the next in line gets it', locksThatEndEarly, ['passive']),
  caseOf('those before and behind a rank that leaves the line get the lock in order', leavingTheLine, ['leaving']),
  caseOf('barriers and receives that end early go on', barriersThatEndEarly, ['leaving']),
  caseOf('a communicator whose collective ended early refuses the next one', collectivesThatEndEarly, ['leaving']),
  caseOf('deadlines and signals of the wrong kind are refused', optionsAreChecked, ['leaving']),
  ...each(INFOS, 'operations on the own part overlap no origin', ownPart, ['passive']),
]);
