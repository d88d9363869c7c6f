/** A number that all ranks add to. */
import type { Communicator } from '../collective/communicator.ts';
import { argumentTypeError, show } from '../errors.ts';
import type { WaitOptions } from '../wait/operation.ts';
import { agree, type PlaceOptions, readPlace, Words } from './words.ts';

/**
 * A 32-bit counter that all ranks can add to, for tickets, identifiers or progress; it wraps around. Each `add` counts
 * exactly once and returns a value that no other `add` returns (except for additions of zero, and until the counter has
 * wrapped around).
 */
export class Counter {
  readonly #words: Words;

  /**
   * Collective: creates a counter with the value 0. Errors: `TypeError`, `RangeError` (options), and those of
   * `Window.allocate`.
   */
  static async create(comm: Communicator, options?: PlaceOptions): Promise<Counter> {
    const call = 'Counter.create';
    const place = await agree(call, comm, () => ({ place: readPlace(call, comm, options), shape: {} }));
    const words = await Words.create(comm, place, new Int32Array(1));
    await words.begin(place.wait);
    return new Counter(words);
  }

  private constructor(words: Words) {
    this.#words = words;
  }

  /**
   * Adds `by` and returns the previous value. Never waits. Cost: one atomic operation at the owner.
   * @param by −2^31 … 2^31 − 1; the value wraps around at ±2^31
   * Errors: `TypeError`, `ERR_WIN` (freed).
   */
  add(by = 1): number {
    if (!Number.isInteger(by) || by !== (by | 0)) {
      throw argumentTypeError(`Counter.add: by must be a 32-bit integer, not ${show(by)}`);
    }
    return this.#words.add(0, by);
  }

  /** The current value. Cost: one atomic operation at the owner. Errors: `ERR_WIN` (freed). */
  get value(): number {
    return this.#words.load(0);
  }

  /** Collective: frees the counter. Errors: those of `Window.free`. */
  async free(options?: WaitOptions): Promise<void> {
    await this.#words.free(options);
  }

  /** Calls `free`, at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
  }
}
