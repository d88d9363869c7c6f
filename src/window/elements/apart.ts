/**
 * Whether arrays of a call share memory, which is refused. To ask an array for its buffer costs more than the
 * operation, and makes one that it does not have yet. So one element is compared first: two places that hold different
 * values are two. Where they hold the same, it is tried: the result, which the call writes anyway, gets another value
 * for a moment. Elements of one type in one buffer are the same or do not overlap.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import { bufferOf, byteLengthOf, byteOffsetOf } from '../../intrinsics.ts';

type Numbers = Int32Array | Uint32Array;
type BigInts = BigInt64Array | BigUint64Array;

/** Whether `result[0]`, which is `before`, is the element of one of the others. */
export function touches(result: Numbers, before: number, a: Numbers, b: Numbers): boolean {
  const ofA = a[0];
  const ofB = b[0];
  result[0] = before === 0 ? 1 : 0;
  const touched = a[0] !== ofA || b[0] !== ofB;
  result[0] = before;
  return touched;
}

/** The same for integers of 64 bits. */
export function touchesBig(result: BigInts, before: bigint, a: BigInts, b: BigInts): boolean {
  const ofA = a[0];
  const ofB = b[0];
  result[0] = before === 0n ? 1n : 0n;
  const touched = a[0] !== ofA || b[0] !== ofB;
  result[0] = before;
  return touched;
}

/** Whether the result overlaps none of the others. */
export function areApart(result: TypedArray, a: TypedArray, b: TypedArray): boolean {
  return !isSameMemory(result, a) && (a === b || !isSameMemory(result, b));
}

function isSameMemory(a: TypedArray, b: TypedArray): boolean {
  const from = byteOffsetOf(a);
  const to = byteOffsetOf(b);
  return from < to + byteLengthOf(b) && to < from + byteLengthOf(a) && bufferOf(a) === bufferOf(b);
}
