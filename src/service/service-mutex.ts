/**
 * A mutex of a service: a robust lock (robust-lock.ts) that tasks wait for, too.
 *
 * The lock knows members. The callers of one member queue up here, in `#line`, as those of a rank at the mutex of
 * `onesided/sync` do: only the first of them asks for the lock. It sleeps in the kernel, in a thread of its own, so the
 * event loop is free.
 */
import { argumentTypeError, RmaError, show } from '../errors.ts';
import type { Parker } from '../native.ts';
import { readWait, type WaitOptions } from '../wait/operation.ts';
import type { Shape } from './catalogue.ts';
import { LOOK_MS, NOBODY, PATIENCE_MS, RobustLock } from './robust-lock.ts';
import type { Members } from './service-members.ts';

/** The longest time that a timer of Node can have. */
const MOST_TIMER_MS = 2 ** 31 - 1;

export const MUTEX: Shape = { kind: 'mutex', bytes: 64, numbers: {} };

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
  /** Ends its sleep. */
  wake: (() => void) | undefined;
}

export class ServiceMutex {
  readonly #members: Members;
  readonly #lock: RobustLock;
  readonly #words: Int32Array;
  readonly #what: string;
  /** The calls of this member, in their order; the first has the mutex, or asks for it. */
  readonly #line: Call[] = [];
  /** Sleeps for the first in line. */
  #parker: Parker | undefined;

  constructor(members: Members, memory: ArrayBuffer, name: string) {
    this.#members = members;
    this.#words = new Int32Array(memory);
    this.#lock = new RobustLock(this.#words, 0, members);
    this.#what = `the mutex ${show(name)}`;
  }

  /**
   * Waits for the mutex and acquires it. Calls of one member are served in their order; members in no order.
   * Errors: `ERR_ARG` (options), `ERR_RMA_TIMEOUT`, the signal's reason.
   */
  async lock(options?: WaitOptions): Promise<ServiceHold> {
    const call = 'ServiceMutex.lock';
    const wait = readWait(call, options);
    const { signal, timeout = Number.POSITIVE_INFINITY } = wait ?? {};
    const mine: Call = { wake: undefined };
    this.#line.push(mine);
    const abort = (): void => mine.wake?.();
    const aborting = signal as (AbortSignal & EventTarget & { aborted: boolean; reason: unknown }) | undefined;
    aborting?.addEventListener('abort', abort);
    const deadline = performance.now() + timeout;
    try {
      for (;;) {
        if (aborting?.aborted) throw aborting.reason;
        const isFirst = this.#line[0] === mine;
        const seen = isFirst ? this.#lock.awaited() : 0;
        const taken = isFirst ? this.#lock.tryAcquire(seen !== 0, true) : undefined;
        if (taken !== undefined) return this.#holdOf(mine, taken);
        const left = deadline - performance.now();
        if (left <= 0) throw this.#lock.tooLong(call, this.#what, timeout);
        if (isFirst) await this.#sleep(mine, seen, Math.min(left, LOOK_MS));
        else await this.#queue(mine, left);
      }
    } catch (error) {
      this.#leave(mine);
      throw error;
    } finally {
      aborting?.removeEventListener('abort', abort);
    }
  }

  /**
   * As `lock`, and blocks the thread. Errors: as `lock`, and `ERR_RMA_WOULD_DEADLOCK` if this member holds the mutex or
   * waits for it, since it could not release it meanwhile.
   * @param options without `timeout`: 10 s
   */
  lockSync(options?: WaitOptions): ServiceHold {
    const call = 'ServiceMutex.lockSync';
    const wait = readWait(call, options);
    if (this.#line.length > 0) {
      throw new RmaError(
        'ERR_RMA_WOULD_DEADLOCK',
        `${call}: this member (place ${this.#members.place}) holds ${this.#what} or waits for it, ` +
          'and could not release it while this call blocks; use "await lock()"',
      );
    }
    const taken = this.#lock.acquire(call, this.#what, wait?.timeout ?? PATIENCE_MS);
    const mine: Call = { wake: undefined };
    this.#line.push(mine);
    return this.#holdOf(mine, taken);
  }

  /** Acquires the mutex if it is free or its holder is dead, or returns `undefined`. Never waits. */
  tryLock(): ServiceHold | undefined {
    if (this.#line.length > 0) return undefined;
    const taken = this.#lock.tryAcquire(false, true);
    if (taken === undefined) return undefined;
    const mine: Call = { wake: undefined };
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

  /** The member leaves: what it holds others take over. */
  close(): void {
    this.#parker?.close();
    this.#parker = undefined;
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
    const wasFirst = this.#line[0] === mine;
    this.#line.splice(this.#line.indexOf(mine), 1);
    if (wasFirst) this.#line[0]?.wake?.();
  }

  /** Until the word is not `seen` any more, or for `ms` milliseconds. */
  #sleep(mine: Call, seen: number, ms: number): Promise<void> {
    if (seen === 0) return Promise.resolve();
    this.#parker ??= new this.#members.memory.native.Parker(() => this.#line[0]?.wake?.());
    // That of a call that was aborted may still go on.
    this.#parker.interrupt();
    return new Promise((resolve) => {
      mine.wake = resolve;
      this.#parker!.begin(this.#words, 0, seen, ms, true);
    });
  }

  /** Until the call is the first in line, or for `ms` milliseconds. */
  async #queue(mine: Call, ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      mine.wake = resolve;
      if (ms < MOST_TIMER_MS) timer = setTimeout(resolve, ms);
    });
    clearTimeout(timer);
  }
}
