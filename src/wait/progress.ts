/**
 * How a rank waits: spin briefly, then sleep until its bell rings.
 *
 * A wait ends in one of three ways: the operation is complete, an error (a rank of the job failed, the caller aborted),
 * or a deadline. The order of steps around a sleep is the parking protocol's (`verbs/device.ts`, Parking): announce,
 * look again, sleep. The side that completes our operation stores first and then looks for the announcement; both are
 * sequentially consistent, so at least one of the two sees the other, and no wake-up is lost. As a second line of
 * defence no sleep is longer than `LIVENESS_MS`, or a multiple of it in large jobs.
 */

import { RmaError } from '../errors.ts';
import type { Context } from '../verbs/device.ts';
import { isAborted, reasonOf, whenAborted } from './abort-signals.ts';
import { seenByCaller } from './caller.ts';
import type { Concerned } from './concerned.ts';
import { abandonQuietly, type Operation, type WaitOptions } from './operation.ts';
import { Servers, type Stirred } from './servers.ts';
import { BATCH, Spinning } from './spinning.ts';

/** Bound of one sleep; after each, peers' processes are looked at. */
const LIVENESS_MS = 400;
/**
 * Bound of a sleep while this rank waits for something that rings no bell: a receive that a peer has yet to post, a
 * lock that is asked for again and again.
 */
const RETRY_MS = 1;
/** Bound of a sleep while ranks that cannot wake this one may want to connect. */
const CALL_MS = 10;
/** So much longer where many ranks share a core: their looks would take it from those that have yet to come. */
const MOST_CALL_REST = 4;
/**
 * Looks at the operation after a sleep. On a device each look polls its queues, which hold what has woken this rank.
 */
const WOKEN = 8;
const WOKEN_BY_DEVICE = 2;
/**
 * Yields of a sleeper that a message has woken, before it sleeps again. Few: while a rank has used less of its core
 * than the others have, yielding does not hand it on.
 */
const LINGERS = 1;
/** Looks at the operation before the promise form goes to the event loop: a few microseconds. */
const ASYNC_SPIN = 500;
/** Turns of the event loop before an awaiting rank that shares its core sleeps. */
const LOOP_TURNS = 4;

/** A sleep of at most so many milliseconds may have been none. */
const AT_ONCE_MS = 0.5;
/** From one look in the background to the next, for what others hardly need any more. */
const SELDOM_MS = 20;

/**
 * Whether something is also served while its rank waits for nothing: when the rank's bell has rung, for which it sleeps
 * then, or seldom, without a bell.
 */
export type Background = boolean | 'seldom';

/** Every promise form that need not wait returns this one. */
export const DONE: Promise<void> = Promise.resolve();

export interface Liveness {
  /**
   * Looks whether peers still live, some at a time; declares the failure of one that does not. A few system calls a
   * peer.
   */
  inspectPeers(): void;
  /** Whether this rank was asked to say what it waits in. Cheap: one load. */
  isAsked(): boolean;
  /** Tells what this rank waits in. */
  report(waits: readonly string[]): void;
}

export interface ProgressOptions {
  /** Milliseconds until a wait without a deadline of its own ends; `Infinity`: none. */
  readonly timeout: number;
  readonly oversubscribed: boolean;
  readonly schedYield?: (() => void) | undefined;
  /** How much longer than usual a sleep may be: jobs of many ranks that a launcher watches. */
  readonly rest?: number;
  /** Whether a rank may want to connect to this one, and cannot wake it. */
  expectsCalls(): boolean;
  /** Whether nothing waits to leave. Cheap: one load. */
  isIdle(): boolean;
}

interface Pending {
  readonly operation: Operation;
  readonly concerned: Concerned;
  readonly since: number;
  readonly deadline: number;
  readonly timeoutMs: number;
  resolve(): void;
  reject(error: unknown): void;
  unsubscribe(): void;
}

/** What drives operations: `Progress`, or, in virtual time, `VirtualProgress`. */
export type ProgressEngine = Pick<Progress, keyof Progress>;

export class Progress {
  /**
   * Looks at an operation before the `Sync` form sleeps; small when there are more ranks than cores, where spinning
   * starves others.
   */
  readonly spin: number;
  #context: Context;
  #liveness: Liveness;
  /**
   * Brings messages in and pending sends out, and serves others; called whenever a rank is about to sleep. Gives the
   * milliseconds until something is due.
   */
  #poll: () => number;
  readonly #isIdle: () => boolean;
  /** Milliseconds until a wait without a deadline of its own ends; `Infinity`: none. */
  readonly timeout: number;
  #pending = new Set<Pending>();
  #running = false;
  readonly #yield: (() => void) | undefined;
  readonly #spinning: Spinning;
  #lastInspection = 0;
  #longestNap: () => number;
  readonly #servers: Servers;
  /** Those that are called in the background, too. */
  readonly #background = new Set<() => number>();
  #serving = false;
  #closed = false;
  /** What bringing messages in has thrown while this rank waited for nothing: its next wait that looks is told. */
  #missed: { readonly error: unknown } | undefined;

  constructor(context: Context, liveness: Liveness, poll: () => void, options: ProgressOptions) {
    this.#context = context;
    this.#servers = new Servers(() => context.news);
    this.#liveness = liveness;
    this.#poll = () => {
      if (this.#missed !== undefined) this.#tellMissed();
      poll();
      return this.#servers.run();
    };
    this.#isIdle = options.isIdle;
    this.timeout = options.timeout;
    this.spin = options.oversubscribed ? 1 : BATCH;
    this.#spinning = new Spinning(options.oversubscribed, options.schedYield);
    const { rest = 1 } = options;
    const longest = LIVENESS_MS * rest;
    const call = CALL_MS * (options.oversubscribed ? Math.min(MOST_CALL_REST, rest) : 1);
    this.#longestNap = () => (options.expectsCalls() ? call : longest);
    this.#yield = options.schedYield;
  }

  /** Milliseconds of the clock that waits go by. */
  now(): number {
    return performance.now();
  }

  /**
   * Calls `serve` whenever this rank is about to sleep in a wait, whatever that waits for. `serve` returns the
   * milliseconds after which it wants to be called again even if no bell rings, or `Infinity`.
   * @param background also while this rank waits for nothing, when its bell has rung: what other ranks ask of it is
   * done when it is in the library or its event loop turns. That does not keep the event loop alive. `'seldom'`: every
   * `SELDOM_MS` then, which costs the ranks that wake this one nothing.
   * @param concerned whom it serves: what it throws ends a wait for them
   * @returns ends it
   */
  serve(serve: () => number, background: Background, concerned: Concerned): () => void {
    this.#servers.add(serve, concerned);
    if (background === true) {
      this.#background.add(serve);
      if (!this.#serving) void this.#serveInBackground();
    }
    const timer = background === 'seldom' ? this.#serveSeldom(serve, concerned) : undefined;
    return () => {
      clearInterval(timer);
      this.#servers.delete(serve);
      this.#background.delete(serve);
    };
  }

  #serveSeldom(serve: () => number, concerned: Concerned): NodeJS.Timeout {
    const timer = setInterval(() => {
      if (this.#closed) clearInterval(timer);
      else {
        try {
          serve();
        } catch (error) {
          concerned.note(error);
        }
      }
    }, SELDOM_MS);
    return timer.unref();
  }

  /**
   * The same, not in the background, for what has to be called only after it was stirred, until it is quiet again, and
   * when something has come for it (`Servers.addQuiet`).
   */
  serveUnlessQuiet(serve: () => number, isQuiet: () => boolean, concerned: Concerned): Stirred {
    return this.#servers.addQuiet(serve, isQuiet, concerned);
  }

  /** A second sleeper beside those that wait: it takes part in the same protocol. */
  async #serveInBackground(): Promise<void> {
    const { parking } = this.#context;
    this.#serving = true;
    // A program that blocks in each of its calls serves in those calls; as long as its event loop does not turn, no
    // rank need ring for it here.
    await eventLoopTurn(performance.now(), true);
    while (this.#background.size > 0) {
      const token = parking.arm();
      try {
        const due = this.#pollUnheard();
        const began = performance.now();
        await parking.sleep(token, Math.min(due, this.#nap(false)), true);
        await eventLoopTurn(began, true);
      } catch {
        // There is no sleeping here any more: the next wait says so.
        break;
      } finally {
        parking.disarm();
      }
    }
    this.#serving = false;
  }

  #pollUnheard(): number {
    const before = this.#missed;
    this.#missed = undefined;
    try {
      return this.#poll();
    } catch (error) {
      this.#missed = { error };
      return Number.POSITIVE_INFINITY;
    } finally {
      this.#missed = before ?? this.#missed;
    }
  }

  #tellMissed(): void {
    const { error } = this.#missed!;
    this.#missed = undefined;
    throw error;
  }

  /** One look at an operation, outside a wait. If it fails because a rank is gone, the error says so. */
  look(operation: Operation, concerned: Concerned): boolean {
    try {
      this.#keepMoving();
      if (operation.advance()) return true;
    } catch (error) {
      throw concerned.explain(error);
    }
    concerned.check();
    return false;
  }

  /**
   * A wait that does not sleep does not poll, and a rank that asks again and again may never sleep. With this, what
   * waits to leave leaves all the same.
   */
  #keepMoving(): void {
    if (!this.#isIdle()) this.#poll();
  }

  /** The `Sync` form: returns when `operation` is complete. */
  waitSync(operation: Operation, options: WaitOptions | undefined, concerned: Concerned): void {
    const signal = options?.signal;
    if (signal !== undefined && isAborted(signal)) {
      abandonQuietly(operation);
      throw reasonOf(signal);
    }
    try {
      for (let i = 0; i < this.spin; i++) {
        if (!operation.advance()) continue;
        this.#keepMoving();
        return;
      }
    } catch (error) {
      abandonQuietly(operation);
      throw concerned.explain(error);
    }
    this.#sleepUntil(operation, options, concerned);
  }

  #sleepUntil(operation: Operation, options: WaitOptions | undefined, concerned: Concerned): void {
    const timeoutMs = this.#timeoutOf(options);
    const start = performance.now();
    const deadline = start + timeoutMs;
    const parking = this.#context.parking;
    try {
      if (this.#spinning.waits(operation, start)) return;
      let awake = false;
      for (;;) {
        const before = parking.received;
        const token = parking.arm();
        try {
          const due = this.#poll();
          if (operation.advance()) return;
          const trouble = concerned.trouble();
          if (trouble !== undefined) throw trouble;
          if (this.#liveness.isAsked()) this.#report(waitInWords(operation, start));
          const left = deadline - performance.now();
          if (left <= 0) throw this.#timeoutError(operation, timeoutMs);
          if (!awake) parking.sleepSync(token, Math.min(left, due, this.#nap(operation.isPolling?.() ?? false)));
        } finally {
          parking.disarm();
        }
        const looks = before === undefined ? WOKEN : WOKEN_BY_DEVICE;
        let done = looksOften(operation, looks);
        const { received } = parking;
        if (!done && (awake || received !== before)) done = this.#linger(operation, received);
        if (done) {
          this.#spinning.slept(performance.now() - start);
          return;
        }
        awake = received !== parking.received;
        if (this.#inspect()) operation.linger?.();
      }
    } catch (error) {
      abandonQuietly(operation);
      throw concerned.explain(error);
    }
  }

  /**
   * Looks on for a while, until something more comes. A rank that has asked this one for something while it waits, and
   * has got it, most likely asks again soon; on a device, sleeping until then and waking up takes more than ten system
   * calls. A wait that comes back from here goes through all that a rank does before it sleeps.
   * @param received as of the last look
   * @returns whether the operation is complete
   */
  #linger(operation: Operation, received: number | undefined): boolean {
    const { parking } = this.#context;
    const start = performance.now();
    while (performance.now() - start < this.#spinning.ms) {
      for (let i = 0; i < BATCH; i++) {
        if (operation.advance()) return true;
        if (parking.received !== received) return false;
      }
    }
    if (this.#yield === undefined) return false;
    for (let i = LINGERS; i > 0 && parking.received === received; i--) {
      this.#yield();
      if (operation.advance()) return true;
    }
    return false;
  }

  /** What a call that was complete at once returns. */
  done(): Promise<void> {
    return DONE;
  }

  /** The promise form. Resolves on the spot (the shared {@link DONE}) when a short spin suffices. */
  wait(operation: Operation, options: WaitOptions | undefined, concerned: Concerned): Promise<void> {
    try {
      const signal = options?.signal;
      if (signal !== undefined && isAborted(signal)) throw reasonOf(signal);
      const spin = Math.min(this.spin, ASYNC_SPIN);
      for (let i = 0; i < spin; i++) {
        if (!operation.advance()) continue;
        this.#keepMoving();
        return DONE;
      }
      const timeoutMs = this.#timeoutOf(options);
      const { takesTurns } = this.#spinning;
      if (takesTurns && this.#pending.size === 0 && this.#spinning.takesTurn(operation)) return DONE;
      return this.#park(operation, timeoutMs, signal, concerned);
    } catch (error) {
      abandonQuietly(operation);
      return Promise.reject(concerned.explain(error));
    }
  }

  #park(operation: Operation, timeoutMs: number, signal: AbortSignal | undefined, concerned: Concerned): Promise<void> {
    let onAbort: (() => void) | undefined;
    // Throws before anything waits.
    const unsubscribe = whenAborted(signal, () => onAbort!());
    const settled = new Promise<void>((resolve, reject) => {
      onAbort = () => {
        this.#pending.delete(pending);
        abandonQuietly(operation);
        reject(reasonOf(signal!));
      };
      const since = performance.now();
      const pending: Pending = {
        operation,
        concerned,
        timeoutMs,
        since,
        deadline: since + timeoutMs,
        resolve,
        reject,
        unsubscribe,
      };
      this.#pending.add(pending);
      if (!this.#running) {
        this.#running = true;
        void this.#run();
      }
    });
    return seenByCaller(settled, signal);
  }

  /** Settles what is complete, failed or late. Returns the milliseconds until the next deadline. */
  #sweep(): number {
    let nearest = Number.POSITIVE_INFINITY;
    const now = performance.now();
    for (const pending of this.#pending) {
      const { operation, concerned } = pending;
      let error: unknown;
      try {
        if (operation.advance()) {
          this.#pending.delete(pending);
          pending.unsubscribe();
          pending.resolve();
          continue;
        }
        error = concerned.trouble();
        if (error === undefined && pending.deadline <= now) error = this.#timeoutError(operation, pending.timeoutMs);
      } catch (thrown) {
        error = concerned.explain(thrown);
      }
      if (error !== undefined) {
        this.#pending.delete(pending);
        pending.unsubscribe();
        abandonQuietly(operation);
        pending.reject(error);
      } else if (pending.deadline - now < nearest) nearest = pending.deadline - now;
    }
    return nearest;
  }

  /** One loop serves all promises that wait in this rank. */
  async #run(): Promise<void> {
    const parking = this.#context.parking;
    const spinning = this.#spinning;
    let turns = 0;
    let slept = false;
    let since = performance.now();
    while (this.#pending.size > 0) {
      const before = this.#pending.size;
      this.#look();
      if (this.#pending.size < before) {
        const now = performance.now();
        if (slept) spinning.slept(now - since);
        else if (turns > LOOP_TURNS) spinning.worked();
        turns = 0;
        slept = false;
        since = now;
      }
      if (this.#pending.size === 0) break;
      if (turns++ < LOOP_TURNS || (!slept && performance.now() - since < spinning.ms)) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        continue;
      }
      if (!slept) spinning.inVain();
      slept = true;
      const token = parking.arm();
      try {
        const nearest = this.#look();
        if (this.#pending.size > 0) {
          const began = performance.now();
          await parking.sleep(token, Math.min(nearest, this.#nap(this.#isPolling())));
          await eventLoopTurn(began, false);
        }
      } finally {
        parking.disarm();
      }
      if (this.#inspect()) this.#lingerAll();
    }
    this.#running = false;
  }

  /**
   * Brings in what has arrived and settles what that completes. Returns the milliseconds until the next deadline, or
   * until something else is due.
   */
  #look(): number {
    let due = Number.POSITIVE_INFINITY;
    try {
      due = this.#poll();
    } catch (error) {
      this.#failAll(error);
    }
    const nearest = this.#sweep();
    if (this.#pending.size > 0 && this.#liveness.isAsked()) this.#report();
    return Math.min(due, nearest);
  }

  /** @param blocking the wait that blocks this thread, if one does */
  #report(...blocking: string[]): void {
    const awaited = Array.from(this.#pending, ({ operation, since }) => waitInWords(operation, since));
    this.#liveness.report([...blocking, ...awaited]);
  }

  /** Ends every wait that is pending: the job is left, and nothing comes any more. */
  close(): void {
    this.#closed = true;
    for (const pending of this.#pending) {
      pending.unsubscribe();
      const what = pending.operation.describe();
      abandonQuietly(pending.operation);
      pending.reject(
        new RmaError('ERR_COMM', `finalize() ended the job before ${what} was complete; await it before finalize()`),
      );
    }
    this.#pending.clear();
    this.#servers.clear();
    this.#background.clear();
  }

  #failAll(thrown: unknown): void {
    for (const pending of this.#pending) {
      pending.unsubscribe();
      abandonQuietly(pending.operation);
      pending.reject(pending.concerned.explain(thrown));
    }
    this.#pending.clear();
  }

  /** @returns whether it was time to */
  #inspect(): boolean {
    const now = performance.now();
    if (now - this.#lastInspection < LIVENESS_MS) return false;
    this.#lastInspection = now;
    this.#liveness.inspectPeers();
    return true;
  }

  #lingerAll(): void {
    for (const { operation, concerned } of this.#pending) {
      try {
        operation.linger?.();
      } catch (error) {
        concerned.note(error);
      }
    }
  }

  /** What the most impatient of those that wait says. */
  #isPolling(): boolean | number {
    let soonest: boolean | number = false;
    for (const { operation } of this.#pending) {
      const polling = operation.isPolling?.() ?? false;
      if (polling === true) return true;
      if (typeof polling === 'number') soonest = Math.min(polling, soonest === false ? polling : soonest);
    }
    return soonest;
  }

  #nap(polling: boolean | number): number {
    if (polling === true || this.#context.pendingRetry) return RETRY_MS;
    return polling === false ? this.#longestNap() : Math.min(polling, this.#longestNap());
  }

  #timeoutOf(options: WaitOptions | undefined): number {
    return options?.timeout ?? this.timeout;
  }

  #timeoutError(operation: Operation, timeoutMs: number): RmaError {
    return new RmaError(
      'ERR_RMA_TIMEOUT',
      `${operation.describe()} did not complete within ${timeoutMs} ms; ` +
        'if the other ranks may need longer, raise the timeout',
    );
  }
}

function looksOften(operation: Operation, times: number): boolean {
  for (let i = 0; i < times; i++) if (operation.advance()) return true;
  return false;
}

function waitInWords(operation: Operation, since: number): string {
  return `${operation.describe()}, for ${((performance.now() - since) / 1000).toFixed(1)} s`;
}

/**
 * A sleep that ends at once (the bell has rung; often this rank has rung it itself, by a request whose answer is there)
 * has not let the event loop turn. A rank that asks again and again would keep the program's timers and signals from
 * ever being heard.
 */
function eventLoopTurn(since: number, background: boolean): Promise<void> | undefined {
  if (performance.now() - since > AT_ONCE_MS) return undefined;
  return new Promise((resolve) => {
    const turn = setImmediate(resolve);
    if (!background) return;
    turn.unref();
    // Node's loop may go to sleep before it comes to an immediate that nothing waits for, but not beyond a timer.
    setTimeout(resolve, 0).unref();
  });
}
