/**
 * Every argument of every call of a window, wrong in every way: an error with a code, not one byte changed anywhere,
 * and a window that goes on working. Rank 0 calls; the others look after it whether their memory is as it was.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  Assert,
  type Communicator,
  Datatype,
  Lock,
  Op,
  Rank,
  type TransferLayout,
  type TypedArray,
  Window,
  type WindowInfo,
} from 'onesided';
import { argument, caseOf, each, runCases } from './support/cases.ts';
import {
  assertRefused,
  assertRejected,
  detached,
  explosive,
  type Hostile,
  noAsserts,
  noBuffers,
  noCommunicators,
  noConstructors,
  noDatatypes,
  noIndices,
  noLockTypes,
  noMemories,
  noOps,
  noOptions,
} from './support/hostile.ts';

const seed = Number(argument('seed') ?? 1);
const LENGTH = 32;
const INFOS = [{ fence: 'immediate' }, { fence: 'remote-notify' }] as const;

/** Anything that can be said where TypeScript would not let it. */
// biome-ignore lint/suspicious/noExplicitAny: wrong types are what this is about
type Any = any;

interface State {
  readonly name: string;
  /** Whether a right call would be taken. */
  readonly open: boolean;
  enter(win: Window<Float64Array>): void;
  leave(win: Window<Float64Array>): void;
}

/** States that rank 0 can be in without the others. */
const STATES: readonly State[] = [
  { name: 'no epoch', open: false, enter: () => {}, leave: () => {} },
  {
    name: 'lockAll',
    open: true,
    enter: (win) => win.lockAllSync(),
    leave: (win) => win.unlockAllSync(),
  },
  {
    name: 'locks',
    open: true,
    enter: (win) => {
      for (let target = 0; target < win.group.size; target++) win.lockSync(target, Lock.SHARED);
    },
    leave: (win) => {
      for (let target = 0; target < win.group.size; target++) win.unlockSync(target);
    },
  },
];

const pattern = (rank: number): Float64Array => Float64Array.from({ length: LENGTH }, (_, i) => 1000 * (rank + 1) + i);

/**
 * Runs `body` on rank 0 with a window of known contents at all ranks, and looks that these are unchanged in the end,
 * and that the window works.
 */
async function onePasses(
  world: Communicator,
  info: WindowInfo,
  state: State,
  body: (win: Window<Float64Array>, check: (label: string) => void) => unknown,
): Promise<void> {
  const win = await Window.allocate(world, Float64Array, LENGTH, { info });
  win.local.set(pattern(world.rank));
  await world.barrier();
  if (world.rank === 0) {
    const found = new Float64Array(LENGTH);
    state.enter(win);
    await body(win, (label) => {
      assert.deepEqual([...win.local], [...pattern(0)], `${label}: own memory has changed`);
      if (!state.open) return;
      for (let target = 0; target < world.size; target++) {
        win.get(found, target, 0);
        win.flushSync(target);
        assert.deepEqual([...found], [...pattern(target)], `${label}: the memory of rank ${target} has changed`);
      }
    });
    state.leave(win);
  }
  await world.barrier();
  assert.deepEqual([...win.local], [...pattern(world.rank)]);
  await stillWorks(world, win);
  await win.free();
}

async function stillWorks(world: Communicator, win: Window<Float64Array>): Promise<void> {
  const { rank, size } = world;
  await win.fence();
  win.put(Float64Array.of(-1 - rank), (rank + 1) % size, 3);
  await win.fence(Assert.NO_SUCCEED);
  assert.equal(win.local[3], -1 - ((rank - 1 + size) % size));
  await win.lock(0, Lock.EXCLUSIVE);
  win.accumulate(Float64Array.of(1), 0, 4, Op.SUM);
  await win.unlock(0);
  await world.barrier();
  if (rank === 0) assert.equal(win.local[4], pattern(0)[4] + size);
  await world.barrier();
}

const MOVES = ['put', 'get', 'accumulate'] as const;

/** A call of `name` with right arguments, of which `change` makes wrong ones. */
function move(win: Window, name: (typeof MOVES)[number], target: number, change: (args: Any[]) => void): void {
  const args: Any[] = [Float64Array.of(1, 2), target, 0];
  if (name === 'accumulate') args.push(Op.SUM);
  change(args);
  (win[name] as Any)(...args);
}

/** Layouts that are none, or do not fit an origin of two doubles and a target of `LENGTH`. */
function noLayouts(): readonly Hostile[] {
  const of = (side: 'origin' | 'target', layout: unknown): Hostile[] => [
    [`${side} alone`, { [side]: layout }],
    [
      `${side} beside a right one`,
      { origin: { type: Datatype.FLOAT64, count: 2 }, target: { type: Datatype.FLOAT64, count: 2 }, [side]: layout },
    ],
  ];
  const sides = (layout: unknown): Hostile[] => [...of('origin', layout), ...of('target', layout)];
  const throwing = {
    get type(): Datatype {
      throw new Error('the getter of type has run');
    },
  };
  return [
    ['null', null],
    ['5', 5],
    ['"x"', 'x'],
    ['true', true],
    ['a symbol', Symbol('layout')],
    ['an explosive', explosive()],
    ...[null, 5, 'x', {}, [], explosive(), throwing, Datatype.FLOAT64].flatMap(sides),
    ...noDatatypes().flatMap(([, type]) => sides({ type, count: 2 })),
    ...noIndices(2 ** 50, false)
      .filter(([, count]) => count !== 0 && count !== undefined)
      .flatMap(([, count]) => sides({ type: Datatype.FLOAT64, count })),
    // Wrong type, wrong number of elements.
    ...[
      Datatype.FLOAT32,
      Datatype.INT64,
      Datatype.UINT64,
      Datatype.BYTE,
      Datatype.vector(1, 1, 1, Datatype.INT8),
    ].flatMap((type) => of('target', { type, count: 2 })),
    ...[0, 1, 3, 2 ** 31, 2 ** 53].flatMap((count) => of('target', { type: Datatype.FLOAT64, count })),
    // Past the end of the origin, by an element or by a byte, or before its beginning.
    ...of('origin', { type: Datatype.FLOAT64, count: 3 }),
    ...of('origin', { type: Datatype.BYTE, count: 17 }),
    ...of('origin', { type: Datatype.vector(2, 1, 2, Datatype.FLOAT64) }),
    ...of('origin', { type: Datatype.vector(2, 1, -1, Datatype.FLOAT64) }),
    ...of('origin', { type: Datatype.indexedBlock(1, [0, -1], Datatype.FLOAT64) }),
    // Past the end of the target, or before it.
    ...of('target', { type: Datatype.vector(2, 1, LENGTH, Datatype.FLOAT64) }),
    ...of('target', { type: Datatype.vector(2, 1, -1, Datatype.FLOAT64) }),
    ...of('target', { type: Datatype.indexedBlock(1, [LENGTH - 1, LENGTH], Datatype.FLOAT64) }),
    ...of('target', { type: Datatype.indexedBlock(2, [2 ** 30], Datatype.FLOAT64) }),
  ];
}

async function moves(world: Communicator, info: WindowInfo): Promise<void> {
  for (const state of STATES) {
    await onePasses(world, info, state, (win, check) => {
      // The second time, with targets that have been mapped: other code.
      for (const mapped of [false, true]) {
        if (mapped && state.open)
          for (let target = 0; target < world.size; target++) win.get(new Float64Array(1), target, 0);
        for (const name of MOVES) {
          for (let target = 0; target < world.size; target++) {
            const wrong = (what: string, hostiles: readonly Hostile[], place: number): void => {
              for (const [hostile, value] of hostiles) {
                const label = `${name} to rank ${target} in state ${state.name}, ${what}: ${hostile}`;
                const origin = Float64Array.of(1, 2);
                assertRefused(name, label, () =>
                  move(win, name, target, (args) => args.splice(0, 1, origin) && args.splice(place, 1, value)),
                );
                assert.deepEqual([...origin], [1, 2], `${label}: the origin has changed`);
                check(label);
              }
            };
            wrong('origin', noBuffers(Float64Array.of(1, 2)), 0);
            wrong('target', [['undefined', undefined], ...noIndices(world.size)], 1);
            wrong('displacement', [['undefined', undefined], ['-1', -1], ...noIndices(LENGTH - 1)], 2);
            if (name === 'accumulate') wrong('operation', [...noOps(), ['Op.BAND', Op.BAND], ['Op.LAND', Op.LAND]], 3);
            const last = name === 'accumulate' ? 4 : 3;
            for (const [i, [hostile, layout]] of noLayouts().entries()) {
              const label = `${name} to rank ${target} in state ${state.name}, layout ${i}: ${hostile}`;
              assertRefused(name, label, () => move(win, name, target, (args) => args.splice(last, 0, layout)));
              check(label);
            }
          }
          if (!state.open) {
            assertRefused(name, 'without an epoch', () => move(win, name, 0, () => {}));
            assertRefused(name, 'to nobody without an epoch', () => move(win, name, Rank.NULL, () => {}));
          }
        }
      }
    });
  }
}

async function singles(world: Communicator, info: WindowInfo): Promise<void> {
  for (const state of STATES) {
    await onePasses(world, info, state, (win, check) => {
      for (const mapped of [false, true]) {
        if (mapped && state.open)
          for (let target = 0; target < world.size; target++) win.get(new Float64Array(1), target, 0);
        for (const type of [BigInt64Array, Int32Array, Uint8Array, Float64Array] as Any[]) {
          const one = (): TypedArray => new type(1);
          const two = new type(2) as TypedArray;
          const other = type === Int32Array ? new Uint32Array(1) : new Int32Array(1);
          const buffers: readonly Hostile[] = [
            ...noBuffers(one()),
            ['none', new type(0)],
            ['two', two],
            ['another type', other],
          ];
          for (let target = 0; target < world.size; target++) {
            const wrong = (
              call: 'fetchAndOp' | 'compareAndSwap',
              right: () => Any[],
              place: number,
              hostiles: readonly Hostile[],
            ): void => {
              for (const [hostile, value] of hostiles) {
                const label =
                  `${call} on rank ${target} in state ${state.name}, ${type.name}, ` + `argument ${place}: ${hostile}`;
                const args = right();
                args.splice(place, 1, value);
                assertRefused(call, label, () => (win[call] as Any)(...args));
                check(label);
              }
            };
            const fetch = (): Any[] => [one(), one(), target, 0, Op.REPLACE];
            const swap = (): Any[] => [one(), one(), one(), target, 0];
            const ranks: readonly Hostile[] = [['undefined', undefined], ...noIndices(world.size)];
            const byteLength = LENGTH * 8;
            const disps: readonly Hostile[] = [
              ['undefined', undefined],
              ['-1', -1],
              ...noIndices(LENGTH),
              ['bytes', byteLength],
            ];
            wrong('fetchAndOp', fetch, 0, buffers);
            wrong('fetchAndOp', fetch, 1, buffers);
            wrong('fetchAndOp', fetch, 2, ranks);
            wrong('fetchAndOp', fetch, 3, disps);
            wrong(
              'fetchAndOp',
              fetch,
              4,
              type === Float64Array ? [...noOps(), ['Op.BOR', Op.BOR], ['Op.LXOR', Op.LXOR]] : noOps(),
            );
            for (let place = 0; place < 3; place++) wrong('compareAndSwap', swap, place, buffers);
            wrong('compareAndSwap', swap, 3, ranks);
            wrong('compareAndSwap', swap, 4, disps);
            const same = one();
            const shared = new type(2) as TypedArray;
            for (const args of [
              [same, same],
              [shared.subarray(0, 1), shared.subarray(0, 1)],
            ]) {
              assertRefused('fetchAndOp', 'result over origin', () =>
                (win.fetchAndOp as Any)(args[0], args[1], target, 0, Op.SUM),
              );
              assertRefused('compareAndSwap', 'result over origin', () =>
                (win.compareAndSwap as Any)(args[0], one(), args[1], target, 0),
              );
              assertRefused('compareAndSwap', 'result over compare', () =>
                (win.compareAndSwap as Any)(one(), args[0], args[1], target, 0),
              );
              check('overlapping arguments');
            }
            if (!state.open) {
              assertRefused('fetchAndOp', 'without an epoch', () => (win.fetchAndOp as Any)(...fetch()));
              assertRefused('compareAndSwap', 'without an epoch', () => (win.compareAndSwap as Any)(...swap()));
            }
          }
        }
      }
    });
  }
}

/** Arguments of the calls that wait, in both forms. */
async function waits(world: Communicator, info: WindowInfo): Promise<void> {
  await onePasses(world, info, STATES[0], async (win, check) => {
    const ranks: readonly Hostile[] = [['undefined', undefined], ...noIndices(world.size)];
    const calls: readonly [string, Any[], number, readonly Hostile[]][] = [
      ['fence', [0], 0, noAsserts()],
      ['fence', [0], 1, noOptions()],
      ['lock', [0, Lock.SHARED], 0, ranks],
      ['lock', [0, Lock.SHARED], 1, noLockTypes()],
      ['lock', [0, Lock.EXCLUSIVE, 0], 2, [...noAsserts(), ['NO_PUT', Assert.NO_PUT]]],
      ['lock', [0, Lock.EXCLUSIVE, 0], 3, noOptions()],
      ['unlock', [0], 0, ranks],
      ['unlock', [0], 1, noOptions()],
      ['lockAll', [0], 0, noAsserts()],
      ['lockAll', [0], 1, noOptions()],
      ['unlockAll', [], 0, noOptions()],
      ['flush', [0], 0, ranks],
      ['flush', [0], 1, noOptions()],
      ['flushAll', [], 0, noOptions()],
      ['free', [], 0, noOptions()],
    ];
    for (const [name, right, place, hostiles] of calls) {
      for (const [hostile, value] of hostiles) {
        const args = [...right];
        args.splice(place, 1, value);
        const label = `${name}, argument ${place}: ${hostile}`;
        await assertRejected(name, label, () => (win as Any)[name](...args));
        assertRefused(name, `${label}, Sync`, () => (win as Any)[`${name}Sync`](...args));
        check(label);
      }
    }
    for (const name of ['unlockAll', 'flushAll', 'flushLocalAll']) {
      await assertRejected(name, `${name} without an epoch`, () => (win as Any)[name]());
      assertRefused(name, `${name}Sync without an epoch`, () => (win as Any)[`${name}Sync`]());
    }
    for (const name of ['unlock', 'flush', 'flushLocal']) {
      for (let target = 0; target < world.size; target++) {
        await assertRejected(name, `${name} without an epoch`, () => (win as Any)[name](target));
        assertRefused(name, `${name}Sync without an epoch`, () => (win as Any)[`${name}Sync`](target));
      }
    }
  });
}

function resizable(bytes: number): ArrayBuffer {
  const Resizable = ArrayBuffer as unknown as new (bytes: number, options: { maxByteLength: number }) => ArrayBuffer;
  return new Resizable(bytes, { maxByteLength: 2 * bytes });
}

/** Collective: all ranks give the same wrong arguments, and a window can be made afterwards. */
async function making(world: Communicator): Promise<void> {
  const memory = world.allocMem(Float64Array, 8);
  const infos: readonly Hostile[] = [
    ['null', null],
    ['5', 5],
    ['an explosive', explosive()],
    ['an empty key', { '': 1 }],
    ['an unknown fence', { fence: 'later' }],
    ['a fence of another type', { fence: explosive() }],
    ['no_locks', { no_locks: 'perhaps' }],
    ['no_locks, explosive', { no_locks: explosive() }],
    ['lock', { lock: 'spin' }],
    ['schedule', { schedule: 'issue-order,gets-first' }],
    ['schedule, explosive', { schedule: explosive() }],
    ['accumulate_ordering', { accumulate_ordering: 'rar,raw,why' }],
    ['accumulate_ordering, explosive', { accumulate_ordering: explosive() }],
    ['accumulate_ops', { accumulate_ops: 'any' }],
    ['mpi_accumulate_granularity', { mpi_accumulate_granularity: -1 }],
    ['mpi_accumulate_granularity, explosive', { mpi_accumulate_granularity: explosive() }],
    ['mpi_accumulate_granularity, a symbol', { mpi_accumulate_granularity: Symbol('8') }],
    ['same_size', { same_size: 1 }],
    [
      'a getter',
      {
        get fence() {
          throw new Error('the getter of fence has run');
        },
      },
    ],
  ];
  const options: readonly Hostile[] = [
    ...noOptions(),
    ...[-1, 0.5, Number.NaN, 2 ** 31, 2 ** 53, null, '8', 8n, {}, explosive()].map(
      (dispUnit): Hostile => [`dispUnit ${typeof dispUnit}`, { dispUnit }],
    ),
    ...infos.map(([name, info]): Hostile => [`info: ${name}`, { info }]),
    [
      'a getter of dispUnit',
      {
        get dispUnit() {
          throw new Error('the getter of dispUnit has run');
        },
      },
    ],
    [
      'a getter of the name',
      {
        get name() {
          throw new Error('the getter of name has run');
        },
      },
    ],
  ];
  const lengths = [
    ...noIndices(2 ** 55, false),
    ['undefined', undefined] as const,
    ['2^50', 2 ** 50] as const,
    ['2^52', 2 ** 52] as const,
    ['2^53 − 1', 2 ** 53 - 1] as const,
  ];
  const foreign: readonly Hostile[] = [
    // `null` is none.
    ...noMemories(new Float64Array(2)).filter(([, value]) => value !== null),
    ['a resizable buffer', new Float64Array(resizable(32))],
  ];
  const calls: readonly ['allocate' | 'create', Any[], number, readonly Hostile[]][] = [
    ['allocate', [world, Float64Array, 4], 0, noCommunicators(world)],
    ['allocate', [world, Float64Array, 4], 1, noConstructors()],
    ['allocate', [world, Float64Array, 4], 2, lengths],
    ['allocate', [world, Float64Array, 4], 3, options],
    ['create', [world, memory], 0, noCommunicators(world)],
    ['create', [world, memory], 1, foreign],
    ['create', [world, memory], 2, options],
  ];
  for (const [name, right, place, hostiles] of calls) {
    for (const [hostile, value] of hostiles) {
      const args = [...right];
      args.splice(place, 1, value);
      const label = `Window.${name}, argument ${place}: ${hostile}`;
      await assertRejected(`Window.${name}`, label, () => (Window as Any)[name](...args));
      assertRefused(`Window.${name}`, `${label}, Sync`, () => (Window as Any)[`${name}Sync`](...args));
    }
  }
  assert.deepEqual([...memory], new Array(8).fill(0));
  for (const hints of [
    undefined,
    {},
    { fence: undefined },
    { accumulate_ordering: 'none' },
    { accumulate_ordering: 'rar,waw' },
    { same_size: 'true' },
  ] as (WindowInfo | undefined)[]) {
    const win = await Window.create(world, memory, hints === undefined ? {} : { info: hints });
    await win.fence();
    await win.fence(Assert.NO_SUCCEED);
    await win.free();
  }
  world.freeMem(memory);
}

/** Memory that a window is made of cannot be taken away from under it. */
async function memoryOfWindows(world: Communicator): Promise<void> {
  const memory = world.allocMem(Float64Array, 64);
  const win = await Window.create(world, memory.subarray(8, 40));
  const own = await Window.allocate(world, Float64Array, 4);
  for (const array of [memory, memory.subarray(0, 1), win.local, own.local]) {
    assertRefused('freeMem', 'memory of a window', () => world.freeMem(array));
  }
  await win.fence();
  win.put(Float64Array.of(5), (world.rank + 1) % world.size, 31);
  await win.fence(Assert.NO_SUCCEED);
  assert.equal(memory[39], 5);
  await own.free();
  await win.free();
  world.freeMem(memory);
  for (const [hostile, value] of noBuffers(new Float64Array(2)))
    assertRefused('freeMem', hostile, () => world.freeMem(value as TypedArray));
  assertRefused('freeMem', 'twice', () => world.freeMem(memory));
  for (const [hostile, value] of noConstructors())
    assertRefused('allocMem', hostile, () => world.allocMem(value as Any, 1));
  for (const [hostile, value] of [
    ...noIndices(2 ** 52, false),
    ['2^50', 2 ** 50] as const,
    ['2^53 - 1', 2 ** 53 - 1] as const,
  ]) {
    assertRefused('allocMem', hostile, () => world.allocMem(Float64Array, value as number));
  }
}

/** Any displacement, count and layout: what a plain model says is right is done, byte by byte, and the rest refused. */
async function anyRange(world: Communicator, info: WindowInfo): Promise<void> {
  const bytes = 64;
  const types = [Datatype.INT8, Datatype.UINT16, Datatype.INT32, Datatype.FLOAT64, Datatype.INT64];
  const arrays = [Int8Array, Uint16Array, Int32Array, Float64Array, BigInt64Array];
  const unit = 1 + (seed % 3);
  const win = await Window.allocate(world, Uint8Array, bytes + world.rank, { dispUnit: unit, info });
  await world.barrier();
  if (world.rank === 0) {
    const layout = fc.record({
      kind: fc.constantFrom('plain', 'vector', 'indexed'),
      count: fc.integer({ min: 0, max: 4 }),
      blocks: fc.integer({ min: 0, max: 4 }),
      block: fc.integer({ min: 0, max: 3 }),
      stride: fc.integer({ min: -3, max: 5 }),
      starts: fc.array(fc.integer({ min: -3, max: 12 }), { maxLength: 6 }),
    });
    const disp = fc.oneof(
      fc.integer({ min: -2, max: bytes + 2 }),
      fc.double({ min: -4, max: 80, noNaN: false }),
      fc.integer(),
    );
    const property = fc.property(
      fc.constantFrom(...MOVES),
      fc.nat({ max: types.length - 1 }),
      fc.nat({ max: 12 }),
      disp,
      fc.nat({ max: world.size - 1 }),
      layout,
      layout,
      fc.boolean(),
      (name, t, length, at, target, fromShape, toShape, laidOut) => {
        win.lockSync(target, Lock.EXCLUSIVE);
        try {
          const width = types[t].size;
          const part = new Uint8Array(bytes + target).map((_, i) => 7 * i + target);
          win.put(part, target, 0);
          win.flushSync(target);
          const raw = new Uint8Array(length * width).map((_, i) => 201 - i);
          const origin = new (arrays[t] as Any)(raw.slice().buffer) as TypedArray;
          const from = laidOut ? shape(fromShape, types[t], length) : { layout: undefined, offsets: range(length) };
          const to = laidOut
            ? shape(toShape, types[t], from.offsets.length)
            : { layout: undefined, offsets: from.offsets.map((_, i) => i) };
          const given: TransferLayout | undefined = laidOut
            ? ({ origin: from.layout, target: to.layout } as TransferLayout)
            : undefined;
          const start = at * unit;
          const inside = (offset: number): boolean =>
            start + offset * width >= 0 && start + (offset + 1) * width <= bytes + target;
          const some = from.offsets.length > 0;
          const overlapping =
            new Set(to.offsets).size < to.offsets.length ||
            (name === 'get' && new Set(from.offsets).size < from.offsets.length);
          if (overlapping) return;
          const right =
            Number.isSafeInteger(at) &&
            at >= 0 &&
            from.offsets.length === to.offsets.length &&
            from.offsets.every((offset) => offset >= 0 && offset < length) &&
            to.offsets.every(inside) &&
            (some || start <= bytes + target) &&
            (name !== 'accumulate' || !some || start % width === 0);
          const run = (): void =>
            name === 'accumulate'
              ? win.accumulate(origin, target, at, Op.REPLACE, given)
              : win[name](origin, target, at, given);
          const after = new Uint8Array(bytes + target);
          if (!right) {
            assertRefused(name, 'a wrong range', run);
            win.get(after, target, 0);
            win.flushSync(target);
            assert.deepEqual([...after], [...part], 'the target has changed');
            assert.deepEqual([...new Uint8Array(origin.buffer)], [...raw], 'the origin has changed');
            return;
          }
          run();
          win.flushSync(target);
          win.get(after, target, 0);
          win.flushSync(target);
          const [expectedPart, expectedRaw] = [part.slice(), raw.slice()];
          for (const [i, offset] of from.offsets.entries()) {
            const [o, p] = [offset * width, start + to.offsets[i] * width];
            if (name === 'get') expectedRaw.set(part.subarray(p, p + width), o);
            else expectedPart.set(raw.subarray(o, o + width), p);
          }
          assert.deepEqual([...after], [...expectedPart]);
          assert.deepEqual([...new Uint8Array(origin.buffer)], [...expectedRaw]);
        } finally {
          win.unlockSync(target);
        }
      },
    );
    fc.assert(property, { seed, numRuns: 4000 });
  }
  await world.barrier();
  await win.free();
}

interface Shape {
  readonly kind: string;
  readonly count: number;
  readonly blocks: number;
  readonly block: number;
  readonly stride: number;
  readonly starts: readonly number[];
}

const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

function shape(
  { kind, count, blocks, block, stride, starts }: Shape,
  type: Datatype,
  elements: number,
): { layout: TransferLayout['origin']; offsets: number[] } {
  if (kind === 'plain') return { layout: { type, count: elements }, offsets: range(elements) };
  const first = kind === 'vector' ? range(blocks).map((b) => b * stride) : [...starts];
  const made =
    kind === 'vector' ? Datatype.vector(blocks, block, stride, type) : Datatype.indexedBlock(block, starts, type);
  const once = first.flatMap((start) => range(block).map((i) => start + i));
  const extent = once.length === 0 ? 0 : Math.max(...once) + 1 - Math.min(...once);
  return {
    layout: { type: made, count },
    offsets: range(count).flatMap((c) => once.map((offset) => offset + c * extent)),
  };
}

/** Views that change under a call: detached, shrunk, or in another realm's memory. */
async function strangeOrigins(world: Communicator, info: WindowInfo): Promise<void> {
  await onePasses(world, info, STATES[1], (win, check) => {
    const target = world.size - 1;
    for (const name of MOVES) {
      const gone = detached(new Float64Array(2));
      assertRefused(name, 'detached', () => move(win, name, target, (args) => args.splice(0, 1, gone)));
      check(`${name} with a detached origin`);
    }
    const resizable = ArrayBuffer as unknown as new (
      n: number,
      o: { maxByteLength: number },
    ) => ArrayBuffer & { resize(n: number): void };
    const buffer = new resizable(32, { maxByteLength: 4096 });
    const tracking = new Float64Array(buffer);
    tracking.set(pattern(target).subarray(0, 4));
    win.put(tracking, target, 0);
    win.flushSync(target);
    check('put of a resizable buffer');
    // It grows: the memory that a scheme may have registered is not all of it any more.
    buffer.resize(LENGTH * 8);
    tracking.set(pattern(target));
    win.put(tracking, target, 0);
    win.flushSync(target);
    check('put of a resizable buffer that has grown');
    win.get(tracking, target, 0);
    win.flushSync(target);
    assert.deepEqual([...tracking], [...pattern(target)]);
    // It shrinks: the view is out of bounds.
    const fixed = new Float64Array(buffer, 8, 4);
    buffer.resize(8);
    for (const name of MOVES) {
      assertRefused(name, 'out of bounds', () => move(win, name, target, (args) => args.splice(0, 1, fixed)));
      check(`${name} with an origin that is out of bounds`);
    }
    buffer.resize(4096);
    win.put(new Float64Array(buffer, 0, LENGTH).fill(0) && new Float64Array(pattern(target)), target, 0);
    win.flushSync(target);
    check('put after it');
  });
}

/** Nothing can be done with a window any more when its communicator is at its end. */
async function afterFinalize(world: Communicator): Promise<void> {
  for (const info of INFOS) {
    const comm = await world.dup();
    const win = await Window.allocate(comm, Float64Array, 4, { info });
    await win.fence();
    win.put(Float64Array.of(1), (comm.rank + 1) % comm.size, 0);
    await win.fence();
    await comm.finalize();
    const one = Float64Array.of(1);
    const target = (comm.rank + 1) % comm.size;
    const calls: [string, () => unknown][] = [
      ['fence', () => win.fenceSync()],
      ['lock', () => win.lockSync(target, Lock.SHARED)],
      ['lockAll', () => win.lockAllSync()],
      ['barrier', () => comm.barrierSync()],
      ['broadcast', () => comm.broadcastSync(one, 0)],
      ['send', () => comm.send(one, target)],
      ['receive', () => comm.receiveSync(one, target)],
      ['split', () => comm.splitSync(0)],
      ['Window.allocate', () => Window.allocateSync(comm, Int8Array, 1)],
    ];
    for (const [name, call] of calls) assertRefused(name, `${name} after finalize`, call);
    // It was given back already.
    win.freeSync();
    assert.equal(win.local.length === 0 || win.local[0] === 1, true);
    await world.barrier();
  }
}

await runCases([
  ...each(INFOS, 'wrong arguments of put, get and accumulate are refused, and nothing moves', moves),
  ...each(INFOS, 'wrong arguments of fetchAndOp and compareAndSwap are refused, and nothing moves', singles),
  ...each(INFOS, 'wrong arguments of calls that wait are refused, and nothing begins', waits),
  caseOf('windows are not made of wrong arguments', making),
  caseOf('memory of windows is allocated and freed as it may be', memoryOfWindows),
  ...each(INFOS, 'any range is moved whole or refused', anyRange),
  ...each(INFOS, 'strange origins are what they really are, or refused', strangeOrigins),
  caseOf('after finalize every call is refused', afterFinalize),
]);
