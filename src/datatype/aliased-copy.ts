/**
 * Long copies whose sink begins less than 32 bytes behind the source, both seen within their pages. On some processors
 * (AMD's Zen 3 is one) the string instruction, with which C libraries copy from 4 KiB up to half a megabyte, is fifteen
 * times slower then: 26 µs instead of 1.6 for 64 KiB. It is no rare case: a window's memory begins with a page, that of
 * a large array of the program 16 bytes behind one, so every get from the window into the array is one.
 *
 * Blocks of 128 bytes, a few instructions each, take 2.8 µs. Where the string instruction is as quick as ever, they are
 * slower than it. So it is measured, once in a process, when the first such copy comes (0.1 ms).
 */
import { bufferOf, byteOffsetOf } from '../intrinsics.ts';
import type { TypedArray } from './base-types.ts';

/** The kernels of the addon that this needs. */
export interface AliasKernels {
  /** Where an array begins in this process. */
  addressOf(array: TypedArray): number;
  /** Copies blocks of bytes in nested loops, as `copyPlan` says: `CopyKernels` in copy.ts. */
  copyNest(to: TypedArray, from: TypedArray): void;
  readonly copyPlan: Float64Array;
}

const PAGE = 4096;
/** Bytes behind each other at which the string instruction is slow. */
const CLOSE = 32;
/** It is not used for less. */
const SHORTEST = 4096;
const BLOCK = 128;

/** Where buffers begin within a page. It does not change while they have bytes. */
const beginnings = new WeakMap<ArrayBufferLike, number>();

let slow: boolean | undefined;

/**
 * Copies if that is better than `TypedArray.set`, and says whether it has. Offsets are in bytes; the caller has checked
 * them.
 * Cost where it does not: 50 ns for copies of 4 KiB and more, nothing once it is known that the processor has no such
 * weakness.
 */
export function copiedAliased(
  to: TypedArray,
  toAt: number,
  from: TypedArray,
  fromAt: number,
  bytes: number,
  kernels: AliasKernels,
): boolean {
  if (bytes < SHORTEST || slow === false) return false;
  const behind = (placeOf(to, kernels) + toAt - placeOf(from, kernels) - fromAt) & (PAGE - 1);
  if (behind === 0 || behind >= CLOSE) return false;
  slow ??= isSlow(kernels);
  if (!slow) return false;
  copyInBlocks(to, toAt, from, fromAt, bytes, kernels);
  return true;
}

function placeOf(array: TypedArray, kernels: AliasKernels): number {
  const buffer = bufferOf(array);
  let beginning = beginnings.get(buffer);
  if (beginning === undefined) {
    beginning = kernels.addressOf(new Uint8Array(buffer, 0, 1)) % PAGE;
    beginnings.set(buffer, beginning);
  }
  return beginning + byteOffsetOf(array);
}

/** The copy itself, whatever its places. */
export function copyInBlocks(
  to: TypedArray,
  toAt: number,
  from: TypedArray,
  fromAt: number,
  bytes: number,
  kernels: AliasKernels,
): void {
  const plan = kernels.copyPlan;
  const run = (block: number, rounds: number, at: number): void => {
    plan[0] = block;
    plan[1] = rounds;
    plan[2] = block;
    plan[3] = block;
    plan[4] = 1;
    plan[7] = 1;
    plan[10] = toAt + at;
    plan[11] = fromAt + at;
    kernels.copyNest(to, from);
  };
  const rest = bytes % BLOCK;
  run(BLOCK, (bytes - rest) / BLOCK, 0);
  if (rest > 0) run(rest, 1, bytes - rest);
}

function isSlow(kernels: AliasKernels): boolean {
  const bytes = 4 * PAGE;
  const memory = new Uint8Array(2 * bytes + CLOSE);
  const source = memory.subarray(0, bytes);
  const sink = memory.subarray(bytes + CLOSE / 2, 2 * bytes + CLOSE / 2);
  const quickest = (copy: () => void): number => {
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < 5; i++) {
      const begun = performance.now();
      for (let j = 0; j < 4; j++) copy();
      least = Math.min(least, performance.now() - begun);
    }
    return least;
  };
  const whole = quickest(() => sink.set(source));
  return whole > 1.5 * quickest(() => copyInBlocks(sink, 0, source, 0, bytes, kernels));
}
