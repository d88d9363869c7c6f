/**
 * Updates that have been looked ahead, sorted by the rank that holds their word: a bin a rank, each emptied when it is
 * full.
 *
 * HPCC allows a rank to look at most 1,024 updates ahead of the one that it carries out, so the bins together hold no
 * more than that. Everything is allocated at the beginning; an update costs a step of the stream and three stores.
 */
import type { Distribution } from './distribution.ts';
import { type Halves, POLYNOMIAL } from './random-stream.ts';

/** Updates that a rank may look ahead. */
export const LOOK_AHEAD = 1024;

/** Index of the low half in a 64-bit word seen as two 32-bit ones. */
export const LOW = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1 ? 0 : 1;

/**
 * What becomes of a bin: `values[i]` belongs to the word `displacements[i]` of rank `owner`. Both are used again after
 * it returns.
 */
export type Empty = (owner: number, displacements: Int32Array, values: BigUint64Array) => void;

export class Bins {
  /** Updates that a bin holds. */
  readonly capacity: number;
  readonly #distribution: Distribution;
  readonly #empty: Empty;
  /** Where each bin's next update goes, in the row of all bins. */
  readonly #next: Int32Array;
  /** All bins in a row: word numbers within the owner's part, and halves of values. */
  readonly #displacements: Int32Array;
  readonly #halves: Int32Array;
  /** The same memory, bin by bin. */
  readonly #displacementsOf: readonly Int32Array[];
  readonly #valuesOf: readonly BigUint64Array[];

  /**
   * @param distribution of the table, over at most `ahead` ranks
   * @param ahead updates that all bins hold together: a power of two, at most 1,024
   */
  constructor(distribution: Distribution, empty: Empty, ahead = LOOK_AHEAD) {
    const { ranks } = distribution;
    const capacity = Math.floor(ahead / ranks);
    if (capacity < 1)
      throw new RangeError(`${ranks} ranks need ${ranks} bins, and only ${ahead} updates are looked ahead`);
    this.capacity = capacity;
    this.#distribution = distribution;
    this.#empty = empty;
    this.#next = Int32Array.from({ length: ranks }, (_, rank) => rank * capacity);
    this.#displacements = new Int32Array(ranks * capacity);
    this.#halves = new Int32Array(2 * ranks * capacity);
    const values = new BigUint64Array(this.#halves.buffer);
    const bins = Array.from({ length: ranks }, (_, rank) => [rank * capacity, (rank + 1) * capacity]);
    this.#displacementsOf = bins.map(([from, to]) => this.#displacements.subarray(from, to));
    this.#valuesOf = bins.map(([from, to]) => values.subarray(from, to));
  }

  /** Takes the next `count` numbers of the stream, which goes on from there. */
  take(stream: Halves, count: number): void {
    if (this.#distribution.shift >= 0) this.#takeEven(stream, count);
    else this.#takeUneven(stream, count);
  }

  /** Empties all bins. */
  finish(): void {
    for (let owner = 0; owner < this.#next.length; owner++) {
      const count = this.#next[owner] - owner * this.capacity;
      if (count === 0) continue;
      this.#next[owner] = owner * this.capacity;
      if (LOW !== 0) this.#turn(owner);
      this.#empty(owner, this.#displacementsOf[owner].subarray(0, count), this.#valuesOf[owner].subarray(0, count));
    }
  }

  /**
   * For a power of two of ranks: their bins' capacity is one, too, so a bin is full where the next place is a multiple
   * of it. The stream's step is written out here and below. All that this loop uses has to stay in registers, so it has
   * few variables: POLYNOMIAL stands here as a literal, and halves are stored low before high and turned round in
   * `#full` where the machine is big-endian.
   */
  #takeEven(stream: Halves, count: number): void {
    const { words, shift } = this.#distribution;
    const next = this.#next;
    const displacements = this.#displacements;
    const halves = this.#halves;
    const mask = words - 1;
    const local = (1 << shift) - 1;
    const full = this.capacity - 1;
    let { high, low } = stream;
    for (let left = count; left > 0; left--) {
      const carry = (high >> 31) & 7;
      high = (high << 1) | (low >>> 31);
      low = (low << 1) ^ carry;
      const owner = (low & mask) >>> shift;
      const at = next[owner];
      displacements[at] = low & local;
      halves[at << 1] = low;
      halves[(at << 1) | 1] = high;
      next[owner] = at + 1;
      if (((at + 1) & full) === 0) this.#full(owner);
    }
    stream.high = high;
    stream.low = low;
  }

  #takeUneven(stream: Halves, count: number): void {
    const distribution = this.#distribution;
    const capacity = this.capacity;
    const next = this.#next;
    const displacements = this.#displacements;
    const halves = this.#halves;
    const mask = distribution.words - 1;
    let { high, low } = stream;
    for (let i = 0; i < count; i++) {
      const carry = (high >> 31) & POLYNOMIAL;
      high = (high << 1) | (low >>> 31);
      low = (low << 1) ^ carry;
      const word = low & mask;
      const owner = distribution.owner(word);
      const at = next[owner];
      displacements[at] = word - distribution.first(owner);
      halves[2 * at] = low;
      halves[2 * at + 1] = high;
      next[owner] = at + 1;
      if (at + 1 === (owner + 1) * capacity) this.#full(owner);
    }
    stream.high = high;
    stream.low = low;
  }

  #full(owner: number): void {
    this.#next[owner] = owner * this.capacity;
    if (LOW !== 0) this.#turn(owner);
    this.#empty(owner, this.#displacementsOf[owner], this.#valuesOf[owner]);
  }

  /** Exchanges the halves of a bin's values. */
  #turn(owner: number): void {
    const halves = this.#halves;
    const end = 2 * (owner + 1) * this.capacity;
    for (let i = 2 * owner * this.capacity; i < end; i += 2) {
      const low = halves[i];
      halves[i] = halves[i + 1];
      halves[i + 1] = low;
    }
  }
}
