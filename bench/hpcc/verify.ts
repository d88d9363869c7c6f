/**
 * Verification, as HPCC has it: the updates are carried out a second time, in a way that cannot lose any, which undoes
 * them; a word that does not hold its number then is an error.
 *
 * Here every rank goes through the updates of all ranks and undoes those in its own part with loads and stores of its
 * own. Nobody else writes there, and nothing of the window takes part, so a window that loses, invents or misplaces
 * updates cannot hide it by doing it twice.
 */
import { LOW } from './bins.ts';
import type { Distribution } from './distribution.ts';
import { type Halves, POLYNOMIAL, startOf } from './random-stream.ts';

/**
 * What an update does to its word: exclusive or (HPCC's), or addition modulo 2^64 (what a device's fetch-and-add can
 * do).
 */
export type Update = 'xor' | 'sum';

/** Updates a word of the table. */
export const UPDATES_PER_WORD = 4;

/** Updates that are sorted out at once. */
const BATCH = 1024;

/** Undoes all updates in one rank's part, piece by piece, so that a program can say how far it is. */
export class Verification {
  /** Updates that have been gone through, of {@link updates}. */
  done = 0;
  readonly updates: number;
  readonly #part: Int32Array;
  readonly #first: number;
  readonly #mask: number;
  readonly #update: Update;
  readonly #stream: Halves;
  /** Of a batch, the updates of this part: index of the word's first half, and the value. */
  readonly #indices = new Int32Array(BATCH + 1);
  readonly #lows = new Int32Array(BATCH + 1);
  readonly #highs = new Int32Array(BATCH + 1);
  readonly #touched = new Int32Array(BATCH);

  /** @param part the rank's words; changed */
  constructor(part: BigUint64Array, distribution: Distribution, rank: number, update: Update) {
    if (part.length !== distribution.length(rank)) {
      throw new RangeError(`rank ${rank} holds ${distribution.length(rank)} words, not ${part.length}`);
    }
    this.updates = UPDATES_PER_WORD * distribution.words;
    this.#part = new Int32Array(part.buffer, part.byteOffset, 2 * part.length);
    this.#first = distribution.first(rank);
    this.#mask = distribution.words - 1;
    this.#update = update;
    // The ranks' streams join: where one ends, the next rank's begins.
    this.#stream = startOf(0);
  }

  /** Goes through at most `count` more updates. */
  advance(count: number): void {
    const end = Math.min(this.done + count, this.updates);
    while (this.done < end) {
      const batch = Math.min(BATCH, end - this.done);
      const own = this.#sortOut(batch);
      this.#touch(own);
      if (this.#update === 'xor') this.#exclusiveOr(own);
      else this.#subtract(own);
      this.done += batch;
    }
  }

  /** Words that do not hold their number: errors, once all updates have been gone through. */
  wrong(): number {
    const part = this.#part;
    let wrong = 0;
    for (let i = 0, word = this.#first; i < part.length; i += 2, word++) {
      if (part[i + LOW] !== (word | 0) || part[i + 1 - LOW] !== 0) wrong++;
    }
    return wrong;
  }

  /** Keeps what belongs to this part. Without a branch: which updates do is as random as they are. @returns how many */
  #sortOut(count: number): number {
    const indices = this.#indices;
    const lows = this.#lows;
    const highs = this.#highs;
    const mask = this.#mask;
    const first = this.#first;
    const last = this.#part.length / 2 - 1;
    let { high, low } = this.#stream;
    let own = 0;
    for (let i = 0; i < count; i++) {
      const carry = (high >> 31) & POLYNOMIAL;
      high = (high << 1) | (low >>> 31);
      low = (low << 1) ^ carry;
      const word = ((low & mask) - first) | 0;
      indices[own] = word << 1;
      lows[own] = low;
      highs[own] = high;
      // Counts unless the difference to the first or to the last word is negative.
      own += ((word | (last - word)) >>> 31) ^ 1;
    }
    this.#stream.high = high;
    this.#stream.low = low;
    return own;
  }

  /**
   * Brings the batch's words into the cache: loads that nothing waits for overlap, the changes after them would not.
   */
  #touch(count: number): void {
    const part = this.#part;
    const indices = this.#indices;
    // Kept, or the compiler would leave the loads out.
    const touched = this.#touched;
    for (let i = 0; i < count; i++) touched[i] = part[indices[i]];
  }

  #exclusiveOr(count: number): void {
    const part = this.#part;
    const indices = this.#indices;
    const lows = this.#lows;
    const highs = this.#highs;
    const lowHalf = LOW;
    const highHalf = 1 - LOW;
    for (let i = 0; i < count; i++) {
      const index = indices[i];
      part[index | lowHalf] ^= lows[i];
      part[index | highHalf] ^= highs[i];
    }
  }

  #subtract(count: number): void {
    const part = this.#part;
    const indices = this.#indices;
    const lows = this.#lows;
    const highs = this.#highs;
    const lowHalf = LOW;
    const highHalf = 1 - LOW;
    for (let i = 0; i < count; i++) {
      const index = indices[i];
      const before = part[index | lowHalf];
      const borrow = before >>> 0 < lows[i] >>> 0 ? 1 : 0;
      part[index | lowHalf] = before - lows[i];
      part[index | highHalf] = part[index | highHalf] - highs[i] - borrow;
    }
  }
}
