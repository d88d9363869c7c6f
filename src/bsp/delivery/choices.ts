/**
 * Which supersteps' puts are received without copies: all, or those for which that was quicker.
 *
 * BSP-IB §4.1 leaves this open, and says what matters: compressed headers for fine-grained puts, RDMA for coarse ones
 * of large relations. At which point the one becomes better than the other differs by machine: copying costs 1.4 ns a
 * byte on the paper's, more than its links, and a third of what the links cost on others
 * (`npm run figures -- --only B5,B8`). So it is measured. Supersteps are of kinds: by the size of their puts and by
 * what they send, each to a power of two. A program's supersteps resemble each other, or come in turns. So what
 * followed the last two kinds before is expected to come next; without that, one like the last. Of every kind that may
 * be worth it, the first `TRIES` supersteps go each way, and those after them the way that was quicker. They are
 * measured on: how processes read from each other, in turns or in each other's way, settles after some supersteps only,
 * and reading may look quicker than it is until then. Where the way that was chosen has become slower than the other
 * one was, by more than `CLEAR`, the other one is taken.
 *
 * Each process decides for what it sends, and need not ask any other: its lists and chunks say what they are, and their
 * number is all that a receiver must know before (counts.ts). So any mixture is right. It is also seldom mixed:
 * processes that send alike try alike, in the same supersteps. What is measured is the whole `sync`, also how much
 * earlier others have ended the superstep before. Where processes compute for different times, that hides the
 * difference, and the choice is as good as chance until the least of the tries tells.
 */
import type { Chooser } from './zero-copy-delivery.ts';

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
/** Less of a difference is no reason to change from one way to the other. */
const CLEAR = 1.05;
/** Supersteps alike after which `ByMeasurement` has tried both ways: the first is taken for one like that before. */
export const LEARNING = 2 * TRIES + 1;

/** What is known of one kind of supersteps. */
interface Kind {
  readonly name: number;
  /** Supersteps that were expected to be of it. */
  expected: number;
  /** What those took a byte: the last `TRIES` that were packed, and that were read. And how many there were. */
  readonly last: readonly [packed: Float64Array, read: Float64Array];
  readonly counts: [packed: number, read: number];
  /** Which way they go, when both were tried. */
  way: 0 | 1 | undefined;
}

/** More names than kinds have. */
const NAMES = 4096;
/** A way that has not been measured then, since others came than were expected, is not tried any more. */
const LAST_TRY = 8 * TRIES;

const kindNamed = (name: number): Kind => ({
  name,
  expected: 0,
  last: [
    new Float64Array(TRIES).fill(Number.POSITIVE_INFINITY),
    new Float64Array(TRIES).fill(Number.POSITIVE_INFINITY),
  ],
  counts: [0, 0],
  way: undefined,
});

export class ByMeasurement implements Chooser {
  readonly #kinds = new Map<number, Kind>();
  /** Supersteps that are not worth it. */
  readonly #small = kindNamed(0);
  /** What came after two others, by their names. */
  readonly #followers = new Map<number, Kind>();
  /** Of the last two supersteps in which this process put something to others. */
  #before = this.#small;
  #last = this.#small;
  /** What the one under way is taken for. */
  #expected = this.#small;

  choose(): boolean {
    const kind = this.#followers.get(this.#context) ?? this.#last;
    this.#expected = kind;
    if (kind === this.#small) return false;
    // By their number, whatever came out, so that processes that send alike try alike.
    const turn = kind.expected++;
    if (turn < TRIES) return false;
    if (turn < 2 * TRIES || (kind.counts[1] === 0 && turn < LAST_TRY)) return true;
    const [packed, read] = [Math.min(...kind.last[0]), Math.min(...kind.last[1])];
    if (kind.way === undefined) kind.way = read < packed ? 1 : 0;
    else if (kind.way === 1 && read > CLEAR * packed) kind.way = 0;
    else if (kind.way === 0 && packed > CLEAR * read) kind.way = 1;
    return kind.way === 1;
  }

  learn(puts: number, bytes: number, wasRead: boolean, microseconds: number): void {
    if (puts === 0) {
      if (this.#expected !== this.#small) this.#expected.expected--;
      return;
    }
    const kind = this.#kindOf(puts, bytes);
    this.#followers.set(this.#context, kind);
    this.#before = this.#last;
    this.#last = kind;
    if (kind === this.#small || kind !== this.#expected) return;
    const way = wasRead ? 1 : 0;
    // Supersteps of a kind send up to twice as much as each other.
    kind.last[way][kind.counts[way]++ % TRIES] = microseconds / bytes;
  }

  get #context(): number {
    return NAMES * this.#before.name + this.#last.name;
  }

  #kindOf(puts: number, bytes: number): Kind {
    if (bytes < LEAST_BYTES || bytes < LEAST_PUT * puts) return this.#small;
    const name = 32 * Math.floor(Math.log2(bytes / puts)) + Math.floor(Math.log2(bytes));
    let kind = this.#kinds.get(name);
    if (kind === undefined) this.#kinds.set(name, (kind = kindNamed(name)));
    return kind;
  }
}
