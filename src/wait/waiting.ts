/** The options of calls that wait, and how far the waiting has come. */
import { RmaError } from '../errors.ts';
import { isAborted, reasonOf } from './abort-signals.ts';
import { readWait, type WaitOptions } from './operation.ts';

export class Waiting {
  readonly signal: AbortSignal | undefined;
  readonly call: string;
  readonly #timeout: number;
  readonly #deadline: number;

  /** Errors: those of `readWait`; the signal's reason, if it has aborted: then the call begins nothing. */
  constructor(call: string, options: WaitOptions | undefined, timeout = Number.POSITIVE_INFINITY) {
    const wait = readWait(call, options);
    this.call = call;
    this.signal = wait?.signal;
    this.#refuseAborted();
    this.#timeout = wait?.timeout ?? timeout;
    this.#deadline = performance.now() + this.#timeout;
  }

  /**
   * Milliseconds that are left. Throws the signal's reason if it has aborted, and `ERR_RMA_TIMEOUT` if none is left.
   * @param what says what is waited for, and what it is like now
   */
  left(what: () => string): number {
    this.#refuseAborted();
    const left = this.#deadline - performance.now();
    if (left > 0) return left;
    throw new RmaError('ERR_RMA_TIMEOUT', `${this.call}: waited ${this.#timeout} ms for ${what()}`);
  }

  #refuseAborted(): void {
    if (this.signal !== undefined && isAborted(this.signal)) throw reasonOf(this.signal);
  }
}
