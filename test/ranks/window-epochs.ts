/**
 * Epochs: what opens and ends them, what may be called in them, and what is visible after them; the deadlines and
 * aborts of every call that waits. Each case leaves nothing behind, and the next one begins where it ended.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Assert, type Communicator, Lock, Op, Rank, Window, type WindowInfo } from 'onesided';
import { caseOf, each, runCases } from './support/cases.ts';
import {
  barriersThatEndEarly,
  collectivesThatEndEarly,
  fencesThatEndEarly,
  leavingTheLine,
  locksThatEndEarly,
  optionsAreChecked,
} from './support/early-ends.ts';
import {
  FENCES,
  freedWindow,
  noLocks,
  refusedWindows,
  severalWindows,
  windowsOnOtherCommunicators,
} from './support/several-windows.ts';
import { next } from './support/turns.ts';
import { allocated } from './support/windows.ts';

const INFOS = FENCES.map((fence) => ({ fence }));

const SYNC = { code: 'ERR_RMA_SYNC' };

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
