/**
 * What ranks tell the analysis of races. An event is a kind and some numbers; names and lines of the program are texts
 * that a rank has told before, by number. So an event is the same in a file, between threads and in one process.
 *
 * Order: a rank's events are in the order of its program. Between ranks, an event that gives something (a release, an
 * arrival) is told before the call does it, and one that takes it is told after the call has it. So in the order of
 * time, what gives comes before what takes it.
 */

/** The kinds. Behind each, its numbers. Ranks of windows and communicators are named by their place there. */
export const RaceEvent = Object.freeze({
  /** Communicator, name, and the ranks of the world that are its members. */
  COMMUNICATOR: 1,
  /** Window, name, communicator, memory, first byte, bytes, 1 if it is dynamic. */
  WINDOW: 2,
  /** Window, address, bytes, memory, first byte. */
  ATTACH: 3,
  /** Window, address, bytes. */
  DETACH: 4,
  /** Window. */
  FREED: 5,
  /** Memory, first byte, byte behind the last, 1 if it writes, line, what it is called. */
  ACCESS: 6,
  /** As `ACCESS`, and the `TypeCode`. One that writes is told before it happens, one that reads afterwards. */
  ATOMIC: 7,
  /**
   * Window, target, `OpKind`, 1 if it only reads there, `TypeCode`, element's bytes, number, line, call, epoch, the
   * operation with which alone it may meet on an element or −1; pairs of first byte and byte behind the last.
   */
  OPERATION: 8,
  /** Window, number of the operation, memory, 1 if it writes, name of the argument; pairs as above. */
  USE: 9,
  /** Window, target or −1 for all, operations after this number, up to this one; 1 at the target, too. */
  COMPLETED: 10,
  /** Scope, number, how many come, `Meeting`, root's place, own place. */
  ARRIVED: 11,
  /** Scope, number, own place. */
  LEFT: 12,
  /** Window. */
  FENCE_BEGUN: 13,
  /** Window. */
  FENCE_ENDED: 14,
  /** Scope, a rank of the world. */
  SENT: 15,
  /** Scope, a rank of the world. */
  RECEIVED: 16,
  /** Window, owner, 1 if exclusive. */
  LOCKED: 17,
  /** Window, owner, 1 if exclusive. */
  UNLOCKED: 18,
  /** Window, origins. */
  POSTED: 19,
  /** Window, targets. */
  STARTED: 20,
  /** Window. */
  COMPLETE_BEGUN: 21,
  /** Window, targets. */
  TOLD: 22,
  /** Window, origins. */
  WAITED: 23,
  /** Window, target. */
  NOTIFIED: 24,
  /** Window. */
  TOOK: 25,
  /** Number, what it is called, line. */
  EPOCH: 26,
  /** What this rank could not see; a text. */
  UNSEEN: 27,
  /** Window, owner, first byte in its part, byte behind the last, 1 if it writes, line, what it is called, `TypeCode`
   * of one by `Atomics` or −1. */
  PART_ACCESS: 28,
} as const);

/** So `UNSEEN` tells of a package, whose name comes behind. */
export const UNSEEN_PACKAGE = 'loads and stores in the package ';

export const OpKind = Object.freeze({ PUT: 0, GET: 1, UPDATE: 2 } as const);

/** Who learns of whom in a collective. */
export const Meeting = Object.freeze({
  /** Everybody of all. */
  ALL: 0,
  /** Everybody of the root. */
  FROM_ROOT: 1,
  /** The root of everybody. */
  TO_ROOT: 2,
  /** Each of those before it. */
  PREFIX: 3,
} as const);

/** Takes the events of one rank. */
export interface RaceSink {
  /** Wants each load and store at once, since it may throw. */
  readonly isPrompt: boolean;
  text(id: number, text: string): void;
  event(kind: number, data: Float64Array, length: number): void;
}
