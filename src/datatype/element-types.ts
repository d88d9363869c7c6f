/**
 * Which arrays and operations the elements of a window take, as types only. Without a layout, an array goes into a
 * window as elements of its own type, so the types of both must be one; a window of bytes takes all. With a layout the
 * elements are what it says, whatever arrays they lie in, and nothing is known here.
 */
import type { TypedArray } from './base-types.ts';
import type { Op, OpKind } from './op.ts';

/** Arrays by their names. */
interface Arrays {
  Int8Array: Int8Array;
  Uint8Array: Uint8Array;
  Uint8ClampedArray: Uint8ClampedArray;
  Int16Array: Int16Array;
  Uint16Array: Uint16Array;
  Int32Array: Int32Array;
  Uint32Array: Uint32Array;
  BigInt64Array: BigInt64Array;
  BigUint64Array: BigUint64Array;
  Float32Array: Float32Array;
  Float64Array: Float64Array;
}

/** What goes into a window of such an array as it is: bytes take all. */
interface Taken extends Omit<Arrays, 'Uint8Array'> {
  Uint8Array: TypedArray;
}

type Floats = 'Float32Array' | 'Float64Array';

type Name<A extends TypedArray> = A[typeof Symbol.toStringTag];

/**
 * The arrays whose elements a window of `T` accepts and returns unchanged: all arrays if the element type is bytes or
 * unknown.
 */
export type ElementsOf<T extends TypedArray> = T | Taken[Name<T>];

/** Arrays of the very elements of `T`, in any kind of memory. */
export type SameElements<T extends TypedArray> = T | Arrays[Name<T>];

/** The type of the origin of a call. `L` is the type of its layout, `undefined` if it has none. */
export type OriginOf<T extends TypedArray, L> = [L] extends [undefined] ? ElementsOf<T> : TypedArray;

/**
 * The type of the result of a call with an origin of type `A`: an array with the same elements, in any kind of memory.
 */
export type ResultOf<A extends TypedArray, L> = [L] extends [undefined] ? NoInfer<A> | Arrays[Name<A>] : TypedArray;

/** The arrays that compare-and-swap accepts: all that are not known to hold floating-point numbers. */
export type Swappable<A extends TypedArray> = [Name<A>] extends [Floats] ? never : A;

/** The operations that are defined on elements of `A`: all if the call has a layout or the element type is unknown. */
export type OpOn<A extends TypedArray, L> = Op<
  'move' | 'arithmetic' | ([L] extends [undefined] ? ([Name<A>] extends [Floats] ? never : Integral<A>) : OpKind)
>;

type Integral<A extends TypedArray> = 'logical' | 'bitwise' | ([TypedArray] extends [A] ? 'location' : never);
