/**
 * How long a rank that has found a lock word taken waits before its next try (claim D4.9; the dissertation, §4.1,
 * leaves it open): twice as long after each miss, up to a bound, with jitter, so that ranks that have missed together
 * do not come back together. The jitter comes from a seed: the same seed, the same waits.
 */

/** Milliseconds: the first wait, about a round trip on a fast network, and the longest one. */
const FIRST_MS = 0.004;
export const MOST_MS = 1;

export class BackOff {
  readonly #now: () => number;
  #state: number;
  #delay = FIRST_MS;
  #until = 0;

  /** @param now a clock in milliseconds */
  constructor(now: () => number, seed: number) {
    this.#now = now;
    this.#state = Math.imul(seed + 1, 0x9e3779b1) | 1;
  }

  /** The next wait is the first one again. */
  reset(): void {
    this.#delay = FIRST_MS;
  }

  /** Whether the next wait is one of the longest. */
  get isLongest(): boolean {
    return this.#delay === MOST_MS;
  }

  /** Begins the next wait: between half of the delay and all of it. */
  begin(): void {
    this.#wait(this.#delay * (0.5 + 0.5 * this.#random()));
    this.#delay = Math.min(MOST_MS, 2 * this.#delay);
  }

  /** Begins a wait of twice the longest: meanwhile every other rank that waits like this looks. */
  stepAside(): void {
    this.#wait(2 * MOST_MS);
  }

  #wait(ms: number): void {
    this.#until = this.#now() + ms;
  }

  /** Milliseconds until the wait is over; 0 if it is. */
  get left(): number {
    return Math.max(0, this.#until - this.#now());
  }

  /** A number of at least 0 and less than 1 (xorshift). */
  #random(): number {
    let x = this.#state;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#state = x;
    return (x >>> 0) / 2 ** 32;
  }
}
