/** Accesses that overlap in one epoch, with `ONESIDED_DEBUG=conflicts`: what is refused, and what is not. */
import assert from 'node:assert/strict';
import { Assert, type Communicator, Datatype, Lock, Op, Request, Window } from 'onesided';
import { runCases } from './support/cases.ts';

const conflict = { code: 'ERR_RMA_CONFLICT', message: /of an earlier \w+ that is not complete/ };
const value = Float64Array.of(1, 2);
const whole = BigInt64Array.of(1n);

/** Calls that touch the same place, and how they get on with each other. */
async function pairs(world: Communicator): Promise<void> {
  const target = (world.rank + 1) % world.size;
  const win: Window = await Window.allocate(world, Float64Array, 8);
  const sum = new Float64Array(2);
  const result = new BigInt64Array(1);
  const calls: Record<string, () => void> = {
    put: () => win.put(value, target, 2),
    get: () => win.get(new Float64Array(2), target, 2),
    accumulate: () => win.accumulate(value, target, 2, Op.SUM),
    getAccumulate: () => win.getAccumulate(value, sum, target, 2, Op.REPLACE),
    fetchAndOp: () => win.fetchAndOp(whole, result, target, 2, Op.SUM),
    compareAndSwap: () => win.compareAndSwap(whole, whole, result, target, 2),
  };
  const atomicDoubles = ['accumulate', 'getAccumulate'];
  const atomicIntegers = ['fetchAndOp', 'compareAndSwap'];
  const allowed = (a: string, b: string): boolean =>
    (a === 'get' && b === 'get') || [atomicDoubles, atomicIntegers].some((set) => set.includes(a) && set.includes(b));
  let pair = 0;
  await win.lockAll();
  for (const [first, one] of Object.entries(calls)) {
    for (const [second, other] of Object.entries(calls)) {
      one();
      if (!allowed(first, second)) assert.throws(other, conflict, `${first}, ${second}`);
      // Says nothing of the target, where a get changes nothing.
      if (pair++ % 2 === 0) await win.flushLocal(target);
      else win.flushLocalAllSync();
      if (allowed(first, second) || first === 'get') other();
      else assert.throws(other, conflict, `${first}, ${second}`);
      await win.flush(target);
      other();
      await win.flushAll();
    }
  }
  await win.unlockAll();
  await win.free();
}

/** Every way to complete an access ends what it stands in the way of. */
async function ends(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const target = (rank + 1) % size;
  const win = await Window.allocate(world, Float64Array, 8);
  const twice = () => {
    win.put(value, target, 0);
    assert.throws(() => win.put(value, target, 1), conflict);
    win.put(value, target, 2); // beside it
  };
  for (let round = 0; round < 3; round++) {
    await win.lock(target, Lock.SHARED);
    twice();
    await win.unlock(target);
    await win.lockAll();
    twice();
    await win.flushAll();
    twice();
    await win.unlockAll();
    await win.fence();
    twice();
    await win.fence();
    twice();
    await win.fence(Assert.NO_SUCCEED);
    win.postSync(world.group.include([(rank - 1 + size) % size]));
    await win.start(world.group.include([target]));
    twice();
    await win.complete();
    await win.wait();
  }
  // Another target is another memory.
  await win.lockAll();
  for (let r = 0; r < size; r++) win.put(value, r, 0);
  await win.flush(target);
  win.put(value, target, 0);
  if (size > 1) assert.throws(() => win.put(value, (target + 1) % size, 0), conflict);
  await win.unlockAll();
  await win.free();
}

/** A request that was waited for completes a get, and says nothing of a put's target; `waitRemote` does. */
async function requests(world: Communicator): Promise<void> {
  const target = (world.rank + 1) % world.size;
  const win: Window = await Window.allocate(world, Float64Array, 8);
  const into = new Float64Array(2);
  const put = () => win.put(value, target, 0);
  const waits: ((request: Request) => unknown)[] = [
    (request) => request.wait(),
    (request) => request.waitSync(),
    async (request) => {
      while (!request.test()) await new Promise(setImmediate);
    },
    (request) => Request.waitAll([null, request]),
    (request) => Request.waitAnySync([request]),
  ];
  await win.lockAll();
  for (const wait of waits) {
    for (const reads of [() => win.rget(into, target, 0), () => win.rgetAccumulate(null, into, target, 0, Op.NO_OP)]) {
      const request = reads();
      assert.throws(put, conflict);
      // A wait for one says nothing of the other.
      const other = win.rget(into, target, 1);
      await wait(request);
      win.put(value.subarray(0, 1), target, 0);
      assert.throws(() => win.put(value, target, 1), conflict);
      await wait(other);
      win.put(value, target, 1);
      await win.flush(target);
    }
    for (const writes of [
      () => win.rput(value, target, 0),
      () => win.raccumulate(value, target, 0, Op.SUM),
      () => win.rgetAccumulate(value, into, target, 0, Op.SUM),
    ]) {
      const request = writes();
      await wait(request);
      assert.throws(put, conflict);
      await request.waitRemote();
      put();
      await win.flush(target);
    }
  }
  // The wait of a handle says so of its own operations.
  const batch = win.aggregate(target);
  for (const wait of [() => batch.wait(), () => batch.waitSync()]) {
    batch.get(into, 0);
    const other = win.rget(new Float64Array(1), target, 4);
    batch.put(value, 2);
    assert.throws(put, conflict);
    assert.throws(() => batch.get(into, 1), conflict);
    await wait();
    put();
    assert.throws(() => win.get(into, target, 2), conflict);
    assert.throws(() => win.put(value, target, 4), conflict);
    await other.wait();
    win.put(value, target, 4);
    await win.flush(target);
    win.get(into, target, 2);
    await win.flush(target);
  }
  await win.unlockAll();
  await win.free();
}

/** Layouts are looked at run by run. */
async function layouts(world: Communicator): Promise<void> {
  const target = (world.rank + 1) % world.size;
  const win = await Window.allocate(world, Float64Array, 4096);
  const column = { target: { type: Datatype.vector(64, 1, 64, Datatype.FLOAT64) } };
  const numbers = new Float64Array(64);
  await win.lockAll();
  for (let c = 0; c < 64; c++) win.put(numbers, target, c, column);
  assert.throws(() => win.get(numbers, target, 5, column), conflict);
  assert.throws(() => win.get(numbers.subarray(0, 1), target, 4095), {
    message:
      /^get to rank \d in window #\d+: bytes 32760 … 32767 of the part of rank \d overlap those of an earlier put/,
  });
  await win.unlockAll();
  await win.free();
}

await runCases({
  'calls that touch one place are refused but where MPI allows both': pairs,
  'whatever completes an access lets the next one pass': ends,
  'a request that was waited for completes a get, and waitRemote a put': requests,
  'layouts are compared run by run': layouts,
});
