/**
 * Whether the next epoch of a lock is likely to be one small operation under a lock that is free: then deferring it
 * saves two round trips of three (deferred-lock.ts). Of any other epoch it costs a little: a refusal is a round trip,
 * and larger operations begin later. So a lock is deferred when the epoch before was of that kind, and a wrong guess is
 * paid for once in many epochs.
 */

/** What an epoch was: one operation at once, or another, of a lock that was waited for; or as `DeferredEpoch.ended`. */
export type EpochWas = 'one' | 'other' | 'travelled' | 'asked' | 'empty';

/** Epochs for which a lock is not deferred after a wrong guess: at first, and at most. */
const FIRST = 4;
const MOST = 64;

export class LockHabit {
  #likely = false;
  /** So many more epochs are not guessed. */
  #rest = 0;
  #next = FIRST;

  get isSmall(): boolean {
    return this.#likely && this.#rest === 0;
  }

  note(was: EpochWas): void {
    if (this.#rest > 0) this.#rest--;
    this.#likely = was === 'one' || was === 'travelled';
    if (was === 'travelled') this.#next = FIRST;
    if (was !== 'asked') return;
    this.#rest = this.#next;
    this.#next = Math.min(MOST, 2 * this.#next);
  }
}
