/**
 * The default lock where remote memory can be loaded and stored: a reader-writer lock without an agent at the target.
 * Ranks wait in line; a rank that runs may overtake a head of the line that sleeps, for a bounded time.
 *
 * Words at the target:
 *   WORD     EXCLUSIVE | holder's rank, or the number of shared holders; and the two marks of the head of the line:
 *            QUEUED   it waits, so the release that frees the lock wakes it (and takes this mark away)
 *            CLOSED   its turn has come: no other rank takes the lock
 *   NEXT     the next ticket to give out
 *   SERVING  the ticket at the head of the line
 *   SLOT[t]  the holder of ticket t: ticket and rank in one word, negative once that rank has given up, 0 for none
 *
 * Uncontended, a lock is one compare-and-swap and an unlock one fetch-and-subtract.
 *
 * Why the line can be overtaken. A lock that is handed to the next in line stands still until that rank has a core. On
 * a machine with other work this takes milliseconds. Since the next holder finds its neighbours asleep as well, it
 * happens at each hand-over. So the lock is free when it is released, and any rank that runs takes it, until the head
 * closes it (`Overtaking`). Only a head that runs closes the lock, so most often it still runs when the lock is
 * released. The time begins anew for each head, so ranks that have waited for long behind it do not bring the
 * hand-overs back.
 *
 * Why no rank starves. The head closes the lock when it looks and was overtaken for longer than `Overtaking.ms`. Then
 * the holders become fewer, and the head has the lock after the last of them. It looks when a release has woken it.
 * Where readers follow one another there is no such release, so the head sleeps no longer than that (`isPolling`). With
 * the hint `lock_order: 'arrival'` a head closes the lock at its first look: first come, first served.
 *
 * Why no wake-up is lost. The head sets QUEUED with an atomic OR whose result it examines. If the holder's release came
 * before, the head sees the lock free; if it comes after, the release sees QUEUED. Later looks only load WORD: if the
 * mark is still there, the release that comes sees it. A release that takes QUEUED away wakes the head afterwards, so
 * the head looks after that, and sets the mark again if another rank has overtaken it. Perhaps two releases take the
 * mark away, and the second takes that of a later look: it wakes the head after that, too.
 * A rank that takes a ticket writes its slot and only then looks at SERVING. A rank that advances SERVING does so first
 * and then looks at the slot. So at least one of them sees the other. All of these are sequentially consistent.
 *
 * Why SERVING advances by one for each ticket. Only the head that acquired advances it, after it cleared its slot; or,
 * for a ticket that was given up, the rank that wins the compare-and-swap that clears the slot. A rank has at most one
 * ticket in line: if it comes back while the one it gave up is still there, it takes that up again. So as many slots as
 * ranks suffice (a power of two, so that the slot of a ticket is the same function before and after the 32-bit count
 * wraps around). A slot's word contains the ticket, so a word that was seen for one ticket is never mistaken for that
 * of a later one in the same slot.
 *
 * Memory order. Acquiring is an atomic read-modify-write of WORD after the release's read-modify-write of the same
 * word, so all stores of the earlier holder are visible to the later one.
 */

import type { Context } from '../../verbs/device.ts';
import type { Operation } from '../../wait/operation.ts';
import { lockKind } from './lock-kind.ts';
import { ALL_LOCK_WORDS, AllLock } from './lock-of-all.ts';
import { NO_OVERTAKING, type Overtaking, overtakingBy } from './lock-overtaking.ts';
import { noLocks, type TargetLock } from './lock-scheme.ts';
import { remote } from './remote-lock.ts';

const WORD = 0;
const NEXT = 32;
const SERVING = 33;
const SLOTS = 64;

const EXCLUSIVE = 1 << 30;
const QUEUED = 1 << 29;
const CLOSED = 1 << 28;
const HOLDERS = ~(QUEUED | CLOSED);
/** A slot's word: 17 bits of the ticket, 13 bits of rank + 1. */
const RANK_BITS = 13;
const TICKET_MASK = 0x1ffff;

/** Words that the lock of one target takes, for `size` origins. */
export function queueLockWords(size: number): number {
  return SLOTS + slotCount(size);
}

function slotCount(size: number): number {
  return 2 ** Math.ceil(Math.log2(size));
}

/** A rank that waits in line. */
interface Waiting {
  readonly exclusive: boolean;
  ticket: number | undefined;
  /** When it came to the head of the line; undefined before that. */
  head: number | undefined;
  /** Milliseconds after which it looks again though no release wakes it. */
  due: number;
}

export class QueueLock implements TargetLock {
  readonly #words: Int32Array;
  readonly #rank: number;
  readonly #members: readonly number[];
  readonly #context: Context;
  readonly #overtaking: Overtaking;
  /** A ticket that this rank has given up and that may still stand in line. */
  #givenUp: number | undefined;
  readonly #slotMask: number;

  /** @param words the target's lock words; @param members the contexts of the window's ranks */
  constructor(
    words: Int32Array,
    rank: number,
    members: readonly number[],
    context: Context,
    overtaking: Overtaking = NO_OVERTAKING,
  ) {
    this.#words = words;
    this.#rank = rank;
    this.#members = members;
    this.#context = context;
    this.#overtaking = overtaking;
    this.#slotMask = slotCount(members.length) - 1;
  }

  tryAcquire(exclusive: boolean): boolean {
    const words = this.#words;
    if (exclusive) {
      const found = Atomics.compareExchange(words, WORD, 0, EXCLUSIVE | this.#rank);
      return found === 0 || ((found & HOLDERS) === 0 && this.#tryMarked(found));
    }
    let seen = 0;
    for (;;) {
      const found = Atomics.compareExchange(words, WORD, seen, seen + 1);
      if (found === seen) return true;
      if ((found & (EXCLUSIVE | CLOSED)) !== 0) return false;
      seen = found;
    }
  }

  /**
   * Takes the lock exclusively where it is free and marked. Either it overtakes a head that has not closed the lock, or
   * no rank stands in line and the marks are those of a head that has given up. NEXT is never before SERVING, so if the
   * two are the same, read in this order, the line was empty. A rank that comes to its head before the swap is not
   * overtaken unseen: it looks when it is woken, and sets the marks again.
   */
  #tryMarked(found: number): boolean {
    const words = this.#words;
    let kept = found;
    if ((found & CLOSED) !== 0) {
      const serving = Atomics.load(words, SERVING);
      if (Atomics.load(words, NEXT) !== serving) return false;
      kept = 0;
    }
    return Atomics.compareExchange(words, WORD, found, EXCLUSIVE | this.#rank | kept) === found;
  }

  /** It counts as one of those that share it, so the head waits for it as for them. */
  tryJoin(): boolean {
    const words = this.#words;
    for (;;) {
      const found = Atomics.load(words, WORD);
      if ((found & EXCLUSIVE) !== 0 || ((found & CLOSED) !== 0 && (found & HOLDERS) === 0)) return false;
      if (Atomics.compareExchange(words, WORD, found, found + 1) === found) return true;
    }
  }

  release(exclusive: boolean): void {
    const before = Atomics.sub(this.#words, WORD, exclusive ? EXCLUSIVE | this.#rank : 1);
    if ((before & QUEUED) !== 0 && (exclusive || (before & HOLDERS) === 1)) this.#wakeQueued();
  }

  acquire(exclusive: boolean): Operation {
    const waiting: Waiting = { exclusive, ticket: undefined, head: undefined, due: Number.POSITIVE_INFINITY };
    return {
      advance: () => {
        if (waiting.ticket === undefined) {
          if (this.tryAcquire(exclusive)) return true;
          waiting.ticket = this.#enterLine();
        }
        if (Atomics.load(this.#words, SERVING) !== waiting.ticket) return false;
        return this.#acquireAsHead(waiting, waiting.ticket);
      },
      describe: () => `lock (${this.#describeHolder()})`,
      abandon: () => {
        if (waiting.ticket !== undefined) this.#giveUp(waiting.ticket);
      },
      isPolling: () => waiting.due !== Number.POSITIVE_INFINITY && Math.max(0, waiting.due - this.#overtaking.now()),
    };
  }

  #enterLine(): number {
    const words = this.#words;
    if (this.#givenUp !== undefined) {
      const ticket = this.#givenUp;
      this.#givenUp = undefined;
      const mark = this.#mark(ticket);
      if (Atomics.compareExchange(words, this.#slot(ticket), -mark, mark) === -mark) return ticket;
    }
    const ticket = Atomics.add(words, NEXT, 1);
    Atomics.store(words, this.#slot(ticket), this.#mark(ticket));
    return ticket;
  }

  #acquireAsHead(waiting: Waiting, ticket: number): boolean {
    const words = this.#words;
    const { exclusive } = waiting;
    for (;;) {
      const found = Atomics.load(words, WORD);
      if (exclusive ? (found & HOLDERS) !== 0 : (found & EXCLUSIVE) !== 0) {
        const marks = this.#marksOf(waiting, found);
        if ((found & marks) === marks) return false;
        const then = Atomics.or(words, WORD, marks);
        if (exclusive ? (then & HOLDERS) !== 0 : (then & EXCLUSIVE) !== 0) return false;
        continue;
      }
      const others = ((Atomics.load(words, NEXT) - ticket) | 0) !== 1;
      // A rank that takes a ticket after we looked at NEXT sets the marks when it comes to the head. So no rank is lost
      // when we take them away here.
      const marks = !others ? 0 : this.#overtaking.ms === 0 ? QUEUED | CLOSED : QUEUED;
      const held = exclusive ? EXCLUSIVE | this.#rank : (found & HOLDERS) + 1;
      if (Atomics.compareExchange(words, WORD, found, held | marks) !== found) continue;
      Atomics.store(words, this.#slot(ticket), 0);
      Atomics.add(words, SERVING, 1);
      this.#wakeHead();
      return true;
    }
  }

  /** The marks that the head wants in a word that is not free for it. */
  #marksOf(waiting: Waiting, found: number): number {
    const { ms, now } = this.#overtaking;
    waiting.due = Number.POSITIVE_INFINITY;
    if (ms === 0 || (found & CLOSED) !== 0) return QUEUED | CLOSED;
    const isShared = (found & EXCLUSIVE) === 0;
    // While its own mark is there, the lock was not free since the last look, unless readers follow one another.
    if ((found & QUEUED) !== 0 && !isShared && waiting.head !== undefined) return QUEUED;
    const time = now();
    waiting.head ??= time;
    if (time - waiting.head >= ms) return QUEUED | CLOSED;
    if (isShared) waiting.due = waiting.head + ms;
    return QUEUED;
  }

  #giveUp(ticket: number): void {
    this.#givenUp = ticket;
    Atomics.store(this.#words, this.#slot(ticket), -this.#mark(ticket));
    if (Atomics.load(this.#words, SERVING) === ticket) this.#wakeHead();
  }

  /** The head may have to be woken once only for all that overtake it until it looks. */
  #wakeQueued(): void {
    Atomics.and(this.#words, WORD, ~QUEUED);
    this.#wakeHead();
  }

  /** Wakes the rank at the head of the line; passes over those that have given up. */
  #wakeHead(): void {
    const words = this.#words;
    for (;;) {
      const serving = Atomics.load(words, SERVING);
      const slot = this.#slot(serving);
      const mark = Atomics.load(words, slot);
      if (mark > 0) this.#context.wake(this.#members[(mark & ((1 << RANK_BITS) - 1)) - 1]);
      if (mark >= 0) return;
      // SERVING may have moved on between the two loads; the slot is then another ticket's, which is not at the head.
      if (((-mark >>> RANK_BITS) & TICKET_MASK) !== (serving & TICKET_MASK)) continue;
      if (Atomics.compareExchange(words, slot, mark, 0) === mark) Atomics.add(words, SERVING, 1);
    }
  }

  #mark(ticket: number): number {
    return ((ticket & TICKET_MASK) << RANK_BITS) | (this.#rank + 1);
  }

  #slot(ticket: number): number {
    return SLOTS + (ticket & this.#slotMask);
  }

  #describeHolder(): string {
    const word = Atomics.load(this.#words, WORD) & HOLDERS;
    if ((word & EXCLUSIVE) !== 0) return `rank ${word & ~EXCLUSIVE} holds it exclusively`;
    return word === 0 ? 'no rank holds it now' : `${word} ranks share it`;
  }
}

/** Where the lock of all parts begins, behind that of one: on a cache line of its own. */
function allLockAt(size: number): number {
  return Math.ceil(queueLockWords(size) / ALL_LOCK_WORDS) * ALL_LOCK_WORDS;
}

export const queue = lockKind({
  name: 'queue',
  // Behind a device, it is the same by requests.
  deviceWords: (size, loadStore) => (loadStore ? 0 : remote.deviceWords(size, loadStore)),
  agent: false,
  nodeWords: (size, _, loadStore) => (loadStore ? allLockAt(size) + ALL_LOCK_WORDS : 0),
  isDefault: true,
  forDynamic: true,
  make(parts) {
    const { rank: me, size, job, group } = parts.comm;
    const { context } = job;
    if (!context.capabilities.loadStore) return remote.make(parts);
    const overtaking = overtakingBy(parts.options.lock_order, job);
    const at = allLockAt(size);
    let made: AllLock | undefined;
    const all = (): AllLock => {
      made ??= new AllLock(parts.nodeWords(0).subarray(at), me, group.worldRanks, context);
      return made;
    };
    const make = (rank: number): TargetLock => {
      const words = parts.nodeWords(rank).subarray(0, at);
      return all().beside(new QueueLock(words, me, group.worldRanks, context, overtaking));
    };
    return { counts: noLocks(), make, all };
  },
});
