/**
 * Which puts are received without copies: all, or what the last superstep of each pair of processes suggests.
 *
 * BSP-IB §4.1 leaves this open, and says what matters: compressed headers for fine-grained puts, RDMA for coarse ones
 * of large relations. Both are known when a superstep has ended, and a program's supersteps resemble each other. So a
 * sender decides for each process that it puts to, when it first does so in a superstep, by what it has put there in
 * the last one in which it did. It need not ask anybody: its lists and chunks say what they are, and their number is
 * all that the receiver must know before (counts.ts). A superstep that is unlike the one before costs no more than the
 * worse of the two ways, once.
 */
import type { Chooser } from './zero-copy.ts';

/** All of them. */
export class Always implements Chooser {
  choose(): boolean {
    return true;
  }

  learn(): void {}
}

/**
 * From so many bytes a put on, and so many to a process in a superstep, a request's scatter list costs less than
 * placing does. Measured by `npm run figures -- --only B5,B8`: with lists of 28 entries, reads win from 64 words a put
 * and 16 KiB a process on; where each put is a request of its own, from 512 words on.
 */
const LEAST_PUT = 512;
const LEAST_PUT_ALONE = 4096;
const LEAST_BYTES = 16_384;

export class ByLastSuperstep implements Chooser {
  readonly #leastPut: number;
  /** By process. */
  readonly #isBetter: boolean[] = [];

  /** @param entries of a scatter list */
  constructor(entries: number) {
    this.#leastPut = Math.max(LEAST_PUT, Math.ceil(LEAST_PUT_ALONE / entries));
  }

  choose(pid: number): boolean {
    return this.#isBetter[pid] === true;
  }

  learn(pid: number, puts: number, bytes: number): void {
    if (puts > 0) this.#isBetter[pid] = bytes >= LEAST_BYTES && bytes >= this.#leastPut * puts;
  }
}
