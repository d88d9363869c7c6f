/** A number that all members of a service add to. */
import { argumentTypeError, show } from '../errors.ts';
import type { Shape } from './catalogue.ts';

export const COUNTER: Shape = { kind: 'counter', bytes: 8, numbers: {} };

/**
 * A 64-bit counter. Each `add` counts once, also if the member dies right behind it, and gives a value that no other
 * `add` gives (but for additions of 0). Never waits. About 0.1 µs a call.
 */
export class ServiceCounter {
  readonly #word: BigInt64Array;

  constructor(memory: ArrayBuffer) {
    this.#word = new BigInt64Array(memory, 0, 1);
  }

  /**
   * Adds `by` and returns the value before.
   * Errors: `ERR_ARG` (`by` is no whole number of at most 53 bits).
   */
  add(by = 1): number {
    if (!Number.isSafeInteger(by)) {
      throw argumentTypeError(`ServiceCounter.add: by must be a whole number of at most 53 bits, not ${show(by)}`);
    }
    return Number(Atomics.add(this.#word, 0, BigInt(by)));
  }

  get value(): number {
    return Number(Atomics.load(this.#word, 0));
  }

  /** Stores a value, and returns the one before. Errors: as `add`. */
  exchange(value: number): number {
    if (!Number.isSafeInteger(value)) {
      const rule = 'value must be a whole number of at most 53 bits';
      throw argumentTypeError(`ServiceCounter.exchange: ${rule}, not ${show(value)}`);
    }
    return Number(Atomics.exchange(this.#word, 0, BigInt(value)));
  }
}
