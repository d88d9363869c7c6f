/**
 * Windows over memory that is not the library's: plain buffers, `Buffer`s, views that begin anywhere, shared buffers,
 * and some of each. The ranks reach it while its owner does something else.
 *
 * `--seed=N`; `--large=yes` for buffers so large that their pages can be remapped, with `--remapped=no` if they are
 * not; `--plain=no` where there is no addon, and only shared buffers can be reached.
 */
import assert from 'node:assert/strict';
import { Assert, type Communicator, Datatype, Lock, Op, type TypedArray, Window, type WindowInfo } from 'onesided';
import { argument, each, runCases } from './support/cases.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
/** Without the addon, threads can only share what is shared already. */
const plain = argument('plain') !== 'no';
/** Whoever starts this has told the allocator that such pieces are to have pages of their own. */
const LARGE = 1024 * 1024;
const large = argument('large') === 'yes';
const remaps = large && argument('remapped') !== 'no';
const byRequests = process.env['ONESIDED_DEBUG']?.includes('requests') === true;
const INFOS: readonly WindowInfo[] = [{ fence: byRequests ? 'notify-all' : 'immediate' }, { fence: 'remote-notify' }];

/** Four pages of 64 KiB. */
function webAssemblyMemory(bytes = 0): ArrayBuffer {
  const { Memory } = (
    globalThis as unknown as { WebAssembly: { Memory: new (size: object) => { buffer: ArrayBuffer } } }
  ).WebAssembly;
  const pages = Math.max(4, Math.ceil(bytes / 65_536));
  return new Memory({ initial: pages, maximum: pages }).buffer;
}

function plainBuffer(bytes: number): ArrayBuffer {
  return new ArrayBuffer(large ? Math.max(bytes, LARGE) : bytes);
}

/** Bytes in memory of all kinds: which one is up to `choice`. */
function someBytes(choice: number, bytes: number, offset: number): Uint8Array {
  if (!plain) return new Uint8Array(new SharedArrayBuffer(bytes + offset), offset, bytes);
  switch (choice % 4) {
    case 0:
      return new Uint8Array(plainBuffer(bytes + offset), offset, bytes);
    case 1:
      // Small ones are pieces of Node's pool, at any offset.
      Buffer.allocUnsafe(1 + offset);
      return Buffer.allocUnsafe(bytes).fill(0);
    case 2:
      return new Uint8Array(new SharedArrayBuffer(bytes + offset), offset, bytes);
    default:
      return new Uint8Array(webAssemblyMemory(bytes + offset), offset, bytes);
  }
}

/**
 * Every rank puts odd pieces at odd places of everybody's memory, each into a share of its own; a model knows what must
 * be there.
 */
async function oddPieces(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  for (let round = 0; round < 6; round++) {
    const random = new Random(seed, rank, round);
    const share = new Random(seed, round).between(50, round === 0 ? 70_000 : 3000);
    const mine = someBytes(rank + round, share * size, random.below(16));
    const win = await Window.create(world, mine, { info });
    assert.equal(win.flavor, 'create');
    const model = Array.from({ length: size }, () => new Uint8Array(share));
    await win.lockAll();
    for (let call = 0; call < 40; call++) {
      const target = random.below(size);
      const at = random.below(share);
      const length = random.between(0, Math.min(share - at, random.chance(0.2) ? share : 40));
      const origin = new Uint8Array(length + 5).subarray(random.below(6)).subarray(0, length);
      for (let i = 0; i < length; i++) origin[i] = random.below(256);
      if (random.chance(0.5)) {
        win.put(origin, target, rank * share + at);
        await win.flush(target);
        model[target].set(origin, at);
      } else {
        win.get(origin, target, rank * share + at);
        win.flushSync(target);
        assert.deepEqual(origin, model[target].subarray(at, at + length));
      }
    }
    await win.unlockAll();
    await win.fence();
    const all = Array.from({ length: size }, () => new Uint8Array(share));
    for (const [target, got] of all.entries()) win.get(got, target, rank * share);
    await win.fence(Assert.NO_SUCCEED);
    assert.deepEqual(all, model);
    await win.free();
  }
}

/** Scattered at both ends, with more pieces than go into one call or request. */
async function layouts(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const n = 700;
  const local = typed(Float64Array, 3 * n, 8);
  const win = await Window.create(world, local, { info });
  const target = (rank + 1) % size;
  const origin = Float64Array.from({ length: 2 * n }, (_, i) => 10_000 * rank + i);
  const everyOther = { type: Datatype.vector(n, 1, 2, Datatype.FLOAT64) };
  const everyThird = { type: Datatype.vector(n, 1, 3, Datatype.FLOAT64) };
  await win.fence();
  win.put(origin, target, 1, { origin: everyOther, target: everyThird });
  await win.fence();
  const from = (rank - 1 + size) % size;
  for (let i = 0; i < n; i++) {
    assert.deepEqual([...local.subarray(3 * i, 3 * i + 3)], [0, 10_000 * from + 2 * i, 0]);
  }
  const back = new Float64Array(2 * n);
  win.get(back, target, 1, { origin: everyOther, target: everyThird });
  await win.fence();
  assert.deepEqual(
    back,
    origin.map((value, i) => (i % 2 === 0 ? value : 0)),
  );
  const before = new Float64Array(n);
  win.getAccumulate(origin, before, target, 1, Op.SUM, { origin: everyOther, target: everyThird });
  await win.fence(Assert.NO_SUCCEED);
  assert.deepEqual(
    before,
    Float64Array.from({ length: n }, (_, i) => 10_000 * rank + 2 * i),
  );
  for (let i = 0; i < n; i++) assert.equal(local[3 * i + 1], 2 * (10_000 * from + 2 * i));
  await win.free();
}

/** Elements in memory that begins `offset` bytes into its buffer. */
function typed<T extends TypedArray>(
  type: new (buffer: ArrayBufferLike, at?: number, length?: number) => T,
  length: number,
  offset = 0,
): T {
  const bytes = offset + 8 * length;
  return new type(plain ? plainBuffer(bytes) : new SharedArrayBuffer(bytes), offset, length);
}

const TYPES = [
  Int8Array,
  Uint8Array,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  BigInt64Array,
  BigUint64Array,
  Float32Array,
  Float64Array,
] as const;

/** All ranks, the owner among them, add to the same elements of every type, one and many at a time: nothing is lost. */
async function sums(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const n = 2100;
  for (const type of TYPES) {
    const size8 = type.BYTES_PER_ELEMENT;
    const local = typed(type as typeof Float64Array, n, size8);
    const win: Window = await Window.create(world, local, { info });
    const big = size8 === 8 && type !== (Float64Array as unknown);
    const one = new type(n);
    (one as Float64Array).fill((big ? 1n : 1) as number);
    const rounds = 3;
    await win.lockAll();
    for (let i = 0; i < rounds; i++) {
      for (let k = 1; k <= size; k++) {
        const target = (rank + k) % size;
        win.accumulate(one, target, 0, Op.SUM);
        for (let single = 0; single < 5; single++) win.accumulate(one.subarray(0, 1), target, 7, Op.SUM);
      }
    }
    await win.unlockAll();
    await world.barrier();
    for (let i = 0; i < n; i++) assert.equal(Number(local[i]), rounds * size * (i === 7 ? 6 : 1), `${type.name} ${i}`);
    await win.free();
  }
}

/** What one fetches, no other does. */
async function tickets(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const local = typed(BigInt64Array, 2, 8);
  const win = await Window.create(world, local, { info });
  const rounds = 100;
  const one = BigInt64Array.of(1n);
  const got = new BigInt64Array(1);
  const expected = new BigInt64Array(1);
  const next = new BigInt64Array(1);
  const seen = new Float64Array(size * rounds);
  await win.lockAll();
  for (let i = 0; i < rounds; i++) {
    win.fetchAndOp(one, got, 0, 0, Op.SUM);
    win.flushSync(0);
    seen[Number(got[0])]++;
    // The same counter by hand.
    for (;;) {
      win.compareAndSwap(next, expected, got, 0, 1);
      win.flushSync(0);
      if (got[0] === expected[0]) break;
      expected[0] = got[0];
      next[0] = got[0] + 1n;
    }
    expected[0] = next[0];
    next[0] = expected[0] + 1n;
  }
  await win.unlockAll();
  await world.barrier();
  if (rank === 0) assert.equal(local[0], BigInt(size * rounds));
  // Whoever found 0 has put 0 in its place, once: so each rank's first success may have added nothing.
  if (rank === 0) assert.ok(local[1] > BigInt(size * (rounds - 1)) - 1n && local[1] <= BigInt(size * rounds));
  const all = new Float64Array(seen.length);
  await world.allreduce(seen, all, Op.SUM);
  assert.deepEqual(all, new Float64Array(seen.length).fill(1));
  await win.free();
}

/** The owner computes, without a call to the library, until what the others do has arrived. */
async function busyOwner(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const local = typed(Int32Array, 4, 4);
  const win = await Window.create(world, local, { info });
  await world.barrier();
  if (rank === 0) {
    const deadline = performance.now() + 60_000;
    const done = (): boolean =>
      Atomics.load(local, 0) === 5 * (size - 1) && (size === 1 || Atomics.load(local, 1) === 4711);
    while (!done()) assert.ok(performance.now() < deadline, `nothing came: ${local}`);
  } else {
    await win.lock(0, Lock.SHARED);
    for (let i = 0; i < 5; i++) win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
    if (rank === 1) win.put(Int32Array.of(4711), 0, 1);
    await win.unlock(0);
  }
  await win.free();
}

/** Reads and writes without atomics are safe under an exclusive lock. */
async function locked(world: Communicator, info: WindowInfo): Promise<void> {
  const { size } = world;
  const local = typed(Float64Array, 1, 8);
  const win = await Window.create(world, local, { info });
  const value = new Float64Array(1);
  for (let i = 0; i < 30; i++) {
    for (let target = 0; target < size; target++) {
      await win.lock(target, Lock.EXCLUSIVE);
      win.get(value, target, 0);
      win.flushSync(target);
      value[0]++;
      win.put(value, target, 0);
      await win.unlock(target);
    }
  }
  await world.barrier();
  assert.equal(local[0], 30 * size);
  await win.free();
}

/** Some ranks bring memory from the library, some their own, some nothing. */
async function mixed(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const bytes = (r: number): number => (r % 3 === 2 ? 0 : 64);
  const local =
    rank % 3 === 0
      ? world.allocMem(Uint8Array, 64 + 3).subarray(3)
      : rank % 3 === 1
        ? typed(Uint8Array, 64, 5)
        : new Uint8Array(0);
  const win = await Window.create(world, local, { info });
  await win.fence();
  for (let target = 0; target < size; target++) {
    if (bytes(target) > 0) win.put(Uint8Array.of(rank + 1), target, rank);
    else assert.throws(() => win.put(Uint8Array.of(1), target, 0), { code: 'ERR_RMA_RANGE' });
  }
  await win.fence();
  if (local.length > 0) {
    assert.deepEqual(
      [...local.subarray(0, size)],
      Array.from({ length: size }, (_, r) => r + 1),
    );
  }
  await win.fence(Assert.NO_SUCCEED);
  await win.free();
}

/** Two windows over the same memory; windows made and freed again and again. */
async function overlapping(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const local = typed(Int32Array, 8, 4);
  const target = (rank + 1) % size;
  for (let i = 0; i < 10; i++) {
    const one = await Window.create(world, local, { info });
    const two = await Window.create(world, local.subarray(2), { info });
    await one.lock(target, Lock.SHARED);
    one.accumulate(Int32Array.of(1), target, 3, Op.SUM);
    await one.unlock(target);
    await two.lock(target, Lock.SHARED);
    two.accumulate(Int32Array.of(1), target, 1, Op.SUM);
    await two.unlock(target);
    await one.free();
    await two.lock(target, Lock.SHARED);
    two.put(Int32Array.of(i), target, 0);
    await two.unlock(target);
    await two.free();
    assert.deepEqual([...local], [0, 0, i, 2 * i + 2, 0, 0, 0, 0]);
  }
}

/** Memory whose buffer is transferred stays what the others see; the owner's own calls are refused. */
async function detached(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  if (!plain) return;
  const local = new Float64Array(plainBuffer(800_000), 0, 100_000).fill(rank);
  const win = await Window.create(world, local, { info });
  await world.barrier();
  structuredClone(local.buffer, { transfer: [local.buffer] });
  assert.equal(win.local.length, 0);
  await world.barrier();
  const target = (rank + 1) % size;
  const got = new Float64Array(100_000);
  await win.lockAll();
  if (target !== rank) {
    win.get(got, target, 0);
    await win.flush(target);
    assert.ok(got.every((value) => value === target));
    win.accumulate(Float64Array.of(1), target, 99_999, Op.SUM);
    await win.flush(target);
    win.get(got, target, 0);
    await win.flush(target);
    assert.equal(got[99_999], target + 1);
  }
  if (info.fence === 'immediate') {
    assert.throws(() => win.get(got, rank, 0), { code: 'ERR_BUFFER', message: /detached/ });
    assert.throws(() => win.put(Float64Array.of(1), rank, 0), { code: 'ERR_BUFFER', message: /detached/ });
    assert.throws(() => win.accumulate(Float64Array.of(1), rank, 0, Op.SUM), { code: 'ERR_BUFFER' });
  }
  await win.unlockAll();
  await win.free();
}

/**
 * Others load and store what is remapped; when the window is gone, its owner has it for itself, with what they have
 * stored.
 */
async function remapped(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  if (!remaps || size === 1 || info.fence !== 'immediate') return;
  const before = Float64Array.from({ length: 1000 }, (_, i) => 1000 * rank + i);
  const local = new Float64Array(plainBuffer(LARGE));
  local.set(before, 3);
  const target = (rank + 1) % size;
  for (let round = 1; round < 4; round++) {
    const win = await Window.create(world, local, { info });
    // It is remapped already, so a small part of it is, too.
    const other = await Window.create(world, local.subarray(3, 1003), { info });
    const part = win.sharedQuery(target);
    assert.equal(part.length, local.length);
    // Nothing that is not the window's.
    assert.equal(part.buffer.byteLength, LARGE);
    assert.equal(part[3], 1000 * target + round - 1);
    await world.barrier();
    part[3]++;
    await win.fence();
    assert.equal(local[3], 1000 * rank + round);
    await win.fence(Assert.NO_SUCCEED);
    await win.free();
    await other.fence();
    other.put(Float64Array.of(round), target, 999);
    await other.fence(Assert.NO_SUCCEED);
    await other.free();
    assert.equal(local[1002], round);
    await world.barrier();
  }
  assert.deepEqual(local.subarray(4, 1002), before.subarray(1, 999));
  // Of a little of it no copies are made.
  const little = await Window.create(world, local.subarray(0, 1000), { info });
  assert.throws(() => little.sharedQuery(target), { code: 'ERR_RMA_SHARED' });
  await little.free();
  await attached(world, local);
}

/** The same for memory that is attached. */
async function attached(world: Communicator, local: Float64Array): Promise<void> {
  const { rank, size } = world;
  const target = (rank + 1) % size;
  const win = await Window.createDynamic(world);
  for (let round = 0; round < 3; round++) {
    local.fill(rank);
    const addresses = new Float64Array(size);
    await world.allgather(Float64Array.of(win.attach(local)), addresses);
    await win.lockAll();
    for (let i = 0; i < 10; i++) win.accumulate(Float64Array.of(1), target, addresses[target] + 8 * 5000, Op.SUM);
    win.put(Float64Array.of(-1), target, addresses[target]);
    const got = new Float64Array(2);
    win.get(got, target, addresses[target] + LARGE - 16);
    await win.unlockAll();
    assert.deepEqual([...got], [target, target]);
    await world.barrier();
    win.detach(local);
    assert.deepEqual([local[0], local[5000], local[5001]], [-1, rank + 10, rank]);
    await world.barrier();
  }
  await win.free();
}

async function refusals(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const unaligned = new Uint8Array(plainBuffer(32), 1, 24);
  const local = plain ? unaligned : typed(Uint8Array, 24, 1);
  const win = await Window.create(world, local, { info, dispUnit: 1 });
  const target = (rank + 1) % size;
  const refused = (code: string, body: () => void): void => assert.throws(body, { code });
  await win.fence();
  refused('ERR_DISP', () => win.accumulate(Float64Array.of(1), target, 0, Op.SUM));
  refused('ERR_DISP', () => win.fetchAndOp(Int32Array.of(1), new Int32Array(1), target, 4, Op.SUM));
  refused('ERR_DISP', () => win.compareAndSwap(Int16Array.of(1), Int16Array.of(1), new Int16Array(1), target, 2));
  refused('ERR_RMA_RANGE', () => win.put(new Uint8Array(2), target, local.length - 1));
  refused('ERR_RMA_RANGE', () => win.get(new Uint8Array(1), target, local.length));
  refused('ERR_OP', () => win.accumulate(Uint8Array.of(1), target, 0, 'SUM' as never));
  if (plain && !remaps && target !== rank) refused('ERR_RMA_SHARED', () => win.sharedQuery(target));
  win.accumulate(Float64Array.of(1.5), target, 7, Op.SUM);
  win.put(Float64Array.of(2.5), target, 16 - 1);
  await win.fence(Assert.NO_SUCCEED);
  const view = new DataView(local.buffer, local.byteOffset);
  assert.equal(view.getFloat64(7, true), 1.5);
  assert.equal(view.getFloat64(15, true), 2.5);
  await win.free();
  const resizable = new (ArrayBuffer as unknown as new (bytes: number, options: object) => ArrayBuffer)(8, {
    maxByteLength: 16,
  });
  await assert.rejects(Window.create(world, new Uint8Array(resizable), { info }), {
    code: 'ERR_BUFFER',
    message: /resizable/,
  });
  if (!plain && size > 1) {
    await assert.rejects(Window.create(world, new Uint8Array(8), { info }), {
      code: 'ERR_BUFFER',
      message: /SharedArrayBuffer/,
    });
  }
}

await runCases([
  ...each(INFOS, 'odd pieces arrive at odd places', oddPieces),
  ...each(INFOS, 'layouts of many pieces are scattered at both ends', layouts),
  ...each(INFOS, 'of sums of every type nothing is lost', sums),
  ...each(INFOS, 'each ticket is had once', tickets),
  ...each(INFOS, 'operations arrive while the owner computes', busyOwner),
  ...each(INFOS, 'reads and writes under an exclusive lock are exact', locked),
  ...each(INFOS, 'some parts are of the library, some are not, some are empty', mixed),
  ...each(INFOS, 'two windows may be over one memory', overlapping),
  ...each(INFOS, 'memory whose buffer is transferred stays what others see', detached),
  ...each(INFOS, 'what was remapped is its owner’s when the window is gone', remapped),
  ...each(INFOS, 'memory that others cannot reach is refused', refusals),
]);
