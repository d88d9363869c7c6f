/**
 * What peers must know of a context's queue pairs, in shared memory: their states, rights, and where receives and their
 * completions go.
 *
 * The owner writes a row; NUMBER is stored last when a queue pair is made and cleared first when it is destroyed, STATE
 * is stored after the attributes that come with it. Peers read. They write two words: the one peer that this queue pair
 * is connected to moves STATE to ERR, by compare-and-swap, when its request breaks a rule at this end (as the
 * responder's hardware would), after it has said why in EVENTS; the owner takes EVENTS by an exchange. A queue pair of
 * type UD is connected to no peer: any peer moves its STATE to ERR when one of its receives cannot take a datagram.
 *
 * A queue pair's number has 24 bits: the row it has here, and above that a count of the row's uses, so that the number
 * of a destroyed queue pair does not soon become another one's.
 */
import { QpState } from '../../verbs/queue-pair.ts';
import type { Allocation } from './emulator-fabric.ts';
import type { Parts } from './table-parts.ts';

const ROW_BITS = 13;
export const MAX_QP = 1 << ROW_BITS;
const ROW_WORDS = 32;
/**
 * Rows that lie in the root. All others lie in a part of their own (table-parts.ts), at the places that they would have
 * in a whole table.
 */
const FIRST_ROWS = 512;
export const QP_TABLE_BYTES = 4 * FIRST_ROWS * ROW_WORDS;
const LATER_BYTES = 4 * MAX_QP * ROW_WORDS;
const MAX_USES = (1 << (24 - ROW_BITS)) - 1;

/** In 32-bit words. What every request looks at stands in the first line. */
export const QpField = Object.freeze({
  NUMBER: 0,
  STATE: 1,
  DEST_MEMBER: 2,
  DEST_NUMBER: 3,
  PD: 4,
  ACCESS: 5,
  /** RDMA reads and atomics that this side lets a peer have outstanding. */
  MAX_DEST_RD_ATOMIC: 6,
  /** Whether receives come from a shared receive queue. */
  SHARED: 7,
  RNR_TIMER_US: 8,
  /** Entries of the receive ring, and scatter entries of each. */
  RECV_WR: 9,
  RECV_SGE: 10,
  /** Entries of the completion ring for receives. */
  CQE: 11,
  /** One of `QpType`, and the key that datagrams must bring. */
  TYPE: 20,
  QKEY: 21,
  /** Bits of {@link QpEvent}. */
  EVENTS: 24,
});

/** In 64-bit words. */
export const QpField64 = Object.freeze({ RECV_HANDLE: 6, RECV_BYTES: 7, CQ_HANDLE: 8, CQ_BYTES: 9 });

/** Why a peer moved a queue pair to ERR. */
export const QpEvent = Object.freeze({
  /** Its key, range or rights were wrong. */
  ACCESS: 1,
  /** Its request was none that this side can serve. */
  REQUEST: 2,
});

/** Rows that lie in one piece of memory. */
export class QpRows {
  readonly words: Int32Array;
  readonly doubles: Float64Array;

  constructor(buffer: ArrayBufferLike, byteOffset: number, byteLength: number) {
    this.words = new Int32Array(buffer, byteOffset, byteLength / 4);
    this.doubles = new Float64Array(buffer, byteOffset, byteLength / 8);
  }

  /** Any party: moves STATE to ERR if the queue pair was connected. */
  accuse(row: number, event: number): void {
    const { words } = this;
    Atomics.or(words, row + QpField.EVENTS, event);
    this.toError(row);
  }

  /** Moves STATE from RTR or RTS to ERR. @returns whether it was this call that did */
  toError(row: number): boolean {
    const { words } = this;
    for (const state of [QpState.RTS, QpState.RTR]) {
      if (Atomics.compareExchange(words, row + QpField.STATE, state, QpState.ERR) === state) return true;
    }
    return false;
  }
}

/**
 * The first word of the row of a number, in the piece where it lies; NUMBER says whether the row still is that
 * number's.
 */
export function rowOf(number: number): number {
  return (number & (MAX_QP - 1)) * ROW_WORDS;
}

export class QpTable {
  readonly #parts: Parts;
  readonly #part: number;
  readonly #first: QpRows;
  #later: QpRows | undefined;

  constructor(buffer: ArrayBufferLike, byteOffset: number, parts: Parts) {
    this.#parts = parts;
    this.#part = parts.number();
    this.#first = new QpRows(buffer, byteOffset, QP_TABLE_BYTES);
  }

  /** Where the row of a number lies; `undefined` if the owner has never had such a number. */
  rows(number: number): QpRows | undefined {
    if (isFirst(number)) return this.#first;
    if (this.#later === undefined) {
      const buffer = this.#parts.open(this.#part, LATER_BYTES);
      if (buffer !== undefined) this.#later = new QpRows(buffer, 0, LATER_BYTES);
    }
    return this.#later;
  }

  /** Owner: the same, and makes the memory if there is none yet. */
  ownRows(number: number, allocate: (byteLength: number) => Allocation): QpRows {
    if (isFirst(number)) return this.#first;
    if (this.#later === undefined) {
      const allocation = allocate(LATER_BYTES);
      this.#later = new QpRows(allocation.buffer, 0, LATER_BYTES);
      this.#parts.publish(this.#part, allocation);
    }
    return this.#later;
  }
}

function isFirst(number: number): boolean {
  return (number & (MAX_QP - 1)) < FIRST_ROWS;
}

/** The owner's book of rows that are free. */
export class QpNumbers {
  readonly #uses = new Uint16Array(MAX_QP);
  readonly #freed: number[] = [];
  #neverUsed = 0;

  /**
   * A new number, or 0 if all rows are taken. Rows that were never used come first, then those that have been free
   * longest.
   */
  take(): number {
    const row = this.#neverUsed < MAX_QP ? this.#neverUsed++ : this.#freed.shift();
    if (row === undefined) return 0;
    this.#uses[row] = (this.#uses[row] % MAX_USES) + 1;
    return (this.#uses[row] << ROW_BITS) | row;
  }

  giveBack(number: number): void {
    this.#freed.push(number & (MAX_QP - 1));
  }
}
