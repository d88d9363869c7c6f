/**
 * Type signatures: the sequence of base types of a datatype (MPI 4.1, 5.1). Two sides of a transfer must have the same.
 *
 * Kept as runs of equal base types, which are repeated as a whole: an array of a million structs has the signature of
 * one struct, a million times.
 */

/**
 * Base types that alternate more often than this in one instance are refused: what they need is a datatype of bytes.
 */
const MOST_ENTRIES = 2 ** 20;

/** `base` of a signature with several base types. */
export const MIXED = -1;

export class Signature {
  /** `TypeCode`s and how many of each, in order; all of it `repeats` times. */
  readonly codes: readonly number[];
  readonly counts: readonly number[];
  readonly repeats: number;
  /** Base types of one repetition. */
  readonly period: number;

  private constructor(codes: readonly number[], counts: readonly number[], repeats: number) {
    this.codes = codes;
    this.counts = counts;
    this.repeats = repeats;
    this.period = counts.reduce((sum, n) => sum + n, 0);
  }

  static readonly none = new Signature([], [], 0);

  /** `count` of one base type. */
  static of(code: number, count: number): Signature {
    return count === 0 ? Signature.none : new Signature([code], [count], 1);
  }

  /** One after the other; `undefined` if there would be too many changes between base types. */
  static joined(parts: readonly Signature[]): Signature | undefined {
    const codes: number[] = [];
    const counts: number[] = [];
    const some = parts.filter((part) => part.elements > 0);
    if (some.length === 1) return some[0];
    for (const part of some) {
      if (codes.length + part.repeats * part.codes.length > MOST_ENTRIES) return undefined;
      for (let r = 0; r < part.repeats; r++) {
        for (const [i, code] of part.codes.entries()) {
          if (codes.at(-1) === code) counts[counts.length - 1] += part.counts[i];
          else {
            codes.push(code);
            counts.push(part.counts[i]);
          }
        }
      }
    }
    return codes.length === 0 ? Signature.none : new Signature(codes, counts, 1);
  }

  times(count: number): Signature {
    if (count === 0 || this.repeats === 0) return Signature.none;
    if (count === 1) return this;
    if (this.codes.length === 1) return new Signature(this.codes, [this.counts[0] * this.repeats * count], 1);
    return new Signature(this.codes, this.counts, this.repeats * count);
  }

  /** The `TypeCode` if all are the same, else `MIXED`; −1 too if there are none. */
  get base(): number {
    return this.codes.length === 1 ? this.codes[0] : MIXED;
  }

  /** Base types in all. */
  get elements(): number {
    return this.period * this.repeats;
  }

  /**
   * Whether both are the same sequence. Cost: proportional to the entries of both, not to their repetitions: two
   * periodic sequences of equal length that agree for as long as both periods together agree for ever (Fine and Wilf).
   */
  equals(other: Signature): boolean {
    if (this.elements !== other.elements) return false;
    let left = Math.min(this.elements, this.period + other.period);
    let i = 0;
    let j = 0;
    let mine = 0;
    let theirs = 0;
    while (left > 0) {
      if (mine === 0) mine = this.counts[i % this.codes.length];
      if (theirs === 0) theirs = other.counts[j % other.codes.length];
      if (this.codes[i % this.codes.length] !== other.codes[j % other.codes.length]) return false;
      const both = Math.min(mine, theirs);
      mine -= both;
      theirs -= both;
      left -= both;
      if (mine === 0) i++;
      if (theirs === 0) j++;
    }
    return true;
  }
}
