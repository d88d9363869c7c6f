/** The options of calls that wait, and how far the waiting has come. */
import { RmaError } from '../errors.ts';
import { readWait, type WaitOptions } from './operation.ts';

export class Waiting {
  readonly signal: AbortSignal | undefined;
  readonly call: string;
  readonly #timeout: number;
  readonly #deadline: number;

  constructor(call: string, options: WaitOptions | undefined, timeout = Number.POSITIVE_INFINITY) {
    const wait = readWait(call, options);
    this.call = call;
    this.signal = wait?.signal;
    this.#timeout = wait?.timeout ?? timeout;
    this.#deadline = performance.now() + this.#timeout;
  }

  /**
   * Milliseconds that are left. Throws the signal's reason if it has aborted, and `ERR_RMA_TIMEOUT` if none is left.
   * @param what says what is waited for, and what it is like now
   */
  left(what: () => string): number {
    const signal = this.signal as { aborted: boolean; reason: unknown } | undefined;
    if (signal?.aborted) throw signal.reason;
    const left = this.#deadline - performance.now();
    if (left > 0) return left;
    throw new RmaError('ERR_RMA_TIMEOUT', `${this.call}: waited ${this.#timeout} ms for ${what()}`);
  }
}
