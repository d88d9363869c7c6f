/** Robust locks, each in a word of one memory, by the number of the word. */
import { RobustLock } from './robust-lock.ts';
import type { Members } from './service-members.ts';

export class LockWords {
  readonly #members: Members;
  readonly #words: Int32Array;
  readonly #what: string;
  readonly #locks = new Map<number, RobustLock>();

  /** @param what for messages */
  constructor(members: Members, memory: ArrayBuffer, what: string) {
    this.#members = members;
    this.#words = new Int32Array(memory, 0, Math.floor(memory.byteLength / 4));
    this.#what = what;
  }

  /**
   * Blocks the thread until this member has the lock; `PATIENCE_MS` at most.
   * @returns the place of the dead member that held it, or −1
   */
  acquire(word: number): number {
    let lock = this.#locks.get(word);
    if (lock === undefined) this.#locks.set(word, (lock = new RobustLock(this.#words, word, this.#members)));
    return lock.acquire(this.#what, 'a lock of it');
  }

  release(word: number): void {
    this.#locks.get(word)!.release();
  }
}
