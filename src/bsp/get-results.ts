/**
 * Results of the gets from one process, in the order of their calls. They come back without headers, each padded to
 * whole words, cut wherever a chunk ends.
 */
import type { TypedArray } from '../datatype/base-types.ts';
import { RmaError, show } from '../errors.ts';
import { lengthOf, tagOf } from '../intrinsics.ts';
import { unpackBytes, unpackDouble } from './element-words.ts';

export class Results {
  /** Kept from superstep to superstep, as long as the most gets of one needed. */
  readonly #arrays: (TypedArray | undefined)[] = [];
  /** Of each: the byte of the array at which it begins, and its length. */
  #places = new Float64Array(2 * 16);
  #count = 0;
  /** Of all of them. */
  bytes = 0;
  /** The one that comes next, and how many of its bytes have come. */
  #next = 0;
  #done = 0;
  #lost: TypedArray | undefined;

  /** @param start byte of the array */
  expect(array: TypedArray, start: number, bytes: number): void {
    const at = 2 * this.#count;
    if (at === this.#places.length) {
      const longer = new Float64Array(2 * at);
      longer.set(this.#places);
      this.#places = longer;
    }
    this.#places[at] = start;
    this.#places[at + 1] = bytes;
    this.#arrays[this.#count++] = array;
    this.bytes += bytes;
  }

  get isComplete(): boolean {
    return this.#next === this.#count;
  }

  /** Takes the words from `from` up to `to`, which are the next ones. */
  take(i32: Int32Array, u8: Uint8Array, from: number, to: number): void {
    let at = from;
    while (at < to) {
      const next = this.#next;
      const array = this.#arrays[next]!;
      const start = this.#places[2 * next];
      const left = this.#places[2 * next + 1] - this.#done;
      if (left === 8 && this.#done === 0 && to - at >= 2 && isDouble(array, start)) {
        unpackDouble(i32, at, array as Float64Array, start >> 3);
        at += 2;
        this.#next++;
        continue;
      }
      const bytes = Math.min(left, 4 * (to - at));
      if (!unpackBytes(u8, 4 * at, array, start + this.#done, bytes)) this.#lost ??= array;
      at += (bytes + 3) >> 2;
      this.#done += bytes;
      if (bytes < left) continue;
      this.#next++;
      this.#done = 0;
    }
  }

  /** Errors: `ERR_BUFFER` if an array's memory is gone. */
  check(): void {
    if (this.#lost === undefined) return;
    throw new RmaError(
      'ERR_BUFFER',
      `bsp.sync: ${show(this.#lost)}, the destination of a get, was transferred or resized before the end of the ` +
        'superstep; leave destinations alone until sync() is complete',
    );
  }

  reset(): void {
    // The program's arrays are not to be kept alive.
    if (this.#count > 0) this.#arrays.fill(undefined, 0, this.#count);
    this.#count = this.#next = this.#done = this.bytes = 0;
    this.#lost = undefined;
  }
}

function isDouble(array: TypedArray, start: number): boolean {
  return tagOf(array) === 'Float64Array' && start >> 3 < lengthOf(array);
}
