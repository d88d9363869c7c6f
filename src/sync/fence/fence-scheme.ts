/** What every fence scheme offers a window. */
import type { Operation } from '../../wait/operation.ts';

/**
 * A fence is begun and advanced until it is complete: all operations of all ranks before it are complete at origin and
 * target, and visible to the target's loads. Begun again after a wait that ended early, it goes on with the fence that
 * was not completed.
 */
export interface FenceScheme extends Operation {
  /**
   * All ranks give the same. What is asserted is skipped:
   * @param precedes operations may have been issued that the fence completes (not `Assert.NO_PRECEDE`)
   * @param succeeds an epoch opens: no rank accesses a part before its owner has come to the fence (not
   * `Assert.NO_SUCCEED`)
   *
   * `NO_STORE` and `NO_PUT` allow nothing here: parts are kept in one copy. A rank that no other rank puts to learns so
   * from the count that it waits for in any case, since that count also tells it that no rank is reading its part any
   * more.
   */
  begin(precedes: boolean, succeeds: boolean): void;
  /**
   * Ranks of the window that have perhaps not come, and that this one tells where it is: of the ranks that wait for a
   * rank, not all should tell it.
   */
  askedFor(): readonly number[];
  /** Of a fence that counts as a collective of the communicator: the number of the last one before it. */
  readonly after?: number | undefined;
  /** What it has sent and waited for so far, for `Window.statistics`. */
  readonly statistics: FenceStatistics;
}

/** Counts of a window's fences at one rank, since the window was created. */
export interface FenceStatistics {
  /** Fences that this rank has started. */
  readonly fences: number;
  /** Finish messages sent, one after the last put to each target (`immediate-naive`, `immediate-optimized`). */
  readonly finishes: number;
  /** Flags sent to other ranks (`immediate-naive`, `notify-all`). */
  readonly flags: number;
  /** Messages sent with queued operations, and answers to them (`deferred`). */
  readonly messages: number;
}

/** The same while it counts. */
export type FenceCounts = { -readonly [K in keyof FenceStatistics]: number };

export function noFences(): FenceCounts {
  return { fences: 0, finishes: 0, flags: 0, messages: 0 };
}
