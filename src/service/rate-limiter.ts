/**
 * How many calls there may be in a time, exact over all members of a service: a token bucket for each key, as one
 * number, the time at which it will be full again (the generic cell rate algorithm of ATM's traffic management).
 *
 * A bucket of `rate` tokens that fills in `per` milliseconds gets one each `per / rate`. It is full at FULL or later;
 * a call that takes a token at `now` moves FULL to `max(FULL, now) + per / rate`, and is allowed if that is not more
 * than `per` after `now`. So there are at most `rate` calls at once, and `rate` in each `per` in the long run; in no
 * time of `per` are there more than 2 · `rate`.
 *
 * The numbers are entries of a map (map/shared-map.ts), each changed under the lock of its part: so no two members take
 * one token. An entry is gone when its bucket is full. The clock is that of the machine, which all members
 * share, and which does not jump with the date.
 */
import { argumentRangeError, argumentTypeError, reading, show } from '../errors.ts';
import { refuseUnknown } from '../options.ts';
import { now, type SharedMap } from './map/index.ts';

export interface LimiterOptions {
  /** How many calls there may be at once: 1 … 10^9. */
  readonly rate: number;
  /** Milliseconds in which as many are allowed again. */
  readonly per: number;
  /** Bytes of memory for keys (default: 4 MiB, some 40,000 keys). What was asked for least lately goes. */
  readonly bytes?: number;
}

/** What came of a call. */
export interface Allowance {
  readonly allowed: boolean;
  /** How many calls are left at the moment. */
  readonly remaining: number;
  /** Milliseconds until a call of this cost is allowed; 0 if it was. */
  readonly retryAfter: number;
}

export interface ReadLimiterOptions {
  readonly rate: number;
  readonly per: number;
  readonly bytes: number;
}

const DEFAULT_BYTES = 4 << 20;

/** @param call for messages */
export function readLimiterOptions(call: string, options: LimiterOptions): ReadLimiterOptions {
  if (typeof options !== 'object' || options === null)
    throw argumentTypeError(`${call}: the options must be { rate, per }, not ${show(options)}`);
  refuseUnknown(call, 'the options', options, ['rate', 'per', 'bytes']);
  const read = reading(call, 'the options', () => ({ rate: options.rate, per: options.per, bytes: options.bytes }));
  const { rate, per, bytes = DEFAULT_BYTES } = read;
  if (!Number.isInteger(rate) || rate < 1 || rate > 1e9)
    throw argumentRangeError(`${call}: rate must be a whole number from 1 to 10^9, not ${show(rate)}`);
  if (typeof per !== 'number' || !(per >= 1 && per <= 1e12))
    throw argumentRangeError(`${call}: per must be milliseconds from 1 to 10^12, not ${show(per)}`);
  return { rate, per, bytes };
}

export class RateLimiter {
  readonly rate: number;
  readonly per: number;
  readonly #full: SharedMap<number>;
  /** Throws: once the member has left. */
  #refuse: ((call: string) => void) | undefined;

  constructor(full: SharedMap<number>, { rate, per }: ReadLimiterOptions) {
    this.rate = rate;
    this.per = per;
    this.#full = full;
  }

  /**
   * Takes `cost` tokens of a key's bucket, if it has so many. Never waits for a member that has no core.
   * Errors: `ERR_ARG` (key; `cost` is no whole number from 1 to `rate`).
   */
  take(key = '', cost = 1): Allowance {
    if (!Number.isInteger(cost) || cost < 1 || cost > this.rate)
      throw argumentRangeError(
        `RateLimiter.take: cost must be a whole number from 1 to ${this.rate}, not ${show(cost)}`,
      );
    this.#check('take', key);
    const each = this.per / this.rate;
    const at = now();
    let full = 0;
    let then = 0;
    this.#full.update(
      key,
      (before) => {
        full = Math.max(before ?? 0, at);
        then = full + cost * each;
        return isWithin(then - at, this.per) ? then : before;
      },
      { ttl: this.per },
    );
    const over = then - at - this.per;
    const allowed = isWithin(then - at, this.per);
    const remaining = Math.max(0, Math.floor((this.per - ((allowed ? then : full) - at)) / each + ROUNDING));
    return { allowed, remaining, retryAfter: allowed ? 0 : over };
  }

  /** @internal The member leaves the service. */
  left(refuse: (call: string) => void): void {
    this.#refuse = refuse;
    this.#full.left(refuse);
  }

  /** The bucket of a key is full again. Errors: `ERR_ARG` (key). */
  reset(key = ''): void {
    this.#check('reset', key);
    this.#full.delete(key);
  }

  #check(method: string, key: unknown): void {
    const call = `RateLimiter.${method}`;
    this.#refuse?.(call);
    if (typeof key !== 'string') throw argumentTypeError(`${call}: key must be a string, not ${show(key)}`);
  }
}

/** Sums of fractions of milliseconds are exact to less than that. */
const ROUNDING = 1e-6;

function isWithin(ms: number, per: number): boolean {
  return ms <= per + 0.001;
}
