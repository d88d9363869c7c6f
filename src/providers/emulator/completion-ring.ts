/**
 * The part of a completion queue that lies in shared memory: any number of peers put in, the owner takes out.
 *
 * HEAD counts what was taken, TAIL what was claimed. A producer claims slot t by a compare-and-swap of TAIL from t to t
 * + 1, which it only tries while t − HEAD < capacity; HEAD moves past an entry after the owner has read it, so no party
 * but its claimant reads or writes the slot. The claimant fills it and then stores SEQ = t + 1. The owner reads the
 * slot at HEAD when its SEQ is HEAD + 1: an older value of SEQ belongs to the round before, and is smaller by a
 * multiple of the capacity. SEQ and HEAD are sequentially consistent stores that come after the accesses they cover, so
 * no entry is read half-written, lost, or seen twice.
 *
 * Progress: a claim fails only because another producer's succeeded (lock-free). A producer that dies between its claim
 * and SEQ leaves a hole. The owner then finds nothing at HEAD: `poll` returns what came before, and from then on
 * nothing, without waiting. A wait for what will not come learns that a rank has failed as all waits do. A producer
 * that finds the ring full does not wait either: it records an overrun.
 */
import { loadAcquire } from '../../memory-model.ts';
import { MAX_COMPLETIONS } from './emulator-limits.ts';

const HEAD = 0;
const TAIL = 32;
/** 0: no wake-up asked for, 1: at the next completion, 2: at the next solicited or failed one. */
const ARMED = 64;
const OVERRUN = 65;
/** Completions that the owner has made itself and not yet polled: they count against the capacity. */
const LOCAL = 66;
/**
 * Whether the side that takes ARMED counts it in the owner's root. The owner writes it before others know of the queue.
 */
const ANNOUNCES = 67;
const SLOTS = 96;
const SLOT_WORDS = 16;

const SEQ = 0;
const STATUS = 1;
const OPCODE = 2;
const FLAGS = 3;
const BYTE_LEN = 4;
const IMM_DATA = 5;
const QP_NUM = 6;
/** Of a datagram: its sender's queue pair. */
const SRC_QP = 7;
// In 64-bit words.
const WR_ID = 4;

const NOT_ARMED = 0;
export const ARMED_ANY = 1;
export const ARMED_SOLICITED = 2;

/** The STATUS of an entry that must be passed over: its queue pair is gone. */
const DROPPED = -1;

/**
 * Slots for at least `cqe` entries: a power of two, so that slots stay in order when the counts wrap around at 2^32.
 */
export function ringCapacity(cqe: number): number {
  return Math.min(MAX_COMPLETIONS, 2 ** Math.ceil(Math.log2(cqe)));
}

/** @param capacity a power of two */
export function completionRingBytes(capacity: number): number {
  return 4 * (SLOTS + SLOT_WORDS * capacity);
}

export class CompletionRing {
  readonly capacity: number;
  readonly #mask: number;
  readonly #words: Int32Array;
  readonly #unsigned: Uint32Array;
  readonly #doubles: Float64Array;
  /** Owner: HEAD, ahead of the shared word until `release`. */
  #head: number;

  constructor(buffer: ArrayBufferLike, capacity: number) {
    this.capacity = capacity;
    this.#mask = capacity - 1;
    const words = completionRingBytes(capacity) / 4;
    this.#words = new Int32Array(buffer, 0, words);
    this.#head = this.#words[HEAD];
    this.#unsigned = new Uint32Array(buffer, 0, words);
    this.#doubles = new Float64Array(buffer, 0, words / 2);
  }

  // ---- producers ----------------------------------------------------------------------------------------------------

  /**
   * Adds an entry; `false` if there is no room, which is recorded as an overrun.
   * @param srcQp of a datagram: its sender's queue pair; otherwise 0, and not looked at
   */
  push(
    wrId: number,
    status: number,
    opcode: number,
    flags: number,
    byteLen: number,
    immData: number,
    qpNum: number,
    srcQp = 0,
  ): boolean {
    const words = this.#words;
    let tail = Atomics.load(words, TAIL);
    for (;;) {
      if (((tail - Atomics.load(words, HEAD)) | 0) + words[LOCAL] >= this.capacity) {
        this.recordOverrun();
        return false;
      }
      const found = Atomics.compareExchange(words, TAIL, tail, (tail + 1) | 0);
      if (found === tail) break;
      tail = found;
    }
    const w = SLOTS + (tail & this.#mask) * SLOT_WORDS;
    words[w + STATUS] = status;
    words[w + OPCODE] = opcode;
    words[w + FLAGS] = flags;
    words[w + QP_NUM] = qpNum;
    this.#unsigned[w + BYTE_LEN] = byteLen;
    this.#unsigned[w + IMM_DATA] = immData;
    this.#doubles[(w >>> 1) + WR_ID] = wrId;
    if (srcQp !== 0) words[w + SRC_QP] = srcQp;
    Atomics.store(words, w + SEQ, (tail + 1) | 0);
    return true;
  }

  /**
   * Whether the owner asked to be woken for a completion of this kind; asking once is answered once.
   * The producer comes here after it has stored SEQ, the owner looks at SEQ after it has stored ARMED: one of the two
   * sees the other.
   */
  takeArmed(solicited: boolean): boolean {
    const armed = Atomics.load(this.#words, ARMED);
    if (armed === NOT_ARMED || (armed === ARMED_SOLICITED && !solicited)) return false;
    return Atomics.compareExchange(this.#words, ARMED, armed, NOT_ARMED) === armed;
  }

  get announces(): boolean {
    return this.#words[ANNOUNCES] !== 0;
  }

  recordOverrun(): void {
    Atomics.store(this.#words, OVERRUN, 1);
  }

  // ---- the owner ----------------------------------------------------------------------------------------------------

  arm(kind: number): void {
    if (this.#words[ARMED] !== kind) Atomics.store(this.#words, ARMED, kind);
  }

  announce(): void {
    this.#words[ANNOUNCES] = 1;
  }

  /** The owner's own completions are armed for as well; a plain load, since only the owner arms. */
  get isArmed(): boolean {
    return this.#words[ARMED] !== NOT_ARMED;
  }

  get isOverrun(): boolean {
    return Atomics.load(this.#words, OVERRUN) !== 0;
  }

  /** Entries that are claimed and not taken. A plain load, as good as any at the moment it is made. */
  get claimed(): number {
    return (this.#words[TAIL] - this.#head) >>> 0;
  }

  /** A plain store: a producer that reads an older value errs by what the owner does at this moment. */
  setLocal(count: number): void {
    this.#words[LOCAL] = count;
  }

  /** The word index of the oldest entry, or −1 if there is none. */
  peek(): number {
    const words = this.#words;
    for (;;) {
      const expected = (this.#head + 1) | 0;
      const w = SLOTS + (this.#head & this.#mask) * SLOT_WORDS;
      if (loadAcquire(words, w + SEQ) !== expected) return -1;
      if (words[w + STATUS] !== DROPPED) return w;
      this.next();
      this.release();
    }
  }

  /** Goes on to the entry after the one that `peek` found. */
  next(): void {
    this.#head = (this.#head + 1) | 0;
  }

  /** Gives the slots of all entries passed by `next` back to the producers. */
  release(): void {
    Atomics.store(this.#words, HEAD, this.#head);
  }

  /** Drops the completions of a queue pair. Ends at a hole: what a dead producer's claim hides is never read. */
  drop(qpNum: number): void {
    const words = this.#words;
    const tail = Atomics.load(words, TAIL);
    for (let at = this.#head; at !== tail; at = (at + 1) | 0) {
      const w = SLOTS + (at & this.#mask) * SLOT_WORDS;
      if (Atomics.load(words, w + SEQ) !== ((at + 1) | 0)) return;
      if (words[w + QP_NUM] === qpNum) words[w + STATUS] = DROPPED;
    }
  }

  status(w: number): number {
    return this.#words[w + STATUS];
  }
  opcode(w: number): number {
    return this.#words[w + OPCODE];
  }
  flags(w: number): number {
    return this.#words[w + FLAGS];
  }
  byteLen(w: number): number {
    return this.#unsigned[w + BYTE_LEN];
  }
  immData(w: number): number {
    return this.#unsigned[w + IMM_DATA];
  }
  qpNum(w: number): number {
    return this.#words[w + QP_NUM];
  }
  srcQp(w: number): number {
    return this.#words[w + SRC_QP];
  }
  wrId(w: number): number {
    return this.#doubles[(w >>> 1) + WR_ID];
  }
}
