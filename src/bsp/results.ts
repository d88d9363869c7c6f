/**
 * Results of the gets from one process, in the order of their calls. They come back without headers, each padded to
 * whole words, cut wherever a chunk ends.
 */
import type { TypedArray } from '../datatype/base.ts';
import { RmaError, show } from '../errors.ts';
import { lengthOf, tagOf } from '../intrinsics.ts';
import { unpackBytes, unpackDouble } from './elements.ts';

export class Results {
  readonly #arrays: TypedArray[] = [];
  /** Of each: the byte of the array at which it begins, and its length. */
  readonly #starts: number[] = [];
  readonly #bytes: number[] = [];
  /** The one that comes next, and how many of its bytes have come. */
  #next = 0;
  #done = 0;
  #lost: TypedArray | undefined;

  /** @param start byte of the array */
  expect(array: TypedArray, start: number, bytes: number): void {
    this.#arrays.push(array);
    this.#starts.push(start);
    this.#bytes.push(bytes);
  }

  get isComplete(): boolean {
    return this.#next === this.#arrays.length;
  }

  /** Takes the words from `from` up to `to`, which are the next ones. */
  take(i32: Int32Array, u8: Uint8Array, from: number, to: number): void {
    let at = from;
    while (at < to) {
      const next = this.#next;
      const array = this.#arrays[next];
      const start = this.#starts[next];
      const left = this.#bytes[next] - this.#done;
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
      if (this.#done < this.#bytes[next]) continue;
      this.#next++;
      this.#done = 0;
    }
  }

  /** Errors: `ERR_BUFFER` if an array's memory is gone. */
  check(): void {
    if (this.#lost === undefined) return;
    throw new RmaError(
      'ERR_BUFFER',
      `bsp.sync: ${show(this.#lost)}, the destination of a get, was transferred or resized before the end of the superstep; leave destinations alone until sync() is complete`,
    );
  }

  reset(): void {
    this.#arrays.length = this.#starts.length = this.#bytes.length = this.#next = this.#done = 0;
    this.#lost = undefined;
  }
}

function isDouble(array: TypedArray, start: number): boolean {
  return tagOf(array) === 'Float64Array' && start >> 3 < lengthOf(array);
}
