/**
 * Elements of the program's arrays, to and from words of chunks. Their bits are moved as they are. Few elements of the
 * usual types move without a view being made of the array; the rest moves as bytes.
 */
import { bytesOf as newBytesOf, type TypedArray } from '../datatype/base-types.ts';
import { byteLengthOf } from '../intrinsics.ts';

const NO_BYTES = new Uint8Array(0);

/** Elements of an array that a call names. It is filled again for each call, so that none allocates. */
export class Part {
  /** Of a put: the process. */
  pid = -1;
  array: TypedArray = NO_BYTES;
  /** The array's type, and the bytes of an element. */
  tag = '';
  width = 1;
  /** The first element, and how many; the array has them. */
  start = 0;
  count = 0;
}

/** Elements, and bytes, that are moved one by one; above, a view and one copy cost less. */
export const FEW = 16;
const FEW_BYTES = 32;

const doubles = new Float64Array(1);
/** The same eight bytes. */
const halves = new Int32Array(doubles.buffer);

/** The array that was read last, and its bytes: programs often put from the same one. */
let lastArray: TypedArray | undefined;
let lastBytes: Uint8Array = NO_BYTES;

function bytesOf(array: TypedArray): Uint8Array {
  if (array !== lastArray || lastBytes.length !== byteLengthOf(array)) {
    lastBytes = newBytesOf(array);
    lastArray = array;
  }
  return lastBytes;
}

/** Lets the array that was read last go. */
export function forgetLast(): void {
  if (lastArray === undefined) return;
  lastArray = undefined;
  lastBytes = NO_BYTES;
}

/** One element of 8 bytes. */
export function packDouble(i32: Int32Array, at: number, from: Float64Array, element: number): void {
  doubles[0] = from[element];
  i32[at] = halves[0];
  i32[at + 1] = halves[1];
}

/** Copies elements to the words from `at` on. */
export function packElements(i32: Int32Array, u8: Uint8Array, at: number, part: Part): void {
  const { array, tag, start, count, width } = part;
  if (count <= FEW) {
    if (tag === 'Float64Array') {
      for (let k = 0; k < count; k++) packDouble(i32, at + 2 * k, array as Float64Array, start + k);
      return;
    }
    if (tag === 'Int32Array') {
      const from = array as Int32Array;
      for (let k = 0; k < count; k++) i32[at + k] = from[start + k];
      return;
    }
  }
  packBytes(u8, 4 * at, array, width * start, width * count);
}

/** Copies `count` bytes of an array from byte `start` on. */
export function packBytes(u8: Uint8Array, at: number, from: TypedArray, start: number, count: number): void {
  copyBytes(u8, at, bytesOf(from), start, count);
}

/** Copies bytes from a chunk to byte `start` of an array. False if it has not so many, since its memory has changed. */
export function unpackBytes(u8: Uint8Array, at: number, to: TypedArray, start: number, count: number): boolean {
  if (start + count > byteLengthOf(to)) return false;
  copyBytes(bytesOf(to), start, u8, at, count);
  return true;
}

/** Both have them. */
function copyBytes(to: Uint8Array, at: number, from: Uint8Array, start: number, count: number): void {
  if (count > FEW_BYTES) to.set(from.subarray(start, start + count), at);
  else for (let k = 0; k < count; k++) to[at + k] = from[start + k];
}

/** The same for one element of 8 bytes, whose words are `i32[at]` and the next. */
export function unpackDouble(i32: Int32Array, at: number, to: Float64Array, element: number): void {
  halves[0] = i32[at];
  halves[1] = i32[at + 1];
  to[element] = doubles[0];
}
