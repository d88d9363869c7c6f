/** Copies: long ones, and those between bytes that are not one after the other. */

import { lengthOf, setElements } from '../intrinsics.ts';
import { type AliasKernels, copiedAliased } from './aliased-copy.ts';
import { bytesOf as ownBytes, partOf, type TypedArray } from './base-types.ts';
import type { Runs } from './runs.ts';

/**
 * Long ones are made in pieces of this many bytes: a little less than the cache of a core has where it is small. From
 * that size on, the C library copies with loops of vector instructions instead of the processor's string instruction,
 * which is faster up to many megabytes: 1 MiB in 14.6 µs instead of 17.4.
 */
const PIECE = 508 << 10;

/**
 * Copies `n` elements of one type, `size` bytes each, `from[fromAt]`, … to `to[toAt]`, …; they do not overlap. Either
 * may be an array of the program's.
 */
export function copyLong<T extends TypedArray>(
  to: T,
  toAt: number,
  from: T,
  fromAt: number,
  n: number,
  size: number,
  kernels: AliasKernels | undefined,
): void {
  if (kernels !== undefined && copiedAliased(to, toAt * size, from, fromAt * size, n * size, kernels)) return;
  const piece = PIECE / size;
  if (fromAt === 0 && n <= piece && n === lengthOf(from)) {
    setElements(to, from, toAt);
    return;
  }
  for (let i = 0; i < n; i += piece) setElements(to, partOf(from, fromAt + i, Math.min(n - i, piece), size), toAt + i);
}

/** Where the bytes of one side of a transfer are, relative to its starting point. */
export interface Places {
  /** In all. */
  readonly bytes: number;
  /** `undefined`: one after the other, from the starting point on. */
  readonly runs: Runs | undefined;
  /** So many times `runs`, `stride` bytes apart. */
  readonly count: number;
  readonly stride: number;
}

/**
 * The kernels of the addon that this needs. Addresses are those of the arrays plus offsets in bytes; all is checked
 * against their lengths.
 */
export interface CopyKernels extends AliasKernels {
  /**
   * Copies blocks of bytes in three nested loops, as `copyPlan` says:
   * `[block, n0, to0, from0, n1, to1, from1, n2, to2, from2, toAt, fromAt]`, `n` rounds with strides for both sides,
   * the first the innermost, beginning at `toAt` and `fromAt`.
   */
  copyNest(to: TypedArray, from: TypedArray): void;
  /**
   * Copies runs of `block` bytes at `starts[i] * unit` from `toAt` on, or from `fromAt` on if `gather`; the other side
   * is consecutive.
   */
  copyBlocks(
    to: TypedArray,
    toAt: number,
    from: TypedArray,
    fromAt: number,
    starts: Int32Array,
    unit: number,
    block: number,
    gather: boolean,
  ): void;
}

/** A native call costs as much as about this many short runs copied here. */
const NATIVE_FROM = 4;
/** Runs of at most this many bytes are copied by a loop: `TypedArray.set` has a fixed cost. */
const LOOP = 24;

/** Calls `run(byteOffset, bytes)` for each run, in order. */
export function forEachRun(places: Places, run: (byteOffset: number, bytes: number) => void): void {
  const { runs, count, stride } = places;
  if (runs === undefined) {
    if (places.bytes > 0) run(0, places.bytes);
  } else for (let i = 0; i < count; i++) runs.forEach(i * stride, run);
}

/**
 * Copies the bytes of one side into the places of the other, which has as many. Offsets are in bytes, whatever the
 * arrays are of.
 */
export function copyPlaces(
  from: Places,
  fromArray: TypedArray,
  sourceAt: number,
  to: Places,
  toArray: TypedArray,
  sinkAt: number,
  kernels: CopyKernels | undefined,
): void {
  if (kernels !== undefined && copiedNatively(from, fromArray, sourceAt, to, toArray, sinkAt, kernels)) return;
  const source = bytesOf(fromArray);
  const sink = bytesOf(toArray);
  if (from.runs === undefined && to.runs === undefined) {
    copyLong(sink, sinkAt, source, sourceAt, from.bytes, 1, kernels);
    return;
  }
  if (from.runs === undefined) {
    let at = sourceAt;
    forEachRun(to, (offset, bytes) => {
      copyRun(sink, sinkAt + offset, source, at, bytes, kernels);
      at += bytes;
    });
  } else if (to.runs === undefined) {
    let at = sinkAt;
    forEachRun(from, (offset, bytes) => {
      copyRun(sink, at, source, sourceAt + offset, bytes, kernels);
      at += bytes;
    });
  } else {
    const packed = new Uint8Array(from.bytes);
    const dense: Places = { bytes: from.bytes, runs: undefined, count: 1, stride: 0 };
    copyPlaces(from, source, sourceAt, dense, packed, 0, kernels);
    copyPlaces(dense, packed, 0, to, sink, sinkAt, kernels);
  }
}

function bytesOf(array: TypedArray): Uint8Array {
  return array instanceof Uint8Array ? array : ownBytes(array);
}

/** Bytes of the unit of displacements that the native call takes: 32 bits with a sign. */
const MOST_UNIT = 2 ** 31 - 1;

/**
 * Copies by one native call what one call can copy.
 * @param least runs: for fewer it would not pay
 * @returns false if it has done nothing: there are too few runs, or the two sides are cut too differently
 */
export function copiedNatively(
  from: Places,
  source: TypedArray,
  sourceAt: number,
  to: Places,
  sink: TypedArray,
  sinkAt: number,
  kernels: CopyKernels,
  least = NATIVE_FROM,
): boolean {
  const shape = to.runs ?? from.runs;
  if (shape === undefined) return false;
  const { count } = to.runs === undefined ? from : to;
  if (shape.count * count < least) return false;
  if (shape.starts === undefined) {
    const other = to.runs === undefined ? undefined : from.runs;
    if (other !== undefined && !sameNest(shape, other, count, from.count)) return false;
    const { block, n0, n1 } = shape;
    const plan = kernels.copyPlan;
    plan[0] = block;
    plan[1] = n0;
    plan[4] = n1;
    plan[7] = count;
    setStrides(plan, 2, to, block, n0, n1);
    setStrides(plan, 3, from, block, n0, n1);
    plan[10] = sinkAt + (to.runs === undefined ? 0 : to.runs.first);
    plan[11] = sourceAt + (from.runs === undefined ? 0 : from.runs.first);
    kernels.copyNest(sink, source);
    return true;
  }
  if (count !== 1 || !(shape.starts instanceof Int32Array) || (to.runs !== undefined && from.runs !== undefined)) {
    return false;
  }
  if (shape.unit > MOST_UNIT) return false;
  kernels.copyBlocks(sink, sinkAt, source, sourceAt, shape.starts, shape.unit, shape.block, to.runs === undefined);
  return true;
}

function sameNest(a: Runs, b: Runs, countOfA: number, countOfB: number): boolean {
  return b.starts === undefined && a.block === b.block && a.n0 === b.n0 && a.n1 === b.n1 && countOfA === countOfB;
}

/** The strides of one side, at `plan[at]`, `plan[at + 3]` and `plan[at + 6]`. */
function setStrides(plan: Float64Array, at: number, side: Places, block: number, n0: number, n1: number): void {
  const { runs } = side;
  plan[at] = runs === undefined ? block : runs.s0;
  plan[at + 3] = runs === undefined ? block * n0 : runs.s1;
  plan[at + 6] = runs === undefined ? block * n0 * n1 : side.stride;
}

function copyRun(
  to: Uint8Array,
  toAt: number,
  from: Uint8Array,
  fromAt: number,
  n: number,
  kernels: AliasKernels | undefined,
): void {
  if (n > LOOP) copyLong(to, toAt, from, fromAt, n, 1, kernels);
  else for (let i = 0; i < n; i++) to[toAt + i] = from[fromAt + i];
}
