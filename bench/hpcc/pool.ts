/**
 * Updates that have been looked ahead as HPCC's own program keeps them: one pool for all ranks, a bucket a rank. When
 * it is full, the fullest bucket is sent, so with many ranks a rank sends less often than where each bucket has a share
 * of the room. Of equally full ones it is the next after the own rank, or all ranks would begin with the same.
 */
import type { Distribution } from './distribution.ts';
import { type Halves, step } from './random-stream.ts';

/** Updates for words of one rank. */
export interface Bucket {
  readonly owner: number;
  readonly displacements: Int32Array;
  readonly values: BigUint64Array;
}

export class Pool {
  readonly #distribution: Distribution;
  readonly #rank: number;
  readonly #most: number;
  readonly #displacements: number[][];
  readonly #values: bigint[][];
  #held = 0;

  /** @param most updates that it holds */
  constructor(distribution: Distribution, rank: number, most: number) {
    this.#distribution = distribution;
    this.#rank = rank;
    this.#most = most;
    this.#displacements = Array.from({ length: distribution.ranks }, () => []);
    this.#values = Array.from({ length: distribution.ranks }, () => []);
  }

  get isFull(): boolean {
    return this.#held >= this.#most;
  }

  get isEmpty(): boolean {
    return this.#held === 0;
  }

  /** Takes the next number of the stream. @param own gets it if it is for a word of the own rank: it is not kept */
  take(stream: Halves, own: (displacement: number, value: bigint) => void): void {
    step(stream);
    const distribution = this.#distribution;
    const word = stream.low & (distribution.words - 1);
    const owner = distribution.owner(word);
    const value = (BigInt(stream.high >>> 0) << 32n) | BigInt(stream.low >>> 0);
    const displacement = word - distribution.first(owner);
    if (owner === this.#rank) {
      own(displacement, value);
      return;
    }
    this.#displacements[owner].push(displacement);
    this.#values[owner].push(value);
    this.#held++;
  }

  /** Takes the fullest bucket out. */
  fullest(): Bucket {
    const { length } = this.#values;
    let owner = (this.#rank + 1) % length;
    for (let i = 2; i <= length; i++) {
      const other = (this.#rank + i) % length;
      if (this.#values[other].length > this.#values[owner].length) owner = other;
    }
    const displacements = Int32Array.from(this.#displacements[owner]);
    const values = BigUint64Array.from(this.#values[owner]);
    this.#displacements[owner] = [];
    this.#values[owner] = [];
    this.#held -= values.length;
    return { owner, displacements, values };
  }
}
