/**
 * One rank's part of a window, mapped here: typed views over it, and copies that allocate nothing.
 *
 * Stores through these views are plain stores. On x86-64 they become visible in program order, on other machines before
 * the next atomic access (`memoryFence`, a lock's release, a barrier's flag): every synchronization call contains one.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import { type CopyKernels, copyLong } from '../../datatype/copy.ts';
import { placeOf, type ScalarView } from '../../datatype/scalars.ts';
import { TypeCode } from '../../datatype/type-codes.ts';

/**
 * Copies of at most this many elements are loops; longer ones `TypedArray.set`, which has a fixed cost of some 15 ns.
 */
const LOOP = 32;

export class RemotePart {
  readonly buffer: ArrayBufferLike;
  readonly byteLength: number;
  /** Bytes from the beginning of the views to that of the part: views must begin at a multiple of 8, parts need not. */
  readonly skew: number;
  readonly u8: Uint8Array;
  readonly i8: Int8Array;
  readonly u16: Uint16Array;
  readonly i16: Int16Array;
  readonly u32: Uint32Array;
  readonly i32: Int32Array;
  readonly u64: BigUint64Array;
  readonly i64: BigInt64Array;
  readonly f32: Float32Array;
  readonly f64: Float64Array;
  #place: ScalarView | undefined;

  /** @param byteOffset where the part begins in `buffer` */
  constructor(buffer: ArrayBufferLike, byteOffset: number, byteLength: number) {
    const skew = byteOffset & 7;
    const base = byteOffset - skew;
    const bytes = byteLength + skew;
    this.buffer = buffer;
    this.byteLength = byteLength;
    this.skew = skew;
    this.u8 = new Uint8Array(buffer, base, bytes);
    this.i8 = new Int8Array(buffer, base, bytes);
    this.u16 = new Uint16Array(buffer, base, Math.floor(bytes / 2));
    this.i16 = new Int16Array(buffer, base, Math.floor(bytes / 2));
    this.u32 = new Uint32Array(buffer, base, Math.floor(bytes / 4));
    this.i32 = new Int32Array(buffer, base, Math.floor(bytes / 4));
    this.u64 = new BigUint64Array(buffer, base, Math.floor(bytes / 8));
    this.i64 = new BigInt64Array(buffer, base, Math.floor(bytes / 8));
    this.f32 = new Float32Array(buffer, base, Math.floor(bytes / 4));
    this.f64 = new Float64Array(buffer, base, Math.floor(bytes / 8));
  }

  /** The same bytes as `u8`, for elements whose bits are moved; made when first asked for. */
  get place(): ScalarView {
    this.#place ??= placeOf(this.u8);
    return this.#place;
  }

  /** The view of elements of this `TypeCode`. */
  view(type: number): TypedArray {
    switch (type) {
      case TypeCode.INT8:
        return this.i8;
      case TypeCode.INT16:
        return this.i16;
      case TypeCode.UINT16:
        return this.u16;
      case TypeCode.INT32:
        return this.i32;
      case TypeCode.UINT32:
        return this.u32;
      case TypeCode.INT64:
        return this.i64;
      case TypeCode.UINT64:
        return this.u64;
      case TypeCode.FLOAT32:
        return this.f32;
      case TypeCode.FLOAT64:
        return this.f64;
      default:
        return this.u8;
    }
  }
}

type Kernels = CopyKernels | undefined;

/**
 * Copies the `n` elements of `from`, which is all of them, to `to[at]`, … Both are of one element type; the caller has
 * checked the range. One function a type, so that each loop sees one kind of array only.
 */
export function storeF64(to: Float64Array, at: number, from: Float64Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, at, from, 0, n, 8, kernels);
  else for (let i = 0; i < n; i++) to[at + i] = from[i];
}

export function storeU8(to: Uint8Array, at: number, from: Uint8Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, at, from, 0, n, 1, kernels);
  else for (let i = 0; i < n; i++) to[at + i] = from[i];
}

export function storeI32(to: Int32Array, at: number, from: Int32Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, at, from, 0, n, 4, kernels);
  else for (let i = 0; i < n; i++) to[at + i] = from[i];
}

export function storeU32(to: Uint32Array, at: number, from: Uint32Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, at, from, 0, n, 4, kernels);
  else for (let i = 0; i < n; i++) to[at + i] = from[i];
}

/** A NaN would not keep its bits as a number: then all are moved as bits. */
export function storeF32(to: Float32Array, at: number, from: Float32Array, n: number, kernels: Kernels): void {
  for (let i = 0; i < n && n <= LOOP; i++) {
    const value = from[i];
    if (Number.isNaN(value)) break;
    to[at + i] = value;
    if (i === n - 1) return;
  }
  copyLong(to, at, from, 0, n, 4, kernels);
}

export function storeI64(to: BigInt64Array, at: number, from: BigInt64Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, at, from, 0, n, 8, kernels);
  else for (let i = 0; i < n; i++) to[at + i] = from[i];
}

export function storeU64(to: BigUint64Array, at: number, from: BigUint64Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, at, from, 0, n, 8, kernels);
  else for (let i = 0; i < n; i++) to[at + i] = from[i];
}

/** Fills the `n` elements of `to` from `from[at]`, … as `store…` does the other way. */
export function loadF64(from: Float64Array, at: number, to: Float64Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, 0, from, at, n, 8, kernels);
  else for (let i = 0; i < n; i++) to[i] = from[at + i];
}

export function loadU8(from: Uint8Array, at: number, to: Uint8Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, 0, from, at, n, 1, kernels);
  else for (let i = 0; i < n; i++) to[i] = from[at + i];
}

export function loadI32(from: Int32Array, at: number, to: Int32Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, 0, from, at, n, 4, kernels);
  else for (let i = 0; i < n; i++) to[i] = from[at + i];
}

export function loadU32(from: Uint32Array, at: number, to: Uint32Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, 0, from, at, n, 4, kernels);
  else for (let i = 0; i < n; i++) to[i] = from[at + i];
}

export function loadF32(from: Float32Array, at: number, to: Float32Array, n: number, kernels: Kernels): void {
  for (let i = 0; i < n && n <= LOOP; i++) {
    const value = from[at + i];
    if (Number.isNaN(value)) break;
    to[i] = value;
    if (i === n - 1) return;
  }
  copyLong(to, 0, from, at, n, 4, kernels);
}

export function loadI64(from: BigInt64Array, at: number, to: BigInt64Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, 0, from, at, n, 8, kernels);
  else for (let i = 0; i < n; i++) to[i] = from[at + i];
}

export function loadU64(from: BigUint64Array, at: number, to: BigUint64Array, n: number, kernels: Kernels): void {
  if (n > LOOP) copyLong(to, 0, from, at, n, 8, kernels);
  else for (let i = 0; i < n; i++) to[i] = from[at + i];
}

const fenceWord = new Int32Array(1);

/**
 * A full memory fence: no later load passes an earlier store. A locked instruction does it on x86-64; 7 ns.
 * Needed by flush: after it, another rank's view of our stores is at least as new as our next load of its memory.
 */
export function memoryFence(): void {
  Atomics.add(fenceWord, 0, 0);
}
