/**
 * Walks along the bytes of one side of a transfer, stretch by stretch, from any byte on: for what is cut into chunks or
 * descriptors at the same bytes on both sides. Allocates nothing while it walks.
 */
import type { Places } from '../../datatype/copy.ts';

export class RunWalk {
  /** The stretch that `next` has found: its first byte, counted from the side's starting point, and its bytes. */
  offset = 0;
  bytes = 0;
  readonly #places: Places;
  /** The run that comes next, of which instance, and how much of it has gone by. */
  #run = 0;
  #instance = 0;
  #used = 0;

  /** @param skip bytes that are passed over; finding them takes a step for each run if runs differ in length */
  constructor(places: Places, skip = 0) {
    this.#places = places;
    const { runs } = places;
    if (runs === undefined) {
      this.#used = skip;
      return;
    }
    if (runs.bytes === 0) return;
    this.#instance = Math.floor(skip / runs.bytes);
    let left = skip - this.#instance * runs.bytes;
    if (runs.lengths === undefined) {
      this.#run = Math.floor(left / runs.block);
      left -= this.#run * runs.block;
    } else while (left > 0 && left >= runs.lengths[this.#run]) left -= runs.lengths[this.#run++];
    this.#used = left;
  }

  /**
   * Goes on by one stretch.
   * @param most bytes that it may have; above 0
   * @returns false at the end
   */
  next(most: number): boolean {
    const { runs, count, stride, bytes } = this.#places;
    if (runs === undefined) {
      if (this.#used >= bytes) return false;
      this.offset = this.#used;
      this.bytes = Math.min(most, bytes - this.#used);
      this.#used += this.bytes;
      return true;
    }
    if (runs.count === 0 || this.#instance >= count) return false;
    const run = this.#run;
    let start: number;
    if (runs.starts !== undefined) start = runs.starts[run] * runs.unit;
    else {
      const inRow = run % runs.n0;
      start = runs.first + ((run - inRow) / runs.n0) * runs.s1 + inRow * runs.s0;
    }
    const length = runs.lengths === undefined ? runs.block : runs.lengths[run];
    this.offset = this.#instance * stride + start + this.#used;
    this.bytes = Math.min(most, length - this.#used);
    this.#used += this.bytes;
    if (this.#used === length) {
      this.#used = 0;
      if (++this.#run === runs.count) {
        this.#run = 0;
        this.#instance++;
      }
    }
    return true;
  }
}
