/**
 * Memory as this processor sees it, and the copies between two pieces of it: the emulator's data path.
 *
 * Copies are plain loads and stores; the code that publishes their result stores a word with `Atomics` afterwards.
 * Pieces that are aligned to words on both sides are copied in words of 32 bits, so that a peer that reads a word never
 * sees half of it.
 */

import { bytesIn } from '../../intrinsics.ts';

/**
 * Above this many bytes a copy goes through `TypedArray.set`: that costs two short-lived views, some 35 ns, and moves
 * 20 bytes a nanosecond.
 */
const LOOP_BYTES = 64;

/** Views of one mapping. Made once: views are what costs. */
export class Mapping {
  readonly buffer: ArrayBufferLike;
  readonly u8: Uint8Array;
  readonly i32: Int32Array;
  readonly i64: BigInt64Array;

  constructor(buffer: ArrayBufferLike) {
    const bytes = bytesIn(buffer);
    this.buffer = buffer;
    this.u8 = new Uint8Array(buffer, 0, bytes);
    this.i32 = new Int32Array(buffer, 0, Math.floor(bytes / 4));
    this.i64 = new BigInt64Array(buffer, 0, Math.floor(bytes / 8));
  }
}

/** Copies `n` bytes, which the caller has found to lie inside both. */
export function copyBytes(to: Mapping, toAt: number, from: Mapping, fromAt: number, n: number): void {
  if (n > LOOP_BYTES) {
    to.u8.set(from.u8.subarray(fromAt, fromAt + n), toAt);
    return;
  }
  if (((toAt | fromAt | n) & 3) === 0) {
    const target = to.i32;
    const source = from.i32;
    // Divided, not shifted: offsets may be beyond 2^32.
    const t = toAt / 4;
    const f = fromAt / 4;
    const words = n >>> 2;
    for (let i = 0; i < words; i++) target[t + i] = source[f + i];
    return;
  }
  const target = to.u8;
  const source = from.u8;
  for (let i = 0; i < n; i++) target[toAt + i] = source[fromAt + i];
}

/** A list of pieces of memory, in order: what a request gathers from or scatters to. Reused for every request. */
export class Pieces {
  count = 0;
  /** The sum of all lengths. */
  length = 0;
  readonly mappings: Mapping[];
  readonly offsets: Float64Array;
  readonly lengths: Float64Array;

  constructor(capacity: number, filler: Mapping) {
    this.mappings = new Array(capacity).fill(filler);
    this.offsets = new Float64Array(capacity);
    this.lengths = new Float64Array(capacity);
  }

  clear(): void {
    this.count = 0;
    this.length = 0;
  }

  add(mapping: Mapping, offset: number, length: number): void {
    const i = this.count++;
    this.mappings[i] = mapping;
    this.offsets[i] = offset;
    this.lengths[i] = length;
    this.length += length;
  }
}

/** Copies the first `n` bytes of `from` to the first `n` of `to`; both are at least that long. */
export function copyPieces(to: Pieces, from: Pieces, n: number): void {
  if (to.count === 1 && from.count === 1) {
    copyBytes(to.mappings[0], to.offsets[0], from.mappings[0], from.offsets[0], n);
    return;
  }
  let left = n;
  for (let t = 0, f = 0, usedTo = 0, usedFrom = 0; left > 0; ) {
    const run = Math.min(to.lengths[t] - usedTo, from.lengths[f] - usedFrom, left);
    if (run > 0) copyBytes(to.mappings[t], to.offsets[t] + usedTo, from.mappings[f], from.offsets[f] + usedFrom, run);
    left -= run;
    usedTo += run;
    usedFrom += run;
    if (usedTo === to.lengths[t]) {
      t++;
      usedTo = 0;
    }
    if (usedFrom === from.lengths[f]) {
      f++;
      usedFrom = 0;
    }
  }
}
