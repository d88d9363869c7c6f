/** Integers of 32 bits (element-kind.ts). */
import type { Op } from '../../datatype/op.ts';
import { lengthOf } from '../../intrinsics.ts';
import { updateInteger } from '../../transfer/loads/atomic.ts';
import { loadI32, loadU32, storeI32, storeU32 } from '../../transfer/loads/remote-part.ts';
import type { Target } from '../path/target.ts';
import { areApart, touches } from './apart.ts';
import type { ElementKind } from './element-kind.ts';

class Int32 implements ElementKind<Int32Array> {
  put(t: Target, at: number, origin: Int32Array): boolean {
    const view = t.part.i32;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined) return putI32(t, at, origin);
    if ((at & 3) !== 0 || at >> 2 >= view.length) return false;
    view[at >> 2] = value;
    return true;
  }

  get(t: Target, at: number, origin: Int32Array): boolean {
    const view = t.part.i32;
    if (origin[0] === undefined || origin[1] !== undefined) return getI32(t, at, origin);
    if ((at & 3) !== 0 || at >> 2 >= view.length) return false;
    origin[0] = view[at >> 2];
    return true;
  }

  accumulate(t: Target, at: number, origin: Int32Array, op: Op): boolean {
    const view = t.part.i32;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 3) !== 0 || at >> 2 >= view.length) return false;
    updateInteger(view, at >> 2, op.code, value);
    return true;
  }

  apart(result: Int32Array, a: Int32Array, b: Int32Array): boolean {
    const before = result[0] as number | undefined;
    if (before === undefined || result[1] !== undefined) return areApart(result, a, b);
    return (before !== a[0] && before !== b[0]) || !touches(result, before, a, b);
  }

  fetch(t: Target, at: number, origin: Int32Array, result: Int32Array, op: Op): boolean {
    const view = t.part.i32;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 3) !== 0 || at >> 2 >= view.length) return false;
    if (result[0] === undefined || result[1] !== undefined) return false;
    result[0] = updateInteger(view, at >> 2, op.code, value);
    return true;
  }

  fetchMany(): boolean {
    return false;
  }

  read(t: Target, at: number, result: Int32Array): boolean {
    const view = t.part.i32;
    if (result[0] === undefined || result[1] !== undefined || (at & 3) !== 0 || at >> 2 >= view.length) return false;
    result[0] = Atomics.load(view, at >> 2);
    return true;
  }

  swap(t: Target, at: number, origin: Int32Array, compare: Int32Array, result: Int32Array): boolean {
    const view = t.part.i32;
    const value = origin[0] as number | undefined;
    const expected = compare[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 3) !== 0 || at >> 2 >= view.length) return false;
    if (expected === undefined || compare[1] !== undefined) return false;
    if (result[0] === undefined || result[1] !== undefined) return false;
    result[0] = Atomics.compareExchange(view, at >> 2, expected, value);
    return true;
  }
}

function putI32({ part: { i32 }, kernels }: Target, at: number, origin: Int32Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 3) !== 0 || (at >> 2) + n > i32.length) return false;
  storeI32(i32, at >> 2, origin, n, kernels);
  return true;
}

function getI32({ part: { i32 }, kernels }: Target, at: number, origin: Int32Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 3) !== 0 || (at >> 2) + n > i32.length) return false;
  loadI32(i32, at >> 2, origin, n, kernels);
  return true;
}

class Uint32 implements ElementKind<Uint32Array> {
  put(t: Target, at: number, origin: Uint32Array): boolean {
    const view = t.part.u32;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined) return putU32(t, at, origin);
    if ((at & 3) !== 0 || at >> 2 >= view.length) return false;
    view[at >> 2] = value;
    return true;
  }

  get(t: Target, at: number, origin: Uint32Array): boolean {
    const view = t.part.u32;
    if (origin[0] === undefined || origin[1] !== undefined) return getU32(t, at, origin);
    if ((at & 3) !== 0 || at >> 2 >= view.length) return false;
    origin[0] = view[at >> 2];
    return true;
  }

  accumulate(t: Target, at: number, origin: Uint32Array, op: Op): boolean {
    const view = t.part.u32;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 3) !== 0 || at >> 2 >= view.length) return false;
    updateInteger(view, at >> 2, op.code, value);
    return true;
  }

  apart(result: Uint32Array, a: Uint32Array, b: Uint32Array): boolean {
    const before = result[0] as number | undefined;
    if (before === undefined || result[1] !== undefined) return areApart(result, a, b);
    return (before !== a[0] && before !== b[0]) || !touches(result, before, a, b);
  }

  fetch(t: Target, at: number, origin: Uint32Array, result: Uint32Array, op: Op): boolean {
    const view = t.part.u32;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 3) !== 0 || at >> 2 >= view.length) return false;
    if (result[0] === undefined || result[1] !== undefined) return false;
    result[0] = updateInteger(view, at >> 2, op.code, value);
    return true;
  }

  fetchMany(): boolean {
    return false;
  }

  read(t: Target, at: number, result: Uint32Array): boolean {
    const view = t.part.u32;
    if (result[0] === undefined || result[1] !== undefined || (at & 3) !== 0 || at >> 2 >= view.length) return false;
    result[0] = Atomics.load(view, at >> 2);
    return true;
  }

  swap(t: Target, at: number, origin: Uint32Array, compare: Uint32Array, result: Uint32Array): boolean {
    const view = t.part.u32;
    const value = origin[0] as number | undefined;
    const expected = compare[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 3) !== 0 || at >> 2 >= view.length) return false;
    if (expected === undefined || compare[1] !== undefined) return false;
    if (result[0] === undefined || result[1] !== undefined) return false;
    result[0] = Atomics.compareExchange(view, at >> 2, expected, value);
    return true;
  }
}

function putU32({ part: { u32 }, kernels }: Target, at: number, origin: Uint32Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 3) !== 0 || (at >> 2) + n > u32.length) return false;
  storeU32(u32, at >> 2, origin, n, kernels);
  return true;
}

function getU32({ part: { u32 }, kernels }: Target, at: number, origin: Uint32Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 3) !== 0 || (at >> 2) + n > u32.length) return false;
  loadU32(u32, at >> 2, origin, n, kernels);
  return true;
}

export const INT32: ElementKind = new Int32() as ElementKind;
export const UINT32: ElementKind = new Uint32() as ElementKind;
