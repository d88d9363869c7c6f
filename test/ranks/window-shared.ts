/**
 * Windows whose parts every rank loads and stores (MPI 4.1, 12.2.3), names, hints and what else a window tells of
 * itself.
 */
import assert from 'node:assert/strict';
import { Assert, type Communicator, Lock, Op, Rank, Window, type WindowInfo } from 'onesided';
import { runCases } from './support/cases.ts';

async function parts(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocateShared(world, Float64Array, rank + 1, { info });
  assert.equal(win.flavor, 'shared');
  assert.equal(win.local.length, rank + 1);
  assert.ok(win.local.every((value) => value === 0));
  win.local.fill(rank + 0.5);
  await win.fence();
  for (let other = 0; other < size; other++) {
    const theirs = win.sharedQuery(other);
    assert.deepEqual([...theirs], new Array(other + 1).fill(other + 0.5));
    assert.equal(win.dispUnitOf(other), 8);
  }
  await win.fence();
  // Stores into others' parts are in place, whoever looks: the owner, and who gets.
  const next = (rank + 1) % size;
  win.sharedQuery(next)[next] = 100 + rank;
  win.sync();
  await world.barrier();
  win.sync();
  assert.equal(win.local[rank], 100 + ((rank - 1 + size) % size));
  const got = new Float64Array(1);
  await win.lockAll();
  win.get(got, next, next);
  await win.flushAll();
  await win.unlockAll();
  assert.equal(got[0], 100 + rank);
  // As all other calls.
  await win.fence();
  win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
  await win.fence(Assert.NO_SUCCEED);
  await win.lock(next, Lock.EXCLUSIVE);
  win.put(Float64Array.of(7), next, 0);
  await win.unlock(next);
  await world.barrier();
  assert.equal(win.local[0], 7);
  await win.free();
}

/** Parts right behind each other, whatever bytes they have, and also empty ones. */
async function contiguous(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const lengthOf = (r: number): number => (r % 3 === 1 ? 0 : 3 * r + 5);
  const win = await Window.allocateShared(world, Uint8Array, lengthOf(rank));
  await win.fence(Assert.NO_SUCCEED);
  if (rank === 0) {
    let end = win.local.byteOffset + win.local.byteLength;
    for (let other = 1; other < size; other++) {
      const part = win.sharedQuery(other);
      assert.equal(part.length, lengthOf(other));
      assert.equal(part.buffer, win.local.buffer);
      assert.equal(part.byteOffset, end);
      end += part.length;
    }
  }
  assert.equal(win.sharedQuery(Rank.NULL).length, 5);
  // Parts that begin at odd addresses: everything that can be done with bytes, and nothing beyond them.
  await world.barrier();
  await win.lockAll();
  for (let target = 0; target < size; target++) {
    for (let i = 0; i < lengthOf(target); i++) {
      win.accumulate(Uint8Array.of(1), target, i, Op.SUM);
      const before = new Uint8Array(1);
      win.fetchAndOp(Uint8Array.of(1), before, target, i, Op.SUM);
      assert.ok(before[0] > 0 && before[0] < 2 * size);
    }
  }
  await win.flushAll();
  await world.barrier();
  for (let target = 0; target < size; target++) {
    const got = new Uint8Array(lengthOf(target));
    win.get(got, target, 0);
    await win.flush(target);
    assert.deepEqual(got, new Uint8Array(lengthOf(target)).fill(2 * size));
    assert.throws(() => win.put(new Uint8Array(1), target, lengthOf(target)), { code: 'ERR_RMA_RANGE' });
    assert.throws(() => win.get(new Uint8Array(lengthOf(target) + 1), target, 0), { code: 'ERR_RMA_RANGE' });
  }
  await world.barrier();
  const mine = Uint8Array.from({ length: lengthOf(rank) }, (_, i) => i);
  win.put(mine, rank, 0);
  await win.flushAll();
  await world.barrier();
  for (let target = 0; target < size; target++) {
    assert.deepEqual(
      [...win.sharedQuery(target)],
      Array.from({ length: lengthOf(target) }, (_, i) => i),
    );
  }
  await win.unlockAll();
  await win.free();
}

/** Empty parts lie where they would begin, at whichever rank, and all that can be done with them is nothing. */
async function empty(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const lengthOf = (r: number): number => (r % 2 === 1 ? 0 : r + 2);
  const win = await Window.allocateShared(world, Float64Array, lengthOf(rank));
  const whole = win.sharedQuery(0);
  let end = whole.byteOffset;
  for (let other = 0; other < size; other++) {
    const part = win.sharedQuery(other);
    assert.equal(part.length, lengthOf(other));
    assert.equal(part.buffer, whole.buffer);
    assert.equal(part.byteOffset, end);
    if (other === rank) {
      assert.equal(win.local.length, part.length);
      assert.equal(win.local.buffer, whole.buffer);
      assert.equal(win.local.byteOffset, end);
    }
    end += part.byteLength;
  }
  // What is seen behind them is the next one's.
  const behind = new Float64Array(whole.buffer, win.local.byteOffset + win.local.byteLength);
  await win.fence();
  win.local.fill(rank);
  await win.fence();
  if (rank + 1 < size && lengthOf(rank + 1) > 0) assert.equal(behind[0], rank + 1);
  await win.fence();
  for (let target = 0; target < size; target++) {
    win.put(new Float64Array(0), target, lengthOf(target));
    win.accumulate(new Float64Array(0), target, 0, Op.SUM);
    if (lengthOf(target) === 0) assert.throws(() => win.put(Float64Array.of(1), target, 0), { code: 'ERR_RMA_RANGE' });
  }
  await win.fence(Assert.NO_SUCCEED);
  await win.lock(rank, Lock.EXCLUSIVE);
  await win.unlock(rank);
  await win.free();
  // Bytes before an empty part of larger elements: it need not be aligned.
  const odd = await (rank === 0
    ? Window.allocateShared(world, Uint8Array, 3)
    : Window.allocateShared(world, Float64Array, 0));
  assert.equal(odd.local.length, rank === 0 ? 3 : 0);
  if (rank === 0) assert.equal(odd.sharedQuery(0).length, 3);
  assert.equal(odd.sharedQuery(size - 1).length, size === 1 ? 3 : 0);
  await odd.free();
}

/** Larger elements in a part that does not begin at a multiple of their size: puts and gets yes, atomic calls no. */
async function unaligned(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocateShared(world, Uint8Array, 33);
  await win.lockAll();
  for (let target = 0; target < size; target++) {
    const value = Float64Array.of(rank, -rank);
    const got = new Float64Array(2);
    if (rank !== target) continue;
    for (let at = 0; at <= 17; at++) {
      win.put(value, target, at);
      win.get(got, target, at);
      await win.flush(target);
      assert.deepEqual(got, value);
      const aligned = (33 * target + at) % 8 === 0;
      const add = (): void => win.accumulate(BigInt64Array.of(1n), target, at, Op.SUM);
      if (aligned) add();
      else assert.throws(add, { code: 'ERR_DISP' });
    }
  }
  await win.unlockAll();
  await win.free();
}

async function nobodysPart(world: Communicator): Promise<void> {
  const win = await Window.allocateShared(world, Int32Array, 0);
  assert.equal(win.local.length, 0);
  assert.equal(win.sharedQuery(Rank.NULL).length, 0);
  await win.fence();
  assert.throws(() => win.put(Int32Array.of(1), 0, 0), { code: 'ERR_RMA_RANGE' });
  await win.fence(Assert.NO_SUCCEED);
  await win.free();
}

async function refusals(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const shared = (type: unknown, length: unknown, options?: object) =>
    Window.allocateShared(world, type as Float64ArrayConstructor, length as number, options);
  await assert.rejects(shared(Array, 1), { name: 'TypeError' });
  await assert.rejects(shared(Float64Array, -1), { name: 'RangeError' });
  const usual = await shared(Float64Array, 1);
  for (const fence of ['remote-notify', 'deferred']) {
    const win = await shared(Float64Array, 1, { info: { fence } });
    // What a shared window cannot follow has no effect; by requests, it can.
    assert.ok([fence, usual.getInfo().fence].includes(win.getInfo().fence));
    await win.fence();
    await win.free();
  }
  await usual.free();
  if (size > 1) {
    // Rank 0 refuses: nobody waits.
    await assert.rejects(shared(Float64Array, rank === 0 ? Number.NaN : 4), {
      code: rank === 0 ? 'ERR_SIZE' : 'ERR_WIN',
    });
    const mixed = rank === 0 ? Window.allocateShared(world, Uint8Array, 3) : shared(Float64Array, 2);
    await assert.rejects(mixed, { code: 'ERR_SIZE', message: /rank 1 would begin at byte 3/ });
    const apart = rank === 0 ? { info: { alloc_shared_noncontig: true } } : {};
    await assert.rejects(shared(Float64Array, 2, apart), { code: 'ERR_INFO_VALUE' });
  }
  const win = await Window.allocate(world, Int32Array, rank === 1 ? 3 : 2);
  assert.equal(win.sharedQuery(rank).length, win.local.length);
  assert.throws(() => win.sharedQuery(size), { code: 'ERR_RANK' });
  assert.throws(() => win.sharedQuery(0.5), { code: 'ERR_RANK' });
  assert.throws(() => win.sharedQuery('0' as unknown as number), { name: 'TypeError' });
  await win.free();
  assert.throws(() => win.sharedQuery(0), { code: 'ERR_WIN' });
}

async function afterFree(world: Communicator): Promise<void> {
  const win = await Window.allocateShared(world, Float64Array, 4);
  const theirs = win.sharedQuery((world.rank + 1) % world.size);
  const { local } = win;
  await win.free();
  if (local.buffer instanceof SharedArrayBuffer) return;
  assert.deepEqual([local.length, theirs.length], [0, 0]);
}

async function hintsAndNames(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Float64Array, 4, {
    name: 'grid',
    info: { no_locks: true, same_size: 'true', accumulate_ordering: 'none', mpi_accumulate_granularity: 64 },
  });
  assert.deepEqual([win.name, win.model, win.flavor, win.dispUnit], ['grid', 'unified', 'allocate', 8]);
  assert.ok(win.group.equals(world.group));
  win.name = 'halo';
  assert.equal(win.name, 'halo');
  assert.throws(() => win.put(Float64Array.of(1), 0, 0), { message: /window halo/ });
  assert.throws(() => Object.assign(win, { name: 3 }), { name: 'TypeError' });
  assert.deepEqual(
    { ...win.getInfo() },
    {
      fence: 'immediate',
      lock: 'queue',
      lock_mode: 'cpu',
      lock_cpu: 'queue',
      lock_migration: 'history',
      lock_order: 'running-first',
      lock_defer: 'auto',
      update: 'by-requests',
      schedule: 'issue-order',
      noncontiguous: 'multi-write',
      no_locks: 'true',
      same_size: 'true',
      same_disp_unit: 'false',
      alloc_shared_noncontig: 'false',
      barrier: 'auto',
      barrier_algorithm: 'dissemination',
      accumulate_ordering: 'none',
      accumulate_ops: 'same_op_no_op',
      mpi_accumulate_granularity: '64',
    },
  );
  win.setInfo({ accumulate_ordering: 'rar,waw', accumulate_ops: 'same_op', no_locks: true });
  assert.equal(win.getInfo().accumulate_ordering, 'rar,waw');
  const { fence } = win.getInfo();
  win.setInfo({ accumulate_ops: 'same_op_no_op', no_locks: false, fence: 'deferred' });
  const { accumulate_ops, no_locks, ...others } = win.getInfo();
  assert.deepEqual([accumulate_ops, no_locks, others.fence], ['same_op_no_op', 'true', fence]);
  assert.throws(() => win.setInfo({ accumulate_ops: 'same_op', no_locks: 'maybe' as 'true' }), {
    code: 'ERR_INFO_VALUE',
  });
  assert.equal(win.getInfo().accumulate_ops, 'same_op_no_op');
  win.setInfo({ colour: 'red' } as WindowInfo);
  assert.ok(!('colour' in win.getInfo()));
  assert.throws(() => win.setInfo({ '': 'red' } as WindowInfo), { code: 'ERR_INFO_KEY' });
  assert.throws(() => win.setInfo(7 as WindowInfo), { name: 'TypeError' });
  await assert.rejects(win.lock(0, Lock.SHARED), { code: 'ERR_RMA_SYNC', message: /no_locks/ });
  await win.free();
  if (size === 1) return;
  const promise = (info: WindowInfo, length: number, dispUnit = 8) =>
    Window.allocate(world, Float64Array, length, { info, dispUnit });
  await assert.rejects(promise({ same_size: true }, 4 + (rank % 2)), { code: 'ERR_INFO_VALUE', message: /same_size/ });
  await assert.rejects(promise({ same_disp_unit: true }, 4, 1 + (rank % 2)), { code: 'ERR_INFO_VALUE' });
  await (await promise({ same_size: true, same_disp_unit: true }, 4)).free();
}

await runCases({
  'every rank loads and stores all parts, which are contiguous': (world) => parts(world, {}),
  'every rank loads and stores all parts, which are apart': (world) => parts(world, { alloc_shared_noncontig: true }),
  'parts lie right behind each other, whatever bytes they have': contiguous,
  'empty parts lie where they would begin, and nothing moves': empty,
  'elements at odd places are put and gotten, and refused by atomic calls': unaligned,
  'nobody has a part of no rank': nobodysPart,
  'wrong sizes and hints are refused': refusals,
  'a freed window has no parts': afterFree,
  'a window tells its hints and its name': hintsAndNames,
});
