/** Arrays of operations that are not complete, with `ONESIDED_DEBUG=poison`: what is seen, what is told. */
import assert from 'node:assert/strict';
import { Assert, type Communicator, Datatype, Lock, Op, Request, Window } from 'onesided';
import { runCases } from './support/cases.ts';
import { columns } from './support/columns.ts';

const FILE = /called at .*window-poison\.js:\d+:\d+/;

/** The window's parts hold 10 × rank + element. */
async function filled(world: Communicator, name = 'parts'): Promise<Window> {
  const win = await Window.allocate(world, Float64Array, 8, { name });
  win.local.set(Array.from({ length: 8 }, (_, i) => 10 * world.rank + i));
  await world.barrier();
  return win;
}

const neighbour = ({ rank, size }: Communicator): number => (rank + 1) % size;

/** What completes a get, and what does not, by the calls of passive epochs. */
async function passive(world: Communicator): Promise<void> {
  const target = neighbour(world);
  const win = await filled(world);
  const expected = [10 * target + 2, 10 * target + 3];
  const completions: Record<string, () => unknown> = {
    flush: () => win.flush(target),
    flushSync: () => win.flushSync(target),
    flushLocal: () => win.flushLocal(target),
    flushLocalSync: () => win.flushLocalSync(target),
    flushAll: () => win.flushAll(),
    flushAllSync: () => win.flushAllSync(),
    flushLocalAll: () => win.flushLocalAll(),
    flushLocalAllSync: () => win.flushLocalAllSync(),
  };
  await win.lockAll();
  for (const [name, complete] of Object.entries(completions)) {
    const result = new Float64Array(2);
    win.get(result, target, 2);
    assert.ok(result.every(Number.isNaN), `${name}: a get is not poisoned: ${result}`);
    await complete();
    assert.deepEqual([...result], expected, name);
  }
  for (const end of [() => win.unlockAll(), () => win.unlock(target), () => win.unlockSync(target)]) {
    const result = new Float64Array(2);
    win.get(result, target, 2);
    assert.ok(result.every(Number.isNaN));
    await end();
    assert.deepEqual([...result], expected);
    await win.lock(target, Lock.SHARED);
  }
  await win.unlock(target);
  // Another target's flush completes nothing here.
  if (world.size > 1) {
    await win.lockAll();
    const result = new Float64Array(1);
    win.get(result, target, 1);
    await win.flush(world.rank);
    assert.ok(Number.isNaN(result[0]));
    await win.unlockAll();
    assert.equal(result[0], 10 * target + 1);
  }
  await win.free();
}

async function active(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const target = neighbour(world);
  const win = await filled(world);
  const result = new Float64Array(1);
  await win.fence();
  win.get(result, target, 3);
  assert.ok(Number.isNaN(result[0]));
  await win.fence();
  assert.equal(result[0], 10 * target + 3);
  win.get(result, target, 4);
  assert.ok(Number.isNaN(result[0]));
  win.fenceSync(Assert.NO_STORE);
  await win.fence(Assert.NO_SUCCEED);
  assert.equal(result[0], 10 * target + 4);
  await world.barrier();
  win.postSync(world.group.include([(rank - 1 + size) % size]));
  await win.start(world.group.include([target]));
  win.get(result, target, 5);
  assert.ok(Number.isNaN(result[0]));
  await win.complete();
  assert.equal(result[0], 10 * target + 5);
  await win.wait();
  await win.free();
}

/** All calls that have results, of several types and layouts. */
async function results(world: Communicator): Promise<void> {
  const target = neighbour(world);
  const win = await Window.allocate(world, BigInt64Array, 8);
  win.local.set(Array.from({ length: 8 }, (_, i) => BigInt(i + 1)));
  await world.barrier();
  await win.lock(target, Lock.EXCLUSIVE);
  const [one, before, swapped] = [BigInt64Array.of(1n), new BigInt64Array(1), new BigInt64Array(1)];
  const poison = new BigInt64Array(Uint32Array.of(0x7ffdbeef, 0x7ffdbeef).buffer)[0];
  win.fetchAndOp(one, before, target, 0, Op.SUM);
  win.compareAndSwap(BigInt64Array.of(70n), BigInt64Array.of(2n), swapped, target, 1);
  const many = new BigInt64Array(2);
  win.getAccumulate(BigInt64Array.of(5n, 5n), many, target, 2, Op.REPLACE);
  const read = new BigInt64Array(1);
  win.fetchAndOp(null, read, target, 4, Op.NO_OP);
  const words = new Int32Array(4).fill(-1);
  win.get(words, target, 5, {
    origin: { type: Datatype.vector(2, 1, 2, Datatype.INT32), count: 1 },
    target: { type: Datatype.INT32, count: 2 },
  });
  assert.deepEqual([before[0], swapped[0], many[0], many[1], read[0]], Array(5).fill(poison));
  assert.deepEqual([...words], [0x7ffdbeef, -1, 0x7ffdbeef, -1], 'gaps of a layout stay as they are');
  await win.flush(target);
  assert.deepEqual([before[0], swapped[0], many[0], many[1], read[0]], [1n, 2n, 3n, 4n, 5n]);
  assert.deepEqual([...words], [6, -1, 0, -1]);
  const after = new BigInt64Array(4);
  win.get(after, target, 0);
  await win.unlock(target);
  assert.deepEqual([...after], [2n, 70n, 5n, 5n]);
  await world.barrier();
  await win.free();
}

/** A request completes its own operation, and no later one. */
async function requests(world: Communicator): Promise<void> {
  const target = neighbour(world);
  const win = await filled(world);
  await win.lockAll();
  const [first, second, third, fourth] = [1, 2, 3, 4].map(() => new Float64Array(1));
  const one = win.rget(first, target, 1);
  const two = win.rgetAccumulate(null, second, target, 2, Op.NO_OP);
  assert.ok(Number.isNaN(first[0]) && Number.isNaN(second[0]));
  await one.wait();
  assert.equal(first[0], 10 * target + 1);
  assert.ok(Number.isNaN(second[0]), 'a request completed another');
  while (!two.test()) await world.compute(1);
  assert.equal(second[0], 10 * target + 2);
  const both = [win.rget(third, target, 3), win.rget(fourth, target, 4)];
  await Request.waitAll(both);
  assert.deepEqual([third[0], fourth[0]], [10 * target + 3, 10 * target + 4]);
  const batch = win.aggregate(target);
  batch.get(third, 5);
  assert.ok(Number.isNaN(third[0]));
  await batch.wait();
  assert.equal(third[0], 10 * target + 5);
  const value = Float64Array.of(7);
  const put = win.rput(value, target, 7);
  value[0] = 8;
  await assert.rejects(put.wait(), { code: 'ERR_RMA_CONFLICT', message: /the origin of put to rank/ });
  await win.unlockAll();
  await win.free();
}

/** A result that is not there yet is not passed on. */
async function passedOn(world: Communicator): Promise<void> {
  const target = neighbour(world);
  const win = await filled(world, 'mine');
  const other = await filled(world, 'other');
  await win.lockAll();
  await other.lockAll();
  const result = new Float64Array(4);
  win.get(result.subarray(1, 3), target, 2);
  const refused = {
    code: 'ERR_RMA_CONFLICT',
    message: new RegExp(
      `are the result of get to rank ${target} in window mine, ${FILE.source}, which is not complete`,
    ),
  };
  assert.throws(() => other.put(result, target, 0), refused);
  assert.throws(() => other.accumulate(result.subarray(2), target, 0, Op.SUM), refused);
  assert.throws(() => win.get(result, target, 4), refused);
  assert.throws(() => world.send(result, target), refused);
  await assert.rejects(world.allreduce(result, new Float64Array(4), Op.SUM), refused);
  await assert.rejects(world.broadcast(result, 0), refused);
  // What lies beside it may be used.
  other.put(result.subarray(3), target, 0);
  await other.flush(target);
  await win.flush(target);
  other.put(result, target, 0);
  // An origin is no place for a result.
  assert.throws(() => win.get(result, target, 0), {
    code: 'ERR_RMA_CONFLICT',
    message: /are the origin of put to rank \d in window other/,
  });
  await other.unlockAll();
  await win.unlockAll();
  await other.free();
  await win.free();
}

/** Origins that were changed are told by what completes the operation, which is complete all the same. */
async function changedOrigins(world: Communicator): Promise<void> {
  const target = neighbour(world);
  const win = await filled(world, 'mine');
  const origin = Float64Array.of(1, 2, 3);
  const told = (call: string) => ({
    code: 'ERR_RMA_CONFLICT',
    message: new RegExp(
      `the origin of ${call} to rank ${target} in window mine, ${FILE.source} was changed .* \\(element 1\\)`,
    ),
  });
  const change = (call: 'put' | 'accumulate' = 'put'): void => {
    if (call === 'put') win.put(origin, target, 0);
    else win.accumulate(origin, target, 0, Op.SUM);
    origin[1]++;
  };
  await win.lockAll();
  for (const complete of [() => win.flush(target), () => win.flushLocal(target), () => win.flushAll()]) {
    change();
    await assert.rejects(complete(), told('put'));
    await complete();
    await win.flush(target);
  }
  change('accumulate');
  assert.throws(() => win.flushSync(target), told('accumulate'));
  change();
  await assert.rejects(win.unlockAll(), told('put'));
  // The locks were given back.
  await win.lock(target, Lock.EXCLUSIVE);
  change();
  assert.throws(() => win.unlockSync(target), told('put'));
  await win.lock(target, Lock.EXCLUSIVE);
  win.put(origin, target, 0);
  await win.unlock(target);
  origin[1]++;
  await world.barrier();
  await win.fence();
  change();
  await assert.rejects(win.fence(), told('put'));
  win.put(origin, target, 0);
  await win.fence(Assert.NO_SUCCEED);
  await win.free();
}

/**
 * What is local to this rank is done before others may put there: neither delivered nor compared later. Whichever the
 * fence is: a rank that is slow to see that it has passed it finds there what the next epoch has put.
 */
async function nextEpoch(world: Communicator): Promise<void> {
  const byRequests = process.env['ONESIDED_DEBUG']?.includes('requests') === true;
  const fences = ['remote-notify', 'notify-all', 'immediate-optimized', 'immediate-naive', 'deferred'] as const;
  for (const fence of byRequests ? fences : ([...fences, 'immediate'] as const)) {
    const win = await Window.allocate(world, Float64Array, 8, { info: { fence } });
    const { rank, size } = world;
    const [mine, next] = [(rank + size - 1) % size, neighbour(world)];
    for (let round = 1; round <= 60; round++) {
      win.local.fill(0);
      await world.barrier();
      await win.fence();
      // Own memory is the result of one call, and the origin of another.
      win.get(win.local.subarray(0, 1), rank, 4);
      win.put(win.local.subarray(1, 2), next, 5);
      if (rank === round % size) await win.fence();
      else win.fenceSync();
      win.put(Float64Array.of(round, round), next, 0);
      await win.fence();
      assert.deepEqual([...win.local.subarray(0, 2)], [round, round], `${fence}: from rank ${mine}`);
    }
    await win.free();
  }
}

/** The same of a lock that is given back behind the operations. */
async function nextHolder(world: Communicator): Promise<void> {
  for (const lock of ['queue', 'two-sided', 'direct', 'hybrid', 'remote'] as const) {
    if (process.env['ONESIDED_DEBUG']?.includes('requests') !== true && lock === 'remote') continue;
    if (process.env['ONESIDED_DEBUG']?.includes('requests') === true && lock === 'queue') continue;
    const win = await Window.allocate(world, Float64Array, 8, { info: { lock } });
    const { rank, size } = world;
    for (let round = 1; round <= 40; round++) {
      for (const target of [rank, neighbour(world)]) {
        await win.lock(target, Lock.EXCLUSIVE);
        if (target === rank) {
          // Added to before the next one has the lock, or behind him.
          win.get(win.local.subarray(0, 1), rank, 1);
        } else {
          const both = new Float64Array(2);
          win.get(both, target, 0);
          await win.flush(target);
          win.put(
            both.map((value) => value + 1),
            target,
            0,
          );
        }
        await win.unlock(target);
      }
    }
    await world.barrier();
    await win.lock(rank, Lock.SHARED);
    const [first, second] = win.local;
    await win.unlock(rank);
    assert.equal(second, size === 1 ? 0 : 40, lock);
    assert.ok(first === second, `${lock}: ${first} of ${second}`);
    await win.free();
  }
}

await runCases({
  'what is local is done before the next epoch of others': nextEpoch,
  'what is local is done before the next holder of the lock': nextHolder,
  'calls of passive epochs deliver what they complete, and no more': passive,
  'calls of active epochs deliver what they complete': active,
  'results of every call are poisoned until they are there': results,
  'a request delivers its own operation, and no later one': requests,
  'a result that is not there yet is not passed on': passedOn,
  'origins that were changed are told by what completes the operation': changedOrigins,
  'columns are poisoned, and nothing between them': columns,
});
