/**
 * A mutex for ranks: first come, first served, and who is served is woken.
 *
 * Whoever wants the mutex draws a ticket, by adding 1 to the word NEXT. Each ticket has a slot, by its number modulo a
 * power of two that is not below the number of ranks. A slot says:
 *
 * - EMPTY: its ticket was not drawn yet, or is used up;
 * - GRANTED: whoever has drawn, or will draw, its ticket has the mutex;
 * - waiting(r): rank r has drawn it and sleeps until it is GRANTED;
 * - abandoned(r): rank r has drawn it and has gone away (a deadline, an abort): it is passed over.
 *
 *       EMPTY ──drawer──▶ waiting(r) ──releaser──▶ GRANTED ──drawer──▶ EMPTY
 *         │                 ▲     │                   ▲
 *         │          same r │     │ r gives up        │
 *         │                 │     ▼                   │
 *         │               abandoned(r) ──releaser──▶ EMPTY (and on to the next ticket)
 *         └───────────────releaser, ahead of the drawer┘
 *
 * Every change of a slot that two may make at once is a compare-and-swap, so exactly one of them makes it: the drawer
 * announces itself or finds the grant; the releaser grants before the drawer gives up, or finds it gone. Only the
 * holder releases, and it grants the ticket after its own.
 *
 * No slot serves two tickets at once: a rank has one ticket at most (its own callers queue up here, in `#line`), and
 * one that it has abandoned it takes up again when it comes back, unless that was passed over. So the tickets between
 * the holder's and NEXT are at most as many as ranks.
 *
 * What the holder stored before its release is seen by the next holder: the grant and its discovery are atomic
 * operations on the slot, in this order, and accesses to windows in between are completed by whoever makes them
 * (unlock, flush), as with any message.
 *
 * A rank that dies with the mutex keeps it; those that wait end with `ERR_RMA_RANK_FAILED`.
 */
import type { Communicator } from '../comm/communicator.ts';
import { type Operation, readWait, type WaitOptions } from '../comm/operation.ts';
import { argumentTypeError, RmaError, show } from '../errors.ts';
import { agree, type PlaceOptions, readPlace, ringLength, Words } from './words.ts';

const NEXT = 0;
const SLOTS = 1;

const EMPTY = 0;
const GRANTED = -1;
const waiting = (rank: number) => rank + 1;
const abandoned = (rank: number) => -(rank + 2);

/** A mutex that is held, until `release`. */
export interface MutexHold {
  /**
   * Releases the mutex and wakes the next rank that waits for it. Never waits; a second call does nothing. Errors:
   * `ERR_WIN` (freed).
   */
  release(): void;
  /** Calls `release`, at the end of a block with `using`. */
  [Symbol.dispose](): void;
}

/**
 * Mutual exclusion between ranks, and between the tasks of one rank; first come, first served among ranks.
 *
 *     await mutex.withLock(async () => { … });      // or
 *     using held = await mutex.lock();
 */
export class Mutex {
  readonly #words: Words;
  readonly #me: number;
  readonly #mask: number;
  /** The callers of this rank, in the order of their calls; the first has this rank's ticket. */
  readonly #line: Acquisition[] = [];
  /** A ticket that this rank has drawn and abandoned. */
  #left: number | undefined;

  /**
   * Collective: creates a mutex that no rank holds. Errors: `TypeError`, `RangeError` (options), and those of
   * `Window.allocate`.
   */
  static async create(comm: Communicator, options?: PlaceOptions): Promise<Mutex> {
    const call = 'Mutex.create';
    const place = await agree(call, comm, () => ({ place: readPlace(call, comm, options), shape: {} }));
    const slots = ringLength(comm.size);
    const initial = new Int32Array(SLOTS + slots);
    initial[SLOTS] = GRANTED;
    const words = await Words.create(comm, place, initial);
    await words.begin(place.wait);
    return new Mutex(words, slots);
  }

  private constructor(words: Words, slots: number) {
    this.#words = words;
    this.#me = words.comm.rank;
    this.#mask = slots - 1;
  }

  /**
   * Waits for the mutex and acquires it. Cost: three atomic operations at the owner if it is free, and one wake-up for
   * each rank in line before this one.
   * Errors: `TypeError`, `RangeError` (options); `ERR_RMA_TIMEOUT`, the signal's reason, `ERR_RMA_RANK_FAILED`;
   * `ERR_WIN` (freed). If a call ends early, the rank's next call keeps its place in line, until its turn has passed.
   */
  async lock(options?: WaitOptions): Promise<MutexHold> {
    const wait = readWait('Mutex.lock', options);
    const acquisition = this.#join();
    await this.#words.wait(acquisition, wait);
    return acquisition.hold;
  }

  /**
   * Waits for the mutex and acquires it; blocks the thread. Cost and errors: as `lock`, and `ERR_RMA_WOULD_DEADLOCK` if
   * this rank already holds the mutex or waits for it, since it could not release it meanwhile.
   */
  lockSync(options?: WaitOptions): MutexHold {
    const wait = readWait('Mutex.lockSync', options);
    if (this.#line.length > 0) {
      throw new RmaError(
        'ERR_RMA_WOULD_DEADLOCK',
        `Mutex.lockSync: rank ${this.#me} already holds ${this.#words.name} or waits for it, ` +
          'and could not release it while this call blocks; use "await lock()"',
      );
    }
    const acquisition = this.#join();
    this.#words.waitSync(acquisition, wait);
    return acquisition.hold;
  }

  /**
   * Acquires the mutex if it is free, or returns `undefined`. Never waits. Cost: at most four atomic operations at the
   * owner. Errors: `ERR_WIN` (freed).
   */
  tryLock(): MutexHold | undefined {
    if (this.#line.length > 0) return undefined;
    const words = this.#words;
    if (this.#left !== undefined) {
      // As long as it was not passed over, somebody before it has the mutex.
      if (words.load(this.#slot(this.#left)) === abandoned(this.#me)) return undefined;
      this.#left = undefined;
    }
    const ticket = words.load(NEXT);
    // The slot is this ticket's: the one before it that shares the slot is that of a rank that has a ticket, and this
    // rank has none.
    if (words.load(this.#slot(ticket)) !== GRANTED) return undefined;
    if (words.compareAndSwap(NEXT, ticket, (ticket + 1) | 0) !== ticket) return undefined;
    words.exchange(this.#slot(ticket), EMPTY);
    const acquisition = this.#join();
    acquisition.ticket = ticket;
    return acquisition.hold;
  }

  /**
   * Calls `body` while holding the mutex, releases it however `body` ends, and returns `body`'s result. Errors: as
   * `lock`, and those that `body` throws.
   */
  async withLock<R>(body: () => R | Promise<R>, options?: WaitOptions): Promise<R> {
    if (typeof body !== 'function') {
      throw argumentTypeError(`Mutex.withLock: body must be a function, not ${show(body)}`);
    }
    const held = await this.lock(options);
    try {
      return await body();
    } finally {
      held.release();
    }
  }

  /** Collective: frees the mutex. Errors: `ERR_RMA_SYNC` if this rank holds it or waits for it. */
  async free(options?: WaitOptions): Promise<void> {
    if (this.#line.length > 0) {
      throw new RmaError(
        'ERR_RMA_SYNC',
        `Mutex.free: rank ${this.#me} holds ${this.#words.name} or waits for it; release it first`,
      );
    }
    await this.#words.free(options);
  }

  /** Calls `free`, at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
  }

  #slot(ticket: number): number {
    return SLOTS + (ticket & this.#mask);
  }

  /** A caller joins this rank's line. */
  #join(): Acquisition {
    const acquisition = new Acquisition({
      advance: (mine) => this.#line[0] === mine && this.#advance(mine),
      abandon: (mine) => this.#abandon(mine),
      release: (mine) => this.#release(mine),
      describe: () => `lock of ${this.#words.name} by rank ${this.#me}`,
    });
    this.#line.push(acquisition);
    return acquisition;
  }

  #advance(mine: Acquisition): boolean {
    const words = this.#words;
    if (mine.ticket === undefined) {
      mine.ticket = this.#drawTicket();
      if (words.compareAndSwap(this.#slot(mine.ticket), EMPTY, waiting(this.#me)) === EMPTY) return false;
      // Else it says GRANTED, or, on a ticket that was taken up again, waiting.
    }
    const slot = this.#slot(mine.ticket);
    if (words.load(slot) !== GRANTED) return false;
    words.exchange(slot, EMPTY);
    return true;
  }

  #drawTicket(): number {
    const left = this.#left;
    this.#left = undefined;
    if (left !== undefined) {
      const mine = abandoned(this.#me);
      if (this.#words.compareAndSwap(this.#slot(left), mine, waiting(this.#me)) === mine) return left;
    }
    return this.#words.add(NEXT, 1);
  }

  #abandon(mine: Acquisition): void {
    if (mine.ticket !== undefined) {
      const words = this.#words;
      const slot = this.#slot(mine.ticket);
      if (words.compareAndSwap(slot, waiting(this.#me), abandoned(this.#me)) === waiting(this.#me)) {
        this.#left = mine.ticket;
      } else {
        // It was granted at this moment.
        words.exchange(slot, EMPTY);
        this.#grant((mine.ticket + 1) | 0);
      }
    }
    this.#leave(mine);
  }

  #release(mine: Acquisition): void {
    this.#grant((mine.ticket! + 1) | 0);
    this.#leave(mine);
  }

  #leave(mine: Acquisition): void {
    this.#line.splice(this.#line.indexOf(mine), 1);
    if (this.#line.length > 0) this.#words.wake(this.#me);
  }

  /** Grants the mutex to the first ticket from this one on that is not abandoned. */
  #grant(ticket: number): void {
    const words = this.#words;
    for (;;) {
      const slot = this.#slot(ticket);
      const found = words.load(slot);
      if (found < GRANTED) {
        if (words.compareAndSwap(slot, found, EMPTY) === found) ticket = (ticket + 1) | 0;
      } else if (words.compareAndSwap(slot, found, GRANTED) === found) {
        if (found !== EMPTY) words.wake(found - 1);
        return;
      }
    }
  }
}

/** One call of `lock`: waits, has the mutex, releases it. */
class Acquisition implements Operation {
  ticket: number | undefined;
  readonly hold: MutexHold;
  readonly #steps: Steps;

  constructor(steps: Steps) {
    this.#steps = steps;
    let held = true;
    const release = () => {
      if (!held) return;
      held = false;
      steps.release(this);
    };
    this.hold = { release, [Symbol.dispose]: release };
  }

  advance(): boolean {
    return this.#steps.advance(this);
  }

  abandon(): void {
    this.#steps.abandon(this);
  }

  describe(): string {
    return this.#steps.describe();
  }
}

interface Steps {
  advance(mine: Acquisition): boolean;
  abandon(mine: Acquisition): void;
  release(mine: Acquisition): void;
  describe(): string;
}
