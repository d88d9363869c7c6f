/**
 * Which rank holds which words of the table. As in HPCC: consecutive pieces, of equal length if the ranks divide the
 * table, else one word longer on the first ranks.
 */
export class Distribution {
  readonly words: number;
  readonly ranks: number;
  /** `log2` of a rank's words if all have equally many: a shift finds the owner then. Else −1. */
  readonly shift: number;
  /** Words of the shorter pieces. */
  readonly #short: number;
  /** Ranks with a word more, and the words that these hold together. */
  readonly #longer: number;
  readonly #longerWords: number;

  /**
   * @param words a power of two, at most 2^31, so that a word's number is a positive 32-bit integer
   * @param ranks at most `words`
   */
  constructor(words: number, ranks: number) {
    if (!Number.isInteger(words) || words < 1 || words > 2 ** 31 || 2 ** Math.round(Math.log2(words)) !== words) {
      throw new RangeError(`the table has a power of two of words, at most 2^31, not ${words}`);
    }
    if (!Number.isInteger(ranks) || ranks < 1 || ranks > words) {
      throw new RangeError(`${words} words are spread over 1 to ${words} ranks, not ${ranks}`);
    }
    this.words = words;
    this.ranks = ranks;
    this.#short = Math.floor(words / ranks);
    this.#longer = words % ranks;
    this.#longerWords = this.#longer * (this.#short + 1);
    this.shift = this.#longer === 0 ? Math.round(Math.log2(this.#short)) : -1;
  }

  /** Words that `rank` holds. */
  length(rank: number): number {
    return rank < this.#longer ? this.#short + 1 : this.#short;
  }

  /** The first of them. */
  first(rank: number): number {
    return rank * this.#short + Math.min(rank, this.#longer);
  }

  /** The rank that holds `word`. */
  owner(word: number): number {
    if (word < this.#longerWords) return Math.floor(word / (this.#short + 1));
    return Math.floor((word - this.#longer) / this.#short);
  }
}
