/**
 * The direct lock (dissertation §4.1): an exclusive lock is a compare-and-swap on a word at the target, without the
 * target's processor; shared ones go through the target's agent, which takes the same word for all of them and counts.
 *
 * Mutual exclusion: the word is in one state at a time (lock-word.ts); an exclusive holder has put its own rank there,
 * and the agent lets the shared ones in only while it has put `size + 1` there itself.
 *
 * Starvation. A rank that finds the word taken comes back after a while, with exponential back-off and jitter, at the
 * latest after `MOST_MS`. No rank stands in line, so there is no bound on how often one can be overtaken. But each try
 * that comes while the word is free has the same chance as every other, and no rank keeps the word from being free when
 * others try:
 * - A holder that takes the word again at once leaves it free for less than a microsecond each time. A mark tells it
 *   that a rank waits, and it steps aside now and then (lock-word.ts).
 * - Shared holders come one after the other. So the agent lets only so many in, gives the word back when they are
 *   through, and steps aside for twice the longest wait. In that time every rank that waits for the word tries.
 * Programs that need a bound take `queue` or `remote`.
 *
 * Memory order: the release follows all that its holder has written, which the caller has waited for. A rank that
 * acquires reads after its own compare-and-swap was answered.
 */

import { REAL_PROCESSOR } from '../../verbs/processor.ts';
import type { Operation } from '../../wait/operation.ts';
import { Grant } from './agent-messages.ts';
import type { Gate, LockAgent, LockRequest } from './lock-agent.ts';
import { locksByAgent, type Words } from './lock-by-agent.ts';
import { lockKind } from './lock-kind.ts';
import type { Ask } from './lock-origin.ts';
import type { Attempt, TargetLock } from './lock-scheme.ts';
import type { LockWord } from './lock-word.ts';

/** At least so many shared holders are let in before the word is given back. */
export const LEAST_BATCH = 16;

/** Takes the word at this rank for those that share it. */
export class DirectGate implements Gate {
  readonly batch: number;
  readonly processor = REAL_PROCESSOR;
  readonly #word: LockWord;
  readonly #shared: number;

  constructor(word: LockWord) {
    this.#word = word;
    this.#shared = word.free + 1;
    this.batch = Math.max(LEAST_BATCH, 4 * word.free);
  }

  *take({ attempt }: LockRequest): Generator<void, number | undefined> {
    const word = this.#word;
    if (!attempt) {
      yield* word.rest();
      yield* word.take(word.free, this.#shared);
      return Grant.BY_AGENT;
    }
    return (yield* word.swap(word.free, this.#shared)) === word.free ? Grant.BY_AGENT : undefined;
  }

  // biome-ignore lint/correctness/useYield: what is posted first is done first
  *give(_request: LockRequest, _how: number, full: boolean): Generator<void, void> {
    this.#word.give(this.#shared);
    if (full) this.#word.backOff.stepAside();
  }

  get due(): number {
    return this.#word.due;
  }
}

export class DirectLock implements TargetLock {
  readonly #agent: LockAgent;
  readonly #word: LockWord;
  readonly #rank: number;
  readonly #target: number;
  #shared: Ask | undefined;

  /** @param word the target's */
  constructor(agent: LockAgent, word: LockWord, rank: number, target: number) {
    this.#agent = agent;
    this.#word = word;
    this.#rank = rank;
    this.#target = target;
  }

  /** Never without waiting: the word is at the target. */
  tryAcquire(): boolean {
    return false;
  }

  attempt(): Attempt {
    return this.#agent.origin.attempt(this.#target, (ask) => {
      this.#shared = ask;
    });
  }

  acquire(exclusive: boolean): Operation {
    if (!exclusive) {
      return this.#agent.origin.acquire(this.#target, false, (ask) => {
        this.#shared = ask;
      });
    }
    const word = this.#word;
    const steps = word.take(word.free, this.#rank);
    let done = false;
    return {
      advance: () => {
        // Brings answers in, and serves others.
        this.#agent.advance();
        if (!done) done = steps.next().done === true;
        return done;
      },
      describe: () => `lock of rank ${this.#target}${this.#holderInWords()}`,
      abandon: () => {
        if (!done) word.settle(steps, () => this.release(true));
      },
      isPolling: () => word.due,
    };
  }

  #holderInWords(): string {
    const { holder, free } = this.#word;
    if (holder < 0 || holder === free) return '';
    return ` (${holder < free ? `rank ${holder} held it exclusively` : 'ranks shared it'} at the last attempt)`;
  }

  release(exclusive: boolean): void {
    if (exclusive) {
      this.#word.give(this.#rank);
      return;
    }
    this.#agent.origin.unlock(this.#shared!);
    this.#shared = undefined;
  }
}

export const direct = lockKind({
  name: 'direct',
  deviceWords: () => 1,
  agent: true,
  firstWord: (size) => size,
  make(parts) {
    const me = parts.comm.rank;
    const gate = ({ ownWord }: Words): Gate => new DirectGate(ownWord());
    return locksByAgent(parts, gate, false, (agent, rank, { wordOf }) => new DirectLock(agent, wordOf(rank), me, rank));
  },
});
