/**
 * Locks that are deferred over libfabric (src/sync/lock/deferred-lock.ts): one small operation travels with its lock,
 * everything else asks for the lock.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Communicator, Lock, Op, Window, type WindowInfo } from 'onesided';
import { argument, runCases } from './support/cases.ts';
import { Random } from './support/random.ts';

const ALWAYS: WindowInfo = { lock_defer: true };
const seed = Number(argument('seed') ?? 1);

const TYPES = [
  Int8Array,
  Uint8Array,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
] as const;
type Cells = InstanceType<(typeof TYPES)[number]>;

/** Elements of a part, more than travel with a lock. */
const CELLS = 6000;

/** An epoch with one operation. */
async function alone(win: Window<Cells>, target: number, type: Lock, operation: () => void): Promise<void> {
  await win.lock(target, type);
  operation();
  await win.unlock(target);
}

/** Every call by itself, of every type, short and long, under both kinds of locks, by both forms of unlock. */
async function everyCall(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const target = (rank + 1) % size;
  for (const type of TYPES) {
    const of = (...values: number[]): Cells =>
      type === BigInt64Array || type === BigUint64Array
        ? type.from(values.map(BigInt))
        : (type as typeof Int32Array).from(values);
    const win = (await Window.allocate(world, type as typeof Int32Array, CELLS, {
      info: ALWAYS,
    })) as unknown as Window<Cells>;
    for (const lock of [Lock.EXCLUSIVE, Lock.SHARED]) {
      for (const count of [1, 3, 17, Math.floor(4096 / type.BYTES_PER_ELEMENT), CELLS]) {
        const values = Array.from({ length: count }, (_, i) => (i + count) % 50);
        await alone(win, target, lock, () => win.put(of(...values) as never, target, 0));
        const found = of(...values.map(() => 0));
        await alone(win, target, lock, () => win.get(found as never, target, 0));
        assert.deepEqual(found, of(...values));
        await alone(win, target, lock, () => win.accumulate(of(...values) as never, target, 0, Op.SUM as never));
        await alone(win, target, lock, () =>
          win.getAccumulate(of(...values) as never, found as never, target, 0, Op.MAX as never),
        );
        assert.deepEqual(found, of(...values.map((value) => 2 * value)));
      }
      const [before, swapped] = [of(0), of(0)];
      await alone(win, target, lock, () => win.put(of(5) as never, target, 1));
      win.lockSync(target, lock);
      win.fetchAndOp(of(2) as never, before as never, target, 1, Op.SUM as never);
      win.unlockSync(target);
      assert.deepEqual(before, of(5));
      if (type === Float32Array || type === Float64Array) continue;
      win.lockSync(target, lock);
      (win as Window<Int32Array>).compareAndSwap(of(9) as never, of(7) as never, swapped as never, target, 1);
      win.unlockSync(target);
      await alone(win, target, lock, () => win.get(before as never, target, 1));
      assert.deepEqual([swapped, before], [of(7), of(9)]);
    }
    await win.free();
  }
}

/** What travels keeps its bits, also those of numbers that a processor would change. */
async function bits(world: Communicator): Promise<void> {
  const target = (world.rank + 1) % world.size;
  const win = (await Window.allocate(world, Float32Array, 1, { info: ALWAYS })) as unknown as Window<Cells>;
  const [origin, found] = [new Float32Array(1), new Float32Array(1)];
  new Uint32Array(origin.buffer)[0] = 0x7fa00001;
  await alone(win, target, Lock.EXCLUSIVE, () => win.put(origin as never, target, 0));
  await alone(win, target, Lock.EXCLUSIVE, () => win.get(found as never, target, 0));
  assert.equal(new Uint32Array(found.buffer)[0], 0x7fa00001);
  await win.free();
}

/** Ranks that fight for one lock, with epochs that travel and others, lose nothing of each other. */
async function contended(world: Communicator): Promise<void> {
  const { rank } = world;
  const random = new Random(seed, rank);
  for (const info of [ALWAYS, {}, { lock: 'remote', lock_order: 'arrival', lock_defer: true }] as WindowInfo[]) {
    const win = await Window.allocate(world, Float64Array, 64, { info });
    let added = 0;
    const found = new Float64Array(1);
    for (let round = 0; round < 300; round++) {
      const kind = random.pick(['add', 'add', 'add', 'step', 'look', 'together'] as const);
      await win.lock(0, kind === 'look' ? Lock.SHARED : Lock.EXCLUSIVE);
      if (kind === 'add') win.accumulate(Float64Array.of(1), 0, 8, Op.SUM);
      else if (kind === 'together') {
        for (let i = 0; i < 4; i++) win.accumulate(Float64Array.of(1), 0, 8, Op.SUM);
      } else {
        win.get(found, 0, 8);
        if (kind === 'step') {
          await win.flush(0);
          if (random.chance(0.1)) await sleep(1);
          win.put(Float64Array.of(found[0] + 1), 0, 8);
        }
      }
      added += { add: 1, step: 1, look: 0, together: 4 }[kind];
      if (random.chance(0.5)) win.unlockSync(0);
      else await win.unlock(0);
    }
    const total = new Float64Array(1);
    await world.allreduce(Float64Array.of(added), total, Op.SUM);
    if (rank === 0) assert.equal(win.local[8], total[0]);
    await world.barrier();
    await win.free();
  }
}

/** While another rank has the lock: operations wait, waits end early and begin again, and nothing is done twice. */
async function held(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Int32Array, 8, { info: ALWAYS });
  for (const operations of [1, 2]) {
    if (rank === 0) await win.lock(0, Lock.EXCLUSIVE);
    await world.barrier();
    if (rank !== 0) {
      await win.lock(0, Lock.EXCLUSIVE);
      for (let i = 0; i < operations; i++) win.accumulate(Int32Array.of(1), 0, operations, Op.SUM);
      await assert.rejects(win.unlock(0, { timeout: 30 }), { code: 'ERR_RMA_TIMEOUT' });
      await assert.rejects(win.unlock(0, { timeout: 30 }), { code: 'ERR_RMA_TIMEOUT' });
    }
    await world.barrier();
    if (rank === 0) {
      assert.equal(win.local[operations], 0, 'nobody has touched what is locked');
      await win.unlock(0);
    } else await win.unlock(0);
    await world.barrier();
    if (rank === 0) assert.equal(win.local[operations], operations * (size - 1));
  }
  // An empty epoch waits for nothing; a deadline is for the lock, and is kept.
  if (rank === 0) await win.lock(0, Lock.EXCLUSIVE);
  await world.barrier();
  if (rank !== 0) {
    await win.lock(0, Lock.EXCLUSIVE);
    await win.unlock(0);
    await assert.rejects(win.lock(0, Lock.SHARED, 0, { timeout: 30 }), { code: 'ERR_RMA_TIMEOUT' });
    await win.lock(0, Lock.EXCLUSIVE);
    win.put(Int32Array.of(3), 0, 7);
    await assert.rejects(win.flush(0, { timeout: 30 }), { code: 'ERR_RMA_TIMEOUT' });
  }
  await world.barrier();
  if (rank === 0) await win.unlock(0);
  else await win.unlock(0);
  await world.barrier();
  if (rank === 0) assert.equal(win.local[7], 3);
  await world.barrier();
  await win.free();
}

/** Requests, flushes and notifications in the middle of an epoch ask for its lock. */
async function midway(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const [next, before] = [(rank + 1) % size, (rank + size - 1) % size];
  const win = await Window.allocate(world, Int32Array, 8, { info: ALWAYS });
  const found = new Int32Array(1);
  await win.lock(next, Lock.EXCLUSIVE);
  await win.rput(Int32Array.of(rank), next, 0).wait();
  await win.rget(found, next, 0).wait();
  assert.equal(found[0], rank);
  await win.unlock(next);
  await world.barrier();
  await win.lock(next, Lock.EXCLUSIVE);
  win.fetchAndOp(Int32Array.of(10), found, next, 0, Op.SUM);
  await win.flush(next);
  assert.equal(found[0], rank);
  win.put(Int32Array.of(found[0]), next, 1);
  const request = win.rget(found, next, 1);
  await win.unlock(next);
  await request.wait();
  assert.equal(found[0], rank);
  await world.barrier();
  assert.deepEqual([win.local[0], win.local[1]], [before + 10, before]);
  // A rank waits for it without waiting for the unlock.
  await win.lock(next, Lock.EXCLUSIVE);
  win.putNotify(Int32Array.of(77 + rank), next, 2);
  await win.waitNotify();
  assert.equal(win.local[2], 77 + before);
  await win.unlock(next);
  await world.barrier();
  await win.free();
}

/** What fails says so at the unlock, and the lock is free afterwards. */
async function lost(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const target = (rank + 1) % size;
  const win = await Window.allocate(world, Int32Array, 8, { info: ALWAYS });
  for (const operations of [1, 2]) {
    const origin = Int32Array.of(1);
    await win.lock(target, Lock.EXCLUSIVE);
    win.put(origin, target, 0);
    structuredClone(origin.buffer, { transfer: [origin.buffer] });
    if (operations === 2) win.put(Int32Array.of(2), target, 1);
    await assert.rejects(win.unlock(target), { code: 'ERR_BUFFER' });
    await win.unlock(target);
    await alone(win as unknown as Window<Cells>, target, Lock.EXCLUSIVE, () => win.put(Int32Array.of(5), target, 0));
  }
  await world.barrier();
  assert.deepEqual([win.local[0], win.local[1]], [5, 2]);
  await world.barrier();
  await win.free();
}

/** A rank that takes two locks has the first one before it asks for the second; also of two windows. */
async function two(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const one = await Window.allocate(world, Int32Array, 1, { info: ALWAYS });
  const other = await Window.allocate(world, Int32Array, 1, { info: ALWAYS });
  const found = new Int32Array(1);
  for (let round = 0; round < 40; round++) {
    const target = round % size;
    for (const win of [one, other]) await win.lock(target, Lock.EXCLUSIVE);
    for (const win of [one, other]) {
      win.get(found, target, 0);
      await win.flush(target);
      win.put(Int32Array.of(found[0] + 1), target, 0);
      await win.unlock(target);
    }
  }
  await world.barrier();
  const rounds = Array.from({ length: 40 }, (_, round) => round).filter((round) => round % size === rank).length;
  assert.deepEqual([one.local[0], other.local[0]], [rounds * size, rounds * size]);
  await world.barrier();
  await one.free();
  await other.free();
}

/** By itself a lock is deferred behind an epoch of one small operation, and behind no other one. */
async function habit(world: Communicator): Promise<void> {
  const { rank } = world;
  const cases: readonly (readonly [info: WindowInfo, operations: number, deferred: boolean])[] = [
    [{}, 1, true],
    [{}, 0, false],
    [{}, 5, false],
    [{ lock_defer: 'false' }, 1, false],
    [{ lock_defer: true }, 5, true],
  ];
  for (const [info, operations, deferred] of cases) {
    const win = await Window.allocate(world, Int32Array, 8, { info });
    if (rank === 1) {
      await win.lock(0, Lock.EXCLUSIVE);
      for (let i = 0; i < operations; i++) win.put(Int32Array.of(1), 0, i);
      await win.unlock(0);
    }
    await world.barrier();
    if (rank === 0) await win.lock(0, Lock.EXCLUSIVE);
    await world.barrier();
    let returned = false;
    const locked = rank === 1 ? win.lock(0, Lock.EXCLUSIVE).then(() => (returned = true)) : undefined;
    await sleep(50);
    assert.equal(returned, rank === 1 && deferred, JSON.stringify([info, operations]));
    await world.barrier();
    if (rank === 0) await win.unlock(0);
    if (rank === 1) {
      await locked;
      win.put(Int32Array.of(4), 0, 0);
      await win.unlock(0);
    }
    await world.barrier();
    if (rank === 0) assert.equal(win.local[0], 4);
    await world.barrier();
    await win.free();
  }
}

await runCases({
  'every call alone': everyCall,
  'numbers that are none': bits,
  'ranks that fight for a lock': contended,
  'a lock that another rank has': held,
  'requests, flushes and notifications': midway,
  'what fails': lost,
  'two locks': two,
  'by itself': habit,
});
