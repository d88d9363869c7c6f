/** The predefined operations on single values, as the rows of `Op` say. */

import type { TypedArray } from './base-types.ts';
import { OpCode, onBigInts, onIntegers, onNumbers } from './op.ts';

/**
 * `target op origin` for types that are numbers. `NO_OP` gives `target`, `REPLACE` gives `origin`. Sums, which are the
 * most frequent, without the call that a row is.
 */
export function combineNumber(op: number, target: number, origin: number): number {
  return op === OpCode.SUM ? target + origin : onNumbers[op](target, origin);
}

/** The same for integers of at most 32 bits, whose product can exceed 2^53. */
export function combineInteger(op: number, target: number, origin: number): number {
  return onIntegers[op](target, origin);
}

/** The same for 64-bit integers. */
export function combineBigInt(op: number, target: bigint, origin: bigint): bigint {
  return onBigInts[op](target, origin);
}

/** `target[i] = target[i] op origin[i]` for two arrays of one type and length. Not atomic: for private memory. */
export function reduceInto(op: number, target: TypedArray, origin: TypedArray): void {
  if (target instanceof BigInt64Array || target instanceof BigUint64Array) {
    const source = origin as BigInt64Array;
    for (let i = 0; i < target.length; i++) target[i] = combineBigInt(op, target[i], source[i]);
  } else if (target instanceof Float64Array || target instanceof Float32Array) {
    const source = origin as Float64Array;
    for (let i = 0; i < target.length; i++) target[i] = combineNumber(op, target[i], source[i]);
  } else {
    // Clamped bytes would saturate where integers wrap.
    if (target instanceof Uint8ClampedArray) target = new Uint8Array(target.buffer, target.byteOffset, target.length);
    const source = origin as Int32Array;
    for (let i = 0; i < target.length; i++) target[i] = combineInteger(op, target[i], source[i]);
  }
}
