/**
 * The lock by messages (dissertation §4.3, "two-sided"): the agent at the target gives it out, and carries out the
 * epoch's operations, which are queued at the origin until its unlock, flush or notified put. See lock-agent.ts for the
 * line and why no rank starves.
 *
 * Mutual exclusion: the agent grants an exclusive lock only when no other rank holds one, and it alone carries out what
 * is issued under locks.
 *
 * Deferred (hint `lock_defer`, as in the library behind the dissertation): `lock` does nothing. The unlock of an epoch
 * with one small operation sends lock, operation and unlock in one message. The unlock of any other epoch asks for the
 * lock, waits for the grant, and sends the operations with the unlock behind them. An epoch without operations sends
 * nothing. So a short epoch costs one round trip, and the unlock waits for a lock that another rank holds. MPI allows
 * it: a lock only promises what is seen through the window. Three locks are not deferred: that of a rank's own part,
 * which it may load and store at once; one for which the caller has given a deadline or a signal, which are about the
 * lock; and one of a rank that has other locks (job/rank-locks.ts).
 */

import type { Deferrable } from '../../job/rank-locks.ts';
import type { Operation } from '../../wait/operation.ts';
import { type LockAgent, NO_GATE } from './lock-agent.ts';
import { locksByAgent } from './lock-by-agent.ts';
import { lockKind } from './lock-kind.ts';
import type { Ask } from './lock-origin.ts';
import type { Attempt, TargetLock } from './lock-scheme.ts';

export class TwoSidedLock implements TargetLock {
  readonly #agent: LockAgent;
  readonly #target: number;
  readonly #own: boolean;
  readonly #defers: boolean;
  #held: Ask | undefined;

  constructor(agent: LockAgent, target: number, own: boolean, defers: boolean) {
    this.#agent = agent;
    this.#target = target;
    this.#own = own;
    this.#defers = defers;
  }

  /** Of another rank's part never without waiting. */
  tryAcquire(exclusive: boolean): boolean {
    if (!this.#own) return false;
    // Messages to oneself arrive at once, and the agent has nothing to wait for.
    const ask = this.#agent.origin.ask(this.#target, exclusive, true);
    if (ask.state !== 'granted') return false;
    this.#held = ask;
    return true;
  }

  attempt(): Attempt {
    return this.#agent.origin.attempt(this.#target, (ask) => {
      this.#held = ask;
    });
  }

  defer(exclusive: boolean): boolean {
    if (!this.#defers || this.#own) return false;
    this.#held = this.#agent.origin.askLater(this.#target, exclusive);
    return true;
  }

  get pending(): Deferrable['pending'] {
    return this.#held?.pending;
  }

  confirm(): Operation {
    return this.#agent.origin.confirm(this.#held!);
  }

  get isGivenBack(): boolean {
    return this.#held?.state === 'left';
  }

  acquire(exclusive: boolean): Operation {
    return this.#agent.origin.acquire(this.#target, exclusive, (ask) => {
      this.#held = ask;
    });
  }

  release(): void {
    this.#agent.origin.unlock(this.#held!);
    this.#held = undefined;
  }
}

export const twoSided = lockKind({
  name: 'two-sided',
  deviceWords: () => 0,
  agent: true,
  make(parts) {
    const me = parts.comm.rank;
    const lock = (agent: LockAgent, rank: number): TargetLock =>
      new TwoSidedLock(agent, rank, rank === me, parts.options.lock_defer === 'true');
    return locksByAgent(parts, () => NO_GATE, true, lock);
  },
});
