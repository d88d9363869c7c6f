/**
 * Random datatypes at both ends of put, get, accumulate and getAccumulate, against arrays of bytes.
 *
 * Each rank accesses the next one's part. Everything random comes from the seed, so every rank knows what is done to
 * it. A layout is drawn as nested constructors; where its elements are is computed here from the constructors'
 * definitions, not asked of the library. The other side of a call has the same base types in the same order, at places
 * of its own.
 */
import assert from 'node:assert/strict';
import { Assert, type Communicator, Datatype, Lock, Op, type TypedArray, Window, type WindowOptions } from 'onesided';
import { argument, runCases } from './support/cases.ts';
import { columns } from './support/columns.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
const scenes = Number(argument('scenes') ?? 60);
const PART = 4096;
const MOST = 120;

const BASES = [
  { type: Datatype.INT8, size: 1 },
  { type: Datatype.UINT16, size: 2 },
  { type: Datatype.INT32, size: 4 },
  { type: Datatype.FLOAT64, size: 8 },
  { type: Datatype.INT64, size: 8 },
] as const;

type Base = (typeof BASES)[number];
/** An element: its base type and its place in bytes. */
type Element = readonly [base: Base, at: number];

interface Drawn {
  readonly type: Datatype;
  readonly elements: readonly Element[];
  readonly extent: number;
}

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
const shift = (elements: readonly Element[], by: number): Element[] => elements.map(([base, at]) => [base, at + by]);

/**
 * Instances of `inner` at byte places. `bounds` are kept simple by resizing: each drawn type begins at 0 and says its
 * extent.
 */
function at(inner: Drawn, places: readonly number[]): Element[] {
  return places.flatMap((place) => shift(inner.elements, place));
}

/** @param unit all places are multiples of it: elements that are accessed atomically must be aligned */
function draw(random: Random, depth: number, base: Base | undefined, unit: number): Drawn {
  if (depth === 0 || random.chance(0.15)) {
    const chosen = base ?? random.pick(BASES);
    return { type: chosen.type, elements: [[chosen, 0]], extent: chosen.size };
  }
  const inner = draw(random, depth - 1, base, unit);
  const n = 1 + random.below(3);
  const length = 1 + random.below(2);
  const { extent } = inner;
  const kind = random.pick([
    'contiguous',
    'vector',
    'hvector',
    'indexed',
    'hindexedBlock',
    'struct',
    'subarray',
  ] as const);
  // Blocks that do not overlap, in any order.
  const order = range(n).sort(() => random.below(3) - 1);
  const blockOf = (starts: readonly number[]): number[] =>
    starts.flatMap((start) => range(length).map((i) => start + i * extent));
  const far = length * extent + unit * random.below(4);
  const sized = (type: Datatype, places: number[]): Drawn => {
    const end = Math.max(...places) + extent + unit * random.below(3);
    const whole = Math.ceil(end / unit) * unit;
    return { type: Datatype.resized(type, 0, whole), elements: at(inner, places), extent: whole };
  };
  switch (kind) {
    case 'contiguous':
      return sized(
        Datatype.contiguous(n, inner.type),
        range(n).map((i) => i * extent),
      );
    case 'vector': {
      const step = length + random.below(3);
      return sized(Datatype.vector(n, length, step, inner.type), blockOf(range(n).map((i) => i * step * extent)));
    }
    case 'hvector':
      return sized(Datatype.hvector(n, length, far, inner.type), blockOf(range(n).map((i) => i * far)));
    case 'indexed': {
      const starts = order.map((i) => i * (length + 1));
      const lengths = starts.map(() => length);
      return sized(Datatype.indexed(lengths, starts, inner.type), blockOf(starts.map((start) => start * extent)));
    }
    case 'hindexedBlock': {
      const starts = order.map((i) => i * far);
      return sized(Datatype.hindexedBlock(length, Int32Array.from(starts), inner.type), blockOf(starts));
    }
    case 'struct': {
      const starts = order.map((i) => i * far);
      const type = Datatype.struct(
        starts.map(() => length),
        starts,
        starts.map(() => inner.type),
      );
      return sized(type, blockOf(starts));
    }
    default: {
      const [rows, columns] = [1 + random.below(3), 1 + random.below(3)];
      const [top, left] = [random.below(2), random.below(2)];
      const sizes = [rows + top + random.below(2), columns + left + random.below(2)];
      const type = Datatype.subarray(sizes, [rows, columns], [top, left], inner.type);
      const places = range(rows).flatMap((r) => range(columns).map((c) => ((r + top) * sizes[1] + c + left) * extent));
      return { type, elements: at(inner, places), extent: sizes[0] * sizes[1] * extent };
    }
  }
}

/** Other places for the same base types in the same order. */
function drawOther(random: Random, elements: readonly Element[], unit: number): Drawn {
  let end = 0;
  const order = elements.map((_, i) => i);
  if (random.chance(0.5)) order.reverse();
  const places = new Array<number>(elements.length);
  for (const i of order) {
    const gap = random.chance(0.6) ? 0 : unit * random.below(3);
    places[i] = Math.ceil((end + gap) / unit) * unit;
    end = places[i] + elements[i][0].size;
  }
  const type = Datatype.struct(
    elements.map(() => 1),
    places,
    elements.map(([{ type }]) => type),
  );
  return {
    type,
    elements: elements.map(([base], i) => [base, places[i]] as const),
    extent: Math.ceil(end / unit) * unit,
  };
}

function bytesOf({ elements }: Drawn): number[] {
  return elements.flatMap(([{ size }, place]) => range(size).map((i) => place + i));
}

const endOf = (drawn: Drawn): number => Math.max(...bytesOf(drawn)) + 1;

function randomBytes(length: number, ...of: number[]): Uint8Array {
  const random = new Random(seed, ...of);
  return Uint8Array.from({ length }, () => random.below(256));
}

interface Scene {
  readonly from: Drawn;
  readonly to: Drawn;
  readonly place: number;
  readonly label: string;
}

/** A transfer, drawn until it is of reasonable size. */
function drawScene(number: number, unit: number, base: Base | undefined): Scene {
  for (let attempt = 0; ; attempt++) {
    const random = new Random(seed, number, attempt);
    const first = draw(random, 1 + random.below(3), base, unit);
    if (first.elements.length > MOST || endOf(first) > PART / 2) continue;
    const other = drawOther(random, first.elements, unit);
    if (endOf(other) > PART / 2) continue;
    const [from, to] = random.chance(0.5) ? [first, other] : [other, first];
    const place = unit * random.below(Math.floor((PART - endOf(to)) / unit));
    const label = `scene ${number} (seed ${seed}): ${from.type} to ${to.type} at ${place}`;
    return { from, to, place, label };
  }
}

/** Copies element i of one side to element i of the other. */
function move(from: Drawn, source: Uint8Array, sourceAt: number, to: Drawn, sink: Uint8Array, sinkAt: number): void {
  const places = bytesOf(to);
  for (const [i, byte] of bytesOf(from).entries()) sink[sinkAt + places[i]] = source[sourceAt + byte];
}

function assertBytes(found: Uint8Array, expected: Uint8Array, label: string): void {
  const first = found.findIndex((byte, i) => byte !== expected[i]);
  assert.equal(first, -1, `${label}: byte ${first} is ${found[first]}, not ${expected[first]}`);
}

type Make = (world: Communicator, options: WindowOptions) => Promise<Window<Uint8Array>>;

const ALLOCATED: Make = (world, options) => Window.allocate(world, Uint8Array, PART, options);
const OVER_PLAIN_MEMORY: Make = (world, options) => Window.create(world, new Uint8Array(PART), options);

/** Whether ranks are processes: only then plain memory can be reached by others, without the addon. */
async function moves(world: Communicator, make: Make, fence: 'immediate' | 'remote-notify'): Promise<void> {
  const { rank, size } = world;
  const [next, previous] = [(rank + 1) % size, (rank + size - 1) % size];
  const win = await make(world, { info: { fence } });
  await win.fence();
  for (let number = 0; number < scenes; number++) {
    const scene = drawScene(number, 1, undefined);
    const { from, to, place, label } = scene;
    const layout = { origin: { type: from.type }, target: { type: to.type } };
    const origin = (who: number): Uint8Array => randomBytes(endOf(from), number, who, 1);
    win.local.set(randomBytes(PART, number, rank, 2));
    await win.fence();
    win.put(origin(rank), next, place, layout);
    await win.fence();
    const expected = randomBytes(PART, number, rank, 2);
    move(from, origin(previous), 0, to, expected, place);
    assertBytes(win.local, expected, `put, ${label}`);
    await win.fence();
    const back = randomBytes(endOf(from), number, rank, 3);
    win.get(back, next, place, layout);
    await win.fence();
    const read = randomBytes(endOf(from), number, rank, 3);
    move(from, origin(rank), 0, from, read, 0);
    assertBytes(back, read, `get, ${label}`);
  }
  await win.free();
}

/**
 * Elements of one base type, at aligned places: a SUM of integers, a REPLACE of the others, with and without fetching.
 */
async function updates(world: Communicator, make: Make): Promise<void> {
  const { rank, size } = world;
  const [next, previous] = [(rank + 1) % size, (rank + size - 1) % size];
  const win = await make(world, {});
  await win.fence();
  for (let number = 0; number < scenes; number++) {
    const base = BASES[number % BASES.length];
    const { from, to, place, label } = drawScene(1000 + number, base.size, base);
    const into = drawOther(new Random(seed, 2000 + number), from.elements, base.size);
    const sum = base.type !== Datatype.FLOAT64 && number % 2 === 0;
    const origin = (who: number): Uint8Array => randomBytes(endOf(from), number, who, 4);
    const before = (who: number): Uint8Array => randomBytes(PART, number, who, 5);
    win.local.set(before(rank));
    await win.fence();
    const result = randomBytes(endOf(into), number, rank, 6);
    const fetch = number % 3 > 0;
    const op = sum ? Op.SUM : Op.REPLACE;
    const layout = { origin: { type: from.type }, target: { type: to.type } };
    if (fetch) win.getAccumulate(origin(rank), result, next, place, op, { ...layout, result: { type: into.type } });
    else win.accumulate(origin(rank), next, place, op, layout);
    await win.fence();
    const expected = before(rank);
    const moved = before(rank);
    move(from, origin(previous), 0, to, moved, place);
    for (const [, offset] of to.elements) {
      const byte = place + offset;
      if (sum) addInto(expected, moved, byte, base.size);
      else expected.set(moved.subarray(byte, byte + base.size), byte);
    }
    assertBytes(win.local, expected, `${op} of ${base.type}, ${label}`);
    if (fetch) {
      const fetched = randomBytes(endOf(into), number, rank, 6);
      move(to, before(next), place, into, fetched, 0);
      assertBytes(result, fetched, `${op} of ${base.type}, fetched, ${label}`);
    }
    await win.fence();
  }
  await win.free();
}

/** Adds two little-endian integers of `n` bytes. */
function addInto(sink: Uint8Array, source: Uint8Array, at: number, n: number): void {
  for (let i = 0, carry = 0; i < n; i++) {
    const sum = sink[at + i] + source[at + i] + carry;
    sink[at + i] = sum & 255;
    carry = sum >> 8;
  }
}

const ARRAYS = [Int8Array, Uint16Array, Int32Array, Float64Array, BigInt64Array] as const;

/**
 * The same layout again and again, with other data, at other places, the origin one after the other: what was kept of
 * the first transfer says where the bytes of the others are, and nothing of their memory.
 */
async function repeats(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const [next, previous] = [(rank + 1) % size, (rank + size - 1) % size];
  const win = await Window.allocate(world, Uint8Array, PART);
  await win.fence();
  for (let number = 0; number < scenes; number++) {
    const base = BASES[number % BASES.length];
    const { to, label } = drawScene(3000 + number, base.size, base);
    const count = 1 + (number % 3);
    const most = Math.floor((PART - to.type.extent * (count - 1) - endOf(to)) / base.size);
    if (most < 0) continue;
    const bytes = base.size * to.elements.length * count;
    const places = range(count).flatMap((i) => bytesOf(to).map((byte) => i * to.type.extent + byte));
    if (new Set(places).size < places.length) continue;
    const layout = { target: { type: to.type, count } };
    for (let turn = 0; turn < 3; turn++) {
      const data = (who: number): Uint8Array => randomBytes(bytes, number, who, 7 + turn);
      const place = base.size * new Random(seed, 4000 + number, turn).below(most + 1);
      const expected = randomBytes(PART, number, rank, 17 + turn);
      win.local.set(expected);
      await win.fence();
      // Another object that says the same, from the third time on.
      const same = turn < 2 ? layout : { target: { ...layout.target } };
      win.put(new ARRAYS[number % ARRAYS.length](data(rank).buffer as ArrayBuffer), next, place, same);
      await win.fence();
      const sent = data(previous);
      for (const [i, byte] of places.entries()) expected[place + byte] = sent[i];
      assertBytes(win.local, expected, `put ${turn}, ${count} times, ${label}`);
      await win.fence();
      const back = new ARRAYS[number % ARRAYS.length](to.elements.length * count);
      win.get(back, next, place, same);
      await win.fence();
      assertBytes(new Uint8Array(back.buffer), data(rank), `get ${turn}, ${count} times, ${label}`);
      await win.fence();
    }
  }
  await win.free();
}

/** What was kept of a transfer that was right excuses nothing of the next one. */
async function refusedLater(world: Communicator): Promise<void> {
  const { INT32, FLOAT64 } = Datatype;
  const next = (world.rank + 1) % world.size;
  const win = await Window.allocate(world, Uint8Array, 256);
  await win.fence();
  const type = Datatype.vector(6, 1, 2, INT32);
  const origin = new Int32Array(6);
  const layout: { target: { type: Datatype; count?: number } } = { target: { type } };
  const refused = (code: string, call: () => void): void => assert.throws(call, { code }, String(call));
  const twice = (call: () => void): void => [1, 2].forEach(call);
  twice(() => win.put(origin, next, 0, layout));
  twice(() => win.get(origin, next, 256 - 44, layout));
  refused('ERR_RMA_RANGE', () => win.put(origin, next, 256 - 43, layout));
  refused('ERR_DISP', () => win.get(origin, next, -1, layout));
  refused('ERR_DISP', () => win.get(origin, next, 0.5, layout));
  refused('ERR_TYPE', () => win.put(new Float32Array(6), next, 0, layout));
  refused('ERR_TYPE', () => win.put(new Int32Array(5), next, 0, layout));
  refused('ERR_BUFFER', () => win.put([1, 2, 3, 4, 5, 6] as unknown as Int32Array, next, 0, layout));
  const gone = new Int32Array(6);
  structuredClone(gone, { transfer: [gone.buffer] });
  refused('ERR_BUFFER', () => win.get(gone, next, 0, layout));
  assert.throws(() => win.put(origin, next, 0, { target: { type, number: 1 } } as object), /number/);
  assert.throws(() => win.put(origin, next, 0, { ...layout, orign: {} } as object), /orign/);
  assert.throws(() => win.put(origin, next, 0, { ...layout, origin: null } as object));
  assert.throws(() => win.put(origin, next, 0, Object.assign(() => {}, layout) as object));
  // A layout may be changed: it is read every time.
  layout.target.count = 2;
  refused('ERR_TYPE', () => win.put(origin, next, 0, layout));
  layout.target = { type: Datatype.vector(3, 1, 2, FLOAT64) };
  refused('ERR_TYPE', () => win.put(origin, next, 0, layout));
  // An origin that is got into may not be written twice, though it may be read twice.
  const same = { origin: { type: Datatype.vector(6, 2, 1, INT32) } };
  const long = new Int32Array(7);
  twice(() => win.put(long, next, 0, same));
  refused('ERR_RMA_CONFLICT', () => win.get(long, next, 0, same));
  refused('ERR_BUFFER', () => win.put(new Int32Array(6), next, 0, same));
  // Reading a layout can end the epoch.
  await win.fence(Assert.NO_SUCCEED);
  win.lockSync(next, Lock.SHARED);
  const plain = { target: { type } };
  twice(() => win.put(origin, next, 0, plain));
  let locked = true;
  const ends = {
    get target() {
      if (locked) win.unlockSync(next);
      locked = false;
      return plain.target;
    },
  };
  refused('ERR_RMA_SYNC', () => win.put(origin, next, 0, ends));
  await world.barrier();
  // This rank's own part, of which the origin is a piece.
  if (world.size === 1) return win.free();
  win.lockSync(world.rank, Lock.EXCLUSIVE);
  const own = new Int32Array(win.local.buffer, win.local.byteOffset, 6);
  twice(() => win.put(origin, world.rank, 0, plain));
  refused('ERR_RMA_CONFLICT', () => win.put(own, world.rank, 0, plain));
  win.unlockSync(world.rank);
  await win.free();
}

/** What is wrong with a layout is said before a byte moves. */
async function refusals(world: Communicator): Promise<void> {
  const { INT8, INT32, FLOAT64, DOUBLE_INT } = Datatype;
  const next = (world.rank + 1) % world.size;
  const win = await Window.allocate(world, Uint8Array, 256);
  win.local.fill(7);
  await win.fence();
  const bytes = new Uint8Array(64);
  const twice = Datatype.indexed([2, 2], [0, 1], INT32);
  const mixed = Datatype.struct({ a: INT32, b: FLOAT64 });
  const refused = (code: string, call: () => void): void => assert.throws(call, { code }, String(call));
  const sides = (origin: Datatype, target: Datatype) => ({ origin: { type: origin }, target: { type: target } });
  refused('ERR_RMA_CONFLICT', () => win.put(new Int32Array(4), next, 0, { target: { type: twice } }));
  refused('ERR_RMA_CONFLICT', () => win.get(new Int32Array(4), next, 0, { origin: { type: twice } }));
  const interleaved = { type: Datatype.resized(Datatype.vector(2, 1, 2, INT32), 0, 8), count: 2 };
  refused('ERR_RMA_CONFLICT', () => win.put(new Int32Array(4), next, 0, { target: interleaved }));
  refused('ERR_RMA_CONFLICT', () =>
    win.getAccumulate(new Int32Array(4), new Int32Array(4), next, 0, Op.SUM, { result: { type: twice } }),
  );
  refused('ERR_TYPE', () => win.put(bytes, next, 0, sides(mixed, Datatype.struct({ b: FLOAT64, a: INT32 }))));
  refused('ERR_TYPE', () => win.put(bytes, next, 0, sides(Datatype.contiguous(4, INT8), INT32)));
  refused('ERR_TYPE', () => win.accumulate(bytes, next, 0, Op.SUM, sides(mixed, mixed)));
  refused('ERR_OP', () => win.accumulate(bytes, next, 0, Op.SUM, sides(DOUBLE_INT, DOUBLE_INT)));
  refused('ERR_OP', () => win.accumulate(bytes, next, 0, Op.MINLOC, sides(INT32, INT32)));
  refused('ERR_DISP', () => win.accumulate(bytes, next, 4, Op.MINLOC, sides(DOUBLE_INT, DOUBLE_INT)));
  refused('ERR_DISP', () =>
    win.accumulate(new Int32Array(2), next, 0, Op.SUM, { target: { type: Datatype.hvector(2, 1, 6, INT32) } }),
  );
  refused('ERR_BUFFER', () =>
    win.put(bytes, next, 0, sides(Datatype.contiguous(9, FLOAT64), Datatype.contiguous(9, FLOAT64))),
  );
  refused('ERR_BUFFER', () => win.put(bytes, next, 0, sides(Datatype.hindexedBlock(1, [-8], FLOAT64), FLOAT64)));
  refused('ERR_RMA_RANGE', () => win.put(bytes, next, 0, sides(FLOAT64, Datatype.hindexedBlock(1, [-8], FLOAT64))));
  refused('ERR_RMA_RANGE', () => win.put(bytes, next, 0, sides(FLOAT64, Datatype.hindexedBlock(1, [249], FLOAT64))));
  await win.fence();
  assert.ok(
    win.local.every((byte) => byte === 7),
    'not a byte was written',
  );
  await win.free();
}

/** Nested records and pairs, of which a target without a layout has the same. */
async function records(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const [next, previous] = [(rank + 1) % size, (rank + size - 1) % size];
  const Sample = Datatype.struct({
    id: Datatype.INT32,
    at: Datatype.struct({ x: Datatype.FLOAT64, y: Datatype.FLOAT32 }),
  });
  const win = await Window.allocate(world, Uint8Array, 10 * Sample.extent);
  win.local.fill(9);
  await win.fence();
  const memory = new Uint8Array(3 * Sample.extent);
  for (let i = 0; i < 3; i++) {
    const sample = Sample.view(memory, i);
    sample.id = 100 * rank + i;
    sample.at = { x: rank / 2, y: i };
  }
  win.put(memory, next, 2 * Sample.extent, { origin: { type: Sample, count: 3 } });
  await win.fence();
  for (let i = 0; i < 3; i++) {
    const sample = Sample.view(win.local, 2 + i);
    assert.deepEqual([sample.id, sample.at.x, sample.at.y], [100 * previous + i, previous / 2, i]);
  }
  // What lies between the fields is not data.
  assert.deepEqual([...win.local.subarray(2 * Sample.extent + 4, 2 * Sample.extent + 8)], [9, 9, 9, 9]);
  const first = Sample.view(win.local, 1);
  first.id = 5;
  await win.fence();
  const read: TypedArray = new Uint8Array(Sample.extent);
  win.get(read, next, Sample.extent, { origin: { type: Sample } });
  await win.fence();
  assert.equal(Sample.view(read).id, 5);
  await win.free();
}

const plain = argument('plain') === 'yes';

await runCases({
  'put and get move what layouts name in an allocated window': (world) => moves(world, ALLOCATED, 'immediate'),
  'put and get move what layouts name by requests': (world) => moves(world, ALLOCATED, 'remote-notify'),
  ...(plain && {
    'put and get move what layouts name over plain memory': (world: Communicator) =>
      moves(world, OVER_PLAIN_MEMORY, 'immediate'),
  }),
  'accumulate and getAccumulate update what layouts name in an allocated window': (world) => updates(world, ALLOCATED),
  ...(plain && {
    'accumulate and getAccumulate update what layouts name over plain memory': (world: Communicator) =>
      updates(world, OVER_PLAIN_MEMORY),
  }),
  'what was kept of a layout says nothing of its next memory': repeats,
  'what is wrong with a layout is said before a byte moves': refusals,
  'what was kept of a right transfer excuses nothing of the next one': refusedLater,
  'records and pairs have their fields': records,
  'columns of one array move, and nothing between them': columns,
});
