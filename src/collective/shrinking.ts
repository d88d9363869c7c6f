/**
 * A `shrink` that is under way: agreements, and the making of a communicator in between, one after the other. If the
 * wait for one of these ends early, the next call goes on with it, as the other ranks do. If the making fails, that is
 * part of it: then all agree that there is none, and begin again without the ranks that have failed meanwhile.
 */
import { RmaError } from '../errors.ts';
import type { Members } from '../job/members.ts';
import { isAborted, reasonOf } from '../wait/abort-signals.ts';
import type { Operation, WaitOptions } from '../wait/operation.ts';

export interface ShrinkStep {
  /** Is not abandoned when a wait for it ends early. */
  readonly operation: Operation;
  /** Whose failures end the wait for it. */
  readonly members: Members;
  /** The steps go on if it ends with an error. */
  readonly mayFail: boolean;
}

/** The error of a wait. */
export interface Failure {
  readonly error: unknown;
}

export class Shrinking<C> {
  readonly #steps: Generator<ShrinkStep, C, Failure | undefined>;
  #step: IteratorResult<ShrinkStep, C> | undefined;
  /** It is complete, or cannot go on. */
  isOver = false;

  /** @param steps get the error of each step that may fail */
  constructor(steps: Generator<ShrinkStep, C, Failure | undefined>) {
    this.#steps = steps;
  }

  async run(wait: WaitOptions | undefined): Promise<C> {
    for (;;) {
      const step = this.#current();
      if (step.done === true) return step.value;
      const { operation, members, mayFail } = step.value;
      let failure: Failure | undefined;
      try {
        await members.wait(operation, wait);
      } catch (error) {
        if (!mayFail || isEarly(error, wait)) throw error;
        failure = { error };
      }
      this.#go(failure);
    }
  }

  runSync(wait: WaitOptions | undefined): C {
    for (;;) {
      const step = this.#current();
      if (step.done === true) return step.value;
      const { operation, members, mayFail } = step.value;
      let failure: Failure | undefined;
      try {
        members.waitSync(operation, wait);
      } catch (error) {
        if (!mayFail || isEarly(error, wait)) throw error;
        failure = { error };
      }
      this.#go(failure);
    }
  }

  #current(): IteratorResult<ShrinkStep, C> {
    if (this.#step === undefined) this.#go(undefined);
    return this.#step!;
  }

  #go(failure: Failure | undefined): void {
    // What it throws ends it.
    this.isOver = true;
    this.#step = this.#steps.next(failure);
    this.isOver = this.#step.done === true;
  }
}

/** An operation that its waits do not abandon. */
export function kept(operation: Operation): Operation {
  return {
    advance: () => operation.advance(),
    describe: () => operation.describe(),
    isPolling: () => operation.isPolling?.() ?? false,
    linger: () => operation.linger?.(),
  };
}

/** Whether an error says that the wait has ended, and nothing of what it waited for. */
function isEarly(error: unknown, { signal }: WaitOptions = {}): boolean {
  if (error instanceof RmaError && error.code === 'ERR_RMA_TIMEOUT') return true;
  return signal !== undefined && isAborted(signal) && error === reasonOf(signal);
}
