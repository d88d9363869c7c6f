/**
 * For debugging (`ONESIDED_DEBUG=conflicts`): what this rank has accessed in each target's part and not completed
 * there, to find accesses whose outcome MPI leaves undefined because they overlap in one epoch (MPI 4.1, 12.7): a put
 * with anything, a get with whatever writes, accumulates of different basic types.
 *
 * It sees this rank's calls. What other ranks do at the same time it cannot see, nor loads and stores. It costs some
 * microseconds a call and memory for each until it is complete, and closes the fast paths; so it is asked for.
 *
 * With `ONESIDED_DEBUG=poison`, the arrays of the accesses are watched as well (buffers-under-way.ts).
 */

import type { TypedArray } from '../../datatype/base-types.ts';
import { forEachRun } from '../../datatype/copy.ts';
import { POISON } from '../../datatype/poison.ts';
import type { Side } from '../../datatype/sides.ts';
import { debugs } from '../../debug.ts';
import { RmaError } from '../../errors.ts';
import type { Accesses, AccessKind } from './accesses.ts';
import { BuffersUnderWay } from './buffers-under-way.ts';

const CONFLICTS = debugs('conflicts');

export const LOG_ACCESSES = CONFLICTS || POISON;

/** Accesses are found by the pages they touch. */
const PAGE = 4096;

interface Access {
  readonly call: string;
  readonly kind: AccessKind;
  /** `TypeCode` of the elements. */
  readonly base: number;
  /** Bytes `low` … `high − 1` of the part. */
  readonly low: number;
  readonly high: number;
  /** Which call it belongs to: `AccessLog.calls` after it. */
  readonly number: number;
  /** It writes nothing at the target, so it is over when it is complete at the origin (MPI 4.1, 12.3.5, 12.5.4). */
  readonly reads: boolean;
}

export class AccessLog implements Accesses {
  /** By target, then by page. */
  #open = new Map<number, Map<number, Access[]>>();
  /** How many calls were noted. */
  calls = 0;
  readonly buffers: BuffersUnderWay | undefined;

  /** @param isBroken whether nothing will be completed any more, since a rank has failed */
  constructor(isBroken: () => boolean) {
    this.buffers = POISON ? new BuffersUnderWay(isBroken) : undefined;
  }

  /** Whether anything is not complete. */
  get pending(): boolean {
    return this.#open.size > 0 || this.buffers?.pending === true;
  }

  /**
   * An access to `side` from byte `at` of a target's part on. Nothing is noted if it is refused.
   * @param reads it writes nothing
   * @param where the call and the window, for the message
   * Errors: `ERR_RMA_CONFLICT`.
   */
  note(call: string, kind: AccessKind, reads: boolean, where: string, target: number, at: number, side: Side): void {
    const number = this.calls + 1;
    if (!CONFLICTS) {
      this.calls = number;
      return;
    }
    const pages = this.#open.get(target) ?? new Map<number, Access[]>();
    const mine: Access[] = [];
    forEachRun(side, (offset, bytes) => {
      mine.push({ call, kind, base: side.base, low: at + offset, high: at + offset + bytes, number, reads });
    });
    for (const access of mine) {
      for (const page of pagesOf(access)) {
        const other = pages.get(page)?.find((earlier) => conflicts(earlier, access));
        if (other === undefined) continue;
        throw new RmaError(
          'ERR_RMA_CONFLICT',
          `${where}: bytes ${Math.max(access.low, other.low)} … ${Math.min(access.high, other.high) - 1} of the ` +
            `part of rank ${target} overlap those of an earlier ${other.call} that is not complete, ` +
            'so the result is undefined; complete the earlier call first, with ' +
            `flush(${target}) or by ending the epoch`,
        );
      }
    }
    this.calls = number;
    this.#open.set(target, pages);
    for (const access of mine) {
      for (const page of pagesOf(access)) {
        const list = pages.get(page);
        if (list === undefined) pages.set(page, [access]);
        else list.push(access);
      }
    }
  }

  /** What was accessed at a target is complete there; without one, at all targets. */
  completed(target: number | undefined): void {
    this.buffers?.completed(target, 0, this.calls);
    if (target === undefined) this.#open.clear();
    else this.#open.delete(target);
  }

  /**
   * What was accessed at a target, or at all, is complete at this rank: what only reads is over, the rest may still be
   * on its way.
   * @param calls only those after the first number, up to the second
   */
  completedHere(target: number | undefined, calls: readonly [after: number, to: number] = [0, this.calls]): void {
    this.buffers?.completed(target, calls[0], calls[1]);
    this.#forget(target, ({ number, reads }) => reads && number > calls[0] && number <= calls[1]);
  }

  /** The calls after number `after`, up to number `to`, are complete at the target as well. */
  completedCalls(target: number, after: number, to: number): void {
    this.buffers?.completed(target, after, to);
    this.#forget(target, ({ number }) => number > after && number <= to);
  }

  used(_name: string, _target: number, _array: TypedArray, _side: Side, _writes: boolean): void {}

  fenceBegins(completeAtIssue: boolean): void {
    if (completeAtIssue) this.completed(undefined);
  }

  fenceEnds(): void {
    this.completed(undefined);
  }

  accessEnds(): void {
    this.completed(undefined);
  }

  #forget(target: number | undefined, over: (access: Access) => boolean): void {
    for (const [rank, pages] of this.#open) {
      if (target !== undefined && rank !== target) continue;
      for (const [page, list] of pages) {
        const rest = list.filter((access) => !over(access));
        if (rest.length > 0) pages.set(page, rest);
        else pages.delete(page);
      }
      if (pages.size === 0) this.#open.delete(rank);
    }
  }
}

function conflicts(a: Access, b: Access): boolean {
  if (a.low >= b.high || b.low >= a.high) return false;
  if (a.reads && b.reads) return false;
  return a.kind !== 'accumulate' || b.kind !== 'accumulate' || a.base !== b.base;
}

function* pagesOf({ low, high }: Access): Generator<number> {
  for (let page = Math.floor(low / PAGE); page * PAGE < high; page++) yield page;
}
