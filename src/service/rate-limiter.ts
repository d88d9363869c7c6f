/**
 * How many calls there may be in a time, exact over all members of a service, by one of two rules.
 *
 * A token bucket for each key is one number, the time at which it will be full again (the generic cell rate algorithm
 * of ATM's traffic management). A bucket of `rate` tokens that fills in `per` milliseconds gets one each `per / rate`.
 * It is full at FULL or later; a call that takes a token at `now` moves FULL to `max(FULL, now) + per / rate`, and is
 * allowed if that is not more than `per` after `now`. So there are at most `rate` calls at once, and `rate` in each
 * `per` in the long run; in a time of `per` that begins with a full bucket there can be nearly 2 · `rate`.
 *
 * A sliding window keeps the times of its calls (sliding-windows.ts): in no time of `per` are there more than `rate`.
 *
 * Both are entries of a map (map/shared-map.ts), each changed under the lock of its part: so no two members take one
 * token. An entry is gone when its bucket is full, or its window empty. The clock is that of the machine, which all
 * members share, and which does not jump with the date.
 */
import { argumentRangeError, argumentTypeError, show } from '../errors.ts';
import type { Allowance, LimiterAlgorithm, Limits, ReadLimiterOptions } from './limiter-options.ts';
import { now, type SharedMap } from './map/index.ts';
import { SlidingWindows } from './sliding-windows.ts';

export class RateLimiter {
  readonly rate: number;
  readonly per: number;
  readonly algorithm: LimiterAlgorithm;
  readonly #entries: SharedMap<never>;
  readonly #take: (key: string, cost: number) => Allowance;
  readonly #what: string;
  readonly #mostKeyBytes: number;
  /** Throws: once the member has left. */
  #refuse: ((call: string) => void) | undefined;

  /**
   * @param what for messages
   * @param entries of numbers, or of the times of sliding windows
   */
  constructor(what: string, entries: SharedMap<never>, { rate, per, algorithm, valueBytes }: ReadLimiterOptions) {
    this.rate = rate;
    this.per = per;
    this.algorithm = algorithm;
    this.#what = what;
    this.#entries = entries;
    const Algorithm = algorithm === 'token-bucket' ? TokenBuckets : SlidingWindows;
    const counts = new Algorithm(entries as SharedMap<never>, { rate, per });
    this.#take = (key, cost) => counts.take(key, cost);
    // The key takes whole words.
    this.#mostKeyBytes = (entries.statistics().longest - valueBytes) & ~3;
  }

  /**
   * Takes `cost` tokens of a key's bucket, or of its window, if it has so many. Never waits for a member that has no
   * core. Cost: some microseconds; of a sliding window, also a copy of 8 bytes for each call in it.
   * Errors: `ERR_ARG` (key; `cost` is no whole number from 1 to `rate`), `ERR_SIZE` (a key that is too long),
   * `ERR_RMA_TIMEOUT` (as `SharedMap.set`).
   */
  take(key = '', cost = 1): Allowance {
    if (!Number.isInteger(cost) || cost < 1 || cost > this.rate)
      throw argumentRangeError(
        `RateLimiter.take: cost must be a whole number from 1 to ${this.rate}, not ${show(cost)}`,
      );
    this.#check('take', key);
    return this.#take(key, cost);
  }

  /** @internal The member leaves the service. */
  left(refuse: (call: string) => void): void {
    this.#refuse = refuse;
    this.#entries.left(refuse);
  }

  /** The bucket of a key is full again, or its window empty. Errors: as `take`. */
  reset(key = ''): void {
    this.#check('reset', key);
    this.#entries.delete(key);
  }

  #check(method: string, key: unknown): void {
    const call = `RateLimiter.${method}`;
    this.#refuse?.(call);
    if (typeof key !== 'string') throw argumentTypeError(`${call}: key must be a string, not ${show(key)}`);
    if (2 * key.length <= this.#mostKeyBytes) return;
    const bytes = BEYOND_BYTES.test(key) ? 2 * key.length : key.length;
    if (bytes <= this.#mostKeyBytes) return;
    throw argumentRangeError(
      `${call}: the key ${show(key)} has ${bytes} bytes, keys of ${this.#what} have ${this.#mostKeyBytes} at most; ` +
        'give a shorter one, as its hash, or make the limiter with more `bytes`',
      'ERR_SIZE',
    );
  }
}

/** Of a key with such a character, all have two bytes. */
const BEYOND_BYTES = /[^\0-\xff]/;

class TokenBuckets {
  readonly #full: SharedMap<number>;
  readonly #limits: Limits;

  constructor(full: SharedMap<number>, limits: Limits) {
    this.#full = full;
    this.#limits = limits;
  }

  take(key: string, cost: number): Allowance {
    const { rate, per } = this.#limits;
    const each = per / rate;
    const at = now();
    let full = 0;
    let then = 0;
    this.#full.update(
      key,
      (before) => {
        full = Math.max(before ?? 0, at);
        then = full + cost * each;
        return isWithin(then - at, per) ? then : before;
      },
      { ttl: per },
    );
    const over = then - at - per;
    const allowed = isWithin(then - at, per);
    const remaining = Math.max(0, Math.floor((per - ((allowed ? then : full) - at)) / each + ROUNDING));
    return { allowed, remaining, retryAfter: allowed ? 0 : over };
  }
}

/** Sums of fractions of milliseconds are exact to less than that. */
const ROUNDING = 1e-6;

function isWithin(ms: number, per: number): boolean {
  return ms <= per + 0.001;
}
