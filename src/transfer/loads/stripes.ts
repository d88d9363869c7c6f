/**
 * Locks for accumulates on floating-point numbers and pairs, which processors have no instructions for
 * (docs/decisions/011-stripes.md).
 *
 * Each part of a window has `STRIPES` lock words, in its owner's shared block. An element belongs to the stripe of the
 * 4 KiB in which its first byte is; every accumulate on these types, one element or many, here (`acquire`) or in native
 * code (native/stripes.h, the same numbers), holds that stripe while it loads, combines and stores by plain
 * instructions. So bulk is a loop that the compiler makes vector instructions of, and ranks that add to different
 * places of a part rarely meet. Integers stay with the processor's atomic instructions: MPI promises atomicity only
 * among accumulates of one basic type (MPI 4.1, 12.7.1), so the two need not agree.
 *
 * A word is 0, or names its holder:
 *
 *   acquire: compare-and-swap 0 -> me     (sequentially consistent: what the last holder stored is seen from here on)
 *   release: store 0                      (sequentially consistent: what was stored before is seen by the rank that
 *                                          acquires next)
 *
 * Nothing between the two can throw, wait, or run the program's code. A call that needs several stripes at once
 * (scattered elements, native code only) takes them in ascending order, and every other call holds one at a time, so no
 * ranks wait in a circle.
 *
 * A rank that finds a stripe taken looks again a few times, then yields the processor, and now and then asks whether a
 * rank has failed: a rank that was killed while it held a stripe will not give it back, and the element may be half
 * updated. Then the call throws `ERR_RMA_RANK_FAILED`, as all calls will.
 */
import type { RmaError } from '../../errors.ts';

export const STRIPES = 32;
/** What lies together in one stripe. */
export const STRIPE_BYTES = 4096;
/** Words from one lock to the next: a cache line each. */
const LINE = 16;
export const STRIPE_WORDS = STRIPES * LINE;

/** Looks before the processor is yielded, and yields before the ranks are looked at. */
const LOOKS = 64;
const YIELDS = 256;

/** What a rank that contends for a stripe needs of those it contends with. */
interface Contender {
  readonly rank: number;
  readonly schedYield?: (() => void) | undefined;
  findFailure(): RmaError | undefined;
}

/** The stripe of the element that begins at a byte. */
export function stripeAt(offset: number): number {
  return (offset >>> 12) & (STRIPES - 1);
}

export class Stripes {
  readonly words: Int32Array;
  /**
   * Added to offsets in the part, so that all ranks that reach the same memory, by whatever address, mean the same
   * stripe.
   */
  readonly base: number;
  readonly me: number;
  #job: Contender;

  /** @param words `STRIPE_WORDS` of them */
  constructor(words: Int32Array, base: number, job: Contender) {
    this.words = words;
    this.base = base % (STRIPES * STRIPE_BYTES);
    this.me = job.rank + 1;
    this.#job = job;
  }

  /** Takes the stripe of the element at byte `offset` of the part. @returns what `release` needs */
  acquire(offset: number): number {
    const { words } = this;
    const word = stripeAt(this.base + offset) * LINE;
    if (Atomics.compareExchange(words, word, 0, this.me) !== 0) this.#contend(word);
    return word;
  }

  release(word: number): void {
    Atomics.store(this.words, word, 0);
  }

  #contend(word: number): void {
    const { words, me } = this;
    for (let round = 1; ; round++) {
      for (let look = 0; look < LOOKS; look++) {
        if (Atomics.load(words, word) === 0 && Atomics.compareExchange(words, word, 0, me) === 0) return;
      }
      this.pause(round);
    }
  }

  /** Lets others run. Errors: that of a failed rank. */
  pause(round: number): void {
    const { schedYield } = this.#job;
    if (schedYield !== undefined) schedYield();
    else Atomics.wait(sleeper, 0, 0, 0.05);
    if (round % YIELDS !== 0) return;
    const failure = this.#job.findFailure();
    if (failure !== undefined) throw failure;
  }
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));
