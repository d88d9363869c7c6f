/**
 * The numbers of spaces of messages: each communicator, window and BSP computation has some, and no other that shares a
 * rank with it has the same.
 *
 * The ranks that make something exchange numbers anyway, and take the one that the first of them says. Each rank says
 * numbers that no other rank of the job says, and never one twice. So whatever is made at the same time, on whatever
 * communicators, has numbers of its own, and it does not matter in which order the exchanges are complete.
 */
import { RmaError } from '../errors.ts';

/** Each thing that is made has at most so many spaces: those from the number that was said onwards. */
export const SPACES = 8;
/** Those of the communicator of all ranks, which is made without an exchange. */
export const WORLD_SPACE = 4;
/** The first that is said. */
const FIRST = 16;
/** Messages have 32 bits for it; no number is negative, however it is read. */
const END = 2 ** 31;

export class Spaces {
  readonly #rank: number;
  readonly #size: number;
  #said = 0;

  /**
   * @param rank of the job
   * @param size ranks of the job
   * @param said how many numbers were said
   */
  constructor(rank: number, size: number, said = 0) {
    this.#rank = rank;
    this.#size = size;
    this.#said = said;
  }

  /**
   * The first of `SPACES` numbers that nothing else has.
   * Errors: `ERR_COMM` after 2^31 / (8 × size) calls.
   */
  next(): number {
    const number = FIRST + SPACES * (this.#said * this.#size + this.#rank);
    if (number + SPACES > END) {
      throw new RmaError(
        'ERR_COMM',
        `rank ${this.#rank} has named ${this.#said} communicators, windows and BSP computations, and has no numbers ` +
          'for more; make fewer, and use them again',
      );
    }
    this.#said++;
    return number;
  }
}
