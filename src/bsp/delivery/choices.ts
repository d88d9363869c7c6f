/**
 * Which supersteps' puts are received without copies: all, or those for which that was quicker.
 *
 * BSP-IB §4.1 leaves this open, and says what matters: compressed headers for fine-grained puts, RDMA for coarse ones
 * of large relations. Where the one becomes better than the other differs by machine: copying costs 1.4 ns a byte on
 * the paper's, more than its links, and a third of what the links cost on others (`npm run figures -- --only B5,B8`).
 * So it is measured. A program's supersteps resemble each other, so the last one says of what kind the next one will
 * be: by the size of its puts and by what it sends, each to a power of two. Of every kind that may be worth it, the
 * first `TRIES` supersteps go each way, and all after them the way that was quicker.
 *
 * Each process decides for what it sends, and need ask nobody: its lists and chunks say what they are, and their number
 * is all that a receiver must know before (counts.ts). So any mixture is right. It is also seldom mixed: processes that
 * send alike try alike, in the same supersteps. What is measured is the whole `sync`: also how much earlier others have
 * ended the superstep before. Where processes compute for different times, that hides the difference, and the choice is
 * as good as chance until the least of the tries tells.
 */
import type { Chooser } from './zero-copy.ts';

/** All of them. */
export class Always implements Chooser {
  choose(): boolean {
    return true;
  }

  learn(): void {}
}

/** Smaller puts, and less of them in a superstep, are packed: reading them was quicker on no machine. */
const LEAST_PUT = 256;
const LEAST_BYTES = 8192;
/** The first one of each way makes links, and buffers grow. */
const TRIES = 3;
/** Supersteps alike after which `ByMeasurement` has tried both ways: the first one is taken for one like that before. */
export const LEARNING = 2 * TRIES + 1;

/** What is known of one kind of supersteps. */
interface Kind {
  /** Supersteps that were expected to be of it. */
  expected: number;
  /** The least time of those that were: packed, and read. */
  readonly least: [number, number];
}

export class ByMeasurement implements Chooser {
  readonly #kinds = new Map<number, Kind>();
  /** Of the last superstep in which this process put something to others; what the one under way is taken for. */
  #last: Kind | undefined;
  #expected: Kind | undefined;

  choose(): boolean {
    const kind = this.#last;
    this.#expected = kind;
    if (kind === undefined) return false;
    // By their number, whatever came out, so that processes that send alike try alike.
    const turn = kind.expected++;
    if (turn < TRIES) return false;
    return turn < 2 * TRIES || kind.least[1] < kind.least[0];
  }

  learn(puts: number, bytes: number, wasRead: boolean, microseconds: number): void {
    if (puts === 0) {
      if (this.#expected !== undefined) this.#expected.expected--;
      return;
    }
    const kind = this.#kindOf(puts, bytes);
    this.#last = kind;
    if (kind === undefined || kind !== this.#expected) return;
    const way = wasRead ? 1 : 0;
    kind.least[way] = Math.min(kind.least[way], microseconds);
  }

  #kindOf(puts: number, bytes: number): Kind | undefined {
    if (bytes < LEAST_BYTES || bytes < LEAST_PUT * puts) return undefined;
    const name = 32 * Math.floor(Math.log2(bytes / puts)) + Math.floor(Math.log2(bytes));
    let kind = this.#kinds.get(name);
    if (kind === undefined) {
      kind = { expected: 0, least: [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] };
      this.#kinds.set(name, kind);
    }
    return kind;
  }
}
