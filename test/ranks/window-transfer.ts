/**
 * What put, get, accumulate, fetchAndOp and compareAndSwap write and read, against a plain model: every base type,
 * operation and pair of layouts, few elements and many, so that each of the ways that bytes can take is taken.
 *
 * Each rank writes to the next one. Everything random comes from the seed, so every rank knows what its neighbours do,
 * and computes what it must find.
 */
import assert from 'node:assert/strict';
import {
  type Communicator,
  Datatype,
  Op,
  Rank,
  type TransferLayout,
  type TypedArray,
  Window,
  type WindowInfo,
} from 'onesided';
import { argument, caseOf, runCases } from './support/cases.ts';
import { FENCE_SCHEMES } from './support/kinds.ts';
import {
  BASE_TYPES,
  type BaseType,
  combined,
  firstDifference,
  isAllowed,
  makePlace,
  OPS,
  PLACE_KINDS,
  type Place,
  type PlaceKind,
  randomValues,
  reach,
  setValue,
  valueAt,
} from './support/model.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);
const PART_BYTES = 16384;
const COUNTS = [0, 2, 6, 100];

interface Setting {
  readonly fence: NonNullable<WindowInfo['fence']>;
  readonly flavor: 'allocate' | 'create';
}

const USUAL: readonly Setting[] = [
  { fence: 'immediate', flavor: 'allocate' },
  { fence: 'immediate', flavor: 'create' },
  { fence: 'remote-notify', flavor: 'allocate' },
];
/** `--fences=all`: those of the other fences, too. */
const OTHERS: readonly Setting[] = FENCE_SCHEMES.filter((name) => USUAL.every(({ fence }) => fence !== name)).map(
  (fence, i) => ({ fence, flavor: i % 2 === 0 ? 'allocate' : 'create' }),
);
const SETTINGS = argument('fences') === 'all' ? [...USUAL, ...OTHERS] : USUAL;

/** Displacement units differ from rank to rank. */
const unitOf = (rank: number): number => [8, 1, 4, 2][rank % 4];

async function withWindow(
  world: Communicator,
  { fence, flavor }: Setting,
  body: (win: Window<Float64Array>, bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const options = { dispUnit: unitOf(world.rank), info: { fence } };
  const memory = flavor === 'create' ? world.allocMem(Float64Array, PART_BYTES / 8 + 16) : undefined;
  // A part in the middle of the memory: what lies before and after it must stay as it is.
  const win =
    memory === undefined
      ? await Window.allocate(world, Float64Array, PART_BYTES / 8, options)
      : await Window.create(world, memory.subarray(8, 8 + PART_BYTES / 8), options);
  await body(win, new Uint8Array(win.local.buffer, win.local.byteOffset, PART_BYTES));
  if (memory !== undefined) {
    for (const guard of [memory.subarray(0, 8), memory.subarray(8 + PART_BYTES / 8)])
      assert.deepEqual([...guard], new Array(8).fill(0));
  }
  await win.free();
  if (memory !== undefined) world.freeMem(memory);
}

async function fence(win: Window, sync: boolean): Promise<void> {
  if (sync) win.fenceSync();
  else await win.fence();
}

/** One transfer of every rank to the next, of which each rank can tell all arguments. */
class Scene {
  readonly base: BaseType;
  readonly width: number;
  readonly from: Place;
  readonly to: Place;
  /** Where in the target's part, in bytes. */
  readonly at: number;
  readonly label: string;
  readonly #number: number;

  constructor(
    number: number,
    base: BaseType,
    count: number,
    fromKind: PlaceKind,
    toKind: PlaceKind,
    aligned: boolean,
    target: number,
  ) {
    const random = new Random(seed, number);
    this.#number = number;
    this.base = base;
    this.width = base.bits / 8;
    this.from = makePlace(fromKind, count, base.type, random);
    this.to = makePlace(toKind, count, base.type, random);
    const room = PART_BYTES - reach(this.to) * this.width;
    const step = aligned ? 8 : unitOf(target);
    this.at = random.below(Math.floor(room / step) + 1) * step;
    this.label =
      `scene ${number} (seed ${seed}): ${base.name}, ${this.from.description} to ` +
      `${this.to.description} at byte ${this.at}`;
  }

  get layout(): TransferLayout | undefined {
    const { from, to } = this;
    if (from.layout === undefined && to.layout === undefined) return undefined;
    return { ...(from.layout && { origin: from.layout }), ...(to.layout && { target: to.layout }) };
  }

  /** What rank `rank` takes from, or receives into. */
  origin(rank: number): TypedArray {
    return randomValues(this.base, reach(this.from), new Random(seed, this.#number, rank, 1));
  }

  /** What is in the part of rank `rank` before. */
  part(rank: number, at: number): Uint8Array {
    const bytes = new Uint8Array(PART_BYTES).fill(0xa5);
    const values = randomValues(this.base, reach(this.to), new Random(seed, this.#number, rank, 2));
    bytes.set(new Uint8Array(values.buffer), at);
    return bytes;
  }
}

/** The elements of a type in bytes that need not be aligned to them. */
function elementsAt(base: BaseType, bytes: Uint8Array, at: number, count: number): TypedArray {
  const copy = bytes.slice(at, at + count * (base.bits / 8));
  return new base.array(copy.buffer);
}

function assertPart(scene: Scene, found: Uint8Array, expected: Uint8Array, at: number): void {
  if (Buffer.compare(found, expected) === 0) return;
  // Bits of a NaN may differ.
  const count = reach(scene.to);
  const region = [at, at + count * scene.width];
  const difference = firstDifference(
    elementsAt(scene.base, found, at, count),
    elementsAt(scene.base, expected, at, count),
  );
  assert.equal(difference, -1, `${scene.label}: element ${difference} after the displacement is wrong`);
  assert.ok(
    Buffer.compare(found.subarray(0, region[0]), expected.subarray(0, region[0])) === 0,
    `${scene.label}: bytes before are changed`,
  );
  assert.ok(
    Buffer.compare(found.subarray(region[1]), expected.subarray(region[1])) === 0,
    `${scene.label}: bytes after are changed`,
  );
}

/**
 * Calls `run` with scenes of every base type, count and pair of layouts; with every seventh only where more ranks than
 * two must take turns, since which rank is the target changes nothing else.
 */
async function forEachScene(
  { size }: Communicator,
  target: number,
  aligned: boolean,
  run: (scene: Scene, number: number) => Promise<void>,
): Promise<void> {
  const every = size > 2 ? 7 : 1;
  let number = 0;
  for (const base of BASE_TYPES) {
    for (const fromKind of PLACE_KINDS) {
      for (const toKind of PLACE_KINDS) {
        for (const count of COUNTS) {
          if (++number % every === seed % every)
            await run(new Scene(number, base, count, fromKind, toKind, aligned, target), number);
        }
      }
    }
  }
}

function neighbours({ rank, size }: Communicator): { next: number; previous: number } {
  return { next: (rank + 1) % size, previous: (rank - 1 + size) % size };
}

async function putsAndGets(world: Communicator, setting: Setting): Promise<void> {
  const { rank } = world;
  const { next, previous } = neighbours(world);
  await withWindow(world, setting, async (win, bytes) => {
    win.fenceSync();
    await forEachScene(world, next, false, async (scene, number) => {
      // The scene as the previous rank sees it: the displacement depends on this rank's unit.
      const arriving = sceneOf(scene, number, rank);
      bytes.set(arriving.part(rank, arriving.at));
      await fence(win, (number + rank) % 2 === 0);
      const origin = scene.origin(rank);
      const before = origin.slice();
      win.put(origin, next, scene.at / unitOf(next), scene.layout);
      await fence(win, number % 2 === 0);
      assert.equal(firstDifference(origin, before), -1, `${scene.label}: put changed its origin`);
      const expected = arriving.part(rank, arriving.at);
      store(arriving, expected, arriving.origin(previous));
      assertPart(arriving, bytes, expected, arriving.at);

      // And back: what the next rank has now is known too.
      const into = new scene.base.array(new ArrayBuffer(origin.byteLength));
      win.get(into, next, scene.at / unitOf(next), scene.layout);
      await fence(win, number % 3 === 0);
      const wanted = new scene.base.array(new ArrayBuffer(origin.byteLength));
      for (const offset of scene.from.offsets) setValue(wanted, offset, valueAt(origin, offset));
      const difference = firstDifference(into, wanted);
      assert.equal(difference, -1, `${scene.label}: get found another element ${difference}`);
    });
  });
}

/** The same scene for another target rank. */
function sceneOf(scene: Scene, number: number, target: number): Scene {
  const kindOf = (place: Place): PlaceKind => PLACE_KINDS.find((kind) => place.description.startsWith(kind))!;
  return new Scene(number, scene.base, scene.from.offsets.length, kindOf(scene.from), kindOf(scene.to), false, target);
}

function store(scene: Scene, bytes: Uint8Array, origin: TypedArray): void {
  const { width, at } = scene;
  const source = new Uint8Array(origin.buffer);
  for (const [i, offset] of scene.to.offsets.entries()) {
    const from = scene.from.offsets[i] * width;
    bytes.set(source.subarray(from, from + width), at + offset * width);
  }
}

async function accumulates(world: Communicator, setting: Setting): Promise<void> {
  const { rank } = world;
  const { next, previous } = neighbours(world);
  await withWindow(world, setting, async (win, bytes) => {
    win.fenceSync();
    let turn = 0;
    await forEachScene(world, next, true, async (scene, number) => {
      // All operations in turn: every type meets every operation in several layouts.
      const op = OPS[(turn++ + Math.floor(number / 12)) % OPS.length];
      bytes.set(scene.part(rank, scene.at));
      await fence(win, (number + rank) % 2 === 0);
      const origin = scene.origin(rank);
      const start = (): void => win.accumulate(origin, next, scene.at / unitOf(next), op, scene.layout);
      // Of an empty layout there is nothing that an operation could be undefined on.
      const allowed = isAllowed(op, scene.base) || (reach(scene.to) === 0 && scene.layout !== undefined);
      if (allowed) start();
      else assert.throws(start, { code: 'ERR_OP' });
      await fence(win, number % 2 === 0);
      const expected = scene.part(rank, scene.at);
      if (allowed) combineInto(scene, expected, scene.origin(previous), op);
      try {
        assertPart(scene, bytes, expected, scene.at);
      } catch (cause) {
        throw new Error(`${op} went wrong`, { cause });
      }
    });
  });
}

function combineInto(scene: Scene, bytes: Uint8Array, origin: TypedArray, op: Op): void {
  const target = elementsAt(scene.base, bytes, scene.at, reach(scene.to));
  for (const [i, offset] of scene.to.offsets.entries()) {
    setValue(target, offset, combined(scene.base, op, valueAt(target, offset), valueAt(origin, scene.from.offsets[i])));
  }
  bytes.set(new Uint8Array(target.buffer), scene.at);
}

/** Every operation on every type, one element, in every way to call it; all ranks see what was there before. */
async function singles(world: Communicator, setting: Setting): Promise<void> {
  const { rank } = world;
  const { next, previous } = neighbours(world);
  await withWindow(world, setting, async (win, bytes) => {
    win.fenceSync();
    let number = 10_000;
    for (const base of BASE_TYPES) {
      for (const op of OPS) {
        number++;
        const draw = (who: number, what: number, length = 1): TypedArray =>
          randomValues(base, length, new Random(seed, number, who, what));
        const width = base.bits / 8;
        const at = 8 * new Random(seed, number).below(PART_BYTES / 8);
        const label = `fetchAndOp ${op} on ${base.name}, number ${number} (seed ${seed})`;
        bytes.fill(0xa5);
        bytes.set(new Uint8Array(draw(rank, 0).buffer), at);
        await fence(win, number % 2 === 0);
        const result = draw(rank, 1);
        const untouched = result.slice();
        const start = (): void => (win as Window).fetchAndOp(draw(rank, 2), result, next, at / unitOf(next), op);
        if (isAllowed(op, base)) start();
        else assert.throws(start, { code: 'ERR_OP' });
        await fence(win, (number + rank) % 2 === 0);
        const expected = new Uint8Array(PART_BYTES).fill(0xa5);
        const element = draw(rank, 0);
        if (isAllowed(op, base)) {
          setValue(element, 0, combined(base, op, valueAt(element, 0), valueAt(draw(previous, 2), 0)));
          assert.equal(firstDifference(result, draw(next, 0)), -1, `${label}: result is not what was there`);
        } else assert.equal(firstDifference(result, untouched), -1, `${label}: a refused call wrote its result`);
        expected.set(new Uint8Array(element.buffer), at);
        const found = elementsAt(base, bytes, at, 1);
        assert.equal(firstDifference(found, element), -1, `${label}: the target has ${found[0]}, not ${element[0]}`);
        expected.set(bytes.subarray(at, at + width), at);
        assert.equal(Buffer.compare(bytes, expected), 0, `${label}: other bytes are changed`);
      }
    }
  });
}

async function swaps(world: Communicator, setting: Setting): Promise<void> {
  const { rank } = world;
  const { next } = neighbours(world);
  await withWindow(world, setting, async (win, bytes) => {
    win.fenceSync();
    let number = 20_000;
    for (const base of BASE_TYPES) {
      for (const equal of [true, false, true]) {
        number++;
        const width = base.bits / 8;
        const draw = (what: number): TypedArray => randomValues(base, 1, new Random(seed, number, what));
        const at = 8 * new Random(seed, number).below(PART_BYTES / 8);
        const label = `compareAndSwap on ${base.name}, number ${number} (seed ${seed})`;
        bytes.fill(0x5a);
        bytes.set(new Uint8Array(draw(0).buffer), at);
        await fence(win, number % 2 === 0);
        const compare = draw(0);
        if (!equal) new Uint8Array(compare.buffer)[0] ^= 1;
        const result = draw(1);
        const start = (): void => (win as Window).compareAndSwap(draw(2), compare, result, next, at / unitOf(next));
        if (base.kind === 'float') assert.throws(start, { code: 'ERR_TYPE' });
        else start();
        await fence(win, (number + rank) % 2 === 0);
        const swapped = base.kind !== 'float' && equal;
        const expected = new Uint8Array(PART_BYTES).fill(0x5a);
        expected.set(new Uint8Array(draw(swapped ? 2 : 0).buffer), at);
        assert.equal(
          Buffer.compare(bytes, expected),
          0,
          `${label}: byte ${at} … ${at + width - 1} or others are wrong`,
        );
        assert.equal(firstDifference(result, draw(base.kind === 'float' ? 1 : 0)), -1, `${label}: result`);
      }
    }
  });
}

/** The same bytes through views of other types: BYTE elements of any array, a Buffer, clamped bytes, shared memory. */
async function bytesOfOtherTypes(world: Communicator, setting: Setting): Promise<void> {
  const { next } = neighbours(world);
  await withWindow(world, setting, async (win, bytes) => {
    const origins: readonly TypedArray[] = [
      Buffer.from('onesided'),
      Uint8ClampedArray.of(1, 2, 3, 255, 5, 6, 7, 8),
      new Int32Array(new SharedArrayBuffer(8)).fill(0x01020384),
      Float64Array.of(Math.PI),
    ];
    for (const origin of origins) {
      const image = new Uint8Array(origin.buffer, origin.byteOffset, 8).slice();
      bytes.fill(0);
      win.fenceSync();
      win.put(origin, next, 64 / unitOf(next), {
        origin: { type: Datatype.BYTE, count: 8 },
        target: { type: Datatype.BYTE, count: 8 },
      });
      win.fenceSync();
      assert.deepEqual([...bytes.subarray(64, 72)], [...image], 'put of BYTE');
      win.fenceSync();
      // The same bits twice leave nothing: four bytes (one after the other, here), then eight (in one native call).
      for (const [count, left] of [
        [4, [0, 0, 0, 0, ...image.subarray(4)]],
        [8, [...image.subarray(0, 4), 0, 0, 0, 0]],
      ] as const) {
        const layout = { origin: { type: Datatype.BYTE, count }, target: { type: Datatype.BYTE, count } };
        win.accumulate(origin, next, 64 / unitOf(next), Op.BXOR, layout);
        win.fenceSync();
        assert.deepEqual([...bytes.subarray(64, 72)], left, `BXOR of ${count} BYTEs of a ${origin.constructor.name}`);
        win.fenceSync();
      }
    }
    assert.throws(
      () => win.accumulate(Buffer.alloc(8), next, 0, Op.SUM, { target: { type: Datatype.BYTE, count: 8 } }),
      {
        code: 'ERR_TYPE',
      },
    );
    win.fenceSync();
  });
}

/** Transfers that are larger than any buffer on the way, to oneself, and to nobody. */
async function sizesAndTargets(world: Communicator, setting: Setting): Promise<void> {
  const { rank } = world;
  const { next, previous } = neighbours(world);
  const length = 40_000;
  const win = await Window.allocate(world, Float64Array, 2 * length, { info: { fence: setting.fence } });
  const values = (who: number): Float64Array => Float64Array.from({ length }, (_, i) => who * length + i);
  const same = (a: Float64Array, b: Float64Array): void =>
    assert.equal(Buffer.compare(new Uint8Array(a.buffer, a.byteOffset, a.byteLength), new Uint8Array(b.buffer)), 0);
  await win.fence();
  win.put(values(rank), next, 0);
  win.put(values(rank), rank, length);
  await win.fence();
  same(win.local.subarray(0, length), values(previous));
  same(win.local.subarray(length), values(rank));
  const [far, near] = [new Float64Array(length), new Float64Array(length)];
  win.get(far, next, length);
  win.get(near, rank, length);
  win.fenceSync();
  same(far, values(next));
  same(near, values(rank));
  win.accumulate(values(rank), next, 0, Op.SUM);
  win.accumulate(values(rank), rank, length, Op.SUM);
  win.fenceSync();
  same(
    win.local.subarray(0, length),
    values(previous).map((value) => 2 * value),
  );
  same(
    win.local.subarray(length),
    values(rank).map((value) => 2 * value),
  );

  const image = win.local.slice();
  const result = Float64Array.of(7);
  win.fenceSync();
  win.put(values(rank), Rank.NULL, 0);
  win.get(far, Rank.NULL, 1e9);
  win.accumulate(values(rank), Rank.NULL, 0, Op.SUM);
  win.fetchAndOp(Float64Array.of(1), result, Rank.NULL, 0, Op.SUM);
  (win as Window).compareAndSwap(Int32Array.of(1), Int32Array.of(2), Int32Array.of(3), Rank.NULL, 0);
  win.fenceSync();
  same(win.local, image);
  assert.equal(result[0], 7);
  same(far, values(next));

  // Many small ones without a pause between: more than any queue holds.
  win.fenceSync();
  for (let i = 0; i < 3000; i++) win.put(Float64Array.of(i), next, i);
  const gotten = Array.from({ length: 300 }, () => new Float64Array(1));
  for (const [i, one] of gotten.entries()) win.get(one, next, length + i);
  await win.fence();
  for (let i = 0; i < 3000; i++) assert.equal(win.local[i], i);
  for (const [i, one] of gotten.entries()) assert.equal(one[0], 2 * (next * length + i));
  await win.free();
}

const CASES = {
  'put and get': ['puts and gets move every type by every layout', putsAndGets],
  accumulate: ['accumulates combine as their operation says', accumulates],
  fetchAndOp: ['fetchAndOp fetches what was there, and combines', singles],
  compareAndSwap: ['compareAndSwap swaps if it finds what it compares', swaps],
  views: ['arrays of other types are their bytes', bytesOfOtherTypes],
  sizes: ['transfers are as large as they like, to oneself and to nobody, too', sizesAndTargets],
} as const;

await runCases(
  SETTINGS.flatMap((setting) =>
    Object.entries(CASES).map(([about, [title, run]]) =>
      caseOf(`${title} (${setting.flavor}, fence ${setting.fence})`, (world) => run(world, setting), [about], setting),
    ),
  ),
);
