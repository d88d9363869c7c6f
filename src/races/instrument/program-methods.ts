/** Methods by which a program loads and stores: what each touches, of which object, with these arguments. */

/** Bytes from the beginning of the array: `low` … `high − 1`. */
export interface Touched {
  readonly array: ArrayBufferView;
  readonly low: number;
  readonly high: number;
  readonly writes: 0 | 1 | 2;
  /** By `Atomics`. */
  readonly isAtomic?: boolean;
}

type Args = readonly unknown[];
type Elements = Uint8Array;
type Tell = (touched: Touched) => void;
type Method = (array: Elements, args: Args, tell: Tell) => void;

/** An index of `slice`, `fill`, …: from the end if it is negative. */
function indexOf(value: unknown, length: number, other: number): number {
  if (value === undefined) return other;
  const n = Math.trunc(Number(value)) || 0;
  return n < 0 ? Math.max(0, length + n) : Math.min(n, length);
}

function elements(array: Elements, from: number, to: number, writes: 0 | 1): Touched {
  const size = array.BYTES_PER_ELEMENT ?? 1;
  return { array, low: from * size, high: Math.max(from, to) * size, writes };
}

const whole = (array: Elements, writes: 0 | 1): Touched => ({ array, low: 0, high: array.byteLength, writes });
const readAll: Method = (array, _, tell) => tell(whole(array, 0));
const changeAll: Method = (array, _, tell) => tell(whole(array, 1));
const readRange: Method = (array, [from, to], tell) => {
  const { length } = array;
  tell(elements(array, indexOf(from, length, 0), indexOf(to, length, length), 0));
};

/** What `indexOf(value, from)` and its like may look at. */
const readFrom: Method = (array, [, from], tell) => {
  const { length } = array;
  tell(elements(array, indexOf(from, length, 0), length, 0));
};
/** A range of another array, whose ends are not counted from its end. */
const rangeOf = (array: Elements, from: unknown, to: unknown): Touched =>
  elements(array, Math.max(0, Number(from ?? 0)), Math.min(Number(to ?? array.length), array.length), 0);

const ARRAYS: Record<string, Method> = {
  set: (array, [from, at], tell) => {
    const length = (from as { length?: unknown } | undefined)?.length;
    const begin = Number(at ?? 0);
    if (ArrayBuffer.isView(from)) tell(whole(from as Elements, 0));
    if (typeof length === 'number') tell(elements(array, begin, begin + length, 1));
  },
  fill: (array, [, from, to], tell) => {
    const { length } = array;
    tell(elements(array, indexOf(from, length, 0), indexOf(to, length, length), 1));
  },
  copyWithin: (array, [to, from, end], tell) => {
    const { length } = array;
    const begin = indexOf(from, length, 0);
    const target = indexOf(to, length, 0);
    const count = Math.min(indexOf(end, length, length) - begin, length - target);
    tell(elements(array, begin, begin + count, 0));
    tell(elements(array, target, target + count, 1));
  },
  at: (array, [index], tell) => {
    const n = Math.trunc(Number(index)) || 0;
    const i = n < 0 ? array.length + n : n;
    if (i >= 0 && i < array.length) tell(elements(array, i, i + 1, 0));
  },
  slice: readRange,
  indexOf: readFrom,
  includes: readFrom,
  lastIndexOf: (array, args, tell) => {
    const { length } = array;
    tell(elements(array, 0, args.length > 1 ? Math.min(length, indexOf(args[1], length, length) + 1) : length, 0));
  },
  sort: changeAll,
  reverse: changeAll,
};
for (const name of [
  ...['with', 'join', 'forEach', 'map', 'filter', 'reduce', 'reduceRight'],
  ...['every', 'some', 'find', 'findIndex', 'findLast', 'findLastIndex', 'entries', 'values', 'toString'],
  ...['toLocaleString', 'toReversed', 'toSorted', 'toJSON', 'toHex', 'toBase64'],
])
  ARRAYS[name] = readAll;

/** Bytes that `readInt32LE` and its like touch. */
const SIZES: readonly (readonly [RegExp, number])[] = [
  [/^(read|write)(Big)?U?[Ii]nt64/, 8],
  [/^(read|write)BigU?[Ii]nt64/, 8],
  [/^(read|write)Double/, 8],
  [/^(read|write)(U?[Ii]nt32|Float)/, 4],
  [/^(read|write)U?[Ii]nt16/, 2],
  [/^(read|write)U?[Ii]nt8/, 1],
];

/** From a place, which may be counted from the end; behind a text there is an encoding instead. */
const readSome: Method = (array, [value, from], tell) =>
  readFrom(array, [value, typeof from === 'number' ? from : undefined], tell);

const readWithin: Method = (array, [, from, to], tell) => tell(rangeOf(array, from, to));

const BUFFERS: Record<string, Method> = {
  write: (array, [text, from, count, more], tell) => {
    const begin = typeof from === 'number' ? from : 0;
    const encoding = [from, count, more].find((one) => typeof one === 'string') as BufferEncoding | undefined;
    const bytes = Math.min(
      Buffer.byteLength(String(text), encoding),
      typeof count === 'number' ? count : Number.POSITIVE_INFINITY,
    );
    tell(elements(array, begin, Math.min(begin + bytes, array.length), 1));
  },
  copy: (array, [target, at, from, to], tell) => {
    const begin = Number(from ?? 0);
    const end = Math.min(Number(to ?? array.length), array.length);
    if (!ArrayBuffer.isView(target)) return;
    const place = Number(at ?? 0);
    const count = Math.max(0, Math.min(end - begin, target.byteLength - place));
    tell(elements(array, begin, begin + count, 0));
    tell({ array: target, low: place, high: place + count, writes: 1 });
  },
  // A view.
  slice: () => {},
  toString: readWithin,
  indexOf: readSome,
  includes: readSome,
  lastIndexOf: readAll,
  compare: (array, [other, from, to, ownFrom, ownTo], tell) => {
    tell(rangeOf(array, ownFrom, ownTo));
    if (ArrayBuffer.isView(other)) tell(rangeOf(other as Elements, from, to));
  },
  equals: (array, [other], tell) => {
    tell(whole(array, 0));
    if (ArrayBuffer.isView(other)) tell(whole(other as Elements, 0));
  },
  swap16: changeAll,
  swap32: changeAll,
  swap64: changeAll,
};
for (const name of ['IntLE', 'IntBE', 'UIntLE', 'UIntBE', 'UintLE', 'UintBE']) {
  BUFFERS[`read${name}`] = (array, [at, bytes], tell) =>
    tell(elements(array, Number(at), Number(at) + Number(bytes), 0));
  BUFFERS[`write${name}`] = (array, [, at, bytes], tell) =>
    tell(elements(array, Number(at), Number(at) + Number(bytes), 1));
}

const ENDS = ['', 'LE', 'BE'];
const NUMBERS = ['Int8', 'UInt8', 'Int16', 'UInt16', 'Int32', 'UInt32', 'Float', 'Double', 'BigInt64', 'BigUInt64'];
for (const number of NUMBERS)
  for (const end of ENDS)
    for (const name of [`read${number}${end}`, `write${number}${end}`, ...sameNames(number, end)]) numberMethod(name);

/** Node knows `readUint8`, too. */
function sameNames(number: string, end: string): string[] {
  const other = number.replace('UInt', 'Uint');
  return other === number ? [] : [`read${other}${end}`, `write${other}${end}`];
}

function numberMethod(name: string): void {
  const size = SIZES.find(([pattern]) => pattern.test(name))?.[1] ?? 8;
  const writes = name.startsWith('write');
  BUFFERS[name] = (array, args, tell) => {
    const at = Number(args[writes ? 1 : 0] ?? 0);
    tell(elements(array, at, at + size, writes ? 1 : 0));
  };
}

const VIEW_SIZES: Readonly<Record<string, number>> = {
  ...{ Int8: 1, Uint8: 1, Int16: 2, Uint16: 2, Float16: 2, Int32: 4, Uint32: 4, Float32: 4, Float64: 8 },
  ...{ BigInt64: 8, BigUint64: 8 },
};
const VIEWS: Record<string, (view: DataView, args: Args, tell: Tell) => void> = {};
for (const [type, size] of Object.entries(VIEW_SIZES)) {
  for (const [name, writes] of [
    [`get${type}`, 0],
    [`set${type}`, 1],
  ] as const) {
    VIEWS[name] = (view, [at], tell) => {
      const low = Number(at ?? 0);
      tell({ array: view, low, high: low + size, writes });
    };
  }
}

const ATOMICS: Readonly<Record<string, 0 | 1 | 2>> = {
  ...{ load: 0, wait: 0, waitAsync: 0, store: 1, add: 2, sub: 2, and: 2, or: 2, xor: 2, exchange: 2 },
  compareExchange: 2,
};

/** Calls of other objects that read or write an array that they are given. */
const GIVEN: Readonly<Record<string, (object: unknown, args: Args, tell: Tell) => void>> = {
  decode: (object, [from], tell) => {
    if (object instanceof TextDecoder && ArrayBuffer.isView(from)) tell(whole(from as Elements, 0));
  },
  encodeInto: (object, [text, to], tell) => {
    if (!(object instanceof TextEncoder && to instanceof Uint8Array)) return;
    tell(elements(to, 0, Math.min(Buffer.byteLength(String(text)), to.length), 1));
  },
  getRandomValues: (object, [to], tell) => {
    if (object === globalThis.crypto && ArrayBuffer.isView(to)) tell(whole(to as Elements, 1));
  },
  write: (object, [from], tell) => {
    if ((object === process.stdout || object === process.stderr) && ArrayBuffer.isView(from))
      tell(whole(from as Elements, 0));
  },
};

/** Calls of the library whose lines matter: they are told, so that no stack need be looked at. */
export const LIBRARY_CALLS: ReadonlySet<string> = new Set([
  ...['put', 'get', 'accumulate', 'getAccumulate', 'fetchAndOp', 'compareAndSwap', 'putNotify'],
  ...['rput', 'rget', 'raccumulate', 'rgetAccumulate', 'fence', 'fenceSync', 'lock', 'lockSync', 'lockAll'],
  ...['lockAllSync', 'start', 'startSync', 'send', 'receive', 'receiveSync', 'recv', 'recvSync'],
  ...['locked', 'lockedSync', 'lockedAll', 'lockedAllSync', 'fenced', 'fencedSync', 'started', 'startedSync'],
]);

export const METHODS: ReadonlySet<string> = new Set(
  [ARRAYS, BUFFERS, VIEWS, ATOMICS, GIVEN].flatMap((methods) => Object.keys(methods)).concat(...LIBRARY_CALLS),
);

/** Tells what `object.name(...args)` loads and stores, if the object has such a method of the language's. */
export function touchedBy(object: unknown, name: string, args: Args, tell: Tell): void {
  if (object === Atomics) {
    const writes = ATOMICS[name];
    const [array, index] = args;
    if (writes === undefined || !ArrayBuffer.isView(array)) return;
    tell({ ...elements(array as Elements, Number(index), Number(index) + 1, 0), writes, isAtomic: true });
    return;
  }
  if (!ArrayBuffer.isView(object)) {
    if (Object.hasOwn(GIVEN, name)) GIVEN[name](object, args, tell);
    return;
  }
  if (object instanceof DataView) {
    VIEWS[name]?.(object, args, tell);
    return;
  }
  const array = object as Elements;
  if (Buffer.isBuffer(object) && Object.hasOwn(BUFFERS, name)) BUFFERS[name](array, args, tell);
  else if (Object.hasOwn(ARRAYS, name)) ARRAYS[name](array, args, tell);
}
