/**
 * The lock of all ranks' parts at once (`lockAll`), where memory can be loaded and stored: one word of the window, so
 * that it takes one atomic operation with a thousand ranks as with two.
 *
 *   WORD     ranks that hold `lockAll` by it; and WRITER times the ranks that hold, or wait for, exclusive locks of
 *            single parts
 *
 * Shared locks of single parts do not come here: they go well with `lockAll`. A rank that wants one part exclusively
 * takes the queue lock of that part (queue-lock.ts), and is a WRITER here. It has the exclusive lock when no rank holds
 * all parts any more. A rank that wants all parts adds itself to WORD if there is no WRITER. Otherwise it takes the
 * shared locks of all parts one by one, and stands in their lines.
 *
 * Exclusion. A rank that wants all parts adds itself by a compare-and-swap from a word without a WRITER. A rank that
 * wants one part for itself adds WRITER, by an addition that tells whether ranks hold all parts, and waits until they
 * are gone. A rank that already is a WRITER has been one since before the last of them could come.
 *
 * No rank is overtaken for ever. While there is a WRITER no new rank comes in by the word, so those that hold all parts
 * become fewer as they unlock. (One may come in beside them for a moment, `tryJoin`, and not when they are gone.) So an
 * exclusive lock that stands in line, or at its head, waits for those that already hold all parts, and for those that
 * its part's lock lets in before it. A rank that wants all parts stands in one line after the other, as without this
 * word (lock-all.ts).
 *
 * No new deadlock. An exclusive lock waits for those that hold all parts, as it would if they held the shared lock of
 * its part.
 *
 * No wake-up is lost: the last of those that hold all parts sees by its own subtraction whether there is a WRITER, and
 * a rank that waits became a WRITER before it looked.
 *
 * No overflow: a rank counts once for each kind, and once while it joins; jobs have 4,096 at most.
 *
 * Memory order. A rank that leaves writes the word by an atomic read-modify-write, after all its other stores. A rank
 * that enters has read what was written there: by an atomic read-modify-write, or by an atomic load after one.
 */

import type { Context } from '../../verbs/device.ts';
import type { Operation } from '../../wait/operation.ts';
import type { TargetLock } from './lock-scheme.ts';

const WORD = 0;
const WRITER = 1 << 15;
const HOLDERS = WRITER - 1;

/** Words that it takes, at one of the ranks: a cache line of their own. */
export const ALL_LOCK_WORDS = 32;

export class AllLock {
  readonly #words: Int32Array;
  readonly #rank: number;
  readonly #members: readonly number[];
  readonly #context: Context;
  /** Exclusive locks that this rank holds or waits for. */
  #writing = 0;

  /** @param words those of the window, the same for all ranks; @param members the contexts of the window's ranks */
  constructor(words: Int32Array, rank: number, members: readonly number[], context: Context) {
    this.#words = words;
    this.#rank = rank;
    this.#members = members;
    this.#context = context;
  }

  /** Shares all parts, unless a rank has one of them for itself, or wants it. */
  tryAcquire(): boolean {
    let seen = Atomics.load(this.#words, WORD);
    while (seen < WRITER) {
      const found = Atomics.compareExchange(this.#words, WORD, seen, seen + 1);
      if (found === seen) return true;
      seen = found;
    }
    return false;
  }

  /** Shares all parts beside those that hold them, also while a rank wants one for itself and waits for them. */
  tryJoin(): boolean {
    for (;;) {
      const found = Atomics.load(this.#words, WORD);
      if ((found & HOLDERS) === 0) return false;
      if (Atomics.compareExchange(this.#words, WORD, found, found + 1) === found) return true;
    }
  }

  release(): void {
    const before = Atomics.sub(this.#words, WORD, 1);
    if (before > WRITER && (before & HOLDERS) === 1) this.#wakeOthers();
  }

  /** The lock of one part, beside those who hold all. @param lock the part's */
  beside(lock: TargetLock): TargetLock {
    return new BesideAll(lock, this);
  }

  /** This rank wants a part for itself. @returns ranks that hold all parts now */
  beginWriting(): number {
    return this.#writing++ === 0 ? Atomics.add(this.#words, WORD, WRITER) & HOLDERS : this.holders;
  }

  endWriting(): void {
    if (--this.#writing === 0) Atomics.sub(this.#words, WORD, WRITER);
  }

  get holders(): number {
    return Atomics.load(this.#words, WORD) & HOLDERS;
  }

  /** A rank that waits for the last holder of all parts is noted nowhere, so all ranks that sleep are woken. */
  #wakeOthers(): void {
    for (let rank = 0; rank < this.#members.length; rank++)
      if (rank !== this.#rank) this.#context.wake(this.#members[rank]);
  }
}

class BesideAll implements TargetLock {
  readonly #lock: TargetLock;
  readonly #all: AllLock;
  /** It has joined those that hold all parts, and is none of those that hold this one. */
  #isOfAll = false;

  constructor(lock: TargetLock, all: AllLock) {
    this.#lock = lock;
    this.#all = all;
  }

  tryAcquire(exclusive: boolean): boolean {
    if (!this.#lock.tryAcquire(exclusive)) return false;
    if (!exclusive || this.#all.beginWriting() === 0) return true;
    this.release(true);
    return false;
  }

  /** Whoever has the part's lock exclusively waits until no rank holds all parts. */
  tryJoin(): boolean {
    if (this.#lock.tryJoin!()) return true;
    this.#isOfAll = this.#all.tryJoin();
    return this.#isOfAll;
  }

  acquire(exclusive: boolean): Operation {
    const operation = this.#lock.acquire(exclusive);
    if (!exclusive) return operation;
    const all = this.#all;
    let [isWriting, first] = [false, false];
    return {
      advance: () => {
        // First of all, so that no rank that comes later to lock all parts overtakes it in line.
        if (!isWriting) {
          isWriting = true;
          all.beginWriting();
        }
        first ||= operation.advance();
        return first && all.holders === 0;
      },
      describe: () => (first ? `lock (${all.holders} ranks hold it by lockAll)` : operation.describe()),
      abandon: () => {
        if (first) this.#lock.release(true);
        else operation.abandon?.();
        if (isWriting) all.endWriting();
      },
      isPolling: () => !first && (operation.isPolling?.() ?? false),
    };
  }

  release(exclusive: boolean): void {
    if (this.#isOfAll) {
      this.#isOfAll = false;
      this.#all.release();
      return;
    }
    if (exclusive) this.#all.endWriting();
    this.#lock.release(exclusive);
  }
}
