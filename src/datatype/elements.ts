/**
 * Which arrays and operations the elements of a window take, as types only. Without a layout, an array goes into a window as elements of its own type, so the types of both must be one; a
 * window of bytes takes all. With a layout the elements are what it says, whatever arrays they lie in, and nothing is known here.
 */
import type { TypedArray } from './base.ts';
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

/** Arrays that may go into a window, or come from it, as they are. All where its elements are bytes, or nothing is known of them. */
export type ElementsOf<T extends TypedArray> = T | Taken[Name<T>];

/** The origin of a call; `L` is the type of its layout, `undefined` if it has none. */
export type OriginOf<T extends TypedArray, L> = [L] extends [undefined] ? ElementsOf<T> : TypedArray;

/** What fetches beside an origin of type `A`: an array of the same elements, whatever memory it lies in. */
export type ResultOf<A extends TypedArray, L> = [L] extends [undefined] ? NoInfer<A> | Arrays[Name<A>] : TypedArray;

/** What compare-and-swap takes: whatever is not known to be floating-point numbers. */
export type Swappable<A extends TypedArray> = [Name<A>] extends [Floats] ? never : A;

/** Operations that are defined on elements of `A`; all, if there is a layout, or nothing is known of them. */
export type OpOn<A extends TypedArray, L> = Op<
  'move' | 'arithmetic' | ([L] extends [undefined] ? ([Name<A>] extends [Floats] ? never : Integral<A>) : OpKind)
>;

type Integral<A extends TypedArray> = 'logical' | 'bitwise' | ([TypedArray] extends [A] ? 'location' : never);
