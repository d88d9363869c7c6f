/**
 * The lock of all ranks' parts at once (`lockAll`), where memory can be loaded and stored: one word of the window, so that it costs as much with a thousand ranks as with two.
 *
 *   WORD     ranks that hold `lockAll` by it; and WRITER times the exclusive locks of single parts that are held
 *
 * Shared locks of single parts do not come here: they go well with `lockAll`. An exclusive lock is the queue lock of its part (queue.ts), and then a WRITER here; it is had when nobody holds all parts any more.
 * Who wants all parts adds itself if there is no WRITER; otherwise it takes the shared locks of all parts one by one, and stands in their lines.
 *
 * Exclusion. Both are additions to one word that tell what was there before: of two that come at once, the later one sees the earlier one. The one for all parts takes itself away again; the other
 * waits until those for all parts are gone.
 *
 * Nobody starves. While there is a WRITER nobody new comes in by the word, so those that hold all parts become fewer as they unlock (who takes itself away again was there for a moment, once in each
 * `lockAll`, and then stands in line like everybody else). A WRITER is at the head of its part's line, or the line is empty: it keeps its place.
 *
 * No new deadlock. An exclusive lock waits for those that hold all parts, as it would if they held the shared lock of its part: nobody waits for a rank for which it would not have waited without this word.
 *
 * No wake-up is lost: the last of those that hold all parts sees by its own subtraction whether there is a WRITER, and who waits was one before it looked.
 *
 * No overflow: a part has one exclusive holder at a time, so there are as many WRITERs as ranks at most; a window has 8,191 (queue.ts).
 *
 * Memory order. Who enters has read by an atomic read-modify-write, or after one by an atomic load, what who left has written by one after all its other stores.
 */
import type { Operation } from '../../comm/operation.ts';
import type { Context } from '../../verbs/device.ts';
import type { TargetLock } from './scheme.ts';

const WORD = 0;
const WRITER = 1 << 15;
const HOLDERS = WRITER - 1;

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

  /** Shares all parts, unless somebody has one of them for itself, or is next to have it. */
  tryAcquire(): boolean {
    if (Atomics.add(this.#words, WORD, 1) < WRITER) return true;
    this.release();
    return false;
  }

  release(): void {
    const before = Atomics.sub(this.#words, WORD, 1);
    if (before > WRITER && (before & HOLDERS) === 1) this.#wakeOthers();
  }

  /** The lock of one part, beside those who hold all. @param lock the part's */
  beside(lock: TargetLock): TargetLock {
    return new BesideAll(lock, this);
  }

  /** @returns ranks that hold all parts now */
  addWriter(): number {
    return Atomics.add(this.#words, WORD, WRITER) & HOLDERS;
  }

  removeWriter(): void {
    Atomics.sub(this.#words, WORD, WRITER);
  }

  get holders(): number {
    return Atomics.load(this.#words, WORD) & HOLDERS;
  }

  /** Who waits for the last of those that hold all parts stands nowhere: all are woken, which they are seldom, and those that do not sleep need not be. */
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
    if (!exclusive || this.#all.addWriter() === 0) return true;
    this.release(true);
    return false;
  }

  acquire(exclusive: boolean): Operation {
    const operation = this.#lock.acquire(exclusive);
    if (!exclusive) return operation;
    const all = this.#all;
    let isWriter = false;
    return {
      advance: () => {
        if (isWriter) return all.holders === 0;
        if (!operation.advance()) return false;
        isWriter = true;
        return all.addWriter() === 0;
      },
      describe: () => (isWriter ? `lock (${all.holders} ranks hold the locks of all ranks)` : operation.describe()),
      abandon: () => {
        if (isWriter) this.release(true);
        else operation.abandon?.();
      },
    };
  }

  release(exclusive: boolean): void {
    if (exclusive) this.#all.removeWriter();
    this.#lock.release(exclusive);
  }
}
