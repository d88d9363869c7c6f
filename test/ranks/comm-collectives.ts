/**
 * Collectives and messages against what they mean, for numbers of ranks that are no powers of two, from no elements to
 * more than any buffer on the way holds; in both forms, one after the other, several at once, and mixed with each
 * other.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Communicator, Lock, Op, Rank, type TypedArray, Window } from 'onesided';
import { argument, runCases } from './support/cases.ts';
import { contribution as contributionOf, tryCollectives, within } from './support/collective-model.ts';
import {
  assertRefused,
  assertRejected,
  detached,
  type Hostile,
  noBuffers,
  noGroups,
  noIndices,
  noLists,
  noOps,
  noOptions,
} from './support/hostile.ts';
import {
  BASE_TYPES,
  type BaseType,
  combined,
  firstDifference,
  isAllowed,
  OPS,
  setValue,
  valueAt,
} from './support/model.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
const LENGTHS = [0, 1, 5, 200, 9001];
const REDUCTIONS = OPS.filter((op) => op !== Op.REPLACE && op !== Op.NO_OP);

// biome-ignore lint/suspicious/noExplicitAny: wrong types are part of this
type Any = any;

let calls = 0;

/** Calls the promise form or the Sync form, in turns. */
async function call(comm: Communicator, name: string, ...args: unknown[]): Promise<unknown> {
  return ++calls % 2 === 0 ? (comm as Any)[`${name}Sync`](...args) : await (comm as Any)[name](...args);
}

const contribution = (base: BaseType, length: number, rank: number, salt: number): TypedArray =>
  contributionOf(seed, base, length, rank, salt);

function same(found: TypedArray, expected: TypedArray, label: string): void {
  const at = firstDifference(found, expected);
  assert.equal(at, -1, `${label} (seed ${seed}): element ${at} is ${found[at]}, not ${expected[at]}`);
}

function reduced(base: BaseType, op: Op, length: number, size: number, salt: number): TypedArray {
  const result = contribution(base, length, 0, salt);
  for (let rank = 1; rank < size; rank++) {
    const theirs = contribution(base, length, rank, salt);
    for (let i = 0; i < length; i++) setValue(result, i, combined(base, op, valueAt(result, i), valueAt(theirs, i)));
  }
  return result;
}

async function broadcasts(world: Communicator): Promise<void> {
  const { rank, size } = world;
  for (const length of LENGTHS) {
    for (let root = 0; root < size; root++) {
      const base = BASE_TYPES[(length + root) % BASE_TYPES.length];
      const { array, guards } = within(base, length);
      const expected = contribution(base, length, root, length);
      if (rank === root) (array as Any).set(expected);
      await call(world, 'broadcast', array, root);
      same(array, expected, `broadcast of ${length} ${base.name} from rank ${root}`);
      assert.ok(guards(), 'bytes beside the buffer were written');
    }
  }
}

async function allreduces(world: Communicator): Promise<void> {
  const { rank, size } = world;
  let salt = 0;
  for (const base of BASE_TYPES) {
    for (const op of REDUCTIONS) {
      const length = LENGTHS[salt++ % 4];
      if (!isAllowed(op, base)) continue;
      const send = contribution(base, length, rank, salt);
      const before = send.slice();
      const { array, guards } = within(base, length);
      await call(world, 'allreduce', send, array, op);
      same(array, reduced(base, op, length, size, salt), `allreduce ${op} of ${length} ${base.name}`);
      same(send, before, 'send');
      assert.ok(guards());
    }
  }
  // More than fits into one message, and bytes that saturate when they are stored: sums wrap all the same.
  const long = contribution(BASE_TYPES[9], 9001, rank, 7);
  const sum = new Float64Array(9001);
  await world.allreduce(long, sum, Op.SUM);
  same(sum, reduced(BASE_TYPES[9], Op.SUM, 9001, size, 7), 'allreduce of 9001 FLOAT64');
  const clamped = new Uint8ClampedArray(2);
  await world.allreduce(Uint8ClampedArray.of(200, rank), clamped, Op.SUM);
  assert.deepEqual([...clamped], [(200 * size) % 256, ((size * (size - 1)) / 2) % 256]);
  // Sums that are rounded come out the same everywhere, bit for bit.
  const random = new Random(seed, rank);
  const rounded = new Float64Array(200);
  await world.allreduce(
    Float64Array.from({ length: 200 }, () => random.bits() / 3e9 - 0.7),
    rounded,
    Op.SUM,
  );
  const all = new Float64Array(200 * size);
  await world.allgather(rounded, all);
  for (let other = 0; other < size; other++)
    same(all.subarray(200 * other, 200 * (other + 1)), rounded, 'rounded sums');
  for (const op of [Op.REPLACE, Op.NO_OP]) {
    await assertRejected('allreduce', `${op}`, () => world.allreduce(new Int8Array(1), new Int8Array(1), op));
  }
}

async function reduceScatters(world: Communicator): Promise<void> {
  const { rank, size } = world;
  let salt = 1000;
  for (const op of REDUCTIONS) {
    for (const [i, base] of BASE_TYPES.entries()) {
      salt++;
      if (!isAllowed(op, base)) continue;
      const random = new Random(seed, salt);
      const even = random.chance(0.3);
      const counts = Array.from({ length: size }, () => (even ? 4 : random.pick([0, 1, 3, 50])));
      if (i === 9) counts[size - 1] = 9001;
      const length = counts.reduce((sum, count) => sum + count, 0);
      const send = contribution(base, length, rank, salt);
      const start = counts.slice(0, rank).reduce((sum, count) => sum + count, 0);
      const { array, guards } = within(base, counts[rank]);
      await call(world, 'reduceScatter', send, array, op, even && i !== 9 ? undefined : counts);
      const expected = reduced(base, op, length, size, salt).slice(start, start + counts[rank]);
      same(array, expected as TypedArray, `reduceScatter ${op} of ${base.name} by ${counts}`);
      assert.ok(guards());
    }
  }
}

async function gathers(world: Communicator): Promise<void> {
  const { rank, size } = world;
  for (const length of LENGTHS) {
    const base = BASE_TYPES[(length + 3) % BASE_TYPES.length];
    const { array, guards } = within(base, length * size);
    await call(world, 'allgather', contribution(base, length, rank, length), array);
    for (let source = 0; source < size; source++) {
      const part = array.subarray(source * length, (source + 1) * length) as TypedArray;
      same(
        part,
        contribution(base, length, source, length),
        `allgather of ${length} ${base.name}, part of rank ${source}`,
      );
    }
    assert.ok(guards());
  }
}

async function alltoalls(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const part = (base: BaseType, length: number, from: number, to: number): TypedArray =>
    contribution(base, length, from * size + to, length);
  const countOf = (salt: number, from: number, to: number): number =>
    new Random(seed, salt, from, to).pick([0, 0, 1, 2, 77, 2100]);
  for (const length of LENGTHS) {
    const base = BASE_TYPES[(length + 5) % BASE_TYPES.length];
    const send = new base.array(new ArrayBuffer((length * size * base.bits) / 8));
    for (let to = 0; to < size; to++) (send as Any).set(part(base, length, rank, to), to * length);
    const { array, guards } = within(base, length * size);
    await call(world, 'alltoall', send, array);
    for (let from = 0; from < size; from++) {
      same(
        array.subarray(from * length, (from + 1) * length) as TypedArray,
        part(base, length, from, rank),
        `alltoall of ${length} from rank ${from}`,
      );
    }
    assert.ok(guards());
  }
  for (let salt = 0; salt < 8; salt++) {
    const base = BASE_TYPES[salt + 2];
    const ranks = Array.from({ length: size }, (_, r) => r);
    const [out, into] = [ranks.map((to) => countOf(salt, rank, to)), ranks.map((from) => countOf(salt, from, rank))];
    const total = (counts: number[]): number => counts.reduce((sum, count) => sum + count, 0);
    const send = new base.array(new ArrayBuffer((total(out) * base.bits) / 8));
    for (const to of ranks) (send as Any).set(part(base, out[to], rank, to), total(out.slice(0, to)));
    const { array, guards } = within(base, total(into));
    await call(world, 'alltoallv', send, out, array, into);
    for (const from of ranks) {
      const start = total(into.slice(0, from));
      same(
        array.subarray(start, start + into[from]) as TypedArray,
        part(base, into[from], from, rank),
        `alltoallv from rank ${from}`,
      );
    }
    assert.ok(guards());
  }
}

async function messages(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const next = (rank + 1) % size;
  const previous = (rank - 1 + size) % size;
  // Many small ones, in order, before anybody receives.
  for (let i = 0; i < 300; i++) world.send(Int32Array.of(i, rank), next);
  for (let i = 0; i < 300; i++) {
    const message = new Int32Array(2);
    if (i % 2 === 0) await world.receive(message, previous);
    else world.receiveSync(message, previous);
    assert.deepEqual([...message], [i, previous]);
  }
  // All to all at once, larger than all receive buffers together.
  const length = 100_000;
  for (let target = 0; target < size; target++) world.send(new Float64Array(length).fill(rank * size + target), target);
  for (let source = size - 1; source >= 0; source--) {
    const big = new Float64Array(length);
    await world.receive(big, source);
    assert.ok(
      big.every((value) => value === source * size + rank),
      `the message of rank ${source} is damaged`,
    );
  }
  // A buffer may be used again at once; an empty message is one, too.
  const buffer = Uint8Array.of(1);
  world.send(buffer, next);
  buffer[0] = 2;
  world.send(buffer, next);
  world.send(new Uint8Array(0), next);
  buffer[0] = 3;
  const [a, b] = [new Uint8Array(1), new Uint8Array(1)];
  await Promise.all([
    world.receive(a, previous),
    world.receive(b, previous),
    world.receive(new Uint8Array(0), previous),
  ]);
  assert.deepEqual([a[0], b[0]], [1, 2]);
  world.send(buffer, Rank.NULL);
  await world.receive(a, Rank.NULL);
  world.receiveSync(a, Rank.NULL);
  assert.equal(a[0], 1);
  // Neither collectives nor another communicator take what is meant for a receive.
  const twin = await world.dup();
  twin.send(Uint8Array.of(40 + rank), next);
  world.send(Uint8Array.of(80 + rank), next);
  await world.barrier();
  const sum = new Int32Array(1);
  await world.allreduce(Int32Array.of(1), sum, Op.SUM);
  assert.equal(sum[0], size);
  await world.receive(a, previous);
  await twin.receive(b, previous);
  assert.deepEqual([a[0], b[0]], [80 + previous, 40 + previous]);
  // A message that does not fit is an error that says so. It is taken, and writes nothing; the next one comes.
  world.send(new Uint8Array(5).fill(5), next);
  world.send(Uint8Array.of(9), next);
  const short = new Uint8Array(4);
  await assert.rejects(world.receive(short, previous), { code: 'ERR_TRUNCATE' });
  assert.deepEqual([...short], [0, 0, 0, 0]);
  await world.receive(a, previous);
  assert.equal(a[0], 9);
  await twin.finalize();
}

/** Each receive takes the oldest message of its source and tag, whatever else has come. */
async function tags(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const next = (rank + 1) % size;
  const previous = (rank - 1 + size) % size;
  const most = 2 ** 31 - 1;
  const used = [most, 3, 0, 1];
  for (let i = 0; i < 50; i++) for (const tag of used) world.send(Float64Array.of(i, tag, rank), next, { tag });
  const long = new Float64Array(100_000).fill(rank);
  world.send(long, next, { tag: 5 });
  const check = (message: Float64Array, i: number, tag: number): void =>
    assert.deepEqual([...message], [i, tag, previous]);
  // The last tag of each round first: all others are kept meanwhile.
  for (const tag of [1, most]) {
    for (let i = 0; i < 50; i++) {
      const message = new Float64Array(3);
      if (i % 2 === 0) await world.receive(message, previous, { tag });
      else world.receiveSync(message, previous, { tag });
      check(message, i, tag);
    }
  }
  const big = new Float64Array(long.length);
  await world.receive(big, previous, { tag: 5 });
  assert.ok(big.every((value) => value === previous));
  // All at once, of both tags that are left.
  const received = await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      const message = new Float64Array(3);
      await world.receive(message, previous, { tag: i % 2 === 0 ? 3 : 0 });
      return message;
    }),
  );
  for (const [i, message] of received.entries()) check(message, i >> 1, i % 2 === 0 ? 3 : 0);
  await assert.rejects(world.receive(big, previous, { tag: 1, timeout: 20 }), /receive\(\) from rank \d+ \(tag 1\)/);
}

/** Started one after the other without waiting: they take place in that order. */
async function severalAtOnce(world: Communicator): Promise<void> {
  const { rank, size } = world;
  for (let round = 0; round < 10; round++) {
    const value = Int32Array.of(rank === round % size ? 77 + round : 0);
    const [sum, all] = [new Int32Array(1), new Int32Array(size)];
    const promises: Promise<unknown>[] = [
      world.broadcast(value, round % size),
      world.allreduce(Int32Array.of(rank), sum, Op.SUM),
      world.barrier(),
      world.allgather(Int32Array.of(10 * rank), all),
      world.barrier(),
      world.split(0, -rank).then((part) => assert.equal(part!.rank, size - 1 - rank)),
    ];
    const last = new Int32Array(1);
    if (round % 2 === 0) world.allreduceSync(Int32Array.of(1), last, Op.SUM);
    else await world.allreduce(Int32Array.of(1), last, Op.SUM);
    assert.equal(last[0], size);
    await Promise.all(promises);
    assert.deepEqual([value[0], sum[0]], [77 + round, (size * (size - 1)) / 2]);
    assert.deepEqual(
      [...all],
      Array.from({ length: size }, (_, r) => 10 * r),
    );
  }
}

/** As many barriers as calls, whether they are awaited one by one or together. */
async function barriersAtOnce(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Int32Array, 1);
  await win.lockAll();
  const entered = (): number => {
    const result = new Int32Array(1);
    win.fetchAndOp(Int32Array.of(0), result, 0, 0, Op.NO_OP);
    return result[0];
  };
  const enter = (): void => win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
  const random = new Random(seed, rank);
  let barriers = 0;
  for (let round = 0; round < 12; round++) {
    if (random.chance(0.3)) await sleep(random.below(3));
    // Which ranks await one by one differs from round to round.
    if ((round + rank) % 3 === 0) {
      enter();
      const first = world.barrier();
      const second = world.barrier();
      const third = world.barrier();
      await first;
      assert.ok(entered() >= size * (barriers + 1), 'left the first of three barriers before all had entered it');
      await Promise.all([second, third]);
    } else {
      enter();
      await world.barrier();
      assert.ok(entered() >= size * (barriers + 1), 'left a barrier before all had entered it');
      world.barrierSync();
      await world.barrier();
    }
    barriers++;
  }
  await world.barrier();
  assert.equal(entered(), barriers * size);
  await win.unlockAll();
  await win.free();
}

async function splits(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const parts: [Communicator, number[]][] = [];
  for (let salt = 0; salt < 6; salt++) {
    const draw = (r: number): [number, number] => [
      new Random(seed, salt, r).pick([Rank.UNDEFINED, 0, 1, 2]),
      new Random(seed, salt, r, 1).between(-2, 2),
    ];
    const [color, key] = draw(rank);
    const part = salt % 2 === 0 ? await world.split(color, key) : world.splitSync(color, key);
    if (color < 0) {
      assert.equal(part, undefined);
      continue;
    }
    const members = Array.from({ length: size }, (_, r) => r)
      .filter((r) => draw(r)[0] === color)
      .sort((a, b) => draw(a)[1] - draw(b)[1] || a - b);
    assert.deepEqual([...part!.group.worldRanks], members);
    assert.equal(part!.rank, members.indexOf(rank));
    assert.equal(part!.size, members.length);
    assert.deepEqual(part!.group.translate([part!.rank], world.group), [rank]);
    parts.push([part!, members]);
  }
  // All of them at once, and parts of parts.
  for (const [part, members] of parts) {
    const sum = new Int32Array(1);
    await part.allreduce(Int32Array.of(rank), sum, Op.SUM);
    assert.equal(
      sum[0],
      members.reduce((a, b) => a + b, 0),
    );
    const half = await part.split(part.rank % 2);
    await half!.barrier();
    await half!.finalize();
  }
  for (const [part] of parts) await part.finalize();
  await world.barrier();
}

/** Ranks that disagree about a size get an error instead of each other's bytes. */
async function differentSizes(world: Communicator): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  const comm = await world.dup();
  await assert.rejects(
    comm.allgather(new Uint8Array(rank === 0 ? 2 : 1), new Uint8Array((rank === 0 ? 2 : 1) * size), { timeout: 200 }),
    (error) => ['ERR_COLLECTIVE', 'ERR_RMA_TIMEOUT'].includes((error as { code: string }).code),
  );
  await assert.rejects(comm.barrier(), { code: 'ERR_COMM' });
  await world.barrier();
}

const GO = { tag: 77 };

/** Rank 0 tells all others to go on. */
async function signal(world: Communicator): Promise<void> {
  if (world.rank > 0) await world.receive(new Uint8Array(1), 0, GO);
  else for (let rank = 1; rank < world.size; rank++) world.send(new Uint8Array(1), rank, GO);
}

/** What a rank has given up alone is not given to something else while the others still use it. */
async function freedTooEarly(world: Communicator): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  const [comm, other] = [await world.dup(), await world.dup()];
  const window = await Window.allocate(comm, Int32Array, 4);
  if (rank === 0) {
    await assert.rejects(window.free({ timeout: 20 }), { code: 'ERR_RMA_TIMEOUT' });
    await assert.rejects(comm.free({ timeout: 20 }), { code: 'ERR_COMM' });
  }
  const later = await Window.allocate(other, Int32Array, 4);
  if (rank === 1) await window.lock(0, Lock.EXCLUSIVE);
  await world.barrier();
  if (rank === 0) {
    await later.lock(0, Lock.EXCLUSIVE, 0, { timeout: 60_000 });
    later.put(Int32Array.of(1), 0, 0);
    await later.unlock(0);
  }
  await world.barrier();
  if (rank === 1) await window.unlock(0);
  await later.free();
  await other.free();
}

/** A deadline of a barrier that stands behind another one; and a communicator that is freed while one is awaited. */
async function endedBarriers(world: Communicator): Promise<void> {
  const comm = await world.dup();
  if (world.rank === 0 && world.size > 1) {
    const first = comm.barrier();
    await assert.rejects(comm.barrier({ timeout: 20 }), { code: 'ERR_RMA_TIMEOUT' });
    assert.throws(() => comm.barrierSync({ timeout: 20 }), { code: 'ERR_RMA_TIMEOUT' });
    await signal(world);
    await first;
  } else {
    await signal(world);
    await comm.barrier();
  }
  await comm.barrier();
  const sum = new Int32Array(1);
  await comm.allreduce(Int32Array.of(1), sum, Op.SUM);
  assert.equal(sum[0], world.size);
  await comm.free();
  for (let round = 0; round < 30; round++) {
    const brief = await world.dup();
    const barrier = brief.barrier();
    await brief.free();
    await barrier;
  }
  await world.barrier();
}

/** Everybody passes the same wrong argument; nobody waits, and what comes after works. */
async function wrongArguments(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const one = (): Int32Array => new Int32Array(1);
  const all = (): Int32Array => new Int32Array(size);
  const ones = new Array<number>(size).fill(1);
  const numbers: readonly Hostile[] = noIndices(2 ** 53 + 2, false).filter(([, value]) => !Number.isSafeInteger(value));
  const ranks: readonly Hostile[] = [['undefined', undefined], ...noIndices(size)];
  const others: readonly Hostile[] = [
    ['another type', new Float32Array(1)],
    ['too long', new Int32Array(size + 1)],
    ['of another type and length', new BigInt64Array(3)],
  ];
  const buffers: readonly Hostile[] = [...noBuffers(one()), ...others];
  const counts: readonly Hostile[] = [
    ...noLists(1),
    ['too few', ones.slice(1)],
    ['too many', [...ones, 1]],
    ['too large', ones.map((n, i) => (i === size - 1 ? 2 : n))],
    ['a negative one', ones.map((n, i) => (i === 0 ? -1 : n))],
    ['a huge one', ones.map(() => 2 ** 53)],
  ];
  const roots: readonly Hostile[] = [...ranks, ['-1', -1]];
  const table: readonly [string, Any[], number, readonly Hostile[]][] = [
    ['broadcast', [one(), 0], 0, noBuffers(one())],
    ['broadcast', [one(), 0], 1, [...ranks, ['-1', -1]]],
    ['broadcast', [one(), 0], 2, noOptions()],
    ['allreduce', [one(), one(), Op.SUM], 0, buffers],
    ['allreduce', [one(), one(), Op.SUM], 1, buffers],
    ['allreduce', [one(), one(), Op.SUM], 2, noOps()],
    ['allreduce', [one(), one(), Op.SUM], 3, noOptions()],
    ['reduceScatter', [all(), one(), Op.SUM, ones], 0, buffers.filter(([name]) => size > 1 || name !== 'too long')],
    ['reduceScatter', [all(), one(), Op.SUM, ones], 1, buffers],
    ['reduceScatter', [all(), one(), Op.SUM, ones], 2, noOps()],
    ['reduceScatter', [all(), one(), Op.SUM, ones], 3, counts.filter(([name]) => name !== 'undefined')],
    ['reduceScatter', [all(), one(), Op.SUM, ones], 4, noOptions()],
    ['allgather', [one(), all()], 0, buffers],
    ['allgather', [one(), all()], 1, buffers],
    ['alltoall', [all(), all()], 0, buffers],
    ['alltoall', [all(), all()], 1, buffers],
    ['alltoallv', [all(), ones, all(), ones], 0, buffers],
    ['alltoallv', [all(), ones, all(), ones], 1, counts],
    ['alltoallv', [all(), ones, all(), ones], 2, buffers],
    ['alltoallv', [all(), ones, all(), ones], 3, counts],
    // Only the root's buffers and counts are looked at: each rank is its own.
    ['reduce', [one(), one(), Op.SUM, rank], 0, buffers],
    ['reduce', [one(), one(), Op.SUM, rank], 1, buffers],
    ['reduce', [one(), one(), Op.SUM, rank], 2, noOps()],
    ['reduce', [one(), one(), Op.SUM, rank], 3, roots],
    ['reduce', [one(), one(), Op.SUM, rank], 4, noOptions()],
    ['scan', [one(), one(), Op.SUM], 0, buffers],
    ['scan', [one(), one(), Op.SUM], 1, buffers],
    ['scan', [one(), one(), Op.SUM], 2, noOps()],
    ['exscan', [one(), one(), Op.SUM], 0, buffers],
    ['exscan', [one(), one(), Op.SUM], 3, noOptions()],
    ['gather', [one(), all(), rank], 0, buffers],
    ['gather', [one(), all(), rank], 1, buffers],
    ['gather', [one(), all(), rank], 2, roots],
    ['gatherv', [one(), all(), ones, rank], 0, buffers],
    ['gatherv', [one(), all(), ones, rank], 1, buffers],
    ['gatherv', [one(), all(), ones, rank], 2, counts],
    ['gatherv', [one(), all(), ones, rank], 3, roots],
    ['scatter', [all(), one(), rank], 0, buffers],
    ['scatter', [all(), one(), rank], 1, buffers],
    ['scatter', [all(), one(), rank], 2, roots],
    ['scatterv', [all(), ones, one(), rank], 0, buffers],
    ['scatterv', [all(), ones, one(), rank], 1, counts],
    ['scatterv', [all(), ones, one(), rank], 2, buffers],
    ['scatterv', [all(), ones, one(), rank], 3, roots],
    ['splitType', ['shared', 0], 0, [['undefined', undefined], ['another type', 'numa'], ...noIndices(1)]],
    ['splitType', ['shared', 0], 1, numbers],
    ['receive', [one(), 0], 0, noBuffers(one())],
    ['receive', [one(), 0], 1, ranks],
    ['receive', [one(), 0], 2, noOptions()],
    ['split', [0, 0], 0, [['undefined', undefined], ...numbers]],
    ['split', [0, 0], 1, numbers],
    ['split', [0, 0], 2, noOptions()],
    ['barrier', [], 0, noOptions()],
    ['finalize', [], 0, noOptions()],
  ];
  for (const [name, right, place, hostiles] of table) {
    for (const [hostile, value] of hostiles) {
      const args = [...right];
      args.splice(place, 1, value);
      const label = `${name}, argument ${place}: ${hostile}`;
      await assertRejected(name, label, () => (world as Any)[name](...args));
      assertRefused(name, `${label}, Sync`, () => (world as Any)[`${name}Sync`](...args));
    }
  }
  for (const [hostile, value] of noBuffers(one())) assertRefused('send', hostile, () => world.send(value as Any, 0));
  for (const [hostile, value] of ranks) assertRefused('send', hostile, () => world.send(one(), value as Any));
  const both = new Int32Array(2 * size);
  for (const [a, b] of [
    [both.subarray(0, 1), both.subarray(0, 1)],
    [both, both],
  ] as const) {
    await assertRejected('allreduce', 'overlap', () => world.allreduce(a, b, Op.SUM));
  }
  await assertRejected('alltoall', 'overlap', () =>
    world.alltoall(both.subarray(0, size), both.subarray(size - 1, 2 * size - 1)),
  );
  await assertRejected('allgather', 'overlap', () =>
    world.allgather(both.subarray(size - 1, size), both.subarray(0, size)),
  );
  await assertRejected('broadcast', 'detached', () => world.broadcast(detached(one()), 0));
  const { group } = world;
  for (const name of ['union', 'intersection', 'difference', 'equals'] as const) {
    for (const [hostile, value] of noGroups(group))
      assertRefused(`group.${name}`, `${name}: ${hostile}`, () => group[name](value as Any));
  }
  for (const name of ['include', 'exclude'] as const) {
    for (const [hostile, value] of [
      ...noLists(0),
      ['a rank too high', [size]] as const,
      ['twice', [0, 0]] as const,
      ['-1', [-1]] as const,
    ]) {
      assertRefused(`group.${name}`, `${name}: ${hostile}`, () => group[name](value as Any));
    }
  }
  for (const [hostile, value] of noGroups(group))
    assertRefused('group.translate', hostile, () => group.translate([0], value as Any));
  for (const [hostile, value] of noLists(0))
    assertRefused('group.translate', hostile, () => group.translate(value as Any, group));
  // It works as before.
  const sum = one();
  await world.allreduce(Int32Array.of(rank), sum, Op.SUM);
  assert.equal(sum[0], (size * (size - 1)) / 2);
  world.barrierSync();
}

/** `init` again gives the same world; wrong options are refused also then. */
async function initAgain(world: Communicator): Promise<void> {
  const { init } = await import('onesided');
  assert.equal(await init(), world);
  assert.equal(await init({ timeout: 1000 }), world);
  const wrong: readonly Hostile[] = [
    ...noOptions(),
    ['null', null],
    ['a size alone', { size: 2 }],
    ...['', 'a/b', '../x', 'x'.repeat(101), 5, {}, null].map(
      (job): Hostile => [`job ${String(job)}`, { job, size: 2 }],
    ),
    ...[undefined, 0, -1, 0.5, Number.NaN, 4097, '2', {}, 2n].map(
      (size): Hostile => [`size ${String(size)}`, { job: 'x', size }],
    ),
  ];
  for (const [hostile, value] of wrong) await assertRejected('init', hostile, () => init(value as Any));
  await world.barrier();
}

await runCases({
  'a broadcast gives all ranks what its root has': broadcasts,
  'an allreduce gives all ranks what all have, combined': allreduces,
  'reduceScatter gives each rank its part of what all have, combined': reduceScatters,
  'an allgather gives all ranks what each has': gathers,
  'alltoall gives each rank its part of what each has': alltoalls,
  'random programs of collectives end as the model does': (world) => tryCollectives(world, seed, 150, true),
  'messages arrive in the order in which they were sent': messages,
  'messages of each tag arrive in their order': tags,
  'several collectives are under way at once': severalAtOnce,
  'several barriers are under way at once': barriersAtOnce,
  'split makes communicators by colour and key': splits,
  'different sizes of one collective are told': differentSizes,
  'a communicator that one rank frees too early is told': freedTooEarly,
  'a barrier that ended early goes on': endedBarriers,
  'wrong arguments are refused, and nothing begins': wrongArguments,
  'init gives the same world again, and refuses other options': initAgain,
});
