/**
 * What a process has done in each superstep: how long it computed, how long its `sync` took, and how many bytes it sent
 * to and received from others (data, without headers). Kept where a computation was begun with `report`.
 */
import { REPORT_NUMBERS } from './model/report.ts';

const FIRST = 64;

export class Ledger {
  readonly #now: () => number;
  #numbers = new Float64Array(REPORT_NUMBERS * FIRST);
  #count = 0;
  /** When the superstep began, and when its `sync` was called. */
  #began: number;
  #called = 0;

  /** @param now microseconds */
  constructor(now: () => number) {
    this.#now = now;
    this.#began = now();
  }

  /** The process calls `sync`. */
  ends(): void {
    this.#called = this.#now();
  }

  /** The `sync` is complete. @param sent bytes */
  ended(sent: number, received: number): void {
    const at = REPORT_NUMBERS * this.#count++;
    if (at === this.#numbers.length) {
      const longer = new Float64Array(2 * at);
      longer.set(this.#numbers);
      this.#numbers = longer;
    }
    const now = this.#now();
    this.#numbers[at] = this.#called - this.#began;
    this.#numbers[at + 1] = now - this.#called;
    this.#numbers[at + 2] = sent;
    this.#numbers[at + 3] = received;
    this.#began = now;
  }

  /** Of all supersteps that have ended: computing and `sync` in microseconds, bytes sent and received. */
  get numbers(): Float64Array {
    return this.#numbers.slice(0, REPORT_NUMBERS * this.#count);
  }
}
