/**
 * Words where the results of a window's requests come: of atomics, and of reads that the library itself needs. Made
 * with the first of them.
 */
import { allocateRegistered, freeRegistered } from '../../message/registered-memory.ts';
import type { Context } from '../../verbs/device.ts';
import { Access, type MemoryRegion, type ProtectionDomain } from '../../verbs/memory.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';

/** Requests with a result that can be outstanding. */
const SLOTS = 1024;

/** Gets the 64 bits that were there, as two unsigned halves. */
export type Answer = (lo: number, hi: number) => void;

export class Answers {
  /** Slot i is two words. */
  readonly words: Uint32Array;
  readonly region: MemoryRegion;
  readonly #free = Array.from({ length: SLOTS }, (_, i) => SLOTS - 1 - i);
  readonly #waiting: (Answer | undefined)[] = [];

  /** Errors: `ERR_VERBS` (no memory). */
  constructor(context: Context, pd: ProtectionDomain) {
    this.region = allocateRegistered(context, pd, 8 * SLOTS, Access.LOCAL_WRITE);
    this.words = new Uint32Array(this.region.memory.buffer, 0, 2 * SLOTS);
  }

  /** Slots that are free. */
  get room(): number {
    return this.#free.length;
  }

  /** A slot for a request that is about to be posted: there is room for one. */
  slotFor(answer: Answer): number {
    const slot = this.#free.pop()!;
    this.#waiting[slot] = answer;
    return slot;
  }

  /** The request that is being built reads from a slot, or its result comes there. */
  setSge(qp: QueuePair, slot: number, bytes = 8): void {
    qp.wrSetSge(this.region.lkey, this.region.address + 8 * slot, bytes);
  }

  /** The request of a slot is complete. */
  arrived(slot: number): void {
    const answer = this.#waiting[slot]!;
    this.#waiting[slot] = undefined;
    this.#free.push(slot);
    answer(this.words[2 * slot], this.words[2 * slot + 1]);
  }

  close(): void {
    freeRegistered(this.region);
  }
}
