/**
 * Hostile calls, drawn by `--seed`, about `--count` of them at each rank: arrays that lie about themselves, options and
 * layouts whose getters call back into the library, buffers that shrink or are given away between the check and the
 * use, layouts that reach anywhere. Around every buffer are canaries.
 *
 * A call either does to the array what the array really is, or throws an error of the library; it touches nothing else,
 * and no connection breaks. What was put by a lying array is read back by an honest one.
 *
 *     node dist/cli/main.js run -n 3 build/programs/test/ranks/attack-calls.js -- --count=10000 --seed=1
 */
import assert from 'node:assert/strict';
import { type Communicator, Datatype, init, Lock, Op, RmaError, type TypedArray, Window } from 'onesided';
import { BoundedQueue } from 'onesided/sync';
import { argument } from './support/cases.ts';
import { Guarded, liar, transfer } from './support/liars.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
const count = Number(argument('count') ?? 300);
/** Calls between two meetings of the ranks. */
const ROUND = 60;
/** Elements of a rank's area in each part of the window that is read back. */
const AREA = 16;
/** Bytes of a part that anybody may write anywhere. */
const FIELD = 512;
const TYPES = [Float64Array, Uint8Array, Int32Array, BigInt64Array, BigUint64Array, Float32Array, Uint16Array] as const;
const OPS = [Op.SUM, Op.PROD, Op.MIN, Op.MAX, Op.BAND, Op.BXOR, Op.REPLACE, Op.NO_OP, Op.MINLOC];

// biome-ignore lint/suspicious/noExplicitAny: wrong types are what this is about
type Any = any;

const tally = { calls: 0, refused: 0 };
/** What was called last, for the message of a failure. */
let calling = 'nothing';

/** Whether an error is one of the library's: Node has codes of its own. */
function isOwn(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  if (typeof code !== 'string' || !/^ERR_[A-Z_]+$/.test(code) || /^ERR_(INVALID|OUT_OF|UNKNOWN)/.test(code))
    return false;
  if (code === 'ERR_VERBS' || code === 'ERR_RMA_RANK_FAILED') return false;
  return error instanceof RmaError || error instanceof TypeError || error instanceof RangeError;
}

function refused(error: unknown): void {
  if (!isOwn(error)) throw new Error(`${calling}: not an error of the library for its caller`, { cause: error });
  tally.refused++;
}

/** @returns whether the call was taken */
function attempt(label: string, call: () => unknown): boolean {
  calling = label;
  tally.calls++;
  try {
    call();
    return true;
  } catch (error) {
    refused(error);
    return false;
  }
}

async function attemptAsync(label: string, call: () => Promise<unknown>): Promise<boolean> {
  calling = label;
  tally.calls++;
  try {
    await call();
    return true;
  } catch (error) {
    refused(error);
    return false;
  }
}

const bytesOfView = (array: TypedArray): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** An integer from anywhere. */
function integer(random: Random): number {
  const far = [0, 1, -1, 8, -8, 2 ** 31 - 1, -(2 ** 31), 2 ** 32, 2 ** 53 - 1, -(2 ** 53 - 1)];
  return random.chance(0.3) ? random.pick(far) : random.between(-24, 40);
}

/** A datatype that reaches anywhere. Errors: the library's. */
function datatype(random: Random, depth = 0): Datatype {
  const inner =
    depth > 2 || random.chance(0.4)
      ? random.pick([Datatype.FLOAT64, Datatype.INT32, Datatype.BYTE, Datatype.INT64, Datatype.DOUBLE_INT])
      : datatype(random, depth + 1);
  const list = (): number[] => Array.from({ length: random.below(4) }, () => integer(random));
  const small = (): number[] => Array.from({ length: random.below(4) }, () => random.below(5));
  switch (random.below(6)) {
    case 0:
      return Datatype.resized(inner, integer(random), integer(random));
    case 1:
      return Datatype.hvector(random.below(6), random.below(6), integer(random), inner);
    case 2:
      return Datatype.hindexed(small(), list(), inner);
    case 3:
      return Datatype.indexedBlock(random.below(4), random.chance(0.5) ? Int32Array.from(list()) : list(), inner);
    case 4:
      return Datatype.struct({ a: Datatype.FLOAT64, b: inner }) as Datatype;
    default:
      return Datatype.contiguous(random.below(9), inner);
  }
}

interface Subject {
  readonly world: Communicator;
  readonly random: Random;
  /** Parts that anybody may write anywhere. */
  readonly field: Window;
  /** Parts in which each rank has an area of its own. */
  readonly areas: Window<Uint8Array>;
  /** Buffers of this round. */
  readonly guards: [Guarded, string][];
}

function guarded(subject: Subject, bytes: number, label: string): Guarded {
  const made = new Guarded(bytes);
  subject.guards.push([made, label]);
  return made;
}

/** What a lying array really holds arrives, all of it and nothing else. */
function putBack(subject: Subject): void {
  const { world, random, areas } = subject;
  const target = random.below(world.size);
  const type = random.pick(TYPES);
  const n = random.chance(0.1) ? 0 : random.between(1, AREA - 1);
  const memory = guarded(subject, n * type.BYTES_PER_ELEMENT, 'the origin');
  const contents = bytesOfView(memory.as(Uint8Array));
  for (let i = 0; i < contents.length; i++) contents[i] = random.below(256);
  const { array, lie } = liar(memory, type as never, random);
  const at = (world.rank * AREA + 1) * 8;
  const room = new Uint8Array(AREA * 8).fill(0x11);
  areas.put(room, target, at - 8);
  areas.flushSync(target);
  const way = random.pick(['put', 'accumulate', 'getAccumulate', 'get']);
  const label = `${way} of ${lie} of ${n} ${type.name} to rank ${target}`;
  if (way === 'get') {
    if (!attempt(label, () => areas.get(array, target, at))) return;
    areas.flushSync(target);
    assert.ok(
      contents.every((byte) => byte === 0x11),
      label,
    );
    return;
  }
  const result = new (type as typeof Uint8Array)(n);
  const taken = attempt(label, () => {
    if (way === 'put') areas.put(array, target, at);
    else if (way === 'accumulate') (areas as Any).accumulate(array, target, at, Op.REPLACE);
    else (areas as Any).getAccumulate(array, result, target, at, Op.REPLACE);
  });
  if (!taken) return;
  areas.flushSync(target);
  areas.get(room, target, at - 8);
  areas.flushSync(target);
  assert.ok(Buffer.compare(room.subarray(8, 8 + contents.length), contents) === 0, `${label}: arrived otherwise`);
  const others = [...room.subarray(0, 8), ...room.subarray(8 + contents.length)];
  assert.ok(
    others.every((byte) => byte === 0x11),
    `${label}: more has arrived`,
  );
}

/** Something to do while the library reads an argument. */
function mischief(subject: Subject, arrays: readonly TypedArray[]): () => void {
  const { world, random, field } = subject;
  const target = random.below(world.size);
  const one = new Float64Array(1);
  const deeds: (() => void)[] = [
    () => arrays.forEach(transfer),
    () => field.put(one, target, 0),
    () => field.flushSync(target),
    () => (field as Any).accumulate(one, target, 0, Op.SUM),
    () => field.lockSync(target, Lock.SHARED),
    () => field.setInfo({}),
    () => field.put(one, target, 0, { target: { type: Datatype.FLOAT64, count: 1 } }),
    () => arrays.forEach((array) => void Reflect.defineProperty(array, 'length', { value: 1 << 20 })),
  ];
  const deed = random.pick(deeds);
  return () => {
    try {
      deed();
    } catch (error) {
      if (!isOwn(error)) throw error;
    }
  };
}

/** An object whose getters do something first. */
function reentrant(values: object, deed: () => void): Any {
  const object = {};
  for (const [key, value] of Object.entries(values)) {
    const get = (): unknown => {
      deed();
      return value;
    };
    Object.defineProperty(object, key, { enumerable: true, get });
  }
  return object;
}

/** Layouts that reach anywhere, read by getters that call back, over buffers that go meanwhile. */
function layouts(subject: Subject): void {
  const { world, random, field } = subject;
  const target = random.below(world.size);
  const origin = liar(guarded(subject, 8 * random.below(20), 'the origin'), random.pick(TYPES) as never, random);
  const result = liar(guarded(subject, 8 * random.below(20), 'the result'), random.pick(TYPES) as never, random);
  const deed = random.chance(0.5) ? mischief(subject, [origin.array, result.array]) : () => {};
  const disp = random.chance(0.1) ? integer(random) : random.below(40);
  const op = random.pick(OPS);
  const way = random.below(4);
  attempt(`call ${way} with hostile layouts of ${origin.lie} and ${result.lie} to rank ${target}`, () => {
    const side = (): object => {
      const given = { type: datatype(random), count: random.chance(0.1) ? integer(random) : random.below(4) };
      return random.chance(0.5) ? given : reentrant(given, deed);
    };
    const sides: Record<string, object> = {};
    for (const name of ['origin', 'target', 'result']) if (random.chance(0.6)) sides[name] = side();
    const layout = random.chance(0.3) ? sides : reentrant(sides, deed);
    if (way === 0) field.put(origin.array, target, disp, layout);
    else if (way === 1) field.get(origin.array, target, disp, layout);
    else if (way === 2) (field as Any).accumulate(origin.array, target, disp, op, layout);
    else (field as Any).getAccumulate(origin.array, result.array, target, disp, op, layout);
  });
  if (random.chance(0.3)) {
    const other = mischief(subject, []);
    attempt('flush with re-entrant options', () => field.flushSync(target, reentrant({ timeout: 9e4 }, other)));
  }
}

/** Packing and views by hostile types. */
function types(subject: Subject): void {
  const { random } = subject;
  const memory = liar(guarded(subject, random.below(200), 'the memory'), Uint8Array, random);
  const way = random.below(3);
  attempt(`datatype call ${way} on ${memory.lie}`, () => {
    const type = datatype(random);
    if (way === 0) type.pack(memory.array, random.below(4));
    else if (way === 1) type.unpack(new Uint8Array(type.size), memory.array);
    else {
      const record = Datatype.resized(
        Datatype.struct({ a: Datatype.FLOAT64, b: type, c: Datatype.INT32 }),
        integer(random),
        integer(random),
      );
      const view = record.view(memory.array, random.below(20)) as { a: number; c: number };
      view.a = 99;
      view.c = 99;
    }
  });
}

/** Buffers of a resizable length, which shrink. */
function resizable(subject: Subject): void {
  const { world, random, field } = subject;
  const target = random.below(world.size);
  const buffer = new (ArrayBuffer as Any)(64, { maxByteLength: 256 }) as ArrayBuffer & { resize(n: number): void };
  const tracking = random.chance(0.5);
  const array = tracking ? new Float64Array(buffer) : new Float64Array(buffer, 8, 4);
  const deed = (): void => buffer.resize(random.pick([0, 8, 16, 40, 256]));
  const layout = reentrant({ target: { type: Datatype.FLOAT64, count: array.length } }, deed);
  const way = random.below(3);
  attempt(`call ${way} with a buffer that shrinks`, () => {
    if (way === 0) field.put(array as Any, target, 0, layout);
    else if (way === 1) field.get(array as Any, target, 0, layout);
    else (field as Any).accumulate(array, target, 0, Op.SUM, layout);
    // An operation under way keeps its buffer.
    field.flushSync(target);
    deed();
    if (way === 0) field.put(array as Any, target, 0);
    field.flushSync(target);
  });
}

/** Single elements, by the calls that remember their buffers, which lie from the second time on. */
function singles(subject: Subject): void {
  const { world, random, field } = subject;
  const target = random.below(world.size);
  const type = random.pick([BigInt64Array, Int32Array, Float64Array, Uint8Array]) as typeof Int32Array;
  const make = (name: string) => guarded(subject, type.BYTES_PER_ELEMENT, name).as(type);
  const [origin, compare, result] = [make('the origin'), make('compare'), make('the result')];
  for (let i = 0; i < 3; i++) {
    attempt('a call on single elements', () => {
      if (i % 2 === 0) (field as Any).fetchAndOp(origin, result, target, 0, random.pick(OPS));
      else (field as Any).compareAndSwap(origin, compare, result, target, 0);
    });
    const victim = random.pick([origin, compare, result]);
    field.flushSync(target);
    if (random.chance(0.2)) transfer(victim);
    else Reflect.defineProperty(victim, random.pick(['length', 'byteLength']), { configurable: true, value: 1 << 20 });
  }
}

const CALLS = [putBack, putBack, layouts, layouts, types, resizable, singles];

/** Calls that all ranks make, with as much memory each, and lies of their own. */
async function together(world: Communicator, shared: Random, own: Random): Promise<void> {
  const n = shared.below(9);
  const make = (elements: number): [Float64Array, Guarded, string] => {
    const memory = new Guarded(8 * elements);
    const { array, lie } = liar(memory, Float64Array, own);
    return [array, memory, lie];
  };
  const [send, sent, lie] = make(n);
  const [receive, received, other] = make(n);
  sent.as(Float64Array).fill(world.rank + 1);
  const [all, allReceived] = make(n * world.size);
  const way = shared.below(5);
  const label = `collective ${way} of ${lie} into ${other}`;
  const options = reentrant({ timeout: 100_000 }, () => void transfer(new Uint8Array(1)));
  const next = (world.rank + 1) % world.size;
  const before = (world.rank + world.size - 1) % world.size;
  const taken = await attemptAsync(label, async () => {
    if (way === 0) await world.allreduce(send, receive, Op.SUM, options);
    else if (way === 1) await world.broadcast(send, 0, options);
    else if (way === 2) await world.allgather(send, all, options);
    else if (way === 3) world.scanSync(send, receive, Op.SUM, options);
    else {
      world.send(send, next);
      await world.receive(receive, before, options);
    }
  });
  assert.ok(taken, `${label} was refused`);
  const sum = (world.size * (world.size + 1)) / 2;
  const expected = [sum, 1, undefined, ((world.rank + 1) * (world.rank + 2)) / 2, before + 1][way];
  const found = [received, sent, allReceived, received, received][way].as(Float64Array);
  for (const [i, value] of found.entries()) assert.equal(value, expected ?? Math.floor(i / n) + 1, label);
  for (const memory of [sent, received, allReceived]) memory.check(label);
}

/** Entries of a queue that lie. */
async function queues(world: Communicator, own: Random): Promise<void> {
  const queue = await BoundedQueue.create(world, Float64Array, 4, { length: 3 } as Any).catch(() => undefined);
  if (queue === undefined) return;
  const memory = new Guarded(24);
  memory.as(Float64Array).fill(7);
  const { array, lie } = liar(memory, Float64Array, own);
  attempt(`push of ${lie}`, () => queue.tryPush(array));
  memory.check('queue');
  await queue.free();
}

/** A window over memory that lies about its length. Its owner looks after the canaries. */
async function fieldOver(
  world: Communicator,
  shared: Random,
  own: Random,
): Promise<{ field: Window; check: (label: string) => void }> {
  const kind = shared.below(4);
  if (kind === 0) return { field: await Window.allocate(world, Uint8Array, FIELD), check: () => {} };
  const pooled = (n: number): Uint8Array => new Uint8Array(n);
  const allocated = (n: number): Uint8Array => world.allocMem(Uint8Array, n);
  const threads = (n: number): Uint8Array => new Uint8Array(new SharedArrayBuffer(n));
  const memory = new Guarded(FIELD, [pooled, allocated, threads][kind - 1]);
  const { array, lie } = liar(memory, shared.pick(TYPES) as never, own);
  calling = `Window.create over ${lie}`;
  let field: Window;
  try {
    field = await Window.create(world, array as Uint8Array, { dispUnit: 1 });
  } catch (error) {
    // By requests, other ranks reach memory of the library only.
    if ((error as RmaError).code !== 'ERR_BUFFER' || kind === 2) throw error;
    field = await Window.allocate(world, Uint8Array, FIELD);
  }
  return { field, check: (label) => memory.check(`${label}: a window over ${lie}`) };
}

/** Attached memory that lies, and puts beside it. */
async function attached(world: Communicator, own: Random): Promise<void> {
  const win = await Window.createDynamic(world);
  const memory = new Guarded(64);
  const { array, lie } = liar(memory, Uint8Array, own);
  let address = 0;
  const taken = attempt(`attach of ${lie}`, () => (address = win.attach(array)));
  const addresses = new Float64Array(world.size);
  await world.allgather(Float64Array.of(address), addresses);
  const target = (world.rank + 1) % world.size;
  await win.lockAll();
  if (addresses[target] > 0) {
    win.put(new Uint8Array(64), target, addresses[target]);
    attempt('a put beside attached memory', () => win.put(new Uint8Array(65), target, addresses[target]));
    attempt('a put beside attached memory', () => win.put(new Uint8Array(9), target, addresses[target] - 8));
  }
  await win.unlockAll();
  await world.barrier();
  memory.check(`attached: ${lie}`);
  if (taken) attempt(`detach of ${lie}`, () => win.detach(array));
  await win.free();
}

const world = await init();
const shared = new Random(seed, 1);
const own = new Random(seed, 2, world.rank);
try {
  for (let round = 0; tally.calls < count; round++) {
    const { field, check } = await fieldOver(world, shared, own);
    const areas = await Window.allocate(world, Uint8Array, world.size * AREA * 8);
    const guards: [Guarded, string][] = [];
    const subject: Subject = { world, random: own, field, areas, guards };
    await field.lockAll();
    await areas.lockAll();
    const neighbour = (world.rank + 1) % world.size;
    for (const disp of [FIELD, FIELD + 1, 1 << 19, 2 ** 40]) {
      const taken = attempt('a put beside the part', () => field.put(new Uint8Array(1) as Any, neighbour, disp));
      assert.ok(!taken, `byte ${disp} of a part of ${FIELD} was written`);
    }
    for (let i = 0; i < ROUND; i++) {
      own.pick(CALLS)(subject);
      for (const [memory, label] of guards) memory.check(`${calling}: ${label}`);
      if (i % 8 === 0) guards.length = 0;
    }
    await field.unlockAll();
    await areas.unlockAll();
    await world.barrier();
    check(`round ${round}`);
    for (const [memory, label] of guards) memory.check(`round ${round}: ${label}`);
    await field.free();
    await areas.free();
    for (let i = 0; i < 6; i++) await together(world, shared, own);
    await attached(world, own);
    await queues(world, own);
    // All ranks stop together.
    const least = new Float64Array(1);
    await world.allreduce(Float64Array.of(tally.calls), least, Op.MIN);
    if (least[0] >= count) break;
    tally.calls = least[0];
  }
} catch (cause) {
  throw new Error(`rank ${world.rank} of ${world.size}, seed ${seed}, in ${calling}`, { cause });
}
console.log(JSON.stringify(tally));
await world.finalize();
