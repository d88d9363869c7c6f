/**
 * A lock in one word of a service's memory, which a dead member does not keep.
 *
 *   WORD   0: free; else the name of the member that holds it (service-members.ts), and AWAITED while others may sleep
 *
 *   acquire:  compare-and-swap 0 -> name. A member that finds it held looks some times, then adds AWAITED and sleeps
 *             in the kernel while the word stays as it is, for `LOOK_MS` at most. Whoever has slept takes the lock with
 *             AWAITED: others may sleep still.
 *   release:  compare-and-swap name -> 0; if AWAITED was there, wakes one sleeper. Another name means that this member
 *             has left, and another one has taken the lock over.
 *
 * No wake-up is lost: the word has AWAITED before a member sleeps, the kernel lets it sleep only while the word has
 * not changed, and whoever takes AWAITED away wakes one, which takes the lock with AWAITED again.
 *
 * A dead holder: whoever wakes after `LOOK_MS` looks whether the member that the word names lives. If not, it replaces
 * that name by its own, by a compare-and-swap, so one of them does, and learns whose lock it has taken over. The place
 * may have another member by then: a name is never used twice.
 *
 * Memory order: each compare-and-swap is sequentially consistent, so whoever acquires sees all that
 * the last holder stored before its release; after a takeover, all that the dead holder stored: its stores have left
 * its processor before the kernel closed its descriptors.
 *
 * A stopped holder (SIGSTOP, a debugger) lives, and its lock cannot be taken over: it may be in the middle of a change,
 * and go on with it at any time. Whoever blocks its thread for such a lock, and was given no time for that, finds that
 * out by the kernel, and gives up at its second look, or at its first if it has found it out before.
 *
 * There is no line: a member that runs takes a free lock, whoever sleeps. So no lock is ever handed to a member that
 * has no core; and how often a sleeper is overtaken has no bound.
 */
import { RmaError } from '../errors.ts';
import { Pauses } from '../wait/pauses.ts';
import { Waiting } from '../wait/waiting.ts';
import { AWAITED, type Members, placeOf } from './service-members.ts';

/** Looks before a member sleeps. */
const LOOKS = 200;
/** Milliseconds after which a sleeper looks whether the holder lives. */
export const LOOK_MS = 20;
/** Milliseconds after which calls that block the thread give up, if their caller says nothing. */
export const PATIENCE_MS = 10_000;

/** An acquisition of a free lock, or of one whose holder let it go. */
export const NOBODY = -1;

export class RobustLock {
  readonly #words: Int32Array;
  readonly #index: number;
  readonly #members: Members;
  /** The word with the name of a holder that was found stopped. */
  #stopped = 0;

  constructor(words: Int32Array, index: number, members: Members) {
    this.#words = words;
    this.#index = index;
    this.#members = members;
  }

  get isMine(): boolean {
    return (Atomics.load(this.#words, this.#index) & ~AWAITED) === this.#members.name;
  }

  /**
   * @param awaited whether others may sleep
   * @returns as `acquire`; `undefined` if a living member holds it, or one of which that is not known yet
   */
  tryAcquire(awaited = false, looks = false): number | undefined {
    const words = this.#words;
    const index = this.#index;
    const { name } = this.#members;
    const mine = awaited ? name | AWAITED : name;
    const found = Atomics.compareExchange(words, index, 0, mine);
    if (found === 0) return NOBODY;
    if (!looks || !this.#members.isGone(found)) return undefined;
    if (Atomics.compareExchange(words, index, found, mine | (found & AWAITED)) === found) return placeOf(found);
    return undefined;
  }

  /**
   * Blocks the thread until this member has the lock.
   * @param what for the message
   * @returns the place of the dead member that held it, or `NOBODY`
   */
  acquire(call: string, what: string): number {
    this.#members.checkIn(call);
    return this.tryAcquire() ?? this.acquirePromptly(call, what);
  }

  /** The same, behind a first attempt: gives up after `PATIENCE_MS`, or if the holder is stopped. */
  acquirePromptly(call: string, what: string): number {
    return this.acquireWithin(new Waiting(call, undefined, PATIENCE_MS), what, true);
  }

  /** The same, for as long as the caller wants. @param prompt gives up if the holder is stopped */
  acquireWithin(waiting: Waiting, what: string, prompt = false): number {
    this.#members.checkIn(waiting.call);
    const soon = this.tryBriefly();
    if (soon !== undefined) return soon;
    const { native } = this.#members.memory;
    const describe = (): string => this.describe(what);
    for (;;) {
      const seen = this.awaited();
      const taken = this.tryAcquire(true, true);
      if (taken !== undefined) return taken;
      const left = waiting.left(describe);
      if (seen === 0) continue;
      if (prompt) this.#refuseStopped(waiting.call, what, seen);
      native.futexWait(this.#words, this.#index, seen, Math.min(left, LOOK_MS));
    }
  }

  /** The same, while the event loop goes on. */
  async acquireLater(waiting: Waiting, what: string): Promise<number> {
    const describe = (): string => this.describe(what);
    const pauses = new Pauses();
    for (;;) {
      this.#members.checkIn(waiting.call);
      const taken = this.tryBriefly(true);
      if (taken !== undefined) return taken;
      await pauses.next(waiting.left(describe));
    }
  }

  /** Some looks: the holder may be about to let it go. Never sleeps. @param looks whether the holder lives, too */
  tryBriefly(looks = false): number | undefined {
    const { native } = this.#members.memory;
    for (let look = 0; look < LOOKS; look++) {
      if (look % 16 === 15) native.schedYield();
      if (Atomics.load(this.#words, this.#index) !== 0) continue;
      const taken = this.tryAcquire();
      if (taken !== undefined) return taken;
    }
    return looks ? this.tryAcquire(false, true) : undefined;
  }

  /** Throws if the holder is stopped, and was at the look before, or was found stopped by an earlier call. */
  #refuseStopped(call: string, what: string, held: number): void {
    const name = held & ~AWAITED;
    if (!this.#members.isStopped(name)) {
      this.#stopped = 0;
      return;
    }
    if (this.#stopped !== name) {
      this.#stopped = name;
      return;
    }
    throw new RmaError(
      'ERR_RMA_TIMEOUT',
      `${call}: did not wait for ${this.describe(what)}; let that process go on (SIGCONT), or end it, ` +
        'or give a timeout to wait all the same',
    );
  }

  /** @returns the word, with AWAITED; 0 if it is free */
  awaited(): number {
    const words = this.#words;
    for (;;) {
      const found = Atomics.load(words, this.#index);
      if (found === 0 || (found & AWAITED) !== 0) return found;
      if (Atomics.compareExchange(words, this.#index, found, found | AWAITED) === found) return found | AWAITED;
    }
  }

  /** The lock and its holder, for messages. */
  describe(what: string): string {
    const held = Atomics.load(this.#words, this.#index);
    if (held === 0) return `${what}: it is free now`;
    return `${what}: place ${placeOf(held)} holds it (${this.#members.describe(held)})`;
  }

  /** Does nothing if another member has taken the lock over, since this one has left. */
  release(): void {
    const words = this.#words;
    for (;;) {
      const found = Atomics.load(words, this.#index);
      if ((found & ~AWAITED) !== this.#members.name) return;
      if (Atomics.compareExchange(words, this.#index, found, 0) !== found) continue;
      if ((found & AWAITED) !== 0) this.#members.memory.native.futexWake(words, this.#index, 1);
      return;
    }
  }
}
