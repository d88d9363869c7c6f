/**
 * Sliding windows of a rate limiter: for each key the times of the calls that were allowed within the last `per`
 * milliseconds, oldest first, as 64-bit numbers. A call is allowed if these are fewer than `rate`. So no time of `per`,
 * wherever it begins, has more than `rate` calls.
 *
 * The time is read under the lock of the key, and is at least that of the call before. The clocks of members agree to
 * some microseconds; a call counts for `SKEW` longer than `per`, so they need not agree better. Times leave a log only
 * by growing old: so a log that is full, as a reader without a lock sees it, is full, and who is refused takes no lock.
 */
import { type Allowance, type Limits, TIME_BYTES } from './limiter-options.ts';
import { type CustomCodec, now, type SharedMap } from './map/index.ts';

export const TIMES_CODEC: CustomCodec<Float64Array> = {
  encode: (times) => new Uint8Array(times.buffer, times.byteOffset, times.byteLength),
  // What a map gives begins at a multiple of 8.
  decode: (bytes) => new Float64Array(bytes.buffer, bytes.byteOffset, Math.floor(bytes.byteLength / TIME_BYTES)),
};

/** Milliseconds. */
const SKEW = 0.05;
/** Milliseconds by which no clock is ahead of another one: a time that is has been written over. */
const NONSENSE = 100;

const NONE = new Float64Array(0);

export class SlidingWindows {
  readonly #times: SharedMap<Float64Array>;
  readonly #limits: Limits;

  constructor(times: SharedMap<Float64Array>, limits: Limits) {
    this.#times = times;
    this.#limits = limits;
  }

  take(key: string, cost: number): Allowance {
    const seen = this.#times.get(key);
    const refused = seen === undefined ? undefined : this.#refusal(this.#within(seen, now()), cost, now());
    if (refused !== undefined) return refused;
    const { rate, per } = this.#limits;
    let allowance!: Allowance;
    this.#times.update(
      key,
      (before = NONE) => {
        const clock = now();
        const times = this.#within(before, clock);
        const at = times.length > 0 ? Math.max(clock, times[times.length - 1]) : clock;
        const over = this.#refusal(times, cost, at);
        allowance = over ?? { allowed: true, remaining: rate - times.length - cost, retryAfter: 0 };
        if (over !== undefined) return before;
        const after = new Float64Array(times.length + cost);
        after.set(times);
        after.fill(at, times.length);
        return after;
      },
      { ttl: per + SKEW },
    );
    return allowance;
  }

  /** The times that count at a time. */
  #within(times: Float64Array, at: number): Float64Array {
    const { rate, per } = this.#limits;
    let first = Math.max(0, times.length - rate);
    while (first < times.length && !(times[first] > at - per - SKEW && times[first] < at + NONSENSE)) first++;
    return times.subarray(first);
  }

  /** @returns `undefined` if there is room for the call */
  #refusal(times: Float64Array, cost: number, at: number): Allowance | undefined {
    const { rate, per } = this.#limits;
    const surplus = times.length + cost - rate;
    if (surplus <= 0) return undefined;
    const retryAfter = Math.max(SKEW, times[surplus - 1] + per + SKEW - at);
    return { allowed: false, remaining: rate - times.length, retryAfter };
  }
}
