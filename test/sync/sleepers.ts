/** Ranks that fight for a lock, and sleep until somebody wakes them: what must hold, whatever the order. */

import type { TargetLock } from '../../src/sync/lock/lock-scheme.ts';
import type { Operation } from '../../src/wait/operation.ts';
import type { Actor } from './preemption.ts';

/** A rank that takes the lock several times, waits, gives up, sleeps, and is woken. */
export class Rank implements Actor {
  readonly rank: number;
  readonly world: World;
  #lock: TargetLock;
  #left: number;
  #state: 'idle' | 'waiting' | 'holding' = 'idle';
  #operation: Operation | undefined;
  #exclusive = false;
  #asleep = false;

  constructor(world: World, rank: number, lock: TargetLock, times: number) {
    this.world = world;
    this.rank = rank;
    this.#lock = lock;
    this.#left = times;
  }

  get done(): boolean {
    return this.#state === 'idle' && this.#left === 0;
  }

  get waiting(): boolean {
    return this.#state === 'waiting';
  }

  ready(): boolean {
    if (this.#state !== 'waiting') return !this.done;
    if (!this.#asleep || this.world.woken.has(this.rank) || this.world.impatient(this.rank)) return true;
    // Its sleep ends after a while, by itself.
    return (this.#operation!.isPolling?.() ?? false) !== false;
  }

  step(): void {
    const { world } = this;
    if (this.#state === 'idle') {
      this.#left--;
      this.#exclusive = world.below(3) > 0;
      if (world.below(2) === 0 && this.#lock.tryAcquire(this.#exclusive)) {
        this.#enter();
        return;
      }
      this.#operation = this.#lock.acquire(this.#exclusive);
      this.#state = 'waiting';
      this.#look();
    } else if (this.#state === 'waiting') {
      if (world.impatient(this.rank)) {
        world.calm(this.rank);
        this.#state = 'idle';
        this.#operation!.abandon!();
      } else this.#look();
    } else {
      this.#state = 'idle';
      world.leave(this.rank, this.#exclusive);
      this.#lock.release(this.#exclusive);
    }
  }

  /** As it is before a sleep: whoever wakes this rank from now on is heard. */
  #look(): void {
    this.world.woken.delete(this.rank);
    this.#asleep = false;
    if (this.#operation!.advance()) this.#enter();
    else {
      this.#asleep = true;
      if (this.world.below(5) === 0) this.world.losePatience(this.rank);
    }
  }

  #enter(): void {
    this.#state = 'holding';
    this.world.enter(this.rank, this.#exclusive);
  }
}

/** What must hold whatever the order. */
export class World {
  readonly woken: Set<number>;
  readonly below: (n: number) => number;
  #writer: number | undefined;
  #readers = new Set<number>();
  #impatient = new Set<number>();
  entries = 0;

  constructor(woken: Set<number>, below: (n: number) => number) {
    this.woken = woken;
    this.below = below;
  }

  enter(rank: number, exclusive: boolean): void {
    this.entries++;
    if (this.#writer !== undefined)
      throw new Error(`rank ${rank} entered while rank ${this.#writer} held the lock exclusively`);
    if (!exclusive) this.#readers.add(rank);
    else if (this.#readers.size > 0)
      throw new Error(`rank ${rank} entered exclusively while ${[...this.#readers]} shared it`);
    else this.#writer = rank;
  }

  leave(rank: number, exclusive: boolean): void {
    if (exclusive) this.#writer = undefined;
    else this.#readers.delete(rank);
  }

  impatient(rank: number): boolean {
    return this.#impatient.has(rank);
  }

  losePatience(rank: number): void {
    this.#impatient.add(rank);
  }

  calm(rank: number): void {
    this.#impatient.delete(rank);
  }
}

/** Numbers 0 … n − 1 from a seed. */
export function randomBelow(seed: number): (n: number) => number {
  let state = seed | 0;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}
