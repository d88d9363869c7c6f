/**
 * The dissertation's lock by the processor (§5.1: "CPU lock variable"): one word in memory that the ranks of a node
 * share. All ranks that want the lock spin on it. `hybrid` takes it in CPU mode with the hint `lock_cpu: 'one-word'`;
 * the default, the queue lock (queue-lock.ts), is fair, and its hand-over does not grow with the number of those that
 * wait.
 *
 * Words:
 *   WORD       EXCLUSIVE | holder's rank, or the number of shared holders; and CLOSED when a rank wants it exclusively
 *   WAITING    a bit for each rank that waits, on lines of their own: whom a release wakes if it sleeps
 *
 * Exclusion. An exclusive lock is a compare-and-swap from a WORD without holders, a shared one from a WORD without
 * EXCLUSIVE. Holders take back what they have added.
 *
 * Why no wake-up is lost. A rank that waits sets its bit first and then tries WORD; a rank that releases changes WORD
 * first and then looks at the bits. All of these are sequentially consistent: either the try sees the release, or the
 * release sees the bit. A release that leaves no holder wakes all ranks that wait, so a rank that has been woken and
 * gives up takes nothing from the others.
 *
 * Readers. Readers that follow one another would keep a writer out for ever. So a rank that tries for an exclusive lock
 * and finds it held sets CLOSED, which keeps new readers out. The rank that then takes the lock clears CLOSED; other
 * writers, which its release wakes, set it again. A writer that gives up clears it and wakes all ranks that wait, for
 * the same reason. There is no such bound between writers: the one that comes at the right moment gets the lock,
 * perhaps the last holder again.
 *
 * Memory order. Acquiring is an atomic read-modify-write of WORD after the release's read-modify-write of the same
 * word, so all stores of the earlier holder are visible to the later one.
 *
 * In virtual time no rank spins. A release that others wait for sends the line of WORD to them in turn, beginning with
 * the next rank, and each keeps it for `node.waiter`. The first that finds WORD free has the lock, and goes on when the
 * others have had their turn: what it wants of the line next stands behind them. The next try of the rank that has
 * released stands behind them, too. It comes half an atomic instruction behind the last of them: too late to find WORD
 * free again, and before the new holder can have given it back.
 */
import type { Context } from '../../verbs/device.ts';
import { type Processor, REAL_PROCESSOR } from '../../verbs/processor.ts';
import type { Operation } from '../../wait/operation.ts';
import type { TargetLock } from './lock-scheme.ts';

const WORD = 0;
const WAITING = 32;

const EXCLUSIVE = 1 << 30;
const CLOSED = 1 << 29;

/** Words that the lock of one target takes, for `size` origins. */
export function oneWordLockWords(size: number): number {
  return WAITING + Math.ceil(size / 32);
}

export class OneWordLock implements TargetLock {
  readonly #words: Int32Array;
  readonly #rank: number;
  readonly #members: readonly number[];
  readonly #context: Context;
  readonly #processor: Processor;

  /**
   * @param words the target's lock words
   * @param members the contexts of the ranks that may want it, by rank
   * @param processor this rank's
   */
  constructor(
    words: Int32Array,
    rank: number,
    members: readonly number[],
    context: Context,
    processor = REAL_PROCESSOR,
  ) {
    this.#words = words;
    this.#rank = rank;
    this.#members = members;
    this.#context = context;
    this.#processor = processor;
  }

  tryAcquire(exclusive: boolean): boolean {
    return this.#take(exclusive, 0);
  }

  acquire(exclusive: boolean): Operation {
    const closes = exclusive ? CLOSED : 0;
    let waits = false;
    return {
      advance: () => {
        if (!waits) {
          waits = true;
          this.#mark();
        }
        if (!this.#take(exclusive, closes)) return false;
        this.#unmark();
        return true;
      },
      describe: () => `lock (${this.#describeHolder()})`,
      abandon: () => {
        if (!waits) return;
        this.#unmark();
        if (exclusive && (Atomics.and(this.#words, WORD, ~CLOSED) & CLOSED) !== 0) this.#wakeAll();
      },
    };
  }

  release(exclusive: boolean): void {
    const held = exclusive ? EXCLUSIVE | this.#rank : 1;
    const left = (Atomics.sub(this.#words, WORD, held) - held) & ~CLOSED;
    if (left !== 0) return;
    const woken = this.#wakeAll();
    if (woken === 0) return;
    const { atomic, waiter } = this.#processor.node;
    this.#processor.spend((woken - 1) * waiter + 1.5 * atomic);
  }

  /** One try. @param closes what it leaves in WORD if there are holders in its way */
  #take(exclusive: boolean, closes: number): boolean {
    const words = this.#words;
    let seen = Atomics.load(words, WORD);
    for (;;) {
      const free = exclusive ? (seen & ~CLOSED) === 0 : (seen & (EXCLUSIVE | CLOSED)) === 0;
      const next = !free ? seen | closes : exclusive ? EXCLUSIVE | this.#rank : seen + 1;
      if (next === seen) return false;
      const found = Atomics.compareExchange(words, WORD, seen, next);
      if (found === seen) {
        // Only virtual time needs the count, which takes a look at each rank.
        if (free && this.#processor.isVirtual)
          this.#processor.spend(this.#otherWaiters() * this.#processor.node.waiter);
        return free;
      }
      seen = found;
    }
  }

  #mark(): void {
    Atomics.or(this.#words, WAITING + (this.#rank >> 5), 1 << (this.#rank & 31));
  }

  #unmark(): void {
    Atomics.and(this.#words, WAITING + (this.#rank >> 5), ~(1 << (this.#rank & 31)));
  }

  #isWaiting(rank: number): boolean {
    return (Atomics.load(this.#words, WAITING + (rank >> 5)) & (1 << (rank & 31))) !== 0;
  }

  #otherWaiters(): number {
    let count = 0;
    for (let rank = 0; rank < this.#members.length; rank++) if (rank !== this.#rank && this.#isWaiting(rank)) count++;
    return count;
  }

  /** Wakes those who wait, from the next rank on and round to this one. @returns how many they are */
  #wakeAll(): number {
    if (!this.#someWait()) return 0;
    const size = this.#members.length;
    const processor = this.#processor;
    let woken = 0;
    for (let k = 1; k <= size; k++) {
      const rank = (this.#rank + k) % size;
      if (!this.#isWaiting(rank)) continue;
      processor.wake(this.#context, this.#members[rank], woken * processor.node.waiter);
      woken++;
    }
    return woken;
  }

  #someWait(): boolean {
    const end = oneWordLockWords(this.#members.length);
    for (let i = WAITING; i < end; i++) if (Atomics.load(this.#words, i) !== 0) return true;
    return false;
  }

  #describeHolder(): string {
    const word = Atomics.load(this.#words, WORD) & ~CLOSED;
    if ((word & EXCLUSIVE) !== 0) return `rank ${word & ~EXCLUSIVE} holds it exclusively`;
    return word === 0 ? 'no rank holds it now' : `${word} ranks share it`;
  }
}
