/**
 * The locks that a rank has, over all of its windows: for the order in which it asks for them, and for messages.
 *
 * **Order.** A lock that is deferred (`lock_defer`) is not asked for when `lock` returns. Programs that take locks in
 * one order of all locks cannot block each other, and programs that take the next lock before they give the first one
 * back are not overtaken. Deferring keeps both true. A rank defers a lock only while it has no other lock and asks for
 * none, in any of its windows; and before it asks for another lock, it waits until it has the one that it has deferred.
 * So at most one lock is deferred at a time. Nothing is promised beyond locks: a rank that waits for something else,
 * such as a barrier, does not ask for its deferred lock first.
 */
import type { LocksAtRank } from '../wait/deadlock.ts';
import type { Operation } from '../wait/operation.ts';
import type { Members } from './members.ts';

/** A lock that may be deferred. */
export interface Deferrable {
  /** Whether this rank does not have it yet, though `lock` has returned. */
  readonly pending?: 'not asked for' | 'asked for' | undefined;
  /** Asks for it. Complete when this rank has it, or has given it back. Abandoned, it stays asked for. */
  confirm?(): Operation;
}

export class RankLocks {
  /** Those of the windows that are not freed. */
  readonly windows = new Set<LocksAtRank>();
  /** The last lock that was deferred, unless it is known to be deferred no longer. */
  #deferred: Deferrable | undefined;
  /** The ranks of its window. */
  #members: Members | undefined;

  /** Whether no lock is known to be deferred. */
  get isClear(): boolean {
    return this.#deferred === undefined;
  }

  /** A lock was deferred. @param members the ranks of its window */
  defer(lock: Deferrable, members: Members): void {
    this.#deferred = lock;
    this.#members = members;
  }

  /** Whether a lock may be asked for at once. */
  get mayAsk(): boolean {
    if (this.#deferred === undefined) return true;
    if (this.#deferred.pending !== undefined && !this.#isInVain) return false;
    this.#deferred = undefined;
    return true;
  }

  /**
   * Whether a rank that the deferred lock may wait for has failed. Then the calls of that lock's window say so, and
   * locks of other windows do not wait for the deferred lock.
   */
  get #isInVain(): boolean {
    return this.#members!.failure() !== undefined;
  }

  /** Whether a lock may be deferred: this rank has none, and asks for none. */
  get mayDefer(): boolean {
    for (const window of this.windows) if (window.isOpen()) return false;
    return this.mayAsk;
  }

  /**
   * Asks for a lock, or several, when this rank has the lock that it has deferred.
   * @param what the lock, in words
   * @param ask what does so when it is called
   */
  behindDeferred(what: string, ask: () => Operation): Operation {
    if (this.mayAsk) return ask();
    let first: Operation | undefined = this.#deferred!.confirm!();
    let operation: Operation | undefined;
    return {
      advance: () => {
        if (first?.advance() === false && !this.#isInVain) return false;
        first = undefined;
        operation ??= ask();
        return operation.advance();
      },
      describe: () => operation?.describe() ?? `${what}, before it ${first!.describe()}`,
      abandon: () => operation?.abandon?.(),
      isPolling: () => (operation ?? first)!.isPolling?.() ?? false,
    };
  }

  /** What this rank has, in words. */
  describe(): string[] {
    return [...this.windows].flatMap(({ what, exclusive, shared }) =>
      [['holds', exclusive()] as const, ['shares', shared()] as const].flatMap(([verb, owners]) =>
        owners.length === 0 ? [] : [`${verb} the lock of rank ${owners.join(', ')} in ${what()}`],
      ),
    );
  }
}
