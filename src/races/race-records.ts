/**
 * Records of accesses, found again by what they have in common: a loop that puts makes one record for each count of its
 * rank, not one for each put.
 */
import type { RaceAccess } from './race-access.ts';

/** Records that are kept to be found again. */
const MOST = 1000;

export class RaceRecords {
  readonly #records = new Map<number, RaceAccess>();
  /** Whether the record that was asked for last is a new one. */
  isNew = false;

  /**
   * The same record for all that have everything in common.
   * @param key of what they have in common, with the count of their rank: those of earlier counts have other keys
   */
  find(key: number, make: () => RaceAccess): RaceAccess {
    if (this.#records.size > MOST) this.#records.clear();
    let record = this.#records.get(key);
    this.isNew = record === undefined;
    if (record === undefined) {
      record = make();
      this.#records.set(key, record);
    }
    return record;
  }
}

/** What records are of. */
export const KeyOf = Object.freeze({ ACCESS: 1, TARGET: 2, USE: 3 } as const);

/** Bits of the lower half of a key. */
const LOWER = 2 ** 32;

/**
 * A number for numbers, the same for the same, and by all likelihood (2^53 to a few million) only for these.
 * @param ofWhat a `KeyOf`
 */
export function keyOf(
  ofWhat: number,
  a: number,
  b: number,
  c: number,
  d: number,
  e: number,
  f: number,
  g: number,
  h: number,
  i: number,
  j: number,
): number {
  let low = mixed(mixed(mixed(mixed(mixed(0x9e3779b9, ofWhat), a), b), c), d);
  low = mixed(mixed(mixed(mixed(mixed(mixed(low, e), f), g), h), i), j);
  let high = mixed(mixed(mixed(mixed(mixed(0x85ebca6b, j), i), h), g), f);
  high = mixed(mixed(mixed(mixed(mixed(mixed(high, e), d), c), b), a), ofWhat);
  return (high >>> 11) * LOWER + (low >>> 0);
}

/** Numbers may be larger than 32 bits. */
function mixed(hash: number, number: number): number {
  let mix = Math.imul(hash ^ (number % LOWER), 0xcc9e2d51);
  mix = Math.imul((mix << 15) | (mix >>> 17), 0x1b873593) ^ Math.floor(number / LOWER);
  return Math.imul(mix ^ (mix >>> 13), 0xc2b2ae35);
}
