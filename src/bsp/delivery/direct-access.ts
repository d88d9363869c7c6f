/**
 * `hpput` and `hpget`, which promise nothing of when they read and write. Where a process reaches the variable of
 * another, they move without a copy on the way. A call that cannot is an ordinary `put` or `get`.
 */
import type { Part } from '../element-words.ts';
import type { Slot } from '../slot.ts';

export interface Direct {
  /**
   * Moves elements to byte `at` of a variable, until the superstep has ended at the latest. @returns false if they
   * should not go this way
   */
  put(pid: number, slot: Slot, at: number, part: Part): boolean;
  /** Moves elements from byte `at` of a variable, likewise. */
  get(pid: number, slot: Slot, at: number, part: Part): boolean;
  /** The doubles of a variable of another process, if until the end of this superstep they can be stored to. */
  doublesOf?(pid: number, slot: Slot): Float64Array | undefined;
  /** Bytes that moved to others, and from them, in this superstep; the caller takes and clears them. */
  sent: number;
  got: number;
}
