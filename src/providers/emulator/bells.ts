/**
 * The row of one member in the fabric's table: its bell, and where its memory is.
 *
 * A member sleeps on its BELL and is woken through it. The protocol loses no wake-up, by sequential consistency of
 * `Atomics`:
 *
 *     sleeper: SLEEPERS += 1;  token = BELL;  looks for work;  waits while BELL = token
 *     waker:   makes work;     SLEEPERS ≠ 0?  then BELL += 1, and wakes all that wait
 *
 * If the waker reads SLEEPERS = 0, its read comes before the sleeper's addition in the one order that all agree on, so
 * the sleeper's look comes after the work was made and finds it. Otherwise BELL changes after the sleeper took its
 * token: either the kernel sees the change when the wait begins and does not sleep, or the wake follows and ends the
 * sleep.
 *
 * Who writes: any member writes BELL and SLEEPERS (atomic additions). Only the row's owner writes the other words, and
 * it writes READY last, so a member that reads READY = 1 may read the rest.
 */

import { loadAcquire } from '../../memory-model.ts';
import type { Native } from '../../native.ts';
import type { Parking } from '../../verbs/device.ts';

/**
 * Words of a row. The bell has a cache line (16 words) of its own, so that polling it is not disturbed by other writes.
 */
export const Row = Object.freeze({
  BELL: 0,
  SLEEPERS: 1,

  /** Whether this member has opened its fabric. */
  READY: 16,
  PID: 17,
  /** The descriptor of its heap in the process PID. */
  HEAP_FD: 18,
  /**
   * Random. The key also stands at the start of the heap, so that a file of another process that took over PID and
   * descriptor is recognised.
   */
  HEAP_KEY: 19,
  /** 1 when the root's words hold a value. */
  ROOT_READY: 20,
  ROOT_LO: 21,
  ROOT_HI: 22,
  ROOT_BYTES_LO: 23,
  ROOT_BYTES_HI: 24,
});

/** Words of a row: two cache lines. */
export const ROW_WORDS = 32;

export function rowOf(member: number): number {
  return member * ROW_WORDS;
}

/**
 * Wakes a member if it sleeps; one load if not: the caller's change was atomic.
 * @param wakeWord wakes all that wait on that word of the table
 */
export function ring(table: Int32Array, member: number, wakeWord: (index: number) => void): void {
  const row = rowOf(member);
  if (loadAcquire(table, row + Row.SLEEPERS) === 0) return;
  Atomics.add(table, row + Row.BELL, 1);
  wakeWord(row + Row.BELL);
}

/** Numbers up to 2^53 in two words; the low one is read back as unsigned. */
function storeWide(table: Int32Array, low: number, value: number): void {
  Atomics.store(table, low, value | 0);
  Atomics.store(table, low + 1, Math.floor(value / 2 ** 32));
}

function loadWide(table: Int32Array, low: number): number {
  return (Atomics.load(table, low) >>> 0) + Atomics.load(table, low + 1) * 2 ** 32;
}

export function storeRoot(table: Int32Array, member: number, handle: number, byteLength: number): void {
  const row = rowOf(member);
  Atomics.store(table, row + Row.ROOT_READY, 0);
  storeWide(table, row + Row.ROOT_LO, handle);
  storeWide(table, row + Row.ROOT_BYTES_LO, byteLength);
  Atomics.store(table, row + Row.ROOT_READY, 1);
}

export function loadRoot(table: Int32Array, member: number): { handle: number; byteLength: number } | undefined {
  const row = rowOf(member);
  if (Atomics.load(table, row + Row.ROOT_READY) !== 1) return undefined;
  return { handle: loadWide(table, row + Row.ROOT_LO), byteLength: loadWide(table, row + Row.ROOT_BYTES_LO) };
}

/** Wakes every member, asleep or not: the job has failed, or the launcher has news. Costs a system call a member. */
export function wakeAll(fabricTable: Int32Array, size: number, native: Native | undefined): void {
  for (let member = 0; member < size; member++) {
    const bell = rowOf(member) + Row.BELL;
    Atomics.add(fabricTable, bell, 1);
    if (native !== undefined) native.futexWake(fabricTable, bell, EVERYONE);
    else Atomics.notify(fabricTable, bell);
  }
}

/** More sleepers than a bell can have. */
export const EVERYONE = 0x7fffffff;

/** How the members of one kind of fabric sleep on a word. */
export interface BellWaiter {
  /** Blocks while `table[bell] === token`, or for `timeoutMs`. May return early. */
  waitSync(bell: number, token: number, timeoutMs: number): void;
  /**
   * Calls `woken` once when `table[bell]` is no longer `token`, or early.
   * @param keepAlive keeps the event loop alive until then, or until `interrupt`
   */
  wait(bell: number, token: number, woken: () => void, keepAlive: boolean): void;
  /** Ends the pending `wait`: `woken` is not called any more. */
  interrupt(): void;
}

interface Sleeper {
  readonly wake: () => void;
  readonly background: boolean;
  timer: NodeJS.Timeout | undefined;
}

/**
 * One member's {@link Parking}, over any kind of waiter. All asynchronous sleepers of a thread share one wait on the
 * bell: a sleeper that finds nothing to do when it rings goes to sleep again.
 */
export class BellParking implements Parking {
  readonly #table: Int32Array;
  readonly #bell: number;
  readonly #sleepersWord: number;
  readonly #waiter: BellWaiter;
  readonly #asleep = new Set<Sleeper>();
  /** The value of the bell that the pending wait waits on. */
  #waitedOn = 0;
  #waiting = false;
  /** The pending wait keeps the event loop alive. */
  #keepsAlive = false;
  readonly seesPlainStores: boolean;
  readonly #everyCore: (() => void) | undefined;

  /**
   * @param everyCore makes every core that runs a member pass a memory barrier. With it, a waker may store plainly and
   * look at SLEEPERS with no barrier in between: if it saw no sleeper, it had looked before `arm` counted this one; so
   * its store, which is older, has left its core at the latest when the barrier that follows the counting has passed
   * there, and the sleeper's look sees it.
   */
  constructor(table: Int32Array, member: number, waiter: BellWaiter, everyCore?: () => void) {
    this.seesPlainStores = everyCore !== undefined;
    this.#everyCore = everyCore;
    this.#table = table;
    this.#bell = rowOf(member) + Row.BELL;
    this.#sleepersWord = rowOf(member) + Row.SLEEPERS;
    this.#waiter = waiter;
  }

  arm(): number {
    Atomics.add(this.#table, this.#sleepersWord, 1);
    this.#everyCore?.();
    return Atomics.load(this.#table, this.#bell);
  }

  disarm(): void {
    Atomics.sub(this.#table, this.#sleepersWord, 1);
  }

  sleepSync(token: number, timeoutMs: number): void {
    this.#waiter.waitSync(this.#bell, token, timeoutMs);
  }

  sleep(token: number, timeoutMs: number, background = false): Promise<void> {
    if (Atomics.load(this.#table, this.#bell) !== token || timeoutMs <= 0) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper: Sleeper = { wake: resolve, background, timer: undefined };
      if (timeoutMs < MAX_TIMER_MS) sleeper.timer = setTimeout(() => this.#leave(sleeper), timeoutMs);
      if (background) sleeper.timer?.unref();
      this.#asleep.add(sleeper);
      if (this.#waiting && this.#waitedOn !== token) {
        // The bell rang, the news is still on its way through the event loop, and this sleeper has seen the bell after
        // it.
        this.#waiter.interrupt();
        this.#waiting = false;
        this.#wakeSleepers(sleeper);
      }
      // A wait that does not keep the event loop alive gives way to one that does.
      if (this.#waiting && !background && !this.#keepsAlive) {
        this.#waiter.interrupt();
        this.#waiting = false;
      }
      if (!this.#waiting) this.#wait(token, !background);
    });
  }

  #wait(token: number, keepAlive: boolean): void {
    this.#waiting = true;
    this.#keepsAlive = keepAlive;
    this.#waitedOn = token;
    this.#waiter.wait(this.#bell, token, this.#rung, keepAlive);
  }

  /** Lets all sleepers go: the fabric closes. */
  close(): void {
    if (this.#waiting) this.#waiter.interrupt();
    this.#waiting = false;
    this.#wakeSleepers(undefined);
  }

  readonly #rung = (): void => {
    this.#waiting = false;
    this.#wakeSleepers(undefined);
  };

  #wakeSleepers(except: Sleeper | undefined): void {
    for (const sleeper of this.#asleep) {
      if (sleeper === except) continue;
      this.#asleep.delete(sleeper);
      clearTimeout(sleeper.timer);
      sleeper.wake();
    }
  }

  #leave(sleeper: Sleeper): void {
    this.#asleep.delete(sleeper);
    if (this.#waiting && this.#keepsAlive && ![...this.#asleep].some(({ background }) => !background)) {
      this.#waiter.interrupt();
      this.#waiting = false;
      if (this.#asleep.size > 0) this.#wait(this.#waitedOn, false);
    } else if (this.#waiting && this.#asleep.size === 0) {
      this.#waiter.interrupt();
      this.#waiting = false;
    }
    sleeper.wake();
  }
}

/**
 * The longest time that a timer of the event loop takes (2^31 − 1); a longer sleep has none, and is woken by its bell
 * only.
 */
const MAX_TIMER_MS = 0x7fffffff;
