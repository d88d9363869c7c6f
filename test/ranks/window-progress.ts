/**
 * What `win.progress` claims, put to the test: rank 1 computes and does not call the library, while rank 0 makes every
 * call. Those of which it is said that they do not need rank 1 come to their end with the right result; those of which
 * it is said that they do are seen not to.
 *
 * `--memory=library` where no other memory can be reached.
 */
import assert from 'node:assert/strict';
import {
  Assert,
  type Communicator,
  Lock,
  Op,
  type ProgressBy,
  Rank,
  Request,
  Window,
  type WindowCall,
  type WindowInfo,
} from 'onesided';
import { argument, caseOf, runCases } from './support/cases.ts';
import { BY_REQUESTS } from './support/provider.ts';

const kinds = argument('memory') ?? 'any';
const copied: ProgressBy = process.env['ONESIDED_NO_ATTACH'] === '1' ? 'agent' : 'kernel';
const NEAR: ProgressBy = BY_REQUESTS ? 'device' : 'origin';

/** It must be enough for a call that is on its way, on the busiest machine. */
const ENOUGH = { timeout: 30_000 };
/** Nobody will do what is waited for. */
const NEVER = { timeout: 30 };
/** More than a target has receives for. */
const MANY = 1100;

/** Runs `first` at rank 0 while rank 1 looks at its own memory only. */
async function whileComputing(world: Communicator, first: () => Promise<void>): Promise<void> {
  const signs = await Window.allocate(world, BigInt64Array, 2);
  await world.barrier();
  if (world.rank === 1) {
    const deadline = performance.now() + 60_000;
    Atomics.store(signs.local, 0, 1n);
    while (Atomics.load(signs.local, 1) === 0n) assert.ok(performance.now() < deadline, 'rank 0 gives no sign');
  }
  if (world.rank === 0) {
    await signs.lock(1, Lock.SHARED);
    const seen = BigInt64Array.of(0n);
    while (seen[0] === 0n) {
      signs.get(seen, 1, 0);
      await signs.flush(1, ENOUGH);
    }
    try {
      await first();
    } finally {
      signs.put(BigInt64Array.of(1n), 1, 1);
      await signs.unlock(1, ENOUGH);
    }
  }
  await world.barrier();
  await signs.free();
}

/** A window of a kind, 16 integers at each rank, and where they begin at rank 1. */
interface Subject {
  readonly win: Window;
  readonly memory: Int32Array;
  readonly at: number;
  readonly end: () => Promise<void>;
}

async function everyCall(
  world: Communicator,
  make: () => Promise<Subject>,
  expected: { readonly transfer: ProgressBy; readonly update: ProgressBy; readonly notify: ProgressBy },
): Promise<void> {
  const { win, memory, at, end } = await make();
  // So that the messages of start and complete have a connection.
  await world.barrier();
  const { transfer, update, notify } = expected;
  const needs = (call: WindowCall): ProgressBy => win.progress(call, 1, win.flavor === 'dynamic' ? at : undefined);
  const one = Int32Array.of(1);
  const got = Int32Array.of(0);
  if (world.rank === 1) await win.post(world.group.include([0]));
  await whileComputing(world, async () => {
    await win.start(world.group.include([1]), 0, ENOUGH);
    win.put(Int32Array.of(7), 1, at);
    assert.equal(needs('complete'), NEAR);
    await win.complete(ENOUGH);

    for (const call of ['lock', 'unlock', 'flush', 'flushLocal'] as const) assert.equal(needs(call), NEAR, call);
    await win.lock(1, Lock.EXCLUSIVE, 0, ENOUGH);
    for (const call of ['put', 'get', 'rput', 'rget'] as const) assert.equal(needs(call), transfer, call);
    win.put(Int32Array.of(1, 2, 3), 1, at + 4);
    await win.flush(1, ENOUGH);
    win.get(got, 1, at + 8);
    await win.flushLocal(1, ENOUGH);
    assert.equal(got[0], 2);
    await Request.waitAll([win.rput(Int32Array.of(4), 1, at + 8), win.rget(got, 1, at)], ENOUGH);
    assert.equal(got[0], 7);

    for (const call of ['accumulate', 'getAccumulate', 'fetchAndOp'] as const) assert.equal(needs(call), update, call);
    for (const call of ['compareAndSwap', 'raccumulate', 'rgetAccumulate'] as const) assert.equal(needs(call), update);
    win.accumulate(Int32Array.of(5, 5), 1, at + 16, Op.SUM);
    await win.flush(1, ENOUGH);
    win.fetchAndOp(one, got, 1, at + 16, Op.SUM);
    await win.flush(1, ENOUGH);
    assert.equal(got[0], 5);
    win.compareAndSwap(Int32Array.of(9), Int32Array.of(6), got, 1, at + 16);
    await win.flush(1, ENOUGH);
    assert.equal(got[0], 6);
    const before = new Int32Array(2);
    win.getAccumulate(Int32Array.of(1, 1), before, 1, at + 16, Op.SUM);
    await win.unlock(1, ENOUGH);
    assert.deepEqual([...before], [9, 5]);

    assert.equal(needs('lockAll'), NEAR);
    await win.lockAll(0, ENOUGH);
    await win.raccumulate(one, 1, at + 20, Op.SUM).wait(ENOUGH);
    await win.rgetAccumulate(one, got, 1, at + 20, Op.SUM).wait(ENOUGH);
    assert.equal(got[0], 7);
    assert.equal(needs('putNotify'), notify);
    for (let i = 1; i <= MANY; i++) win.putNotify(Int32Array.of(i), 1, at + 24);
    if (notify === 'target') await assert.rejects(win.flushAll(NEVER), { code: 'ERR_RMA_TIMEOUT' });
    else await win.flushAll(ENOUGH);
    win.sync();
    if (notify !== 'target') await win.unlockAll(ENOUGH);

    for (const call of ['fence', 'start', 'wait', 'waitNotify', 'free'] as const) assert.equal(needs(call), 'target');
    await assert.rejects(win.waitNotify(1, NEVER), { code: 'ERR_RMA_TIMEOUT' });
    if (notify === 'target') return;
    await assert.rejects(win.start(world.group.include([1]), 0, NEVER), { code: 'ERR_RMA_TIMEOUT' });
    await assert.rejects(win.fence(0, NEVER), { code: 'ERR_RMA_TIMEOUT' });
  });
  if (world.rank === 1) {
    await win.waitNotify(MANY);
    await win.wait();
  } else if (world.rank === 0 && notify === 'target') await win.unlockAll();
  await win.fence(Assert.NO_SUCCEED);
  if (world.rank === 1) assert.deepEqual([...memory.subarray(0, 8)], [7, 1, 4, 3, 10, 8, MANY, 0]);
  await end();
}

function allocated(world: Communicator, info: WindowInfo): () => Promise<Subject> {
  return async () => {
    const win = await Window.allocate(world, Int32Array, 16, { dispUnit: 1, info });
    return { win, memory: win.local, at: 0, end: () => win.free() };
  };
}

function shared(world: Communicator): () => Promise<Subject> {
  return async () => {
    const win = await Window.allocateShared(world, Int32Array, 16, { dispUnit: 1 });
    return { win, memory: win.local, at: 0, end: () => win.free() };
  };
}

function created(world: Communicator, memory: Int32Array): () => Promise<Subject> {
  return async () => {
    const win = await Window.create(world, memory, { dispUnit: 1 });
    return { win, memory, at: 0, end: () => win.free() };
  };
}

function dynamic(world: Communicator, memory: Int32Array): () => Promise<Subject> {
  return async () => {
    const win = await Window.createDynamic(world);
    const addresses = new Float64Array(world.size);
    await world.allgather(Float64Array.of(win.attach(memory)), addresses);
    return { win, memory, at: addresses[1], end: () => win.free() };
  };
}

async function library(world: Communicator): Promise<void> {
  const expected = { transfer: NEAR, update: NEAR, notify: BY_REQUESTS ? 'target' : 'origin' } as const;
  await everyCall(world, allocated(world, {}), expected);
  await everyCall(world, created(world, world.allocMem(Int32Array, 16)), expected);
  await everyCall(world, dynamic(world, world.allocMem(Int32Array, 16)), expected);
  if (!BY_REQUESTS) await everyCall(world, shared(world), expected);
}

/** On shared memory, requests are carried out by who posts them. */
async function remoteNotify(world: Communicator): Promise<void> {
  const expected = { transfer: NEAR, update: NEAR, notify: 'target' } as const;
  await everyCall(world, allocated(world, { fence: 'remote-notify' }), expected);
}

async function ordinary(world: Communicator): Promise<void> {
  if (kinds === 'library') return;
  const transfer = BY_REQUESTS ? 'device' : copied;
  const update = BY_REQUESTS ? 'device' : 'agent';
  const expected = { transfer, update, notify: BY_REQUESTS ? 'target' : copied } as const;
  await everyCall(world, created(world, new Int32Array(16)), expected);
  await everyCall(world, dynamic(world, new Int32Array(16)), expected);
}

async function ofWhom(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Int32Array, 4);
  assert.equal(win.progress('put'), NEAR);
  assert.equal(win.progress('put', rank), NEAR);
  assert.equal(win.progress('put', Rank.NULL), 'origin');
  for (const call of ['post', 'sync'] as const) assert.equal(win.progress(call), 'origin');
  for (const call of ['fence', 'free'] as const) assert.equal(win.progress(call), 'target');
  for (const call of ['barrier', 'toString', '', 7, undefined]) {
    assert.throws(() => win.progress(call as WindowCall), { name: 'RangeError', message: /fetchAndOp/ });
  }
  assert.throws(() => win.progress('put', size), { code: 'ERR_RANK' });
  await win.free();
  assert.throws(() => win.progress('put'), { code: 'ERR_WIN' });
  if (kinds === 'library') return;

  const ours = await Window.create(world, rank === 1 ? new Int32Array(4) : world.allocMem(Int32Array, 4));
  const theirs = BY_REQUESTS ? 'device' : copied;
  assert.equal(ours.progress('put'), rank === 1 ? NEAR : theirs);
  assert.equal(ours.progress('put', 1), rank === 1 ? NEAR : theirs);
  assert.equal(ours.progress('put', 0), NEAR);
  await ours.free();

  const mixed = await Window.createDynamic(world);
  const pieces = [world.allocMem(Int32Array, 4), new Int32Array(4)].map((memory) => mixed.attach(memory));
  const all = new Float64Array(2 * size);
  await world.allgather(Float64Array.from(pieces), all);
  const next = (rank + 1) % size;
  assert.equal(mixed.progress('put', next, all[2 * next]), NEAR);
  assert.equal(mixed.progress('put', next, all[2 * next + 1] + 15), next === rank ? NEAR : theirs);
  assert.equal(mixed.progress('put', next), next === rank ? NEAR : theirs);
  assert.throws(() => mixed.progress('put', next, all[2 * next + 1] + 16), { code: 'ERR_RMA_RANGE' });
  assert.throws(() => mixed.progress('put', next, 0.5), { code: 'ERR_DISP' });
  await mixed.free();
}

await runCases([
  caseOf('calls on memory of the library go on as progress says', library, ['library']),
  caseOf('those of a window that counts notifications do, too', remoteNotify, ['notifications']),
  caseOf('calls on ordinary memory go on as progress says', ordinary, ['ordinary']),
  caseOf('progress is asked of a window, a rank, or a piece of memory', ofWhom, ['asking']),
]);
