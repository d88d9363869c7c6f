/**
 * The path of an epoch whose lock is deferred: operations wait for the lock, or travel with it, and then take the path
 * around which this one is (sync/lock/deferred-lock.ts).
 */

import type { TypedArray } from '../../datatype/base-types.ts';
import { OpCode } from '../../datatype/op.ts';
import type { Side } from '../../datatype/sides.ts';
import { byteLengthOf } from '../../intrinsics.ts';
import type { DeferredLocks, UnderLock } from '../../sync/lock/deferred-lock.ts';
import type { Fetch } from '../../transfer/requests/fetch.ts';
import { lostError } from '../../transfer/requests/lost-arrays.ts';
import type { RequestUpdates } from '../../transfer/requests/request-updates.ts';
import type { Moves, OwnMemory, Path, ProgressBy } from './path.ts';

export class Deferred implements Path {
  readonly own: OwnMemory | undefined;
  readonly #direct: Path;
  readonly #locks: DeferredLocks;
  readonly #updates: RequestUpdates;
  readonly #rank: number;

  constructor(direct: Path, locks: DeferredLocks, updates: RequestUpdates, rank: number) {
    this.own = direct.own;
    this.#direct = direct;
    this.#locks = locks;
    this.#updates = updates;
    this.#rank = rank;
  }

  open(): void {
    this.#direct.open();
  }

  aligned(at: number): number {
    return this.#direct.aligned(at);
  }

  put(origin: TypedArray, from: Side, at: number, to: Side): void {
    const rank = this.#rank;
    this.#locks.hold({
      travelling: (lock) => this.#updates.travelling(lock, origin, from, rank, at, to, OpCode.REPLACE, undefined),
      issue: () => {
        refuseLost('origin', 'a put', rank, origin, from.high);
        this.#direct.put(origin, from, at, to);
      },
    });
  }

  get(origin: TypedArray, from: Side, at: number, to: Side): void {
    const rank = this.#rank;
    const fetch = { result: origin, side: from };
    this.#locks.hold({
      travelling: (lock) => this.#updates.travelling(lock, origin, from, rank, at, to, OpCode.NO_OP, fetch),
      issue: () => {
        refuseLost('origin', 'a get', rank, origin, from.high);
        this.#direct.get(origin, from, at, to);
      },
    });
  }

  update(origin: TypedArray, from: Side, at: number, to: Side, op: number, fetch: Fetch | undefined): void {
    const rank = this.#rank;
    this.#locks.hold({
      travelling: (lock, exclusive) =>
        exclusive ? this.#updates.travelling(lock, origin, from, rank, at, to, op, fetch) : undefined,
      issue: () => {
        refuseLost('origin', 'an accumulate', rank, origin, from.high);
        if (fetch !== undefined) refuseLost('result', 'an accumulate', rank, fetch.result, fetch.side.high);
        this.#direct.update(origin, from, at, to, op, fetch);
      },
    });
  }

  swap(origin: TypedArray, compare: TypedArray, result: TypedArray, at: number, to: Side): void {
    const rank = this.#rank;
    this.#locks.hold({
      travelling: (lock, exclusive) =>
        exclusive ? this.#updates.travellingSwap(lock, origin, compare, result, rank, at, to) : undefined,
      issue: () => {
        for (const [name, array] of Object.entries({ origin, compare, result })) {
          refuseLost(name, 'a compareAndSwap', rank, array, to.elementSize);
        }
        this.#direct.swap(origin, compare, result, at, to);
      },
    });
  }

  progressBy(moves: Moves): ProgressBy {
    return this.#direct.progressBy(moves);
  }
}

/** What tells the target behind the operations that wait. */
export function signalBehind(raise: () => void): UnderLock {
  return { travelling: () => undefined, issue: raise };
}

/** Errors: `ERR_BUFFER` if the program has taken an array away since the call. */
function refuseLost(name: string, call: string, rank: number, array: TypedArray, bytes: number): void {
  if (byteLengthOf(array) < bytes) throw lostError(name, call, rank);
}
