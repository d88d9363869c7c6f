/** Arguments of the calls that make datatypes: counts, lists of integers, displacements that are copied. */
import { argumentRangeError, argumentTypeError, reading, show } from '../errors.ts';
import { lengthOf } from '../intrinsics.ts';
import { checkBuffer, typeCodeOf } from './base-types.ts';
import { MOST_BLOCKS, MOST_RUNS } from './runs.ts';
import { TypeCode } from './type-codes.ts';

/** Elements of a slab of short displacement lists. */
const SLAB = 1 << 14;
let slab = new Int32Array(0);
let slabUsed = 0;

/**
 * A copy. Short ones are cut from a slab, which lives as long as one of them: a program that makes a datatype for each
 * transfer pays for the copy, and not seven times as much for a backing store each (512 displacements: 90 ns and 620
 * ns).
 */
export function copyOf(displacements: Int32Array): Int32Array {
  const n = lengthOf(displacements);
  if (n > SLAB / 16) {
    const copy = new Int32Array(n);
    copy.set(displacements);
    return copy;
  }
  if (slabUsed + n > slab.length) {
    slab = new Int32Array(SLAB);
    slabUsed = 0;
  }
  const copy = slab.subarray(slabUsed, slabUsed + n);
  copy.set(displacements);
  slabUsed += n;
  return copy;
}

/** Whether `value` is an `Int32Array` with memory behind it, of no more entries than a datatype can have. */
export function isInt32Array(value: unknown): value is Int32Array {
  if (!ArrayBuffer.isView(value) || typeCodeOf(value) !== TypeCode.INT32) return false;
  const length = lengthOf(value);
  return length > 0 && length <= MOST_BLOCKS;
}

/** A copy of a list of integers, which may be any object with a length: its own code may run. */
export function integersOf(call: string, name: string, list: ArrayLike<number>): number[] {
  if (list === null || typeof list !== 'object') {
    throw argumentTypeError(`Datatype.${call}: ${name} must be an array of integers, not ${show(list)}`);
  }
  const integers = reading(`Datatype.${call}`, name, () => {
    const { length } = list;
    if (!Number.isSafeInteger(length) || length < 0 || length > MOST_RUNS) {
      throw new RangeError(`its length must be 0 … 2^24, not ${show(length)}`);
    }
    if (length === 0 && ArrayBuffer.isView(list)) checkBuffer(`Datatype.${call}`, name, list as Int32Array);
    return Array.from({ length }, (_, i) => list[i]);
  });
  for (const integer of integers) checkInteger(call, `each of ${name}`, integer);
  return integers;
}

export function checkInteger(call: string, name: string, value: number): void {
  if (Number.isSafeInteger(value)) return;
  throw argumentTypeError(`Datatype.${call}: ${name} must be an integer, not ${show(value)}`);
}

export function checkLengths(call: string, lengths: readonly number[]): void {
  for (const length of lengths) checkCount(call, 'each of blockLengths', length);
}

export function checkOrder(call: string, order: unknown): void {
  if (order === 'C' || order === 'F') return;
  throw argumentTypeError(`Datatype.${call}: order must be 'C' or 'F', not ${show(order)}`);
}

export function checkBlocks(call: string, count: number, blockLength: number, stride: number): void {
  checkCount(call, 'count', count);
  checkCount(call, 'blockLength', blockLength);
  checkInteger(call, 'stride', stride);
}

export function checkCount(call: string, name: string, count: number): void {
  if (typeof count !== 'number')
    throw argumentTypeError(`Datatype.${call}: ${name} must be a number, not ${show(count)}`);
  if (!Number.isSafeInteger(count) || count < 0 || count > 2 ** 31 - 1) {
    throw argumentRangeError(`Datatype.${call}: ${name} must be 0 … 2^31 − 1, not ${show(count)}`);
  }
}
