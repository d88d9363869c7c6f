/** What every passive-target lock scheme offers a window. */

import type { Deferrable } from '../../job/rank-locks.ts';
import type { Operation } from '../../wait/operation.ts';

/** Lock types as bits of `Target.held`: what `Lock`'s values are at run time. */
export const LockBit = Object.freeze({ SHARED: 1, EXCLUSIVE: 2 });

declare const lockType: unique symbol;

/**
 * The type of a lock. At run time it is a number. The compiler does not take it for one, so a program cannot pass it
 * where a rank is wanted, or a rank where it is wanted.
 */
export interface Lock {
  readonly [lockType]: true;
}

/** The lock types of `lock`. */
export const Lock = LockBit as unknown as {
  /** Several origins can hold the lock of a target at a time (`MPI_LOCK_SHARED`). */
  readonly SHARED: Lock;
  /** One origin at a time holds the lock of a target (`MPI_LOCK_EXCLUSIVE`). */
  readonly EXCLUSIVE: Lock;
};

/**
 * An acquisition that does not wait in line. When it is complete, `acquired` says whether it has the lock. One that is
 * abandoned does not keep it.
 */
export interface Attempt extends Operation {
  readonly acquired: boolean | undefined;
}

/** The lock of one target in one window, as seen from one origin. */
export interface TargetLock extends Deferrable {
  /** Tries to acquire without waiting. */
  tryAcquire(exclusive: boolean): boolean;
  /**
   * As `tryAcquire`, for schemes whose answer takes a while: their `tryAcquire` may fail although the lock is free. In
   * windows that are not dynamic, only shared locks are asked for like this, and none with `joins` (`tryJoin`).
   */
  attempt?(exclusive: boolean, joins?: boolean): Attempt;
  /**
   * As `tryAcquire(false)`, and also beside those that share it while a rank waits for them to leave, and keeps others
   * out: for a moment, in calls that must not wait for that rank. Of dynamic windows' locks; by requests, it is
   * `attempt` with `joins`.
   */
  tryJoin?(): boolean;
  /**
   * Leaves it to the operations under the lock to ask for it and to wait. The caller sees to the order of locks
   * (`RankLocks`).
   * @returns false if it has done nothing, and the caller waits
   */
  defer?(exclusive: boolean): boolean;
  /** Waits in line. Abandoned, it leaves the line. */
  acquire(exclusive: boolean): Operation;
  /** Everything this origin has written before is visible to the next holder. */
  release(exclusive: boolean): void;
  /**
   * The lock went back with the last operations, before they were answered, and before `release` was called: nothing
   * happens under it any more.
   */
  readonly isGivenBack?: boolean;
}

/**
 * Counts of a window's locks at one rank, since the window was created. Locks that ranks acquire by loads and stores
 * alone are not counted.
 */
export interface LockStatistics {
  /** Messages about locks that this rank has sent, as an origin or as an agent. */
  readonly messages: number;
  /** Messages sent with operations of passive epochs, and answers to them (`two-sided`; `hybrid` with `lock_defer`). */
  readonly operations: number;
  /**
   * Atomic operations on lock words that this rank has requested (`direct`, `hybrid`): two for locking a free lock and
   * unlocking it.
   */
  readonly atomics: number;
  /** Those of them that found the lock held by another rank. */
  readonly misses: number;
  /** Locks of this rank's part that its agent has granted. */
  readonly grants: number;
  /** Changes of this rank's lock between CPU mode and network mode (`hybrid`). */
  readonly migrations: number;
}

/** Those numbers, as the scheme counts them. */
export type LockCounts = { -readonly [K in keyof LockStatistics]: number };

export function noLocks(): LockCounts {
  return { messages: 0, operations: 0, atomics: 0, misses: 0, grants: 0, migrations: 0 };
}
