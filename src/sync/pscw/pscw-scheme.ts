/** What every scheme for start/complete/post/wait offers a window (MPI 4.1, 12.5.2). Ranks are those of the window. */

import type { HeldOperation } from '../../transfer/schedule/held-operations.ts';
import type { Operation } from '../../wait/operation.ts';

/** Small operations travel with the message that completes their epoch. */
export interface Folds {
  /** Whether an operation may do so. The schedule lets it, and no other one is held for its target. */
  takes(operation: HeldOperation): boolean;
  /** Sends those. All others were posted, and `completing` follows. */
  send(operations: readonly HeldOperation[], targets: readonly number[]): void;
}

export interface GeneralActiveTarget {
  /**
   * Whether a start that is called after a post sees that post at once. Messages can be overtaken by those of other
   * connections.
   */
  readonly seesPostsAtOnce: boolean;
  /** Tells the origins that this rank's part is exposed to them. Never waits. */
  post(origins: readonly number[]): void;
  /** Whether all targets have posted to this rank. If so, that uses up one post of each. */
  tryStart(targets: readonly number[]): boolean;
  /** Complete when `tryStart` is. */
  start(targets: readonly number[]): Operation;
  /** Where small operations travel with the message that completes their epoch. */
  readonly folds?: Folds | undefined;
  /**
   * What `complete` waits for, where that is more than this rank's requests. It brings them to their end, and may tell
   * a target before that, behind all that is for it. If it ends early, it goes on when it is called again.
   */
  completing?(targets: readonly number[]): Operation;
  /** Tells the targets that this rank's operations are complete, unless they know. Never waits. */
  complete(targets: readonly number[]): void;
  /** Whether all origins have told so, since the last post to them. */
  tryWait(origins: readonly number[]): boolean;
  /** Complete when `tryWait` is. */
  wait(origins: readonly number[]): Operation;
}
