/** Taking the lock of a shard, and giving it back with the shard in order. */
import { RmaError } from '../../errors.ts';
import { damaged } from './entry-log.ts';
import { type ShardMemory, TAIL } from './map-layout.ts';
import type { ShardLock } from './shard-lock.ts';
import { recover } from './shard-recovery.ts';
import { AGAIN } from './slot-index.ts';

/** A reader that was overtaken so often looks under the lock. */
const MOST_ATTEMPTS = 1000;
/** Looks at a slot that names no entry, while TAIL stands. A walk sees it where a slot is being used again. */
const MOST_STILL = 16;

export class ShardGate {
  readonly #name: string;
  readonly #lock: ShardLock;
  /** Whether this thread holds a lock of the map. */
  #inside = false;

  constructor(name: string, lock: ShardLock) {
    this.#name = name;
    this.#lock = lock;
  }

  /**
   * Takes the lock of a shard. Errors: `ERR_RMA_WOULD_DEADLOCK` if this thread has one, `ERR_DAMAGED`.
   * @param recovering whether what a dead member left is recovered first
   */
  enter(call: string, shard: ShardMemory, recovering = true): void {
    if (this.#inside) {
      throw new RmaError(
        'ERR_RMA_WOULD_DEADLOCK',
        `${call}: the map "${this.#name}" is inside update: its function may read the map, not write it`,
      );
    }
    const dead = this.#lock.acquire(shard.lockWord);
    this.#inside = true;
    if (dead < 0 || !recovering) return;
    try {
      recover(shard);
    } catch (error) {
      this.leave(shard, true);
      throw error;
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
    this.enter(call, shard);
    try {
      const slot = read();
      if (slot === AGAIN) throw damaged(shard, 'the index names no entry');
      return slot;
    } finally {
      this.leave(shard, true);
    }
  }
}
