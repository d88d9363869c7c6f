/**
 * Barriers whose waits have ended early. Other ranks may be in them, so they take place nevertheless: what this rank
 * calls later comes after them, as at the other ranks. The next call of `barrier` is the wait of the oldest one again.
 */
import type { Operation } from './operation.ts';

/** The wait of a barrier. */
export interface LeftBarrier extends Operation {
  /** Barriers are in the order of these numbers. */
  readonly order: number;
  /** Nobody waits for it any more, and nothing comes after it. */
  drop(): void;
}

export class LeftBarriers {
  #oldestFirst: LeftBarrier[] = [];
  #begun = 0;

  /** For a barrier that is called now. */
  nextOrder(): number {
    return this.#begun++;
  }

  get isEmpty(): boolean {
    return this.#oldestFirst.length === 0;
  }

  add(barrier: LeftBarrier): void {
    this.#oldestFirst.push(barrier);
    this.#oldestFirst.sort((a, b) => a.order - b.order);
  }

  takeOldest(): LeftBarrier | undefined {
    return this.#oldestFirst.shift();
  }

  /** The communicator is freed. */
  dropAll(): void {
    for (const barrier of this.#oldestFirst.splice(0)) barrier.drop();
  }
}
