/** Taking the lock of a shard, and giving it back with the shard in order. */
import { RmaError, show } from '../../errors.ts';
import { Pauses } from '../../wait/pauses.ts';
import type { Waiting } from '../../wait/waiting.ts';
import { damaged } from './entry-log.ts';
import { type ShardMemory, TAIL } from './map-layout.ts';
import type { ShardLock } from './shard-lock.ts';
import { recover } from './shard-recovery.ts';
import { AGAIN } from './slot-index.ts';

/** A reader that was overtaken so often looks under the lock. */
const MOST_ATTEMPTS = 1000;
/** Looks at a slot that names no entry, while TAIL stands. A walk sees it where a slot is being used again. */
const MOST_STILL = 16;

/** The patience of a call that does not sleep: it throws `Busy`, and is made again later. */
const NO_PATIENCE = -1;

/** Another member holds the lock of a shard. Never seen by programs. */
class Busy extends Error {
  readonly word: number;

  /** @param word of the lock @param message what it is the lock of */
  constructor(word: number, message: string) {
    super(message);
    this.word = word;
  }
}

export class ShardGate {
  readonly #what: string;
  readonly #lock: ShardLock;
  /** Whether this thread holds a lock of the map. */
  #inside = false;

  /** @param what the map, for messages */
  constructor(what: string, lock: ShardLock) {
    this.#what = what;
    this.#lock = lock;
  }

  /**
   * Takes the lock of a shard. Errors: `ERR_RMA_WOULD_DEADLOCK` if this thread has one, `ERR_RMA_TIMEOUT`,
   * `ERR_DAMAGED`.
   * @param key for messages: of which the call is
   * @param patience milliseconds, or `NO_PATIENCE`; `undefined`: a while, and not for a holder that is stopped
   * @param recovering whether what a dead member left is recovered first
   */
  enter(
    call: string,
    shard: ShardMemory,
    key: string | undefined,
    patience: number | undefined,
    recovering = true,
  ): void {
    if (this.#inside) {
      throw new RmaError(
        'ERR_RMA_WOULD_DEADLOCK',
        `${call}: ${this.#what} is inside update: its function may read the map, not write it`,
      );
    }
    const dead = this.#lock.tryAcquire(shard.lockWord) ?? this.#wait(call, shard, key, patience);
    this.#inside = true;
    if (dead < 0 || !recovering) return;
    try {
      recover(shard);
    } catch (error) {
      this.leave(shard, true);
      throw error;
    }
  }

  #wait(
    call: string,
    { lockWord, number }: ShardMemory,
    key: string | undefined,
    patience: number | undefined,
  ): number {
    const dead = this.#lock.tryBriefly(lockWord);
    if (dead !== undefined) return dead;
    const part = key === undefined ? `part ${number}` : `the part that has the key ${show(key)}`;
    const what = `${part} of ${this.#what}`;
    if (patience === NO_PATIENCE) throw new Busy(lockWord, what);
    return this.#lock.acquire(lockWord, call, what, patience);
  }

  /**
   * Makes a call again and again while another member holds its shard, and the event loop goes on in between. Errors:
   * also `ERR_RMA_TIMEOUT`, the signal's reason.
   * @param act makes the call with this patience, from its beginning
   */
  async later<R>(waiting: Waiting, act: (patience: number) => R): Promise<R> {
    const pauses = new Pauses();
    for (;;) {
      let busy: Busy;
      try {
        return act(NO_PATIENCE);
      } catch (error) {
        if (!(error instanceof Busy)) throw error;
        busy = error;
      }
      await pauses.next(waiting.left(() => this.#lock.describe(busy.word, busy.message)));
    }
  }

  /** @param whole whether the call has come to its end: else its counts may be wrong, and are made anew */
  leave(shard: ShardMemory, whole: boolean): void {
    try {
      if (!whole) recover(shard);
    } catch {
      // The call's own error says it.
    }
    this.#inside = false;
    this.#lock.release(shard.lockWord);
  }

  /**
   * Reads until no writer overtakes the reader. A slot changes before TAIL passes what it named: so if TAIL stands, and
   * the slot still names no entry, nobody is overtaking anybody, and the memory was written over. No lock is needed to
   * know that: its holder may be stopped. A reader that is really overtaken so often asks the writers to wait.
   * @param read gives a slot, `ABSENT`, or `AGAIN`. Errors: `ERR_DAMAGED`.
   */
  readAgain(call: string, shard: ShardMemory, read: () => number): number {
    const { words } = shard;
    let still = 0;
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      const tail = Atomics.load(words, TAIL);
      const slot = read();
      if (slot !== AGAIN) return slot;
      still = Atomics.load(words, TAIL) === tail ? still + 1 : 0;
      if (still === MOST_STILL) break;
    }
    if (still === MOST_STILL || this.#inside) throw damaged(shard, 'the index names no entry');
    this.enter(call, shard, undefined, undefined);
    try {
      const slot = read();
      if (slot === AGAIN) throw damaged(shard, 'the index names no entry');
      return slot;
    } finally {
      this.leave(shard, true);
    }
  }
}
