/**
 * The lock of all ranks' parts at once (`lockAll`), where memory can be loaded and stored: one word of the window, so that it costs as much with a thousand ranks as with two.
 *
 *   HOLDERS  ranks that hold `lockAll` by this word
 *   WRITERS  exclusive locks of single parts that somebody holds or waits for
 *
 * Shared locks of single parts do not come here: they go well with `lockAll`. An exclusive lock is the queue lock of its part (queue.ts) and, beside it, one of WRITERS; it is had when the
 * queue lock is and HOLDERS is 0. Who wants all parts counts itself in HOLDERS if it sees no WRITERS; otherwise it takes the shared locks of all parts one by one, and stands in their lines.
 *
 * Exclusion. Each of the two adds itself first and looks at the other word then, all of it sequentially consistent: so of two that come at once at least one sees the other. The one for all parts
 * withdraws; the other waits until HOLDERS is 0.
 *
 * Nobody starves. While there are WRITERS nobody new comes in by the word: so HOLDERS goes down to 0 as its ranks unlock (who withdraws adds 1 for a moment, once in each `lockAll`, and then stands in line like
 * everybody else). Who wants all parts waits in the lines of those that are taken, which are served in their order.
 *
 * No new deadlock. An exclusive lock waits for those that hold all parts, as it would if they held the shared lock of its part: nobody waits for a rank for which it would not have waited without this word.
 *
 * No wake-up is lost: who brings HOLDERS to 0 looks at WRITERS after that, and who waits has counted itself in WRITERS before it looked at HOLDERS.
 *
 * Memory order. Who enters reads what who left wrote last, by an atomic read-modify-write of it: WRITERS, or HOLDERS.
 */
import type { Operation } from '../../comm/operation.ts';
import type { Context } from '../../verbs/device.ts';
import type { TargetLock } from './scheme.ts';

const HOLDERS = 0;
const WRITERS = 1;

/** Words that it takes, at one of the ranks: a cache line of their own. */
export const ALL_LOCK_WORDS = 32;

export class AllLock {
  readonly #words: Int32Array;
  readonly #rank: number;
  readonly #lids: readonly number[];
  readonly #context: Context;

  /** @param words those of the window, the same for all ranks; @param lids the contexts of the window's ranks */
  constructor(words: Int32Array, rank: number, lids: readonly number[], context: Context) {
    this.#words = words;
    this.#rank = rank;
    this.#lids = lids;
    this.#context = context;
  }

  /** Shares all parts, unless somebody has, or wants, one of them for itself. */
  tryAcquire(): boolean {
    const words = this.#words;
    if (Atomics.load(words, WRITERS) !== 0) return false;
    Atomics.add(words, HOLDERS, 1);
    if (Atomics.load(words, WRITERS) === 0) return true;
    this.release();
    return false;
  }

  release(): void {
    const words = this.#words;
    if (Atomics.sub(words, HOLDERS, 1) === 1 && Atomics.load(words, WRITERS) !== 0) this.#wakeOthers();
  }

  /** The exclusive lock of one part, beside those who hold all. @param lock the part's */
  beside(lock: TargetLock): TargetLock {
    return new BesideAll(lock, this);
  }

  addWriter(): void {
    Atomics.add(this.#words, WRITERS, 1);
  }

  removeWriter(): void {
    Atomics.sub(this.#words, WRITERS, 1);
  }

  get holders(): number {
    return Atomics.load(this.#words, HOLDERS);
  }

  /** Those that wait for HOLDERS stand nowhere; there are few of them, and they were sure to wait. */
  #wakeOthers(): void {
    for (let rank = 0; rank < this.#lids.length; rank++) if (rank !== this.#rank) this.#context.wake(this.#lids[rank]);
  }
}

class BesideAll implements TargetLock {
  readonly #lock: TargetLock;
  readonly #all: AllLock;

  constructor(lock: TargetLock, all: AllLock) {
    this.#lock = lock;
    this.#all = all;
  }

  tryAcquire(exclusive: boolean): boolean {
    if (!this.#lock.tryAcquire(exclusive)) return false;
    if (!exclusive) return true;
    this.#all.addWriter();
    if (this.#all.holders === 0) return true;
    this.release(true);
    return false;
  }

  acquire(exclusive: boolean): Operation {
    const operation = this.#lock.acquire(exclusive);
    if (!exclusive) return operation;
    const all = this.#all;
    let [counted, first] = [false, false];
    return {
      advance: () => {
        if (!counted) {
          counted = true;
          all.addWriter();
        }
        first ||= operation.advance();
        return first && all.holders === 0;
      },
      describe: () => (first ? `lock (${all.holders} ranks hold all parts)` : operation.describe()),
      abandon: () => {
        if (first) this.#lock.release(true);
        else operation.abandon?.();
        if (counted) all.removeWriter();
      },
    };
  }

  release(exclusive: boolean): void {
    this.#lock.release(exclusive);
    if (exclusive) this.#all.removeWriter();
  }
}
