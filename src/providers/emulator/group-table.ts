/**
 * Which of a context's queue pairs are attached to which multicast groups, in shared memory: senders look through the
 * tables of all contexts, as a switch looks through its own.
 *
 * The owner writes an entry: USE counts up, then the GID's words; QP_NUMBER is stored last, and cleared first. COUNT,
 * stored after both, says before which entry a reader may stop. A reader that finds the same USE and the same QP_NUMBER
 * before and after it has read the GID has read a GID that belongs to them: the owner changes GIDs only between
 * clearing QP_NUMBER and storing it, and counts USE up in between. A sender that reads while an entry changes finds it
 * as it was or as it will be, or passes it over: a datagram that races with an attachment may be lost.
 */

/** Attachments of one context. */
export const MAX_ATTACHMENTS = 64;

/** In 32-bit words. */
const COUNT = 0;
const ENTRIES = 8;
const ENTRY_WORDS = 8;
const QP_NUMBER = 0;
const USE = 1;
const GID = 4;

export class GroupTable {
  readonly #words: Int32Array;

  constructor(buffer: ArrayBufferLike, byteOffset: number) {
    this.#words = new Int32Array(buffer, byteOffset, ENTRIES + MAX_ATTACHMENTS * ENTRY_WORDS);
  }

  /** Owner. @returns `false` if there is no room */
  attach(gid: ArrayLike<number>, qpNumber: number): boolean {
    const words = this.#words;
    let i = 0;
    while (i < MAX_ATTACHMENTS && words[entry(i) + QP_NUMBER] !== 0) i++;
    if (i === MAX_ATTACHMENTS) return false;
    const at = entry(i);
    Atomics.add(words, at + USE, 1);
    for (let k = 0; k < 4; k++) Atomics.store(words, at + GID + k, gid[k] | 0);
    Atomics.store(words, at + QP_NUMBER, qpNumber);
    if (i >= words[COUNT]) Atomics.store(words, COUNT, i + 1);
    return true;
  }

  /** Owner. */
  detach(gid: ArrayLike<number>, qpNumber: number): void {
    const words = this.#words;
    for (let i = 0; i < words[COUNT]; i++) {
      if (words[entry(i) + QP_NUMBER] === qpNumber && this.#isAt(i, gid)) {
        Atomics.store(words, entry(i) + QP_NUMBER, 0);
      }
    }
    let count = words[COUNT];
    while (count > 0 && words[entry(count - 1) + QP_NUMBER] === 0) count--;
    Atomics.store(words, COUNT, count);
  }

  /** Entries that there may be. */
  get count(): number {
    return Math.min(MAX_ATTACHMENTS, Atomics.load(this.#words, COUNT) >>> 0);
  }

  /** The queue pair that entry `i` attaches to a group; 0 if it attaches none, or to another group. */
  attached(i: number, gid: ArrayLike<number>): number {
    const words = this.#words;
    const at = entry(i);
    const qpNumber = Atomics.load(words, at + QP_NUMBER);
    if (qpNumber === 0) return 0;
    const use = Atomics.load(words, at + USE);
    if (!this.#isAt(i, gid)) return 0;
    return Atomics.load(words, at + USE) === use && Atomics.load(words, at + QP_NUMBER) === qpNumber ? qpNumber : 0;
  }

  #isAt(i: number, gid: ArrayLike<number>): boolean {
    const at = entry(i) + GID;
    for (let k = 0; k < 4; k++) if (Atomics.load(this.#words, at + k) !== (gid[k] | 0)) return false;
    return true;
  }
}

function entry(i: number): number {
  return ENTRIES + i * ENTRY_WORDS;
}
