/**
 * Posted receives as a ring in shared memory: the owner posts, initiators consume. A queue pair's own queue has one
 * initiator, a shared receive queue any number, in any processes.
 *
 * The owner fills slot t and then stores TAIL = t + 1; it does so only while t − HEAD < capacity. An initiator reads
 * HEAD = h and TAIL, copies slot h out, and claims it by a compare-and-swap of HEAD from h to h + 1. If that succeeds,
 * no other initiator had claimed slot h before, so the owner cannot have refilled it, and what was copied is what was
 * posted; if it fails, the copy is thrown away. (HEAD is the same again after 2^32 receives only.) A claim fails only
 * because another one succeeded: lock-free. An initiator that dies after its claim takes that receive with it, and
 * nothing else.
 */
import type { ReceiveSource } from '../core/receives.ts';

const HEAD = 0;
const TAIL = 32;
/** Low watermark of a shared receive queue; 0: not armed. */
const LIMIT = 64;
/** Set when the watermark was passed, until the owner has seen it. */
const LIMIT_REACHED = 65;
const SLOTS = 96;

/** In 32-bit words; the identifier is a 64-bit one. */
const WR_ID = 0;
const NUM_SGE = 2;
const SGES = 4;
const SGE_WORDS = 4;

export const NO_RECEIVE = -1;

/** @param maxWr a power of two */
export function receiveRingBytes(maxWr: number, maxSge: number): number {
  return 4 * (SLOTS + maxWr * (SGES + SGE_WORDS * maxSge));
}

export class ReceiveRing implements ReceiveSource {
  readonly capacity: number;
  readonly maxSge: number;
  readonly #words: Int32Array;
  readonly #unsigned: Uint32Array;
  readonly #doubles: Float64Array;
  readonly #mask: number;
  readonly #slotWords: number;
  /** Owner: scatter entries of the receive being built. */
  #building = 0;
  /** The receive that `consume` claimed last, copied out, so that the owner may refill its slot. */
  wrId = 0;
  numSge = 0;
  readonly addresses: Float64Array;
  readonly lengths: Uint32Array;
  readonly lkeys: Uint32Array;

  /** @param maxWr a power of two, so that slots stay in order when the counts wrap around at 2^32 */
  constructor(buffer: ArrayBufferLike, maxWr: number, maxSge: number) {
    this.capacity = maxWr;
    this.maxSge = maxSge;
    this.#mask = maxWr - 1;
    this.#slotWords = SGES + SGE_WORDS * maxSge;
    const words = receiveRingBytes(maxWr, maxSge) / 4;
    this.#words = new Int32Array(buffer, 0, words);
    this.#unsigned = new Uint32Array(buffer, 0, words);
    this.#doubles = new Float64Array(buffer, 0, words / 2);
    this.addresses = new Float64Array(maxSge);
    this.lengths = new Uint32Array(maxSge);
    this.lkeys = new Uint32Array(maxSge);
  }

  get posted(): number {
    return (Atomics.load(this.#words, TAIL) - Atomics.load(this.#words, HEAD)) >>> 0;
  }

  // ---- the owner ----------------------------------------------------------------------------------------------------

  /** Scatter entries that were added since the last `post`. */
  get building(): number {
    return this.#building;
  }

  /**
   * Adds a scatter entry to the receive being built; the caller has found that the ring is not full and has an entry
   * left.
   */
  addSge(lkey: number, address: number, length: number): void {
    const s = this.#slot(this.#words[TAIL]) + SGES + this.#building++ * SGE_WORDS;
    this.#doubles[s >>> 1] = address;
    this.#unsigned[s + 2] = length;
    this.#unsigned[s + 3] = lkey;
  }

  /** Posts the receive that was built. */
  post(wrId: number): void {
    const tail = this.#words[TAIL];
    const w = this.#slot(tail);
    this.#doubles[(w >>> 1) + WR_ID] = wrId;
    this.#words[w + NUM_SGE] = this.#building;
    this.#building = 0;
    Atomics.store(this.#words, TAIL, (tail + 1) | 0);
  }

  /** Forgets the receive being built. */
  abort(): void {
    this.#building = 0;
  }

  setLimit(limit: number): void {
    Atomics.store(this.#words, LIMIT, limit);
  }

  /** Whether the watermark was passed since the last call. */
  takeLimitReached(): boolean {
    return Atomics.load(this.#words, LIMIT_REACHED) !== 0 && Atomics.exchange(this.#words, LIMIT_REACHED, 0) !== 0;
  }

  // ---- initiators, and the owner when it flushes --------------------------------------------------------------------

  /**
   * Claims the oldest receive and copies it into this object's fields.
   * @returns how many are left, or `NO_RECEIVE`
   */
  consume(): number {
    const words = this.#words;
    for (;;) {
      const head = Atomics.load(words, HEAD);
      const left = (Atomics.load(words, TAIL) - head) | 0;
      if (left <= 0) return NO_RECEIVE;
      const w = this.#slot(head);
      this.wrId = this.#doubles[(w >>> 1) + WR_ID];
      // Bounded, since a slot that is being refilled may hold anything.
      const n = Math.min(words[w + NUM_SGE], this.maxSge);
      for (let i = 0; i < n; i++) {
        const s = w + SGES + i * SGE_WORDS;
        this.addresses[i] = this.#doubles[s >>> 1];
        this.lengths[i] = this.#unsigned[s + 2];
        this.lkeys[i] = this.#unsigned[s + 3];
      }
      this.numSge = n;
      if (Atomics.compareExchange(words, HEAD, head, (head + 1) | 0) === head) return left - 1;
    }
  }

  /**
   * After a claim that left `left` receives: whether it went below the watermark. Disarms it, so that one event is
   * raised.
   */
  passedLimit(left: number): boolean {
    const limit = Atomics.load(this.#words, LIMIT);
    if (limit === 0 || left >= limit) return false;
    if (Atomics.compareExchange(this.#words, LIMIT, limit, 0) !== limit) return false;
    Atomics.store(this.#words, LIMIT_REACHED, 1);
    return true;
  }

  #slot(index: number): number {
    return SLOTS + (index & this.#mask) * this.#slotWords;
  }
}
