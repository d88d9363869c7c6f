/** The base types, and the typed arrays that hold them. */
import { types } from 'node:util';
import { argumentRangeError, argumentTypeError, show } from '../errors.ts';
import { bufferOf, byteLengthOf, byteOffsetOf, bytesOfView, lengthOf, tagOf } from '../intrinsics.ts';
import { BYTES, FLOATS, INTEGERS, PAIRS, traitsOf } from './op.ts';
import { TypeCode } from './type-codes.ts';

/** Any typed array that can be an origin, a result or a reduction operand. */
export type TypedArray =
  | Int8Array
  | Uint8Array
  | Uint8ClampedArray
  | Int16Array
  | Uint16Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Float32Array
  | Float64Array;

/** Memory without a type of its elements: bytes. */
export type RawMemory = ArrayBuffer | SharedArrayBuffer | DataView;

/** The constructor of a typed array: `Float64Array`, `Int32Array`, … */
export interface TypedArrayConstructor<T extends TypedArray = TypedArray> {
  /** The size of an element in bytes. */
  readonly BYTES_PER_ELEMENT: number;
  /** The name of the typed array: `Float64Array`, … */
  readonly name: string;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): T;
}

/** Bytes from one element to the next by `TypeCode`: as in C, pairs end with padding if they must. */
export const TYPE_SIZES = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 8, 16, 16, 8, 8] as const;
/** Names by `TypeCode`. */
export const TYPE_NAMES = [
  'INT8',
  'UINT8',
  'INT16',
  'UINT16',
  'INT32',
  'UINT32',
  'INT64',
  'UINT64',
  'FLOAT32',
  'FLOAT64',
  'BYTE',
  'FLOAT_INT',
  'DOUBLE_INT',
  'LONG_INT',
  'SHORT_INT',
  'TWO_INT',
] as const;

/** Bytes of data of an element by `TypeCode`: without padding. */
export const DATA_SIZES = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 8, 12, 12, 6, 8] as const;
/** What the address of an element is a multiple of, by `TypeCode`. */
export const ALIGNMENTS = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 1, 4, 8, 8, 4, 4] as const;

/** Of pairs, by `TypeCode`: the type of the value, and where the index is. */
export const PAIR_PARTS: Readonly<Record<number, readonly [value: number, indexAt: number]>> = {
  [TypeCode.FLOAT_INT]: [TypeCode.FLOAT32, 4],
  [TypeCode.DOUBLE_INT]: [TypeCode.FLOAT64, 8],
  [TypeCode.LONG_INT]: [TypeCode.INT64, 8],
  [TypeCode.SHORT_INT]: [TypeCode.INT16, 4],
  [TypeCode.TWO_INT]: [TypeCode.INT32, 4],
};

const CODE_BY_TAG: Readonly<Record<string, number>> = {
  Int8Array: TypeCode.INT8,
  Uint8Array: TypeCode.UINT8,
  Uint8ClampedArray: TypeCode.UINT8,
  Int16Array: TypeCode.INT16,
  Uint16Array: TypeCode.UINT16,
  Int32Array: TypeCode.INT32,
  Uint32Array: TypeCode.UINT32,
  BigInt64Array: TypeCode.INT64,
  BigUint64Array: TypeCode.UINT64,
  Float32Array: TypeCode.FLOAT32,
  Float64Array: TypeCode.FLOAT64,
};

/** By `TypeCode`. */
const ARRAYS: readonly TypedArrayConstructor[] = [
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
  Uint8Array,
];

const CONSTRUCTORS: ReadonlySet<TypedArrayConstructor> = new Set([...ARRAYS, Uint8ClampedArray]);

const BY_TAG: Readonly<Record<string, TypedArrayConstructor>> = Object.fromEntries(
  Array.from(CONSTRUCTORS, (type) => [type.name, type]),
);

/** The typed array of elements of a `TypeCode` that is no pair. */
export function arrayOf(code: number): TypedArrayConstructor {
  return ARRAYS[code];
}

/**
 * The `TypeCode` of a typed array, or −1 for anything else (a `DataView` too). Not fooled by prototypes, works across
 * realms.
 */
export function typeCodeOf(value: unknown): number {
  const tag = tagOf(value);
  if (tag === undefined) return -1;
  return CODE_BY_TAG[tag] ?? -1;
}

/** Whether `value` is one of the eleven typed-array constructors. */
export function isTypedArrayConstructor(value: unknown): value is TypedArrayConstructor {
  return (CONSTRUCTORS as ReadonlySet<unknown>).has(value);
}

/** Whether MPI allows an operation on a base type (MPI 4.1, 6.9.2). */
export function opAllowed(op: number, type: number): boolean {
  return (traitsOf(op) & groupOf(type)) !== 0;
}

function groupOf(type: number): number {
  if (type === TypeCode.FLOAT32 || type === TypeCode.FLOAT64) return FLOATS;
  if (type === TypeCode.BYTE) return BYTES;
  return type > TypeCode.BYTE ? PAIRS : INTEGERS;
}

const keysOf = Object.getPrototypeOf(Uint8Array.prototype).keys as (this: TypedArray) => unknown;

/** The `TypeCode` of a buffer argument; throws for anything that is not a typed array with memory behind it. */
export function checkBuffer(call: string, name: string, buffer: TypedArray): number {
  const code = typeCodeOf(buffer);
  if (code < 0)
    throw argumentTypeError(`${call}: ${name} must be a typed array or Buffer, not ${show(buffer)}`, 'ERR_BUFFER');
  if (lengthOf(buffer) === 0 && isGone(buffer)) throw goneError(call, name);
  return code;
}

function goneError(call: string, name: string, cause?: unknown): TypeError {
  const why = `${call}: ${name} is detached, or lies outside its buffer, which has shrunk`;
  return argumentTypeError(why, 'ERR_BUFFER', cause === undefined ? undefined : { cause });
}

/** Every method of typed arrays looks whether the array still has its memory; this one does nothing else. */
function isGone(buffer: TypedArray): boolean {
  try {
    keysOf.call(buffer);
    return false;
  } catch {
    return true;
  }
}

/**
 * A view of the library's own over a buffer argument: what the argument says of itself, now or later, does not matter
 * any more.
 * Errors: `ERR_BUFFER`. Some 50 ns.
 */
export function ownView(call: string, name: string, buffer: TypedArray): TypedArray {
  checkBuffer(call, name, buffer);
  return new BY_TAG[tagOf(buffer)!](bufferOf(buffer), byteOffsetOf(buffer), lengthOf(buffer));
}

/**
 * Refuses a view of {@link ownView} that has lost its memory since: code of the caller's has run.
 * @param length what it had
 */
export function refuseLost(call: string, name: string, view: TypedArray, length: number): void {
  if (view.length !== length) throw goneError(call, name);
}

/**
 * The library's own view over memory that a program gives: of an array, or of the bytes of a buffer or a `DataView`.
 * Errors: `ERR_BUFFER`.
 */
export function arrayOver(call: string, memory: TypedArray | RawMemory): TypedArray {
  const whole = types.isAnyArrayBuffer(memory);
  if (!whole && !types.isDataView(memory)) return ownView(call, 'memory', memory);
  try {
    return whole ? new Uint8Array(memory) : bytesOfView(memory);
  } catch (cause) {
    throw goneError(call, 'memory', cause);
  }
}

/**
 * The bytes of an array, as another view of the same memory. Errors: `ERR_SIZE` if the engine has no array of so many
 * bytes, though it has one of these elements (Node 20: 2^32).
 */
export function bytesOf(array: TypedArray): Uint8Array {
  const bytes = byteLengthOf(array);
  try {
    return new Uint8Array(bufferOf(array), byteOffsetOf(array), bytes);
  } catch (cause) {
    throw argumentRangeError(
      `an array of ${bytes} bytes is too long for this version of Node, which cannot access so many as bytes; ` +
        'use several calls, each with a part of it',
      'ERR_SIZE',
      { cause },
    );
  }
}

/** `count` elements of an array of the program's, of `size` bytes each: a view of the library's own. */
export function partOf(array: TypedArray, at: number, count: number, size: number): TypedArray {
  return new BY_TAG[tagOf(array)!](bufferOf(array), byteOffsetOf(array) + at * size, count);
}
