/**
 * Integers of 64 bits (element-kind.ts). Where a method has become part of a loop of the program, what is only moved is
 * never a `BigInt`.
 */
import type { Op } from '../../datatype/op.ts';
import { lengthOf } from '../../intrinsics.ts';
import { updateBigInt } from '../../transfer/loads/atomic.ts';
import { loadI64, loadU64, storeI64, storeU64 } from '../../transfer/loads/remote-part.ts';
import type { Target } from '../path/target.ts';
import { areApart, touchesBig } from './apart.ts';
import type { ElementKind } from './element-kind.ts';

class BigInt64 implements ElementKind<BigInt64Array> {
  put(t: Target, at: number, origin: BigInt64Array): boolean {
    const view = t.part.i64;
    const value = origin[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined) return putI64(t, at, origin);
    if ((at & 7) !== 0 || at >> 3 >= view.length) return false;
    view[at >> 3] = value;
    return true;
  }

  get(t: Target, at: number, origin: BigInt64Array): boolean {
    const view = t.part.i64;
    if (origin[0] === undefined || origin[1] !== undefined) return getI64(t, at, origin);
    if ((at & 7) !== 0 || at >> 3 >= view.length) return false;
    origin[0] = view[at >> 3];
    return true;
  }

  accumulate(t: Target, at: number, origin: BigInt64Array, op: Op): boolean {
    const view = t.part.i64;
    const value = origin[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= view.length) return false;
    updateBigInt(view, at >> 3, op.code, value);
    return true;
  }

  apart(result: BigInt64Array, a: BigInt64Array, b: BigInt64Array): boolean {
    const before = result[0] as bigint | undefined;
    if (before === undefined || result[1] !== undefined) return areApart(result, a, b);
    return (before !== a[0] && before !== b[0]) || !touchesBig(result, before, a, b);
  }

  fetch(t: Target, at: number, origin: BigInt64Array, result: BigInt64Array, op: Op): boolean {
    const view = t.part.i64;
    const value = origin[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= view.length) return false;
    if (result[0] === undefined || result[1] !== undefined) return false;
    result[0] = updateBigInt(view, at >> 3, op.code, value);
    return true;
  }

  fetchMany(): boolean {
    return false;
  }

  read(t: Target, at: number, result: BigInt64Array): boolean {
    const view = t.part.i64;
    if (result[0] === undefined || result[1] !== undefined || (at & 7) !== 0 || at >> 3 >= view.length) return false;
    result[0] = Atomics.load(view, at >> 3);
    return true;
  }

  swap(t: Target, at: number, origin: BigInt64Array, compare: BigInt64Array, result: BigInt64Array): boolean {
    const view = t.part.i64;
    const value = origin[0] as bigint | undefined;
    const expected = compare[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= view.length) return false;
    if (expected === undefined || compare[1] !== undefined) return false;
    if (result[0] === undefined || result[1] !== undefined) return false;
    result[0] = Atomics.compareExchange(view, at >> 3, expected, value);
    return true;
  }
}

function putI64({ part: { i64 }, kernels }: Target, at: number, origin: BigInt64Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 7) !== 0 || (at >> 3) + n > i64.length) return false;
  storeI64(i64, at >> 3, origin, n, kernels);
  return true;
}

function getI64({ part: { i64 }, kernels }: Target, at: number, origin: BigInt64Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 7) !== 0 || (at >> 3) + n > i64.length) return false;
  loadI64(i64, at >> 3, origin, n, kernels);
  return true;
}

class BigUint64 implements ElementKind<BigUint64Array> {
  put(t: Target, at: number, origin: BigUint64Array): boolean {
    const view = t.part.u64;
    const value = origin[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined) return putU64(t, at, origin);
    if ((at & 7) !== 0 || at >> 3 >= view.length) return false;
    view[at >> 3] = value;
    return true;
  }

  get(t: Target, at: number, origin: BigUint64Array): boolean {
    const view = t.part.u64;
    if (origin[0] === undefined || origin[1] !== undefined) return getU64(t, at, origin);
    if ((at & 7) !== 0 || at >> 3 >= view.length) return false;
    origin[0] = view[at >> 3];
    return true;
  }

  accumulate(t: Target, at: number, origin: BigUint64Array, op: Op): boolean {
    const view = t.part.u64;
    const value = origin[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= view.length) return false;
    updateBigInt(view, at >> 3, op.code, value);
    return true;
  }

  apart(result: BigUint64Array, a: BigUint64Array, b: BigUint64Array): boolean {
    const before = result[0] as bigint | undefined;
    if (before === undefined || result[1] !== undefined) return areApart(result, a, b);
    return (before !== a[0] && before !== b[0]) || !touchesBig(result, before, a, b);
  }

  fetch(t: Target, at: number, origin: BigUint64Array, result: BigUint64Array, op: Op): boolean {
    const view = t.part.u64;
    const value = origin[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= view.length) return false;
    if (result[0] === undefined || result[1] !== undefined) return false;
    result[0] = updateBigInt(view, at >> 3, op.code, value);
    return true;
  }

  fetchMany(): boolean {
    return false;
  }

  read(t: Target, at: number, result: BigUint64Array): boolean {
    const view = t.part.u64;
    if (result[0] === undefined || result[1] !== undefined || (at & 7) !== 0 || at >> 3 >= view.length) return false;
    result[0] = Atomics.load(view, at >> 3);
    return true;
  }

  swap(t: Target, at: number, origin: BigUint64Array, compare: BigUint64Array, result: BigUint64Array): boolean {
    const view = t.part.u64;
    const value = origin[0] as bigint | undefined;
    const expected = compare[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= view.length) return false;
    if (expected === undefined || compare[1] !== undefined) return false;
    if (result[0] === undefined || result[1] !== undefined) return false;
    result[0] = Atomics.compareExchange(view, at >> 3, expected, value);
    return true;
  }
}

function putU64({ part: { u64 }, kernels }: Target, at: number, origin: BigUint64Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 7) !== 0 || (at >> 3) + n > u64.length) return false;
  storeU64(u64, at >> 3, origin, n, kernels);
  return true;
}

function getU64({ part: { u64 }, kernels }: Target, at: number, origin: BigUint64Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 7) !== 0 || (at >> 3) + n > u64.length) return false;
  loadU64(u64, at >> 3, origin, n, kernels);
  return true;
}

export const INT64: ElementKind = new BigInt64() as ElementKind;
export const UINT64: ElementKind = new BigUint64() as ElementKind;
