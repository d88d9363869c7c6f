/**
 * Barriers whose waits have ended early. Other ranks may be in them, so they take place nevertheless: this rank goes on
 * with them in whatever it waits for, and what it calls later comes after them, as at the other ranks. The next call of
 * `barrier` is the wait of the oldest one again.
 *
 * A rank that goes on while it waits for nothing sleeps for it, and so costs whoever wakes it a ring. So it goes on no
 * longer than the others may need it:
 *
 * - A barrier of a pair, or one that all ranks count in one word, needs nothing of a rank that has entered it. One by
 *   dissemination needs a flag or message of each round, and nothing any more when that of the last one is out
 *   (`owes`), though it is not complete then. What this rank calls next finds out.
 * - When a rank of the communicator has failed, all waits for its ranks end with that, those in the barrier too.
 * - A barrier that has failed (the ranks call different collectives, or its turn came when the communicator could no
 *   longer be used) never goes on here, and the next call says why.
 *
 * What remains are barriers by dissemination that some rank has not entered. This rank goes on with those also when it
 * has freed the communicator in vain, or can use it no longer (`rest`): the others may enter one still, and would wait
 * in it for this rank's next flag. But then it does not sleep for them: beside its own waits, it looks now and then,
 * which costs the others nothing. A round takes them up to `SELDOM_MS` (progress.ts) for each rank that does so.
 */
import type { Members } from '../job/members.ts';
import type { Operation } from '../wait/operation.ts';

/** The wait of a barrier. */
export interface LeftBarrier extends Operation {
  /** Barriers are in the order of these numbers. */
  readonly order: number;
  /** Whether other ranks may wait in it, or before it, for something that this one has yet to do. */
  readonly owes: boolean;
  /** It gives up its place in the line of collectives. */
  drop(): void;
}

export class LeftBarriers {
  readonly #members: Pick<Members, 'serve' | 'failure'>;
  #oldestFirst: LeftBarrier[] = [];
  #begun = 0;
  #stop: (() => void) | undefined;
  #rests = false;

  constructor(members: Pick<Members, 'serve' | 'failure'>) {
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
    // No bell rings again for what has come since the wait's last look.
    if (this.#goOn()) this.#serve();
  }

  /** This rank calls nothing more on the communicator. */
  rest(): void {
    if (this.#rests) return;
    this.#rests = true;
    if (this.#stop === undefined) return;
    this.#stopServing();
    this.#serve();
  }

  #serve(): void {
    this.#stop ??= this.#members.serve(
      () => {
        if (!this.#goOn()) this.#stopServing();
        return Number.POSITIVE_INFINITY;
      },
      this.#rests ? 'seldom' : true,
    );
  }

  /** @returns whether the others may need more */
  #goOn(): boolean {
    if (this.#members.failure() !== undefined) return false;
    let owes = false;
    for (const barrier of this.#oldestFirst) {
      try {
        if (!barrier.advance() && barrier.owes) owes = true;
      } catch {
        // It is over. Its next wait says so, or the communicator's next call: nothing goes through it any more.
      }
    }
    return owes;
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
