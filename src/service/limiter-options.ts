/** What a rate limiter is made with, checked, and what its calls give. */
import { argumentRangeError, argumentTypeError, reading, show } from '../errors.ts';
import { refuseUnknown } from '../options.ts';
import { mostOf } from './map/index.ts';

/** The rule by which calls are counted. */
export type LimiterAlgorithm = 'token-bucket' | 'sliding-window';

export interface LimiterOptions {
  /** How many calls there may be at once: 1 … 10^9; with a sliding window, 1 … 10,000. */
  readonly rate: number;
  /** Milliseconds in which as many are allowed again. */
  readonly per: number;
  /**
   * `token-bucket` (default): a bucket of `rate` tokens that fills evenly in `per` milliseconds. When it is full, up to
   * twice the rate can pass in one time of `per`: all tokens at once, and those that come meanwhile. `sliding-window`:
   * never more than `rate` calls in any time of `per`; it takes 8 bytes of memory for each call in the window, and a
   * call that is allowed copies them.
   */
  readonly algorithm?: LimiterAlgorithm;
  /**
   * Bytes of memory for keys (default: 4 MiB, buckets of some 40,000 keys). What was asked for least lately goes, and
   * is as if it had not been asked for.
   */
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

export interface Limits {
  readonly rate: number;
  readonly per: number;
}

export interface ReadLimiterOptions extends Limits {
  readonly bytes: number;
  readonly algorithm: LimiterAlgorithm;
  /** Bytes of the longest value. */
  readonly valueBytes: number;
  /** Bytes of the longest value with its key; `undefined`: as the size of the map suggests. */
  readonly longest: number | undefined;
}

/** Calls in a sliding window at most: each costs a copy of so many times. */
const MOST_SLIDING = 10_000;
export const TIME_BYTES = 8;

const ALGORITHMS: readonly LimiterAlgorithm[] = ['token-bucket', 'sliding-window'];
const DEFAULT_BYTES = 4 << 20;
/** A number as JSON has it. */
const NUMBER_BYTES = 24;
/** For keys, beside the times of a full window. */
const KEY_BYTES = 1024;

/** A number for the catalogue of the service, and what it says. */
export function algorithmNumber(algorithm: LimiterAlgorithm): number {
  return ALGORITHMS.indexOf(algorithm);
}

export function sayAlgorithm(number: number): string {
  return ALGORITHMS[number] ?? 'an algorithm that is unknown';
}

/** @param call for messages */
export function readLimiterOptions(call: string, options: LimiterOptions): ReadLimiterOptions {
  if (typeof options !== 'object' || options === null)
    throw argumentTypeError(`${call}: the options must be { rate, per }, not ${show(options)}`);
  refuseUnknown(call, 'the options', options, ['rate', 'per', 'algorithm', 'bytes']);
  const { rate, per, algorithm, bytes } = reading(call, 'the options', () => {
    const { rate, per, algorithm = 'token-bucket', bytes = DEFAULT_BYTES } = options;
    return { rate, per, algorithm, bytes };
  });
  if (!Number.isInteger(rate) || rate < 1 || rate > 1e9)
    throw argumentRangeError(`${call}: rate must be a whole number from 1 to 10^9, not ${show(rate)}`);
  if (typeof per !== 'number' || !(per >= 1 && per <= 1e12))
    throw argumentRangeError(`${call}: per must be milliseconds from 1 to 10^12, not ${show(per)}`);
  if (!ALGORITHMS.includes(algorithm)) {
    const rule = 'algorithm must be "token-bucket" or "sliding-window"';
    throw argumentTypeError(`${call}: ${rule}, not ${show(algorithm)}`);
  }
  if (algorithm === 'token-bucket')
    return { rate, per, bytes, algorithm, valueBytes: NUMBER_BYTES, longest: undefined };
  const most = Math.min(MOST_SLIDING, mostSliding(bytes));
  if (rate > most) {
    const why = most === MOST_SLIDING ? '' : `, with ${bytes} bytes; give more \`bytes\``;
    throw argumentRangeError(`${call}: the rate of a sliding window must be at most ${most}, not ${rate}${why}`);
  }
  const valueBytes = TIME_BYTES * rate;
  return { rate, per, bytes, algorithm, valueBytes, longest: valueBytes + KEY_BYTES };
}

/** The highest rate of sliding windows for which so much memory has room. What is no number the map refuses. */
function mostSliding(bytes: number): number {
  if (!(bytes >= 64 << 10)) return MOST_SLIDING;
  return Math.floor((mostOf(bytes) - KEY_BYTES - 64) / TIME_BYTES);
}
