/** Arguments that no call takes, by what the call expects in their place. */
import assert from 'node:assert/strict';
import { types } from 'node:util';
import { Communicator, Datatype, Group, Op, Rank, RmaError, type TypedArray } from 'onesided';

/** Something to pass, by a name for messages. */
export type Hostile = readonly [name: string, value: unknown];

/** An object of which nothing can be asked. */
export function explosive(): object {
  const explode = (): never => {
    throw new Error('the argument has run its own code');
  };
  return new Proxy(Object.create(null) as object, {
    get: explode,
    has: explode,
    ownKeys: explode,
    getPrototypeOf: explode,
    getOwnPropertyDescriptor: explode,
  });
}

function withGetter(name: string): object {
  return Object.defineProperty({}, name, {
    enumerable: true,
    get: () => {
      throw new Error(`the getter of ${name} has run`);
    },
  });
}

export function detached<T extends TypedArray>(array: T): T {
  structuredClone(array.buffer, { transfer: [array.buffer as ArrayBuffer] });
  return array;
}

const NO_NUMBERS: readonly Hostile[] = [
  ['null', null],
  ['true', true],
  ['"0"', '0'],
  ['""', ''],
  ['a text', 'one'],
  ['0n', 0n],
  ['a symbol', Symbol('0')],
  ['[]', []],
  ['[0]', [0]],
  ['{}', {}],
  ['a function', () => 0],
  ['an object with valueOf', { valueOf: () => 0 }],
  ['an explosive', explosive()],
  ['a Number', new Number(0)],
];

const NO_INTEGERS: readonly Hostile[] = [
  ['NaN', Number.NaN],
  ['0.5', 0.5],
  ['1e-300', 1e-300],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
];

/** What is no number from 0 to `limit` − 1. `undefined` is one where it has a default. */
export function noIndices(limit: number, whole: boolean = true): readonly Hostile[] {
  const out = [
    -1,
    -2,
    Rank.UNDEFINED,
    -1.5,
    limit,
    limit + 1,
    2 ** 31,
    2 ** 32,
    2 ** 32 + 1,
    2 ** 53,
    1e300,
    -(2 ** 31),
    -(2 ** 53),
  ];
  return [...NO_NUMBERS, ...NO_INTEGERS, ...out.filter((n) => whole || n < 0).map((n): Hostile => [String(n), n])];
}

/** What is no typed array with memory behind it. */
export function noBuffers(like: TypedArray): readonly Hostile[] {
  class Impostor {
    readonly length = 1;
    readonly buffer = new ArrayBuffer(8);
    readonly byteOffset = 0;
    readonly byteLength = 8;
    readonly BYTES_PER_ELEMENT = 8;
    readonly [Symbol.toStringTag] = 'Float64Array';
  }
  const own = like.slice();
  return [
    ['undefined', undefined],
    ['7', 7],
    ...NO_NUMBERS,
    ['an ArrayBuffer', new ArrayBuffer(8)],
    ['a DataView', new DataView(new ArrayBuffer(8))],
    ['an array', [1]],
    ['an impostor', new Impostor()],
    ['an object with the prototype of an array', Object.create(Object.getPrototypeOf(own) as object)],
    ['a proxy of an array', new Proxy(own, {})],
    [
      'a proxy whose elements explode',
      new Proxy(own, {
        get: (array, key) => (key === '1' ? explosive() : (Reflect.get(array, key, array) as unknown)),
      }),
    ],
    ['a detached array', detached(like.slice())],
  ];
}

/** What is no memory for a window: no buffer without a type of its elements either. */
export function noMemories(like: TypedArray): readonly Hostile[] {
  const moved = new ArrayBuffer(8);
  structuredClone(moved, { transfer: [moved] });
  const none = noBuffers(like).filter(([, value]) => !types.isAnyArrayBuffer(value) && !types.isDataView(value));
  return [...none, ['a detached ArrayBuffer', moved]];
}

export function noOps(): readonly Hostile[] {
  return [
    ['undefined', undefined],
    ['0', 0],
    ...NO_NUMBERS,
    ['the name of one', 'SUM'],
    ['a copy', { name: 'SUM', code: 0 }],
    ['an object with its prototype', Object.create(Object.getPrototypeOf(Op.SUM) as object)],
    ['a proxy of one', new Proxy(Op.SUM, {})],
  ];
}

export function noAsserts(): readonly Hostile[] {
  return [
    ...NO_NUMBERS,
    ...NO_INTEGERS,
    ['-1', -1],
    ['32', 32],
    ['2^31', 2 ** 31],
    ['2^32', 2 ** 32],
    ['2^32 + 8', 2 ** 32 + 8],
  ];
}

export function noLockTypes(): readonly Hostile[] {
  return [
    ['undefined', undefined],
    ...NO_NUMBERS,
    ...NO_INTEGERS,
    ['0', 0],
    ['3', 3],
    ['-1', -1],
    ['2^32 + 1', 2 ** 32 + 1],
  ];
}

export function noOptions(): readonly Hostile[] {
  return [
    ...NO_NUMBERS.filter(
      ([name]) => !['[]', '[0]', '{}', 'an object with valueOf', 'a Number', 'a function'].includes(name),
    ),
    ['7', 7],
    ['an explosive signal', { signal: explosive() }],
    ['a signal with a getter', { signal: withGetter('aborted') }],
    ['a getter of the signal', withGetter('signal')],
    ['a getter of the timeout', withGetter('timeout')],
    ['a signal that is none', { signal: {} }],
    ['an impostor of a signal', { signal: Object.create(AbortSignal.prototype) as AbortSignal }],
    ...[null, '5', -1, Number.NaN, 5n, {}, []].map((timeout): Hostile => [`timeout ${typeof timeout}`, { timeout }]),
  ];
}

export function noDatatypes(): readonly Hostile[] {
  return [
    ['undefined', undefined],
    ['0', 0],
    ...NO_NUMBERS,
    ['the class', Datatype],
    ['an object with its prototype', Object.create(Datatype.prototype)],
    ['a proxy of one', new Proxy(Datatype.INT8, {})],
  ];
}

export function noCommunicators(real: Communicator): readonly Hostile[] {
  return [
    ['undefined', undefined],
    ['0', 0],
    ...NO_NUMBERS,
    ['an object with its prototype', Object.create(Communicator.prototype)],
    ['a proxy of one', new Proxy(real, {})],
  ];
}

export function noGroups(real: Group): readonly Hostile[] {
  return [
    ['undefined', undefined],
    ['0', 0],
    ...NO_NUMBERS,
    ['an object with its prototype', Object.create(Group.prototype)],
    ['a proxy of one', new Proxy(real, {})],
  ];
}

export function noConstructors(): readonly Hostile[] {
  const named = (name: string): unknown =>
    Object.defineProperties(class {}, { name: { value: name }, BYTES_PER_ELEMENT: { value: 8 } });
  return [
    ['undefined', undefined],
    ['8', 8],
    ...NO_NUMBERS,
    ['ArrayBuffer', ArrayBuffer],
    ['DataView', DataView],
    ['Array', Array],
    ['the name of one', 'Float64Array'],
    ['an array', new Float64Array(1)],
    ['the abstract TypedArray', Object.getPrototypeOf(Float64Array)],
    ['a class that is named so', named('Float64Array')],
    ['a class that is named as an object method', named('toString')],
    ['a proxy of one', new Proxy(Float64Array, {})],
  ];
}

/** A list that is none, or one of whose elements is not what it should be. */
export function noLists(element: unknown): readonly Hostile[] {
  return [
    ['undefined', undefined],
    ['0', 0],
    ...NO_NUMBERS.filter(([name]) => name !== '[]' && name !== '[0]'),
    ['a list with a hole', Object.assign(new Array<unknown>(2), { 1: element })],
    ['a list with a text', ['0']],
    ['a list with NaN', [Number.NaN]],
    ['a list with a fraction', [0.5]],
    ['a list with an explosive', [explosive()]],
    ['a list with a getter', Object.defineProperty([element], 0, { get: () => explosive() })],
    [
      'a list with a getter that throws',
      Object.defineProperty([element], 0, {
        get: () => {
          throw new Error('the getter has run');
        },
      }),
    ],
    ['an explosive list', new Proxy([element], { get: () => explosive() })],
  ];
}

const CODE = /^ERR_[A-Z_]+$/;

/** Asserts that an error is one of the library's, and says which call it is about. */
function assertOwn(error: unknown, call: string, label: string): void {
  const { code, message } = error as { code?: unknown; message?: unknown };
  const kind = error instanceof RmaError || error instanceof TypeError || error instanceof RangeError;
  if (kind && typeof code === 'string' && CODE.test(code) && typeof message === 'string' && message.includes(call))
    return;
  throw new Error(`${label}: an error of the library's that names ${call} was expected`, { cause: error });
}

export function assertRefused(call: string, label: string, run: () => unknown): void {
  let value: unknown;
  try {
    value = run();
  } catch (error) {
    assertOwn(error, call, label);
    return;
  }
  if (value instanceof Promise) value.catch(() => {});
  assert.fail(`${label} was taken${value instanceof Promise ? ' (a promise was returned)' : ''}`);
}

export async function assertRejected(call: string, label: string, run: () => Promise<unknown>): Promise<void> {
  let promise: Promise<unknown>;
  try {
    promise = run();
  } catch (error) {
    throw new Error(`${label}: thrown, not rejected`, { cause: error });
  }
  await promise.then(
    () => assert.fail(`${label} was taken`),
    (error) => assertOwn(error, call, label),
  );
}
