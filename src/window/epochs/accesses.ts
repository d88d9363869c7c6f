/** What calls of a window tell of their accesses, where somebody wants to know: for debugging only. */
import type { TypedArray } from '../../datatype/base-types.ts';
import type { Op } from '../../datatype/op.ts';
import type { Side } from '../../datatype/sides.ts';
import type { BuffersUnderWay } from './buffers-under-way.ts';

export type AccessKind = 'put' | 'get' | 'accumulate';

/** Whoever is told closes the fast paths of its window. */
export interface Accesses {
  /** How many calls were noted. */
  readonly calls: number;
  /** Whether anything is not complete. */
  readonly pending: boolean;
  readonly buffers: BuffersUnderWay | undefined;
  /**
   * An access to `side` from byte `at` of a target's part on, which was checked and is about to be made.
   * @param reads it writes nothing there
   * @param where the call and the window, for messages
   * @param op of an accumulate; absent: it is another call
   */
  note(
    call: string,
    kind: AccessKind,
    reads: boolean,
    where: string,
    target: number,
    at: number,
    side: Side,
    op: Op | undefined,
  ): void;
  /** An array that the call uses which was noted last. @param writes the operation writes it */
  used(name: string, target: number, array: TypedArray, side: Side, writes: boolean): void;
  /** What was accessed at a target is complete there; without one, at all targets. */
  completed(target: number | undefined): void;
  /**
   * What was accessed at a target, or at all, is complete at this rank.
   * @param calls only those after the first number, up to the second
   */
  completedHere(target: number | undefined, calls?: readonly [after: number, to: number]): void;
  /** The calls after number `after`, up to number `to`, are complete at the target as well. */
  completedCalls(target: number, after: number, to: number): void;
  /** Before other ranks learn of this rank's fence. @param completeAtIssue operations need nothing to be complete */
  fenceBegins(completeAtIssue: boolean): void;
  fenceEnds(): void;
  /** The access epoch of `start` ends: its operations are complete at this rank. */
  accessEnds(): void;
}
