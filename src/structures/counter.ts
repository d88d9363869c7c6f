/** A number that all ranks add to. */
import type { Communicator } from '../comm/communicator.ts';
import type { WaitOptions } from '../comm/operation.ts';
import { argumentTypeError, show } from '../errors.ts';
import { agree, type PlaceOptions, readPlace, Words } from './words.ts';

/**
 * A counter of 32 bits that wraps around: tickets, identifiers, how much is done. Each `add` is counted exactly once, and what it returns is what no
 * other `add` returns (unless zero is added, or until the count has gone all the way around).
 */
export class Counter {
  readonly #words: Words;

  /** Collective. The counter begins at 0. Errors: `TypeError`, `RangeError` (options), and those of `Window.allocate`. */
  static async create(comm: Communicator, options?: PlaceOptions): Promise<Counter> {
    const call = 'Counter.create';
    const place = await agree(call, comm, () => ({ place: readPlace(call, comm, options), shape: {} }));
    return new Counter(await Words.create(comm, place, new Int32Array(1)));
  }

  private constructor(words: Words) {
    this.#words = words;
  }

  /**
   * Adds and returns what was there before. Never waits. Cost: one atomic operation at the owner.
   * @param by −2^31 … 2^31 − 1; the count wraps around at ±2^31
   * Errors: `TypeError`, `ERR_WIN` (freed).
   */
  add(by = 1): number {
    if (!Number.isInteger(by) || by !== (by | 0)) {
      throw argumentTypeError(`Counter.add: the number must be an integer of 32 bits, not ${show(by)}`);
    }
    return this.#words.add(0, by);
  }

  /** The count now. */
  get value(): number {
    return this.#words.load(0);
  }

  /** Collective: gives the counter back. */
  async free(options?: WaitOptions): Promise<void> {
    await this.#words.free(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
  }
}
