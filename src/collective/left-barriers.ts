/**
 * Barriers whose waits have ended early. Other ranks may be in them, so they take place nevertheless: this rank goes on
 * with them in whatever it waits for, and what it calls later comes after them, as at the other ranks. The next call of
 * `barrier` is the wait of the oldest one again.
 */
import type { Members } from '../job/members.ts';
import type { Operation } from '../wait/operation.ts';

/** The wait of a barrier. */
export interface LeftBarrier extends Operation {
  /** Barriers are in the order of these numbers. */
  readonly order: number;
  /** It gives up its place in the line of collectives. */
  drop(): void;
}

export class LeftBarriers {
  readonly #members: Members;
  #oldestFirst: LeftBarrier[] = [];
  #begun = 0;
  #stop: (() => void) | undefined;

  constructor(members: Members) {
    this.#members = members;
  }

  /** For a barrier that is called now. */
  nextOrder(): number {
    return this.#begun++;
  }

  get isEmpty(): boolean {
    return this.#oldestFirst.length === 0;
  }

  has(operation: Operation): boolean {
    return this.#oldestFirst.some((barrier) => barrier === operation);
  }

  add(barrier: LeftBarrier): void {
    this.#oldestFirst.push(barrier);
    this.#oldestFirst.sort((a, b) => a.order - b.order);
    this.#stop ??= this.#members.serve(() => {
      this.#goOn();
      return Number.POSITIVE_INFINITY;
    }, true);
    // No bell rings again for what has come since the wait's last look.
    this.#goOn();
  }

  #goOn(): void {
    try {
      if (this.#oldestFirst.every((barrier) => barrier.advance())) this.#stopServing();
    } catch {
      // Its next wait says so.
    }
  }

  #stopServing(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  takeOldest(): LeftBarrier | undefined {
    const oldest = this.#oldestFirst.shift();
    if (this.isEmpty) this.#stopServing();
    return oldest;
  }

  take(barrier: LeftBarrier): void {
    this.#oldestFirst = this.#oldestFirst.filter((other) => other !== barrier);
    if (this.isEmpty) this.#stopServing();
  }
}
