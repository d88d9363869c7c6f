/**
 * The fast path of the communication calls: a mapped target, consecutive elements of a common type. It checks
 * everything that the slow path checks, and allocates nothing. It decides nothing: what it does not take on (it then
 * returns false and has touched nothing) goes to the slow path, which also writes the error messages. The caller has
 * seen to the epoch.
 *
 * One branch an element type, so that each copy sees one kind of array only; the most frequent case comes first, one
 * double. It must be short: V8 inlines no more than 920 bytes of bytecode into a loop of the program, and a put with
 * its flush has to be within them, or costs a tenth more. `Target.fastLimit` bounds the displacement so that all
 * offsets are 31-bit integers.
 */
import type { TypedArray } from '../datatype/base.ts';
import { CHANGES, FLOATS, INTEGERS, isOp, type Op } from '../datatype/op.ts';
import { bufferOf, lengthOf, tagOf } from '../intrinsics.ts';
import { accumulateDoubles, NATIVE_FROM, updateDouble } from '../transfer/accumulate.ts';
import { updateBigInt, updateInteger } from '../transfer/atomic.ts';
import {
  loadF64,
  loadI32,
  loadI64,
  loadU8,
  loadU64,
  type RemotePart,
  storeF64,
  storeI32,
  storeI64,
  storeU8,
  storeU64,
} from '../transfer/remote-part.ts';
import type { Target } from './target.ts';

type Kernels = Target['kernels'];

/**
 * Whether a buffer lies in the memory of the target, which can only be this rank's own part: the slow path looks
 * whether they overlap.
 */
export function aliases(t: Target, buffer: TypedArray): boolean {
  return t.own !== undefined && bufferOf(buffer) === t.own;
}

/** Whether the displacement is one that the fast path can take. @param limit `Target.fastLimit` or `fastUpdates` */
export function within(limit: number, disp: number): boolean {
  return typeof disp === 'number' && disp >>> 0 === disp && disp <= limit;
}

export function fastPut(t: Target, origin: TypedArray, disp: number): boolean {
  const tag = tagOf(origin);
  if (tag === undefined || !within(t.fastLimit, disp) || aliases(t, origin)) return false;
  const at = Math.imul(disp, t.dispUnit) + t.skew;
  // Elements say whether there is one, and cost less than the length: see `fastAccumulate`.
  if (tag !== 'Float64Array') return fastPutOther(t.part, tag, origin, at, t.kernels);
  const value = origin[0] as number | undefined;
  if (value === undefined || origin[1] !== undefined) return fastPutDoubles(t.part, origin, at, t.kernels);
  const { f64 } = t.part;
  if ((at & 7) !== 0 || at >> 3 >= f64.length) return false;
  f64[at >> 3] = value;
  return true;
}

function fastPutDoubles({ f64 }: RemotePart, origin: TypedArray, at: number, kernels: Kernels): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 7) !== 0 || (at >> 3) + n > f64.length) return false;
  storeF64(f64, at >> 3, origin as Float64Array, n, kernels);
  return true;
}

function fastPutOther(part: RemotePart, tag: string, origin: TypedArray, at: number, kernels: Kernels): boolean {
  const n = lengthOf(origin);
  if (n === 0) return false;
  if (tag === 'Uint8Array') {
    if (at + n > part.u8.length) return false;
    storeU8(part.u8, at, origin as Uint8Array, n, kernels);
  } else if (tag === 'Int32Array') {
    if ((at & 3) !== 0 || (at >> 2) + n > part.i32.length) return false;
    storeI32(part.i32, at >> 2, origin as Int32Array, n, kernels);
  } else if (tag === 'BigInt64Array') {
    if ((at & 7) !== 0 || (at >> 3) + n > part.i64.length) return false;
    storeI64(part.i64, at >> 3, origin as BigInt64Array, n, kernels);
  } else if (tag === 'BigUint64Array') {
    if ((at & 7) !== 0 || (at >> 3) + n > part.u64.length) return false;
    storeU64(part.u64, at >> 3, origin as BigUint64Array, n, kernels);
  } else return false;
  return true;
}

export function fastGet(t: Target, origin: TypedArray, disp: number): boolean {
  const tag = tagOf(origin);
  if (tag === undefined || !within(t.fastLimit, disp) || aliases(t, origin)) return false;
  const at = Math.imul(disp, t.dispUnit) + t.skew;
  if (tag !== 'Float64Array') return fastGetOther(t.part, tag, origin, at, t.kernels);
  if (origin[0] === undefined || origin[1] !== undefined) return fastGetDoubles(t.part, origin, at, t.kernels);
  const { f64 } = t.part;
  if ((at & 7) !== 0 || at >> 3 >= f64.length) return false;
  origin[0] = f64[at >> 3];
  return true;
}

function fastGetDoubles({ f64 }: RemotePart, origin: TypedArray, at: number, kernels: Kernels): boolean {
  const n = lengthOf(origin);
  if (n === 0 || (at & 7) !== 0 || (at >> 3) + n > f64.length) return false;
  loadF64(f64, at >> 3, origin as Float64Array, n, kernels);
  return true;
}

function fastGetOther(part: RemotePart, tag: string, origin: TypedArray, at: number, kernels: Kernels): boolean {
  const n = lengthOf(origin);
  if (n === 0) return false;
  if (tag === 'Uint8Array') {
    if (at + n > part.u8.length) return false;
    loadU8(part.u8, at, origin as Uint8Array, n, kernels);
  } else if (tag === 'Int32Array') {
    if ((at & 3) !== 0 || (at >> 2) + n > part.i32.length) return false;
    loadI32(part.i32, at >> 2, origin as Int32Array, n, kernels);
  } else if (tag === 'BigInt64Array') {
    if ((at & 7) !== 0 || (at >> 3) + n > part.i64.length) return false;
    loadI64(part.i64, at >> 3, origin as BigInt64Array, n, kernels);
  } else if (tag === 'BigUint64Array') {
    if ((at & 7) !== 0 || (at >> 3) + n > part.u64.length) return false;
    loadU64(part.u64, at >> 3, origin as BigUint64Array, n, kernels);
  } else return false;
  return true;
}

/** One element. */
export function fastAccumulate(t: Target, origin: TypedArray, disp: number, op: Op): boolean {
  const tag = tagOf(origin);
  if (!within(t.fastUpdates, disp) || tag === undefined || !isOp(op)) return false;
  // The rest is for pairs.
  if (aliases(t, origin) || (op.traits & INTEGERS) === 0) return false;
  const at = Math.imul(disp, t.dispUnit) + t.skew;
  const { part } = t;
  // Elements say how many there are, and cost less than the length: one, if there is a first and no second.
  if (tag === 'Float64Array') {
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined) return fastAccumulateDoubles(t, origin, undefined, disp, op);
    if ((at & 7) !== 0 || at >> 3 >= part.i64.length) return false;
    if ((op.traits & FLOATS) === 0) return false;
    updateDouble(part.f64, at >> 3, at - t.skew, op.code, value, t.stripes!);
  } else if (tag === 'BigInt64Array') {
    const value = origin[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= part.i64.length) return false;
    updateBigInt(part.i64, at >> 3, op.code, value);
  } else if (tag === 'BigUint64Array') {
    const value = origin[0] as bigint | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= part.u64.length) return false;
    updateBigInt(part.u64, at >> 3, op.code, value);
  } else if (tag === 'Int32Array') {
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 3) !== 0 || at >> 2 >= part.i32.length) return false;
    updateInteger(part.i32, at >> 2, op.code, value);
  } else return false;
  return true;
}

/** Many doubles, by one call into native code. */
function fastAccumulateDoubles(
  t: Target,
  origin: TypedArray,
  result: TypedArray | undefined,
  disp: number,
  op: Op,
): boolean {
  const { kernels, part } = t;
  const { code } = op;
  const n = lengthOf(origin);
  if (kernels === undefined || n < NATIVE_FROM || tagOf(origin) !== 'Float64Array' || aliases(t, origin)) return false;
  if (result !== undefined && (tagOf(result) !== 'Float64Array' || lengthOf(result) !== n || aliases(t, result)))
    return false;
  if ((op.traits & FLOATS) === 0 || (op.traits & CHANGES) === 0) return false;
  const at = Math.imul(disp, t.dispUnit) + t.skew;
  if ((at & 7) !== 0 || (at >> 3) + n > part.f64.length) return false;
  accumulateDoubles(part, at, origin, n, code, result, t.stripes!, kernels);
  return true;
}

/** The buffers are known to be typed arrays of the type `tag` that do not overlap. */
export function fastGetAccumulate(
  t: Target,
  tag: string,
  origin: TypedArray,
  result: TypedArray,
  disp: number,
  op: Op,
): boolean {
  if (fastFetchAndOp(t, tag, origin, result, disp, op)) return true;
  return within(t.fastUpdates, disp) && isOp(op) && fastAccumulateDoubles(t, origin, result, disp, op);
}

/**
 * The buffers are known to be typed arrays of the type `tag` that do not overlap. How many elements they have, the
 * elements say: see `fastAccumulate`.
 */
export function fastFetchAndOp(
  t: Target,
  tag: string,
  origin: TypedArray,
  result: TypedArray,
  disp: number,
  op: Op,
): boolean {
  if (!within(t.fastUpdates, disp) || !isOp(op)) return false;
  if (aliases(t, origin) || aliases(t, result) || (op.traits & INTEGERS) === 0) return false;
  const at = Math.imul(disp, t.dispUnit) + t.skew;
  if (tag !== 'BigInt64Array') return fastFetchOther(t, tag, origin, result, at, op);
  const { i64 } = t.part;
  const value = origin[0] as bigint | undefined;
  if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= i64.length) return false;
  if (result[0] === undefined || result[1] !== undefined) return false;
  result[0] = updateBigInt(i64, at >> 3, op.code, value);
  return true;
}

/**
 * By itself, so that the other stays small enough for the compiler to inline it: then a 64-bit integer needs no
 * `BigInt`.
 */
function fastFetchOther(t: Target, tag: string, origin: TypedArray, result: TypedArray, at: number, op: Op): boolean {
  const { part } = t;
  if (tag === 'Float64Array') {
    const value = origin[0] as number | undefined;
    if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= part.f64.length) return false;
    if (result[0] === undefined || result[1] !== undefined || (op.traits & FLOATS) === 0) return false;
    result[0] = updateDouble(part.f64, at >> 3, at - t.skew, op.code, value, t.stripes!);
    return true;
  }
  if (lengthOf(origin) !== 1 || lengthOf(result) !== 1) return false;
  if (tag === 'Int32Array') {
    if ((at & 3) !== 0 || at >> 2 >= part.i32.length) return false;
    result[0] = updateInteger(part.i32, at >> 2, op.code, origin[0] as number);
  } else if (tag === 'BigUint64Array') {
    if ((at & 7) !== 0 || at >> 3 >= part.u64.length) return false;
    result[0] = updateBigInt(part.u64, at >> 3, op.code, origin[0] as bigint);
  } else return false;
  return true;
}

/** The buffers are known to be typed arrays of the type `tag`, of which the result overlaps none. */
export function fastCompareAndSwap(
  t: Target,
  tag: string,
  origin: TypedArray,
  compare: TypedArray,
  result: TypedArray,
  disp: number,
): boolean {
  if (!within(t.fastUpdates, disp) || tag !== 'BigInt64Array') return false;
  if (t.own !== undefined && (aliases(t, origin) || aliases(t, compare) || aliases(t, result))) return false;
  const { i64 } = t.part;
  const at = Math.imul(disp, t.dispUnit) + t.skew;
  const value = origin[0] as bigint | undefined;
  const expected = compare[0] as bigint | undefined;
  if (value === undefined || origin[1] !== undefined || (at & 7) !== 0 || at >> 3 >= i64.length) return false;
  if (expected === undefined || compare[1] !== undefined) return false;
  if (result[0] === undefined || result[1] !== undefined) return false;
  result[0] = Atomics.compareExchange(i64, at >> 3, expected, value);
  return true;
}
