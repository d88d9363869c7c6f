/**
 * Completion where some passive epochs queue operations and others do not, by their target: for agents
 * (`PassiveQueue.takes`), or until a deferred lock is there (`DeferredLocks`). An epoch does one or the other from its
 * first operation to its last, and its unlock completes all of them. So a call about one rank asks the one way that is
 * in use there; a call about all ranks asks both.
 */

import type { DeferredLocks } from '../../sync/lock/deferred-lock.ts';
import type { PassiveQueue } from '../../sync/lock/lock-kind.ts';
import type { Operation } from '../../wait/operation.ts';
import type { Completion } from './path.ts';

export class MixedCompletion implements Completion {
  readonly #queued: Pick<PassiveQueue['origin'], 'flush' | 'flushLast' | 'soFar'>;
  readonly #takes: (rank: number) => boolean;
  readonly #direct: Completion | undefined;

  /** @param direct of what is not queued; absent if that is complete when it is issued */
  constructor(
    queued: PassiveQueue['origin'] | DeferredLocks,
    takes: (rank: number) => boolean,
    direct: Completion | undefined,
  ) {
    this.#queued = queued;
    this.#takes = takes;
    this.#direct = direct;
  }

  flush(rank?: number): Operation {
    if (rank === undefined) return both(this.#queued.flush(), this.#direct?.flush());
    return this.#takes(rank) ? this.#queued.flush(rank) : (this.#direct?.flush(rank) ?? NOTHING);
  }

  tryFlush(rank: number | undefined, extent: 'here' | 'in memory'): boolean {
    if (rank === undefined || this.#takes(rank)) return false;
    return this.#direct === undefined || this.#direct.tryFlush?.(rank, extent) === true;
  }

  flushLocal(rank?: number): Operation {
    const direct = this.#direct;
    if (rank !== undefined && this.#takes(rank)) return this.#queued.flush(rank);
    const here = direct?.flushLocal?.(rank) ?? direct?.flush(rank);
    return rank === undefined ? both(this.#queued.flush(), here) : (here ?? NOTHING);
  }

  flushLast(rank?: number): Operation {
    return rank !== undefined && this.#takes(rank) ? this.#queued.flushLast(rank) : this.flush(rank);
  }

  soFar(rank: number): Operation {
    return this.#takes(rank) ? this.#queued.soFar(rank) : (this.#direct?.soFar(rank) ?? NOTHING);
  }

  endHolding(): void {
    this.#direct?.endHolding?.();
  }
}

const NOTHING: Operation = { advance: () => true, describe: () => 'nothing' };

/** Complete when both are. Each is brought on until it is complete, and is left alone then. */
function both(one: Operation, other: Operation | undefined): Operation {
  if (other === undefined) return one;
  const left = new Set([one, other]);
  return {
    advance: () => {
      for (const operation of left) if (operation.advance()) left.delete(operation);
      return left.size === 0;
    },
    describe: () => [...left].map((operation) => operation.describe()).join(' and '),
    abandon: () => {
      for (const operation of left) operation.abandon?.();
    },
    isPolling: () => {
      let due = Number.POSITIVE_INFINITY;
      for (const operation of left) {
        const polls = operation.isPolling?.() ?? false;
        if (polls === true) return true;
        if (polls !== false) due = Math.min(due, polls);
      }
      return due === Number.POSITIVE_INFINITY ? false : due;
    },
  };
}
