/**
 * The predefined operations on single values, as `Op` describes them. Results are stored into a typed array of the
 * operands' type, which wraps integers and rounds to single precision, so that these functions need not.
 */

import type { TypedArray } from './base.ts';
import { OpCode } from './op.ts';

/** `target op origin` for types that are numbers. `NO_OP` gives `target`, `REPLACE` gives `origin`. */
export function combineNumber(op: number, target: number, origin: number): number {
  switch (op) {
    case OpCode.SUM:
      return target + origin;
    case OpCode.PROD:
      return target * origin;
    case OpCode.MIN:
      return Math.min(target, origin);
    case OpCode.MAX:
      return Math.max(target, origin);
    case OpCode.LAND:
      return target !== 0 && origin !== 0 ? 1 : 0;
    case OpCode.LOR:
      return target !== 0 || origin !== 0 ? 1 : 0;
    case OpCode.LXOR:
      return (target !== 0) !== (origin !== 0) ? 1 : 0;
    case OpCode.BAND:
      return target & origin;
    case OpCode.BOR:
      return target | origin;
    case OpCode.BXOR:
      return target ^ origin;
    case OpCode.REPLACE:
      return origin;
    default:
      return target;
  }
}

/** The same for integers of at most 32 bits, whose product can exceed 2^53: `imul` keeps the low 32 bits. */
export function combineInteger(op: number, target: number, origin: number): number {
  return op === OpCode.PROD ? Math.imul(target, origin) : combineNumber(op, target, origin);
}

/** The same for 64-bit integers. */
export function combineBigInt(op: number, target: bigint, origin: bigint): bigint {
  switch (op) {
    case OpCode.SUM:
      return target + origin;
    case OpCode.PROD:
      return target * origin;
    case OpCode.MIN:
      return target < origin ? target : origin;
    case OpCode.MAX:
      return target > origin ? target : origin;
    case OpCode.LAND:
      return target !== 0n && origin !== 0n ? 1n : 0n;
    case OpCode.LOR:
      return target !== 0n || origin !== 0n ? 1n : 0n;
    case OpCode.LXOR:
      return (target !== 0n) !== (origin !== 0n) ? 1n : 0n;
    case OpCode.BAND:
      return target & origin;
    case OpCode.BOR:
      return target | origin;
    case OpCode.BXOR:
      return target ^ origin;
    case OpCode.REPLACE:
      return origin;
    default:
      return target;
  }
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
