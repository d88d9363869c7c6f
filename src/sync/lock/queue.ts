/**
 * The default lock where remote memory can be loaded and stored: a first-come-first-served reader-writer lock, no agent
 * at the target.
 *
 * Words at the target:
 *   WORD     EXCLUSIVE | holder's rank, or the number of shared holders; and QUEUED when somebody waits in line
 *   NEXT     the next ticket to give out
 *   SERVING  the ticket at the head of the line
 *   SLOT[t]  who holds ticket t: ticket and rank in one word, negative once that rank has given up, 0 for nobody
 *
 * Uncontended, a lock is one compare-and-swap and an unlock one fetch-and-subtract. While QUEUED is set the fast path
 * is closed, so neither readers nor writers overtake the line: nobody starves.
 *
 * Why no wake-up is lost. The head of the line sets QUEUED with an atomic OR whose result it examines: if the holder's
 * release came before, the head sees the lock free; if it comes after, the release sees QUEUED and wakes the rank in
 * SLOT[SERVING], which the head wrote before. A rank that takes a ticket writes its slot and only then looks at
 * SERVING; whoever advances SERVING does so first and then looks at the slot: at least one of them sees the other. All
 * of these are sequentially consistent.
 *
 * Why SERVING advances by one for each ticket: only the head that acquired does it, after it cleared its slot; or, for
 * a ticket given up, whoever wins the compare-and-swap that clears the slot. A rank has at most one ticket in line: if
 * it comes back while the one it gave up is still there, it takes that up again. So as many slots as ranks suffice (a
 * power of two, so that the slot of a ticket is the same function before and after the 32-bit count wraps around). A
 * slot's word contains the ticket, so a word that was seen for one ticket is never mistaken for that of a later one in
 * the same slot.
 *
 * Memory order. Acquiring is an atomic read-modify-write of WORD after the release's read-modify-write of the same
 * word, so all stores of the earlier holder are visible to the later one.
 */

import type { Operation } from '../../comm/operation.ts';
import type { Context } from '../../verbs/device.ts';
import type { AllLock } from './all.ts';
import { lockKind } from './kind.ts';
import { remote } from './remote.ts';
import { noLocks, type TargetLock } from './scheme.ts';

const WORD = 0;
const NEXT = 32;
const SERVING = 33;
const SLOTS = 64;

const EXCLUSIVE = 1 << 30;
const QUEUED = 1 << 29;
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

export class QueueLock implements TargetLock {
  #words: Int32Array;
  #rank: number;
  #members: readonly number[];
  #context: Context;
  /** A ticket that this rank has given up and that may still stand in line. */
  #givenUp: number | undefined;
  #slotMask: number;

  /** @param words the target's lock words; @param members the contexts of the window's ranks */
  constructor(words: Int32Array, rank: number, members: readonly number[], context: Context) {
    this.#words = words;
    this.#rank = rank;
    this.#members = members;
    this.#context = context;
    this.#slotMask = slotCount(members.length) - 1;
  }

  tryAcquire(exclusive: boolean): boolean {
    const words = this.#words;
    if (exclusive) {
      const found = Atomics.compareExchange(words, WORD, 0, EXCLUSIVE | this.#rank);
      return found === 0 || (found === QUEUED && this.#tryLeft());
    }
    let seen = 0;
    for (;;) {
      const found = Atomics.compareExchange(words, WORD, seen, seen + 1);
      if (found === seen) return true;
      if ((found & (EXCLUSIVE | QUEUED)) !== 0) return false;
      seen = found;
    }
  }

  /**
   * Takes the lock exclusively where it is free and marked, but nobody stands in line: the mark is that of a head that
   * has given up. NEXT is never before SERVING, so if they are the same, read in this order, the line was empty. Who
   * comes to its head before the swap is not overtaken unseen: it sets the mark again whenever it looks, and it looks
   * when it is woken.
   */
  #tryLeft(): boolean {
    const words = this.#words;
    const serving = Atomics.load(words, SERVING);
    if (Atomics.load(words, NEXT) !== serving) return false;
    return Atomics.compareExchange(words, WORD, QUEUED, EXCLUSIVE | this.#rank) === QUEUED;
  }

  release(exclusive: boolean): void {
    const before = Atomics.sub(this.#words, WORD, exclusive ? EXCLUSIVE | this.#rank : 1);
    if ((before & QUEUED) !== 0 && (exclusive || (before & ~QUEUED) === 1)) this.#wakeHead();
  }

  acquire(exclusive: boolean): Operation {
    let ticket: number | undefined;
    return {
      advance: () => {
        if (ticket === undefined) {
          if (this.tryAcquire(exclusive)) return true;
          ticket = this.#enterLine();
        }
        if (Atomics.load(this.#words, SERVING) !== ticket) return false;
        return this.#acquireAsHead(ticket, exclusive);
      },
      describe: () => `lock (${this.#describeHolder()})`,
      abandon: () => {
        if (ticket !== undefined) this.#giveUp(ticket);
      },
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

  #acquireAsHead(ticket: number, exclusive: boolean): boolean {
    const words = this.#words;
    for (;;) {
      const found = Atomics.or(words, WORD, QUEUED) | QUEUED;
      if (exclusive ? found !== QUEUED : (found & EXCLUSIVE) !== 0) return false;
      const others = ((Atomics.load(words, NEXT) - ticket) | 0) !== 1;
      const held = exclusive ? EXCLUSIVE | this.#rank : (found & ~QUEUED) + 1;
      // Whoever takes a ticket after we looked at NEXT sets QUEUED again when it comes to the head, so clearing it here
      // loses nobody.
      if (Atomics.compareExchange(words, WORD, found, others ? held | QUEUED : held) !== found) continue;
      Atomics.store(words, this.#slot(ticket), 0);
      Atomics.add(words, SERVING, 1);
      this.#wakeHead();
      return true;
    }
  }

  #giveUp(ticket: number): void {
    this.#givenUp = ticket;
    Atomics.store(this.#words, this.#slot(ticket), -this.#mark(ticket));
    if (Atomics.load(this.#words, SERVING) === ticket) this.#wakeHead();
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
    const word = Atomics.load(this.#words, WORD) & ~QUEUED;
    if ((word & EXCLUSIVE) !== 0) return `rank ${word & ~EXCLUSIVE} holds it exclusively`;
    return word === 0 ? 'no rank holds it now' : `${word} ranks share it`;
  }
}

export const queue = lockKind({
  name: 'queue',
  // Behind a device, it is the same by requests.
  byRequests: (loadStore) => !loadStore,
  agent: false,
  isDefault: true,
  forDynamic: true,
  make(parts) {
    if (!parts.comm.job.context.capabilities.loadStore) return remote.make(parts);
    let made: AllLock | undefined;
    const all = (): AllLock => {
      made ??= parts.allLock();
      return made;
    };
    return { counts: noLocks(), make: (rank) => all().beside(parts.queueLock(rank)), all };
  },
});
