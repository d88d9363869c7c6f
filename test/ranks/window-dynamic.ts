/**
 * Dynamic windows: memory of all kinds is attached and detached while the window lives, and found by its address.
 *
 * `--seed=N`; `--memory=shared` where there is no addon, and a plain buffer cannot be attached; `--memory=library`
 * where only the library's can be.
 */
import assert from 'node:assert/strict';
import { Assert, type Communicator, Datatype, Lock, Op, Rank, type TypedArray, Window } from 'onesided';
import { argument, caseOf, runCases } from './support/cases.ts';
import { noIndices, noMemories } from './support/hostile.ts';
import { BY_REQUESTS } from './support/provider.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
const kinds = argument('memory') ?? 'any';

/** Memory of a kind, zeroed, with a word of its own before and behind it, and what gives it back. */
function memoryOf(world: Communicator, kind: number, length: number): { memory: Int32Array; free: () => void } {
  const bytes = 4 * length + 16;
  if (kind % 3 === 0 || kinds === 'library') {
    const whole = world.allocMem(Int32Array, length + 4);
    return { memory: whole.subarray(1, length + 1), free: () => world.freeMem(whole) };
  }
  const buffer = kinds === 'any' && kind % 3 === 1 ? new ArrayBuffer(bytes) : new SharedArrayBuffer(bytes);
  return { memory: new Int32Array(buffer, 4, length), free: () => {} };
}

/** A number of each rank. */
async function gather(world: Communicator, mine: number): Promise<Float64Array> {
  const all = new Float64Array(world.size);
  await world.allgather(Float64Array.of(mine), all);
  return all;
}

async function everyCall(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const target = (rank + 1) % size;
  const from = (rank - 1 + size) % size;
  for (let kind = 0; kind < 3; kind++) {
    const win = await Window.createDynamic(world);
    assert.equal(win.flavor, 'dynamic');
    assert.equal(win.dispUnit, 1);
    assert.equal(win.local.length, 0);
    const { memory, free } = memoryOf(world, kind + rank, 1000);
    const addresses = await gather(world, win.attach(memory));
    const there = addresses[target];

    await win.fence();
    win.put(Int32Array.of(rank + 1, rank + 2), target, there + 4);
    win.accumulate(Int32Array.of(10), target, there + 40, Op.SUM);
    await win.fence();
    assert.deepEqual([...memory.subarray(0, 4)], [0, from + 1, from + 2, 0]);
    assert.equal(memory[10], 10);
    const got = new Int32Array(3);
    win.get(got, target, there);
    await win.fence(Assert.NO_SUCCEED);
    assert.deepEqual([...got], [0, rank + 1, rank + 2]);

    await win.lock(target, Lock.EXCLUSIVE);
    const before = new Int32Array(1);
    win.fetchAndOp(Int32Array.of(7), before, target, there + 40, Op.REPLACE);
    await win.flush(target);
    assert.equal(before[0], 10);
    win.compareAndSwap(Int32Array.of(8), Int32Array.of(7), before, target, there + 40);
    await win.flush(target);
    assert.equal(before[0], 7);
    const many = new Int32Array(400).fill(3);
    const old = new Int32Array(400);
    const spread = { type: Datatype.vector(400, 1, 2, Datatype.INT32) };
    win.getAccumulate(many, old, target, there + 400, Op.SUM, { target: spread });
    await win.unlock(target);
    assert.ok(old.every((value) => value === 0));
    await world.barrier();
    assert.equal(memory[10], 8);
    for (let i = 0; i < 400; i++) assert.deepEqual([...memory.subarray(100 + 2 * i, 102 + 2 * i)], [3, 0]);

    await win.lockAll();
    const request = win.rput(Int32Array.of(99), target, there);
    await request.wait();
    await win.flushAll();
    win.put(Int32Array.of(1), Rank.NULL, 0);
    await win.unlockAll();
    await world.barrier();
    assert.equal(memory[0], 99);
    win.detach(memory);
    await win.free();
    free();
  }
}

/**
 * Ranks attach and detach memory of all kinds, in an order of their own; what is attached is found, what was is not.
 */
async function storm(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const random = new Random(seed, rank);
  const win = await Window.createDynamic(world, { name: 'storm' });
  const mine: { memory: Int32Array; free: () => void; address: number }[] = [];
  let gone: number[] = [];
  // Requests take their time, and there are many.
  for (let round = BY_REQUESTS ? 13 : 25; round > 0; round--) {
    for (let changes = random.below(6); changes >= 0; changes--) {
      if (mine.length > 0 && random.chance(0.5)) {
        const [old] = mine.splice(random.below(mine.length), 1);
        win.detach(old.memory);
        gone.push(old.address);
        if (random.chance(0.5)) {
          // The same memory again: whoever still has the old mapping must not use it.
          mine.push({ ...old, address: win.attach(old.memory) });
        } else old.free();
      } else {
        const made = memoryOf(world, random.below(3), random.between(1, 2000));
        mine.push({ ...made, address: win.attach(made.memory) });
      }
    }
    gone = gone.filter((address) =>
      mine.every((m) => address < m.address || address >= m.address + m.memory.byteLength),
    );
    const pick = mine.length > 0 ? random.pick(mine) : undefined;
    if (pick !== undefined) pick.memory.fill(0);
    const addresses = await gather(world, pick?.address ?? 0);
    const lengths = await gather(world, pick?.memory.length ?? 0);
    const olds = await gather(world, gone.at(-1) ?? -1);
    await win.fence();
    for (let target = 0; target < size; target++) {
      if (lengths[target] > 0) {
        win.accumulate(Int32Array.of(rank + 1), target, addresses[target] + 4 * (lengths[target] - 1), Op.SUM);
        assert.throws(() => win.put(new Int32Array(2), target, addresses[target] + 4 * (lengths[target] - 1)), {
          code: 'ERR_RMA_RANGE',
        });
      }
      if (olds[target] >= 0) {
        assert.throws(() => win.put(Uint8Array.of(1), target, olds[target]), {
          code: 'ERR_RMA_RANGE',
          message: /attached/,
        });
      }
    }
    await win.fence(Assert.NO_SUCCEED);
    if (pick !== undefined) assert.equal(pick.memory.at(-1), (size * (size + 1)) / 2);
  }
  await win.free();
  for (const { free } of mine) free();
}

/** The owner changes its table all the time, while the others use what is not changed. */
async function changingTable(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.createDynamic(world);
  const { memory, free } = memoryOf(world, 1, 8);
  const [address] = await gather(world, win.attach(memory));
  const stop = await Window.allocate(world, Int32Array, 1);
  await stop.lockAll();
  // Without locks, so that what is not accessed can be detached.
  await win.lockAll(Assert.NO_CHECK);
  const one = Int32Array.of(1);
  const seen = new Int32Array(1);
  const looks = BY_REQUESTS ? 60 : 300;
  if (rank === 0) {
    // Once at least: the others may be through before this rank has begun.
    do {
      const more = [1, 2, 3].map((i) => memoryOf(world, i, i));
      for (const m of more) win.attach(m.memory);
      for (const m of more) {
        win.detach(m.memory);
        m.free();
      }
    } while (Atomics.load(stop.local, 0) < size - 1);
  } else {
    for (let i = 0; i < looks; i++) {
      win.accumulate(one, 0, address, Op.SUM);
      win.flushSync(0);
      win.get(seen, 0, address);
      win.flushSync(0);
      assert.ok(seen[0] > 0);
    }
    stop.accumulate(one, 0, 0, Op.SUM);
    stop.flushSync(0);
  }
  await win.unlockAll();
  await world.barrier();
  if (rank === 0) assert.equal(memory[0], looks * (size - 1));
  await stop.unlockAll();
  await stop.free();
  await win.free();
  free();
}

/**
 * In one epoch of the others, memory is detached, and attached again, or less of it, or not at all; and they are told
 * of it.
 */
async function again(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.createDynamic(world);
  const [memory, other] = [world.allocMem(Int32Array, 2 * size), world.allocMem(Int32Array, 2 * size)];
  const [there] = await gather(world, win.attach(other));
  await win.lockAll(Assert.NO_CHECK);
  let address = -1;
  for (let round = 1; round <= 24; round++) {
    // All of it, the first half, or nothing; always at the same address.
    const length = [2 * size, size, 0][round % 3];
    const part = memory.subarray(0, length);
    const attached = rank === 0 && length > 0 ? win.attach(part) : 0;
    [address] = await gather(world, attached > 0 ? attached : address);
    win.put(Int32Array.of(round), 0, there + 4 * rank);
    const write = (): void => win.put(Int32Array.of(round), 0, address + 4 * rank);
    if (length > 0) write();
    else assert.throws(write, { code: 'ERR_RMA_RANGE', message: /attached/ });
    const beyond = (): void => win.accumulate(Int32Array.of(round), 0, address + 4 * (size + rank), Op.REPLACE);
    if (length > size) beyond();
    else assert.throws(beyond, { code: 'ERR_RMA_RANGE', message: /attached/ });
    await win.flush(0);
    await world.barrier();
    if (rank === 0) {
      assert.ok(other.subarray(0, size).every((value) => value === round));
      assert.ok(part.every((value) => value === round));
      if (length > 0) win.detach(part);
    }
    // What is issued here was not flushed when the next memory is attached.
    win.put(Int32Array.of(round), 0, there + 4 * (size + rank));
  }
  await win.unlockAll();
  await win.free();
  for (const array of [memory, other]) world.freeMem(array);
}

/**
 * Thousands of regions at each rank, in an order of addresses that has nothing to do with that of the calls. Half of
 * them stay, and the others add to them by lock; the owner takes the rest away and brings it back meanwhile, and
 * whoever holds its lock finds each of these whole, or finds that it is not attached.
 */
async function thousands(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const random = new Random(seed, rank);
  // By requests an access to what is not known takes round trips.
  const count = BY_REQUESTS ? 300 : 3000;
  const rounds = BY_REQUESTS ? 15 : 150;
  const words = 4;
  // Between two regions there are words that belong to none.
  const whole = world.allocMem(Int32Array, 2 * words * count);
  const regions = Array.from({ length: count }, (_, i) => whole.subarray(2 * words * i, 2 * words * i + words));
  const own = Array.from({ length: 20 }, (_, i) => memoryOf(world, i, 5 + i));
  const win = await Window.createDynamic(world);
  const places = new Float64Array(count);
  const order = Array.from({ length: count }, (_, i) => i).sort((a, b) => ((a * 7919) % count) - ((b * 7919) % count));
  for (const i of order) places[i] = win.attach(regions[i]);
  const extra = own.map(({ memory }) => win.attach(memory));
  const all = new Float64Array(size * count);
  await world.allgather(places, all);
  const extras = new Float64Array(size * extra.length);
  await world.allgather(Float64Array.from(extra), extras);

  const added = new Int32Array(size * count);
  const one = Int32Array.of(1);
  const found = new Int32Array(words);
  const attached = new Array<boolean>(count).fill(true);
  /** Odd ones come and go. */
  const odd = (): number => 1 + 2 * random.below(count / 2);
  for (let round = 0; round < rounds; round++) {
    const target = random.below(size);
    await win.lock(target, Lock.SHARED);
    for (let access = 0; access < 10; access++) {
      const i = 2 * random.below(count / 2);
      win.accumulate(one, target, all[target * count + i] + 4 * random.below(words), Op.SUM);
      added[target * count + i]++;
      win.accumulate(one, target, extras[target * extra.length + random.below(extra.length)], Op.SUM);
    }
    const i = odd();
    try {
      win.get(found, target, all[target * count + i]);
      await win.flush(target);
      assert.ok(found.every((value) => value === 0));
    } catch (error) {
      assert.equal((error as { code?: unknown }).code, 'ERR_RMA_RANGE');
      assert.match((error as Error).message, /attached/);
    }
    assert.throws(() => win.put(one, target, all[target * count + i] + 4 * words), { code: 'ERR_RMA_RANGE' });
    await win.unlock(target);
    for (let change = 0; change < 8; change++) {
      const mine = odd();
      try {
        if (attached[mine]) win.detach(regions[mine]);
        else assert.equal(win.attach(regions[mine]), places[mine]);
        attached[mine] = !attached[mine];
      } catch (error) {
        // Somebody holds the lock.
        assert.match((error as Error).message, /holds the lock/);
      }
    }
  }
  await world.barrier();
  const expected = new Int32Array(size * count);
  await world.allreduce(added, expected, Op.SUM);
  for (let i = 0; i < count; i++) {
    const sum = regions[i].reduce((a, b) => a + b, 0);
    assert.equal(sum, expected[rank * count + i], `region ${i}`);
    assert.ok(whole.subarray(2 * words * i + words, 2 * words * (i + 1)).every((value) => value === 0));
  }
  // All go, in another order, and come back.
  for (let i = 0; i < count; i++) if (attached[i]) win.detach(regions[i]);
  await world.barrier();
  await win.lockAll();
  assert.throws(() => win.put(one, (rank + 1) % size, all[((rank + 1) % size) * count]), { code: 'ERR_RMA_RANGE' });
  await win.unlockAll();
  await world.barrier();
  for (let i = 0; i < count; i++) win.attach(regions[i]);
  await world.barrier();
  await win.free();
  world.freeMem(whole);
  for (const { free } of own) free();
}

/** A list whose elements are at all ranks: each is put in front of the one before by a compare-and-swap at rank 0. */
async function linkedList(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.createDynamic(world);
  const each = 20;
  // An element: rank and address of the next one, and a number.
  const elements = Array.from({ length: each }, () => world.allocMem(BigInt64Array, 2));
  const places = elements.map((element) => win.attach(element));
  const head = world.allocMem(BigInt64Array, 1);
  const [at] = await gather(world, win.attach(head));
  const pack = (owner: number, address: number): bigint => (BigInt(address) << 8n) | BigInt(owner + 1);
  await world.barrier();
  await win.lockAll();
  for (const [i, element] of elements.entries()) {
    element[1] = BigInt(rank * each + i);
    const seen = BigInt64Array.of(0n);
    const mine = BigInt64Array.of(pack(rank, places[i]));
    const expected = BigInt64Array.of(0n);
    for (;;) {
      element[0] = expected[0];
      win.sync();
      win.compareAndSwap(mine, expected, seen, 0, at);
      await win.flush(0);
      if (seen[0] === expected[0]) break;
      expected[0] = seen[0];
    }
  }
  await win.unlockAll();
  await world.barrier();
  await win.lockAll();
  const next = new BigInt64Array(2);
  win.get(next.subarray(0, 1), 0, at);
  await win.flush(0);
  const found: number[] = [];
  while (next[0] !== 0n) {
    const owner = Number(next[0] & 255n) - 1;
    win.get(next, owner, Number(next[0] >> 8n));
    await win.flush(owner);
    found.push(Number(next[1]));
  }
  await win.unlockAll();
  assert.deepEqual(
    found.sort((a, b) => a - b),
    Array.from({ length: size * each }, (_, i) => i),
  );
  await win.free();
  for (const element of elements) world.freeMem(element);
  world.freeMem(head);
}

async function refusals(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const attach = { code: 'ERR_RMA_ATTACH' };
  await assert.rejects(Window.createDynamic(world, { dispUnit: 8 }), { code: 'ERR_DISP' });
  if (BY_REQUESTS)
    await assert.rejects(Window.createDynamic(world, { info: { fence: 'immediate' } }), { code: 'ERR_INFO_VALUE' });
  await assert.rejects(Window.createDynamic({} as Communicator), { code: 'ERR_COMM' });
  const fixed = await Window.allocate(world, Int32Array, 4);
  assert.throws(() => fixed.attach(new Int32Array(4)), { code: 'ERR_RMA_FLAVOR' });
  assert.throws(() => fixed.detach(fixed.local), { code: 'ERR_RMA_FLAVOR' });
  await fixed.free();

  const win = Window.createDynamicSync(world);
  for (const [name, value] of noMemories(new Float64Array(2))) {
    assert.throws(() => win.attach(value as TypedArray), { code: 'ERR_BUFFER' }, `attach ${name}`);
    if (!name.startsWith('a detached')) {
      assert.throws(() => win.detach(value as TypedArray), { code: 'ERR_BUFFER' }, `detach ${name}`);
    }
  }
  assert.throws(() => win.attach(new Int32Array(0)), attach);
  const memory = world.allocMem(Int32Array, 16);
  const part = memory.subarray(4, 12);
  const address = win.attach(part);
  assert.ok(Number.isSafeInteger(address) && address > 0);
  for (const again of [part, memory, memory.subarray(11), memory.subarray(4, 5)]) {
    assert.throws(() => win.attach(again), attach);
  }
  for (const other of [memory, memory.subarray(4, 11), new Int32Array(8)]) {
    assert.throws(() => win.detach(other), { ...attach, message: /not attached/ });
  }
  // Neighbours do not overlap.
  const before = win.attach(memory.subarray(0, 4));
  assert.equal(before + 16, address);
  win.detach(memory.subarray(0, 4));
  assert.throws(() => world.freeMem(memory), { code: 'ERR_BUFFER' });

  const addresses = await gather(world, address);
  const target = (rank + 1) % size;
  const there = addresses[target];
  assert.throws(() => win.put(Int32Array.of(1), target, there), { code: 'ERR_RMA_SYNC' });
  await win.fence();
  for (const [name, disp] of noIndices(2 ** 53)) {
    assert.throws(() => win.put(Int32Array.of(1), target, disp as number), Error, name);
  }
  const range = { code: 'ERR_RMA_RANGE', message: new RegExp(`${there} … ${there + 31}`) };
  assert.throws(() => win.put(Int32Array.of(1), target, 0), range);
  assert.throws(() => win.get(new Int32Array(1), target, there + 30), range);
  assert.throws(() => win.accumulate(Int32Array.of(1), target, there - 4, Op.SUM), range);
  assert.throws(() => win.accumulate(Int32Array.of(1), target, there + 2, Op.SUM), { code: 'ERR_DISP' });
  assert.throws(() => win.put(part.subarray(0, 2), rank, address + 4), { code: 'ERR_RMA_CONFLICT' });
  win.put(new Int32Array(0), target, 0);
  await win.fence(Assert.NO_SUCCEED);
  assert.deepEqual([...memory], new Array(16).fill(0));

  // Nobody takes memory away under whoever has come for it alone.
  await win.lock(target, Lock.EXCLUSIVE);
  await world.barrier();
  assert.throws(() => win.detach(part), { ...attach, message: /lock/ });
  await world.barrier();
  await win.unlock(target);
  await world.barrier();
  // All others may have epochs, and access nothing of it.
  const kept = world.allocMem(Int32Array, 4);
  const all = await gather(world, win.attach(kept));
  await win.lockAll();
  await world.barrier();
  win.detach(part);
  assert.throws(() => win.detach(part), attach);
  await world.barrier();
  assert.throws(() => win.put(Int32Array.of(1), target, there), { code: 'ERR_RMA_RANGE' });
  win.put(Int32Array.of(rank + 1), target, all[target]);
  await win.flush(target);
  await world.barrier();
  assert.equal(kept[0], ((rank + size - 1) % size) + 1);
  await win.unlockAll();
  await world.barrier();
  win.detach(kept);
  world.freeMem(kept);
  world.freeMem(memory);
  await win.free();
  assert.throws(() => win.attach(new Int32Array(1)), { code: 'ERR_WIN' });
}

await runCases([
  caseOf('every call reaches attached memory, and none reaches what was detached', everyCall, ['every call']),
  caseOf('ranks attach and detach while others access what stays', storm, ['changes']),
  caseOf('a table that changes between looks is read again', changingTable, ['changes']),
  caseOf('the same memory is attached again', again, ['again']),
  caseOf('thousands of pieces are found', thousands, ['thousands']),
  caseOf('a list is built over attached elements of all ranks', linkedList, ['linked list']),
  caseOf('what is not attached, or attached wrongly, is refused', refusals, ['refusals']),
]);
