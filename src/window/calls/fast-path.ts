/**
 * The fast path of the communication calls: a mapped target, consecutive elements of a common type. It checks
 * everything that the slow path checks, and allocates nothing. It decides nothing: what it does not take on (it then
 * returns false and has touched nothing) goes to the slow path, which also writes the error messages. The caller has
 * seen to the epoch.
 *
 * What all types have in common is here; the rest is in elements/, a class a type. It must be short: V8 inlines no more
 * than 920 bytes of bytecode into a loop of the program, and a put with its flush has to be within them, or costs a
 * tenth more (test/window/bytecode.test.ts counts them). `Target.fastLimit` bounds the displacement so that all offsets
 * are 31-bit integers.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import { INTEGERS, isOp, type Op } from '../../datatype/op.ts';
import { bufferOf, tagOf } from '../../intrinsics.ts';
import type { ElementKind } from '../elements/element-kind.ts';
import { kindOf, kindOfOthers } from '../elements/element-kinds.ts';
import { FLOAT64 } from '../elements/floats.ts';
import type { Target } from '../path/target.ts';

/**
 * Whether a buffer lies in the memory of the target, which can only be this rank's own part: the slow path looks
 * whether they overlap. And says so of what is no array.
 */
export function aliases(t: Target, buffer: TypedArray): boolean {
  return t.own !== undefined && aliasesOwn(t, buffer);
}

function aliasesOwn(t: Target, buffer: TypedArray): boolean {
  return tagOf(buffer) === undefined || bufferOf(buffer) === t.own;
}

/** Whether the displacement is one that the fast path can take. @param limit `Target.fastLimit` or `fastUpdates` */
export function within(limit: number, disp: number): boolean {
  return typeof disp === 'number' && disp >>> 0 === disp && disp <= limit;
}

export function fastPut(t: Target, origin: TypedArray, disp: number): boolean {
  const tag = tagOf(origin);
  if (!within(t.fastLimit, disp) || aliases(t, origin)) return false;
  const at = Math.imul(disp, t.dispUnit) + t.skew;
  // The most frequent type has a call of its own, which a program that uses others, too, compiles as well.
  if (tag === 'Float64Array') return FLOAT64.put(t, at, origin);
  const kind = kindOfOthers(tag);
  return kind !== undefined ? kind.put(t, at, origin) : false;
}

export function fastGet(t: Target, origin: TypedArray, disp: number): boolean {
  const tag = tagOf(origin);
  if (!within(t.fastLimit, disp) || aliases(t, origin)) return false;
  const at = Math.imul(disp, t.dispUnit) + t.skew;
  if (tag === 'Float64Array') return FLOAT64.get(t, at, origin);
  const kind = kindOfOthers(tag);
  return kind !== undefined ? kind.get(t, at, origin) : false;
}

export function fastAccumulate(t: Target, origin: TypedArray, disp: number, op: Op): boolean {
  const kind = kindOf(tagOf(origin));
  if (kind === undefined || !within(t.fastUpdates, disp) || !isOp(op)) return false;
  // The rest is for pairs.
  if (aliases(t, origin) || (op.traits & INTEGERS) === 0) return false;
  return kind.accumulate(t, Math.imul(disp, t.dispUnit) + t.skew, origin, op);
}

/** Of one element. @param kind that of both arrays, which are apart: here as below */
export function fastFetch(
  t: Target,
  kind: ElementKind,
  origin: TypedArray,
  result: TypedArray,
  disp: number,
  op: Op,
): boolean {
  if (!within(t.fastUpdates, disp) || !isOp(op) || (op.traits & INTEGERS) === 0) return false;
  if (t.own !== undefined && aliasesAny(t, origin, result)) return false;
  return kind.fetch(t, Math.imul(disp, t.dispUnit) + t.skew, origin, result, op);
}

/** The same without an origin: `Op.NO_OP`. */
export function fastRead(t: Target, result: TypedArray, disp: number): boolean {
  const kind = kindOf(tagOf(result));
  if (kind === undefined || !within(t.fastUpdates, disp) || aliases(t, result)) return false;
  return kind.read(t, Math.imul(disp, t.dispUnit) + t.skew, result);
}

/** Of `getAccumulate`, what `fastFetch` does not take on. */
export function fastFetchMany(
  t: Target,
  kind: ElementKind,
  origin: TypedArray,
  result: TypedArray,
  disp: number,
  op: Op,
): boolean {
  if (!within(t.fastUpdates, disp) || !isOp(op) || aliasesAny(t, origin, result)) return false;
  return kind.fetchMany(t, Math.imul(disp, t.dispUnit) + t.skew, origin, result, op);
}

export function fastCompareAndSwap(
  t: Target,
  kind: ElementKind,
  origin: TypedArray,
  compare: TypedArray,
  result: TypedArray,
  disp: number,
): boolean {
  if (!within(t.fastUpdates, disp)) return false;
  if (t.own !== undefined && (aliases(t, origin) || aliasesAny(t, compare, result))) return false;
  return kind.swap(t, Math.imul(disp, t.dispUnit) + t.skew, origin, compare, result);
}

function aliasesAny(t: Target, a: TypedArray, b: TypedArray): boolean {
  return aliases(t, a) || aliases(t, b);
}
