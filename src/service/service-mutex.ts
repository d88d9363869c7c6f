/**
 * A mutex of a service: a robust lock (robust-lock.ts) that tasks wait for, too.
 *
 * The lock knows members. The callers of one member queue up here, in `#line`, as those of a rank at the mutex of
 * `onesided/sync` do: only the first of them asks for the lock. It sleeps in the kernel, in a thread of its own, so the
 * event loop is free.
 */
import { argumentTypeError, RmaError, show } from '../errors.ts';
import type { WaitOptions } from '../wait/operation.ts';
import { Waiting } from '../wait/waiting.ts';
import type { Shape } from './catalogue.ts';
import { LOOK_MS, NOBODY, PATIENCE_MS, RobustLock } from './robust-lock.ts';
import type { Members } from './service-members.ts';
import { WordSleeper } from './word-sleeper.ts';

/** The longest time that a timer of Node can have. */
const MOST_TIMER_MS = 2 ** 31 - 1;

export const MUTEX: Shape = { kind: 'mutex', bytes: 64, facts: [] };

/** A mutex that this member holds, until `release`. */
export interface ServiceHold {
  /** The place of the member that died with the mutex, if it was taken over: what it guards may be half done. */
  readonly abandoned: number | undefined;
  /** Releases the mutex. Never waits; a second call does nothing. */
  release(): void;
  /** Calls `release`, at the end of a block with `using`. */
  [Symbol.dispose](): void;
}

/** A call that waits or holds. */
interface Call {
  /** It is the first in line now. */
  next: (() => void) | undefined;
}

export class ServiceMutex {
  readonly #members: Members;
  readonly #lock: RobustLock;
  readonly #what: string;
  /** The calls of this member, in their order; the first has the mutex, or asks for it. */
  readonly #line: Call[] = [];
  readonly #sleeper: WordSleeper;

  /** @param what for messages */
  constructor(members: Members, memory: ArrayBuffer, what: string) {
    const words = new Int32Array(memory);
    this.#members = members;
    this.#lock = new RobustLock(words, 0, members);
    this.#what = what;
    this.#sleeper = new WordSleeper(members.memory.native, words, 0);
  }

  /**
   * Waits for the mutex and acquires it. Calls of one member are served in their order; members in no order.
   * Errors: `ERR_ARG` (options), `ERR_RMA_TIMEOUT`, the signal's reason.
   */
  async lock(options?: WaitOptions): Promise<ServiceHold> {
    const waiting = new Waiting('ServiceMutex.lock', options);
    const describe = (): string => this.#lock.describe(this.#what);
    const mine: Call = { next: undefined };
    this.#line.push(mine);
    try {
      while (this.#line[0] !== mine) {
        this.#members.checkIn(waiting.call);
        await this.#queue(mine, waiting.left(describe), waiting.signal);
      }
      for (;;) {
        this.#members.checkIn(waiting.call);
        const seen = this.#lock.awaited();
        const taken = this.#lock.tryAcquire(seen !== 0, true);
        if (taken !== undefined) return this.#holdOf(mine, taken);
        const left = waiting.left(describe);
        if (seen !== 0) await this.#sleeper.sleep(seen, Math.min(left, LOOK_MS), waiting.signal);
      }
    } catch (error) {
      this.#leave(mine);
      throw error;
    }
  }

  /**
   * As `lock`, and blocks the thread. Errors: as `lock`, and `ERR_RMA_WOULD_DEADLOCK` if this member holds the mutex or
   * waits for it, since it could not release it meanwhile.
   * @param options without `timeout`: 10 s
   */
  lockSync(options?: WaitOptions): ServiceHold {
    const call = 'ServiceMutex.lockSync';
    const waiting = new Waiting(call, options, PATIENCE_MS);
    this.#members.checkIn(call);
    if (this.#line.length > 0) {
      throw new RmaError(
        'ERR_RMA_WOULD_DEADLOCK',
        `${call}: this member (place ${this.#members.place}) holds ${this.#what} or waits for it, ` +
          'and could not release it while this call blocks; use "await lock()"',
      );
    }
    const taken = this.#lock.tryAcquire() ?? this.#lock.acquireWithin(waiting, this.#what);
    const mine: Call = { next: undefined };
    this.#line.push(mine);
    return this.#holdOf(mine, taken);
  }

  /** Acquires the mutex if it is free or its holder is dead, or returns `undefined`. Never waits. */
  tryLock(): ServiceHold | undefined {
    this.#members.checkIn('ServiceMutex.tryLock');
    if (this.#line.length > 0) return undefined;
    const taken = this.#lock.tryAcquire(false, true);
    if (taken === undefined) return undefined;
    const mine: Call = { next: undefined };
    this.#line.push(mine);
    return this.#holdOf(mine, taken);
  }

  /**
   * Calls `body` while holding the mutex, and releases it however `body` ends. Errors: as `lock`, and those of `body`.
   * @returns what `body` returns
   */
  async withLock<R>(body: (hold: ServiceHold) => R | Promise<R>, options?: WaitOptions): Promise<R> {
    if (typeof body !== 'function') {
      throw argumentTypeError(`ServiceMutex.withLock: body must be a function, not ${show(body)}`);
    }
    const held = await this.lock(options);
    try {
      return await body(held);
    } finally {
      held.release();
    }
  }

  /** @internal The member leaves the service: what it holds others take over. */
  left(): void {
    this.#sleeper.close();
    // Each is told in its turn.
    for (const { next } of this.#line) next?.();
  }

  #holdOf(mine: Call, taken: number): ServiceHold {
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      this.#lock.release();
      this.#leave(mine);
    };
    return { abandoned: taken === NOBODY ? undefined : taken, release, [Symbol.dispose]: release };
  }

  #leave(mine: Call): void {
    this.#line.splice(this.#line.indexOf(mine), 1);
    this.#line[0]?.next?.();
  }

  /** Until the call is the first in line, for `ms` milliseconds at most, or until the signal aborts. */
  async #queue(mine: Call, ms: number, signal: AbortSignal | undefined): Promise<void> {
    const target = signal as (AbortSignal & EventTarget) | undefined;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      mine.next = resolve;
      target?.addEventListener('abort', mine.next);
      if (ms < MOST_TIMER_MS) timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
    target?.removeEventListener('abort', mine.next!);
  }
}
