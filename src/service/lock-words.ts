/** Robust locks, each in a word of one memory, by the number of the word. */
import { Waiting } from '../wait/waiting.ts';
import { RobustLock } from './robust-lock.ts';
import type { Members } from './service-members.ts';

export class LockWords {
  readonly #members: Members;
  readonly #words: Int32Array;
  readonly #locks = new Map<number, RobustLock>();

  constructor(members: Members, memory: ArrayBuffer) {
    this.#members = members;
    this.#words = new Int32Array(memory, 0, Math.floor(memory.byteLength / 4));
  }

  /** @returns `NOBODY`, or `undefined` if somebody has it, or this member has left */
  tryAcquire(word: number): number | undefined {
    return this.#members.isLeft ? undefined : this.#at(word).tryAcquire();
  }

  /** Some looks, also whether the holder lives. @returns as `acquire`, or `undefined` */
  tryBriefly(word: number): number | undefined {
    return this.#members.isLeft ? undefined : this.#at(word).tryBriefly(true);
  }

  /**
   * Blocks the thread until this member has the lock.
   * @param what for messages
   * @param timeout milliseconds; `undefined`: 10 s, and not for a holder that is stopped
   * @returns the place of the dead member that held it, or −1
   */
  acquire(word: number, call: string, what: string, timeout: number | undefined): number {
    this.#members.checkIn(call);
    const lock = this.#at(word);
    if (timeout === undefined) return lock.acquirePromptly(call, what);
    return lock.acquireWithin(new Waiting(call, { timeout }), what);
  }

  /** What a lock is of, and who has it. */
  describe(word: number, what: string): string {
    return this.#at(word).describe(what);
  }

  release(word: number): void {
    this.#locks.get(word)!.release();
  }

  #at(word: number): RobustLock {
    let lock = this.#locks.get(word);
    if (lock === undefined) this.#locks.set(word, (lock = new RobustLock(this.#words, word, this.#members)));
    return lock;
  }
}
