/** Floating-point numbers (element-kind.ts). */

import { TYPE_SIZES, typeCodeOf } from '../../datatype/base-types.ts';
import { CHANGES, FLOATS, type Op, OpCode } from '../../datatype/op.ts';
import { lengthOf } from '../../intrinsics.ts';
import { accumulateFloats, NATIVE_FROM, updateDouble, updateSingle } from '../../transfer/loads/accumulate.ts';
import { loadF32, loadF64, storeF32, storeF64 } from '../../transfer/loads/remote-part.ts';
import type { Target } from '../path/target.ts';
import { areApart } from './apart.ts';
import type { ElementKind } from './element-kind.ts';

class Float64 implements ElementKind<Float64Array> {
  put(t: Target, at: number, origin: Float64Array): boolean {
    const view = t.part.f64;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined) return putF64(t, at, origin);
    if ((at & 7) !== 0 || at >> 3 >= view.length) return false;
    view[at >> 3] = value;
    return true;
  }

  get(t: Target, at: number, origin: Float64Array): boolean {
    const view = t.part.f64;
    if (origin[0] === undefined || origin[1] !== undefined) return getF64(t, at, origin);
    if ((at & 7) !== 0 || at >> 3 >= view.length) return false;
    origin[0] = view[at >> 3];
    return true;
  }

  accumulate(t: Target, at: number, origin: Float64Array, op: Op): boolean {
    const view = t.part.f64;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined) return accumulateMany(t, at, origin, undefined, op);
    if ((at & 7) !== 0 || at >> 3 >= view.length || (op.traits & FLOATS) === 0) return false;
    updateDouble(view, at >> 3, at - t.skew, op.code, value, t.stripes!);
    return true;
  }

  apart(result: Float64Array, a: Float64Array, b: Float64Array): boolean {
    const before = result[0];
    const value = a[0];
    // False for NaNs, which compare unequal although their bits can be the same.
    const differ = (before < value || before > value) && a === b;
    return (differ && result[1] === undefined) || areApart(result, a, b);
  }

  fetch(t: Target, at: number, origin: Float64Array, result: Float64Array, op: Op): boolean {
    const view = t.part.f64;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined) return false;
    if (result[0] === undefined || result[1] !== undefined || (op.traits & FLOATS) === 0) return false;
    if ((at & 7) !== 0 || at >> 3 >= view.length) return false;
    result[0] = updateDouble(view, at >> 3, at - t.skew, op.code, value, t.stripes!);
    return true;
  }

  fetchMany(t: Target, at: number, origin: Float64Array, result: Float64Array, op: Op): boolean {
    return accumulateMany(t, at, origin, result, op);
  }

  read(t: Target, at: number, result: Float64Array): boolean {
    const view = t.part.f64;
    if (result[0] === undefined || result[1] !== undefined || (at & 7) !== 0 || at >> 3 >= view.length) return false;
    result[0] = updateDouble(view, at >> 3, at - t.skew, OpCode.NO_OP, 0, t.stripes!);
    return true;
  }

  /** Only integers can be swapped. */
  swap(): boolean {
    return false;
  }
}

function putF64({ part: { f64 }, kernels }: Target, at: number, origin: Float64Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 7) !== 0 || (at >> 3) + n > f64.length) return false;
  storeF64(f64, at >> 3, origin, n, kernels);
  return true;
}

function getF64({ part: { f64 }, kernels }: Target, at: number, origin: Float64Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 7) !== 0 || (at >> 3) + n > f64.length) return false;
  loadF64(f64, at >> 3, origin, n, kernels);
  return true;
}

/**
 * A signalling NaN of single precision becomes a quiet one when it is read as a number, so NaNs are moved as bits: many
 * by `TypedArray.set`, one in the slow path.
 */
class Float32 implements ElementKind<Float32Array> {
  put(t: Target, at: number, origin: Float32Array): boolean {
    const view = t.part.f32;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined || Number.isNaN(value)) return putF32(t, at, origin);
    if ((at & 3) !== 0 || at >> 2 >= view.length) return false;
    view[at >> 2] = value;
    return true;
  }

  get(t: Target, at: number, origin: Float32Array): boolean {
    const view = t.part.f32;
    if (origin[0] === undefined || origin[1] !== undefined) return getF32(t, at, origin);
    if ((at & 3) !== 0 || at >> 2 >= view.length) return false;
    const value = view[at >> 2];
    if (Number.isNaN(value)) return getF32(t, at, origin);
    origin[0] = value;
    return true;
  }

  accumulate(t: Target, at: number, origin: Float32Array, op: Op): boolean {
    const view = t.part.f32;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined) return accumulateMany(t, at, origin, undefined, op);
    if ((at & 3) !== 0 || at >> 2 >= view.length || (op.traits & FLOATS) === 0 || Number.isNaN(value)) return false;
    return !Number.isNaN(updateSingle(view, at >> 2, at - t.skew, op.code, value, t.stripes!));
  }

  apart(result: Float32Array, a: Float32Array, b: Float32Array): boolean {
    const before = result[0];
    const value = a[0];
    // False for NaNs, which compare unequal although their bits can be the same.
    const differ = (before < value || before > value) && a === b;
    return (differ && result[1] === undefined) || areApart(result, a, b);
  }

  fetch(t: Target, at: number, origin: Float32Array, result: Float32Array, op: Op): boolean {
    const view = t.part.f32;
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined) return false;
    if (result[0] === undefined || result[1] !== undefined || (op.traits & FLOATS) === 0 || Number.isNaN(value))
      return false;
    if ((at & 3) !== 0 || at >> 2 >= view.length) return false;
    const found = updateSingle(view, at >> 2, at - t.skew, op.code, value, t.stripes!);
    if (Number.isNaN(found)) return false;
    result[0] = found;
    return true;
  }

  fetchMany(t: Target, at: number, origin: Float32Array, result: Float32Array, op: Op): boolean {
    return accumulateMany(t, at, origin, result, op);
  }

  read(t: Target, at: number, result: Float32Array): boolean {
    const view = t.part.f32;
    if (result[0] === undefined || result[1] !== undefined || (at & 3) !== 0 || at >> 2 >= view.length) return false;
    const found = updateSingle(view, at >> 2, at - t.skew, OpCode.NO_OP, 0, t.stripes!);
    if (Number.isNaN(found)) return false;
    result[0] = found;
    return true;
  }

  /** Only integers can be swapped. */
  swap(): boolean {
    return false;
  }
}

function putF32({ part: { f32 }, kernels }: Target, at: number, origin: Float32Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 3) !== 0 || (at >> 2) + n > f32.length) return false;
  storeF32(f32, at >> 2, origin, n, kernels);
  return true;
}

function getF32({ part: { f32 }, kernels }: Target, at: number, origin: Float32Array): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 3) !== 0 || (at >> 2) + n > f32.length) return false;
  loadF32(f32, at >> 2, origin, n, kernels);
  return true;
}

/** Many, by one call into native code. */
function accumulateMany(
  t: Target,
  at: number,
  origin: Float32Array | Float64Array,
  result: Float32Array | Float64Array | undefined,
  op: Op,
): boolean {
  const { kernels, part } = t;
  const n = lengthOf(origin);
  if (kernels === undefined || n < NATIVE_FROM || (op.traits & FLOATS) === 0 || (op.traits & CHANGES) === 0)
    return false;
  // The arrays may have grown since they were found apart, or only their first elements were compared.
  if (result !== undefined && (lengthOf(result) !== n || !areApart(result, origin, origin))) return false;
  const type = typeCodeOf(origin);
  const size = TYPE_SIZES[type];
  if (at % size !== 0 || at + n * size > part.u8.length) return false;
  accumulateFloats(part, at, type, origin, n, op.code, result, t.stripes!, kernels);
  return true;
}

export const FLOAT32: ElementKind = new Float32() as ElementKind;
export const FLOAT64: ElementKind = new Float64() as ElementKind;
