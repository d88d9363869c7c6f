/**
 * Calls that wait for answers of devices by themselves, without the rank's other waits: calls that must not leave
 * anything undone, and the ends of steps that no call waits for any more.
 */

import { RmaError } from '../../errors.ts';
import { type Processor, REAL_PROCESSOR } from '../../verbs/processor.ts';
import type { Outstanding } from './outstanding.ts';
import { GRACE_MS } from './request-tasks.ts';

/** Looks between two looks at the clock, and milliseconds between two looks at the ranks. */
const LOOKS = 64;
const INSPECT_MS = 100;
/** Failures of tasks after which steps that no call waits for are given up. */
const MOST_FAILURES = 16;

/** What a call that waits for answers by itself looks at. */
export interface Patience {
  /** Milliseconds of the clock that waits go by. */
  now(): number;
  findFailure(): RmaError | undefined;
  /** Milliseconds after which it gives up. */
  readonly timeout: number;
  readonly processor: Processor;
}

export const ALONE: Patience = {
  now: () => performance.now(),
  findFailure: () => undefined,
  timeout: Number.POSITIVE_INFINITY,
  processor: REAL_PROCESSOR,
};

export class AnswerWaits {
  readonly #outstanding: Outstanding;
  readonly #job: Patience;
  /** Steps that no call waits for any more, and that had not come to their end soon. */
  readonly #unsettled = new Set<Generator<void, unknown>>();
  #settling = false;

  constructor(outstanding: Outstanding, job: Patience) {
    this.#outstanding = outstanding;
    this.#job = job;
  }

  /** Runs steps to their end at once: see `RequestTransfer.finish`. */
  finish(steps: Generator<void, void>): void {
    const began = this.#job.now();
    let inspected = began;
    const { processor } = this.#job;
    for (let looks = 1; !steps.next().done; looks++) {
      this.#lookOn();
      // The answer may be in: then no virtual time need pass. A real rank takes the next step at once anyway.
      if (processor.isVirtual && steps.next().done) return;
      processor.letPass();
      if (looks % LOOKS !== 0) continue;
      const now = this.#job.now();
      if (now - inspected >= INSPECT_MS) {
        inspected = now;
        const failure = this.#job.findFailure();
        if (failure !== undefined) throw failure;
      }
      if (now - began >= this.#job.timeout) {
        throw new RmaError(
          'ERR_RMA_TIMEOUT',
          `a call that waits for the answer to a request had none within ${this.#job.timeout} ms; ` +
            'if the other ranks may need longer, raise the timeout',
        );
      }
    }
  }

  get hasUnsettled(): boolean {
    return this.#unsettled.size > 0;
  }

  /** Brings steps that no call waits for any more to their end: see `RequestTransfer.settle`. */
  settle(steps: Generator<void, unknown>): void {
    this.#unsettled.add(steps);
    this.passUntil(() => {
      this.runUnsettled();
      return !this.#unsettled.has(steps);
    });
  }

  /** Steps may themselves look for completions, and so come here again. */
  runUnsettled(): void {
    if (this.#settling || this.#unsettled.size === 0) return;
    this.#settling = true;
    try {
      for (const steps of this.#unsettled) if (this.#isOver(steps)) this.#unsettled.delete(steps);
    } finally {
      this.#settling = false;
    }
  }

  #isOver(steps: Generator<void, unknown>): boolean {
    try {
      return steps.next().done === true;
    } catch (error) {
      this.#outstanding.noteFailure(error, -1);
      return true;
    }
  }

  /**
   * Takes in answers until `ended` holds; not for longer than `GRACE_MS`. In virtual time the next one always comes, or
   * an error.
   */
  passUntil(ended: () => boolean): void {
    const until = performance.now() + GRACE_MS;
    const failures: unknown[] = [];
    for (let looks = 1; failures.length < MOST_FAILURES; looks++) {
      try {
        if (ended()) break;
        this.#lookOn();
        // Without a request on its way, no answer comes.
        if (ended() || this.#outstanding.posted === 0) break;
      } catch (error) {
        // Something has failed, and the rest goes on; or a connection is lost, and nothing does.
        failures.push(error);
        if (this.#outstanding.isLost) break;
      }
      try {
        this.#job.processor.letPass();
      } catch {
        // No answer comes any more: the call that waits for it says so.
        break;
      }
      if (!this.#job.processor.isVirtual && looks % LOOKS === 0 && performance.now() > until) break;
    }
    if (failures.length > 0) this.#outstanding.noteFailure(failures[0], -1);
  }

  #lookOn(): void {
    this.#outstanding.takeCompletions();
    this.#outstanding.postWaiting();
  }
}
