/**
 * What the fast path (fast-path.ts) does with elements of one type. All that differs from type to type is here, so a
 * type is a class of this folder and a line in element-kinds.ts.
 *
 * A class a type, each with code of its own, though it looks the same: V8 compiles an access to an array for the kinds
 * of arrays that it has met there, and is quickest with one. The methods are small, so that the one that a loop of the
 * program uses becomes part of it.
 *
 * But for `apart`, the caller has seen to the epoch, the displacement, the type of the arrays, and that they lie
 * outside of the target's part; `at` is the byte in the views of the part. Elements say how many there are, and cost
 * less than the length: one, if there is a first and no second. A method that returns false has changed nothing.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import type { Op } from '../../datatype/op.ts';
import type { Target } from '../path/target.ts';

export interface ElementKind<A extends TypedArray = TypedArray> {
  /** All of the origin. */
  put(t: Target, at: number, origin: A): boolean;
  /** All of the origin. */
  get(t: Target, at: number, origin: A): boolean;
  /** One element, or all where that is one call into native code. */
  accumulate(t: Target, at: number, origin: A, op: Op): boolean;
  /**
   * Whether the first element of the result is none of those of the others: enough for calls of one element. It may
   * change that element for a moment, also in a call that is refused afterwards.
   */
  apart(result: A, a: A, b: A): boolean;
  /** One element, with what was there. */
  fetch(t: Target, at: number, origin: A, result: A, op: Op): boolean;
  /** All of them where that is one call into native code. */
  fetchMany(t: Target, at: number, origin: A, result: A, op: Op): boolean;
  /** One element, atomically. */
  read(t: Target, at: number, result: A): boolean;
  /** One element. */
  swap(t: Target, at: number, origin: A, compare: A, result: A): boolean;
}
