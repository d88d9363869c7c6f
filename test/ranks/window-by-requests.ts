/** What is particular to windows whose accumulates and locks are requests: run with ONESIDED_DEBUG=requests. */
import assert from 'node:assert/strict';
import { Assert, type Communicator, Datatype, Lock, Op, type RmaError, Window } from 'onesided';
import { caseOf, runCases } from './support/cases.ts';
import { columns } from './support/columns.ts';
import { NONCONTIGUOUS_NAMES } from './support/kinds.ts';

/** A rank that has begun an accumulate and then waits for others must not keep them from theirs. */
async function barrierBeforeFlush(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Float64Array, 8);
  await win.lockAll();
  for (let round = 0; round < 20; round++) {
    win.accumulate(Float64Array.of(1, 2, 3), 0, 0, Op.SUM);
    if ((rank + round) % 2 === 0) await win.flush(0);
    await world.barrier();
    await win.flushAll();
  }
  await win.unlockAll();
  await world.barrier();
  if (rank === 0) assert.deepEqual([...win.local.subarray(0, 3)], [20 * size, 40 * size, 60 * size]);
  await win.free();
}

/** Nor one that computes. */
async function busyRank(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Int32Array, 4);
  await win.lockAll();
  await world.barrier();
  win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
  if (rank === 0) for (const until = performance.now() + 300; performance.now() < until; );
  else {
    const began = performance.now();
    await win.flush(0, { timeout: 60_000 });
    if (size > 1) assert.ok(performance.now() - began < 60_000);
  }
  await win.flushAll();
  await world.barrier();
  assert.ok(rank !== 0 || win.local[0] === size);
  await win.unlockAll();
  await win.free();
}

/**
 * Accumulates of a rank to one element are carried out in the order of its calls, many at once, whichever way each of
 * them goes, while all others want the same stripes.
 */
async function inOrder(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Float64Array, 1024);
  await win.lockAll();
  await world.barrier();
  // Of those that others have, every second one between two of theirs.
  const mine = 2 * rank;
  const apart = Datatype.vector(2, 1, 2 * size, Datatype.FLOAT64);
  const all = new Float64Array(600);
  for (let round = 0; round < 5; round++) {
    const found: Float64Array[] = [];
    for (let k = 1; k <= 40; k++) {
      if (k % 5 === 0) win.accumulate(Float64Array.of(k, k), 0, mine, Op.REPLACE, { target: { type: apart } });
      else win.accumulate(Float64Array.of(k), 0, mine, Op.REPLACE);
      // Two stripes at once.
      if (k % 13 === 0) win.getAccumulate(all, all, 0, 0, Op.NO_OP);
      const result = new Float64Array(1);
      win.getAccumulate(result, result, 0, mine, Op.NO_OP);
      found.push(result);
    }
    if (round % 3 === 0) await win.flush(0);
    else win.flushSync(0);
    for (const [k, [value]] of found.entries()) assert.equal(value, k + 1);
  }
  await win.unlockAll();
  await win.free();
}

/** A flush that ends early leaves nothing held, and loses nothing. */
async function flushEndsEarly(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Float64Array, 1024);
  await win.lockAll();
  const ones = new Float64Array(1024).fill(1);
  for (let round = 0; round < 30; round++) {
    win.accumulate(ones, 0, 0, Op.SUM);
    try {
      if (round % 2 === 0) win.flushSync(0, { timeout: 0.001 });
      else await win.flush(0, { timeout: 0.001 });
    } catch (error) {
      assert.equal((error as RmaError).code, 'ERR_RMA_TIMEOUT');
    }
    if (round % 10 === 9) await world.barrier();
  }
  await win.flush(0);
  await win.unlockAll();
  await world.barrier();
  if (rank === 0) assert.ok(win.local.every((value) => value === 30 * size));
  await win.free();
}

/**
 * Each kind of element, by several ranks at once, scattered over pages; atomic calls of one type agree with each other.
 */
async function kinds(world: Communicator): Promise<void> {
  const { rank, size } = world;
  for (const Type of [Int8Array, Uint16Array, Int32Array, Float32Array, Float64Array]) {
    const win = await Window.allocate(world, Type as Float64ArrayConstructor, 4096);
    await win.lockAll();
    const place = (i: number): number => (i * 997) % 4096;
    for (let i = 0; i < 20; i++) {
      win.accumulate(Type.of(1) as Float64Array, 0, place(i), Op.SUM);
      const before = new Type(1) as Float64Array;
      win.fetchAndOp(Type.of(1) as Float64Array, before, size - 1, place(i), Op.SUM);
    }
    await win.unlockAll();
    await world.barrier();
    const expected = (rank === 0 ? size : 0) + (rank === size - 1 ? size : 0);
    for (let i = 0; i < 20; i++) assert.equal(win.local[place(i)], expected, Type.name);
    await win.free();
  }
  const wide = await Window.allocate(world, BigUint64Array, 2);
  await wide.lockAll();
  for (let i = 0; i < 20; i++) {
    wide.accumulate(BigUint64Array.of(2n ** 63n + BigInt(i * size + rank)), 0, 0, Op.MAX);
    wide.accumulate(BigUint64Array.of(2n ** 62n), 0, 1, Op.SUM);
  }
  await wide.unlockAll();
  await world.barrier();
  if (rank === 0) {
    assert.deepEqual(
      [...wide.local],
      [2n ** 63n + BigInt(20 * size - 1), BigInt.asUintN(64, 2n ** 62n * BigInt(20 * size))],
    );
  }
  await wide.free();
}

/** Layouts of several pieces, larger than a message and small, in any order of the ranks, both ways at once. */
async function layouts(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const [rows, row] = [600, 48];
  for (const noncontiguous of NONCONTIGUOUS_NAMES) {
    const win = await Window.allocate(world, Float64Array, rows * row, { info: { noncontiguous } });
    const rowsOf16 = Datatype.vector(rows, 16, row, Datatype.FLOAT64);
    const order = Int32Array.from({ length: rows }, (_, i) => row * ((i * 7) % rows));
    const shuffled = Datatype.indexedBlock(16, order, Datatype.FLOAT64);
    const mine = Float64Array.from({ length: rows * 16 }, (_, i) => i + rank / size);
    const next = (rank + 1) % size;
    const before = (rank + size - 1) % size;
    await win.fence();
    win.put(mine, next, 0, { target: { type: rowsOf16 } });
    win.put(mine, next, 16, { target: { type: shuffled } });
    await win.fence();
    for (let i = 0; i < mine.length; i++) {
      const [at, value] = [Math.floor(i / 16), i + before / size];
      const inRow = i % 16;
      assert.equal(win.local[at * row + inRow], value, noncontiguous);
      assert.equal(win.local[order[at] + 16 + inRow], value, noncontiguous);
    }
    await win.lockAll();
    const back = new Float64Array(rows * row);
    win.get(back, next, 0, { origin: { type: shuffled }, target: { type: rowsOf16 } });
    const few = new Float64Array(4);
    win.get(few, next, 0, { target: { type: Datatype.vector(4, 1, row, Datatype.FLOAT64) } });
    await win.flush(next);
    for (let i = 0; i < mine.length; i++) assert.equal(back[order[Math.floor(i / 16)] + (i % 16)], mine[i]);
    assert.deepEqual(
      [...few],
      [0, 1, 2, 3].map((i) => mine[16 * i]),
    );
    win.putNotify(mine, next, 32, { target: { type: rowsOf16 } });
    win.flushSync(next);
    await win.waitNotify();
    assert.equal(win.local[row * (rows - 1) + 47], mine.length - 1 + before / size);
    await win.unlockAll();
    await win.free();
  }
}

/** Nobody can load and store what is on another host; this rank's own part can be. */
async function refusals(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Float64Array, 4);
  assert.equal(win.sharedQuery(rank).length, 4);
  if (size > 1) assert.throws(() => win.sharedQuery((rank + Math.ceil(size / 2)) % size), { code: 'ERR_RMA_SHARED' });
  // A rank alone shares its memory with all that there are.
  if (size > 1) {
    await assert.rejects(Window.allocateShared(world, Float64Array, 4), { code: 'ERR_RMA_SHARED' });
  }
  await assert.rejects(Window.allocate(world, Float64Array, 4, { info: { fence: 'immediate' } }), {
    code: 'ERR_INFO_VALUE',
  });
  await win.lock(0, Lock.EXCLUSIVE);
  win.put(Float64Array.of(rank), 0, 0);
  await win.unlock(0);
  await win.free();
}

/**
 * A neighbour's part is loaded and stored, and atomic access to it goes by the device all the same, so what neighbours
 * and others add to one word is all there. What one has put under a lock, the next one to hold it gets, whichever way
 * each of them goes.
 */
async function bothWays(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, BigInt64Array, size + 4);
  const others = Array.from({ length: size }, (_, other) => other).filter((other) => other !== rank);
  const mapped = others.filter((other) => canQuery(win, other));
  const value = new BigInt64Array(2);
  await win.lockAll();
  for (const target of mapped) {
    // Seen through the mapping at once: a store, no request.
    win.put(BigInt64Array.of(BigInt(rank + 1)), target, rank);
    assert.equal((win.sharedQuery(target) as BigInt64Array)[rank], BigInt(rank + 1));
  }
  await win.unlockAll();
  await world.barrier();
  assert.deepEqual(
    others.filter((other) => win.local[other] === BigInt(other + 1)),
    mapped,
  );
  const ROUNDS = 20;
  for (let round = 0; round < ROUNDS; round++) {
    for (const target of others) {
      await win.lock(target, Lock.SHARED);
      win.fetchAndOp(BigInt64Array.of(1n), value.subarray(0, 1), target, size, Op.SUM);
      win.accumulate(BigInt64Array.of(3n), target, size + 1, Op.BXOR);
      await win.unlock(target);
      await win.lock(target, Lock.EXCLUSIVE);
      win.get(value, target, size + 2);
      await win.flush(target);
      assert.equal(value[0], value[1]);
      win.put(BigInt64Array.of(value[0] + 1n, value[1] + 1n), target, size + 2);
      await win.unlock(target);
    }
  }
  await world.barrier();
  await win.lock(rank, Lock.SHARED);
  const all = BigInt(ROUNDS * others.length);
  assert.deepEqual([...win.local.subarray(size)], [all, 0n, all, all]);
  await win.unlock(rank);
  await win.free();
}

function canQuery(win: Window, rank: number): boolean {
  try {
    win.sharedQuery(rank);
    return true;
  } catch (error) {
    assert.equal((error as RmaError).code, 'ERR_RMA_SHARED');
    return false;
  }
}

/**
 * More is attached than the first tables have room for, while others look for it; detached and attached in turns, in
 * any order.
 */
async function growingTable(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.createDynamic(world);
  const each = 450;
  const memory = world.allocMem(Int32Array, 4 * each);
  const piece = (i: number): Int32Array => memory.subarray(4 * i, 4 * i + 3);
  await win.lockAll(Assert.NO_CHECK);
  const target = (rank + 1) % size;
  const bases = new Float64Array(size);
  await world.allgather(Float64Array.of(win.attach(piece(0))), bases);
  const at = (i: number): number => bases[target] + 16 * i;
  for (let i = 1; i < each; i++) {
    win.attach(piece(i));
    if (i % 50 === 0) win.fetchAndOp(Int32Array.of(1), new Int32Array(1), target, at(0), Op.SUM);
    if (i % 100 === 0) await win.flush(target);
  }
  await world.barrier();
  for (let i = 1; i < each; i++) win.put(Int32Array.of(i, rank), target, at(i) + 4);
  assert.throws(() => win.put(new Int32Array(4), target, at(1)), { code: 'ERR_RMA_RANGE', message: /and 442 more/ });
  await win.flush(target);
  await world.barrier();
  const from = (rank + size - 1) % size;
  for (let i = 1; i < each; i++) assert.deepEqual([...piece(i)], [0, i, from]);
  assert.equal(memory[0], Math.floor((each - 1) / 50));
  await world.barrier();
  for (let i = 1; i < each; i += 2) win.detach(piece(i));
  await world.barrier();
  for (let i = 1; i < each; i++) {
    const access = (): void => win.accumulate(Int32Array.of(0), target, at(i), Op.SUM);
    if (i % 2 === 1) assert.throws(access, { code: 'ERR_RMA_RANGE' });
    else if (i % 100 === 0) access();
  }
  await win.unlockAll();
  await world.barrier();
  for (let i = 1; i < each; i += 2) win.attach(piece(i));
  await world.barrier();
  await win.lockAll();
  const got = new Int32Array(2);
  win.get(got, target, at(1) + 4);
  await win.unlockAll();
  assert.deepEqual([...got], [1, rank]);
  await win.free();
  world.freeMem(memory);
}

/** Windows come and go, and leave nothing on the device. */
async function many(world: Communicator): Promise<void> {
  for (let i = 0; i < 60; i++) {
    const win = await Window.allocate(world, Float64Array, 10);
    await win.fence();
    win.put(Float64Array.of(i), (world.rank + 1) % world.size, 3);
    win.accumulate(Float64Array.of(i), (world.rank + 1) % world.size, 4, Op.SUM);
    await win.fence();
    assert.deepEqual([win.local[3], win.local[4]], [i, i]);
    await win.free();
  }
}

/**
 * After a fence, everybody sees what everybody has put: the target in its memory, and a third rank that gets it. Ranks
 * come to the fences at different times, and a rank that puts in the next epoch does not let others out of this one too
 * early.
 */
async function fences(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Float64Array, 4096);
  const much = new Float64Array(2048);
  const got = new Float64Array(1);
  let from = 0;
  win.fenceSync();
  for (let round = 1; round <= 60; round++) {
    const [next, far] = [(rank + 1) % size, (rank + 2) % size];
    win.put(much.fill(1000 * round + rank), next, 2048);
    win.put(Float64Array.of(1000 * round + rank), far, rank);
    if ((round + rank) % 3 === 0) for (const until = performance.now() + 0.2; performance.now() < until; );
    win.fenceSync();
    const before = (rank + size - 1) % size;
    assert.ok(win.local.subarray(2048).every((value) => value === 1000 * round + before));
    // What the rank before this one has put to the one after this one.
    from = (rank + size - 1) % size;
    win.get(got, (from + 2) % size, from);
    if (round % 2 === 0) await win.fence();
    else win.fenceSync();
    assert.equal(got[0], 1000 * round + from);
  }
  await win.free();
}

/** A fence that ends early goes on when it is called again. */
async function fencesEndEarly(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Int32Array, size);
  await win.fence();
  for (let round = 1; round <= 20; round++) {
    win.put(Int32Array.of(round), (rank + round) % size, rank);
    if (rank === round % size) for (const until = performance.now() + 3; performance.now() < until; );
    for (;;) {
      try {
        if (round % 2 === 0) win.fenceSync(0, { timeout: 0.01 });
        else await win.fence(0, { timeout: 0.01 });
        break;
      } catch (error) {
        assert.equal((error as RmaError).code, 'ERR_RMA_TIMEOUT');
      }
    }
    assert.equal(win.local[(rank + size * round - round) % size], round);
    await win.fence();
  }
  await win.free();
}

/** More bytes than some devices' messages carry (8 MiB). */
async function large(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const elements = 2 ** 20 + 2 ** 18 + 3;
  const win = await Window.allocate(world, Float64Array, elements);
  const next = (rank + 1) % size;
  await win.fence();
  win.put(
    Float64Array.from({ length: elements }, (_, i) => i + rank),
    next,
    0,
  );
  await win.fence();
  const from = (rank + size - 1) % size;
  assert.ok(win.local.every((value, i) => value === i + from));
  await win.lockAll();
  const got = new Float64Array(elements);
  win.get(got, next, 0);
  await win.flush(next);
  assert.ok(got.every((value, i) => value === i + rank));
  await world.barrier();
  win.accumulate(new Float64Array(elements).fill(1), next, 0, Op.SUM);
  await win.unlockAll();
  await world.barrier();
  assert.ok(win.local.every((value, i) => value === i + from + 1));
  await win.free();
}

/**
 * One update under a stripe is made, though others take the stripe again and again: in the blocking form and in the
 * other.
 */
async function oneAmongMany(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Int32Array, 2);
  const found = new Int32Array(1);
  await win.lockAll();
  for (let round = 1; round <= 6; round++) {
    await world.barrier();
    if (rank === 0) {
      // The others have begun.
      for (const until = performance.now() + 5; performance.now() < until; );
      win.fetchAndOp(Int32Array.of(1), found, size - 1, 0, Op.SUM);
      if (round % 2 === 0) await win.flush(size - 1);
      else win.flushSync(size - 1);
      assert.equal(found[0], round - 1);
    } else {
      do {
        win.compareAndSwap(Int32Array.of(rank), Int32Array.of(-rank), found, size - 1, 1);
        if (round % 3 === 0) await win.flush(size - 1);
        else win.flushSync(size - 1);
        win.get(found, size - 1, 0);
        win.flushSync(size - 1);
      } while (found[0] < round);
    }
  }
  await win.unlockAll();
  await world.barrier();
  await win.free();
}

await runCases([
  caseOf('a rank that waits in a barrier keeps nobody from the stripe it has asked for', barrierBeforeFlush, [
    'updates',
  ]),
  caseOf('nor does a rank that computes', busyRank, ['updates']),
  caseOf('accumulates of a rank to an element keep their order', inOrder, ['updates']),
  caseOf('a flush that ends early holds nothing and loses nothing', flushEndsEarly, ['flushes']),
  caseOf('updates of every type by several ranks agree with each other', kinds, ['updates']),
  caseOf('memory on another host cannot be loaded and stored, the own part can', refusals, ['refusals']),
  caseOf('what neighbours and others add to one word is all there', bothWays, ['neighbours']),
  caseOf('tables of attached memory grow while others read them', growingTable, ['attaching']),
  caseOf('windows that come and go leave nothing on the device', many, ['making']),
  caseOf('after a fence everybody sees what everybody has put', fences, ['fences']),
  caseOf('a fence that ends early goes on when it is called again', fencesEndEarly, ['fences']),
  caseOf('more bytes move than a message carries', large, ['large']),
  caseOf('layouts of several pieces move both ways at once', layouts, ['layouts']),
  caseOf('columns move by every way for layouts', columns, ['layouts']),
  caseOf('one update is made though others take its stripe again and again', oneAmongMany, ['updates']),
]);
