/**
 * A mutex for ranks: the lock of one rank's part of a window that has no memory, so it has the window's order, wake-ups
 * and fairness (src/sync/lock/queue-lock.ts, and remote-lock.ts where memory is not shared).
 *
 * The window's lock knows ranks. The callers of one rank queue up here, in `#line`; only the first of them asks for the
 * lock, so a rank asks once at a time, as the lock demands.
 *
 * What the holder stored before its release is seen by the next holder, as with the lock; accesses to other windows in
 * between are completed by the rank that makes them (unlock, flush), as with any message.
 *
 * A rank that dies with the mutex keeps it; those that wait end with `ERR_RMA_RANK_FAILED`.
 */
import type { Communicator } from '../collective/communicator.ts';
import { argumentTypeError, RmaError, show } from '../errors.ts';
import { abandonQuietly, type Operation, readWait, type WaitOptions } from '../wait/operation.ts';
import { PART_LOCK, type PartLock } from '../window/calls/part-lock.ts';
import { Window } from '../window/calls/window.ts';
import { agree, type PlaceOptions, readPlace } from './words.ts';

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
 * Mutual exclusion between ranks, and between the tasks of one rank. Ranks that wait stand in line, and sleep; a rank
 * that runs may overtake the first of them for about a millisecond, or ten where memory is not shared, as with locks of
 * windows (hint `lock_order`).
 *
 *     await mutex.withLock(async () => { … });      // or
 *     using held = await mutex.lock();
 */
export class Mutex {
  readonly #window: Window<Int32Array>;
  readonly #comm: Communicator;
  readonly #lock: PartLock;
  readonly #name: string;
  /** The callers of this rank, in the order of their calls; the first has the lock, or asks for it. */
  readonly #line: Acquisition[] = [];

  /**
   * Collective: creates a mutex that no rank holds. Errors: `TypeError`, `RangeError` (options), and those of
   * `Window.allocate`.
   */
  static async create(comm: Communicator, options?: PlaceOptions): Promise<Mutex> {
    const call = 'Mutex.create';
    const { owner, name, wait } = await agree(call, comm, () => ({ place: readPlace(call, comm, options), shape: {} }));
    return new Mutex(comm, await Window.allocate(comm, Int32Array, 0, { ...wait, name }), owner, name);
  }

  private constructor(comm: Communicator, window: Window<Int32Array>, owner: number, name: string) {
    this.#comm = comm;
    this.#window = window;
    this.#lock = window[PART_LOCK]('Mutex.create', owner);
    this.#name = name;
  }

  /**
   * Waits for the mutex and acquires it. Cost: that of an exclusive lock of a window.
   * Errors: `TypeError`, `RangeError` (options); `ERR_RMA_TIMEOUT`, the signal's reason, `ERR_RMA_RANK_FAILED`;
   * `ERR_WIN` (freed). If a call ends early, the rank's next call keeps its place in line, until its turn has passed.
   */
  async lock(options?: WaitOptions): Promise<MutexHold> {
    const wait = readWait('Mutex.lock', options);
    const acquisition = this.#join('Mutex.lock');
    await this.#comm.members.wait(acquisition, wait);
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
        `Mutex.lockSync: rank ${this.#comm.rank} already holds ${this.#name} or waits for it, ` +
          'and could not release it while this call blocks; use "await lock()"',
      );
    }
    const acquisition = this.#join('Mutex.lockSync');
    this.#comm.members.waitSync(acquisition, wait);
    return acquisition.hold;
  }

  /**
   * Acquires the mutex if it is free, or returns `undefined`. Never waits for another rank. Cost: at most four atomic
   * operations at the owner. Errors: `ERR_WIN` (freed).
   */
  tryLock(): MutexHold | undefined {
    const call = 'Mutex.tryLock';
    this.#lock.checkAlive(call);
    if (this.#line.length > 0 || !this.#lock.tryAcquire()) return undefined;
    const acquisition = this.#join(call);
    acquisition.held = true;
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
        `Mutex.free: rank ${this.#comm.rank} holds ${this.#name} or waits for it; release it first`,
      );
    }
    await this.#window.free(options);
  }

  /** Calls `free`, at the end of a block with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.free();
  }

  /** A caller joins this rank's line. */
  #join(call: string): Acquisition {
    this.#lock.checkAlive(call);
    const lock = this.#lock;
    const acquisition = new Acquisition({
      isFirst: (mine) => this.#line[0] === mine,
      begin: () => lock.acquire(),
      release: (mine) => {
        try {
          lock.release('MutexHold.release');
        } finally {
          this.#leave(mine);
        }
      },
      leave: (mine) => this.#leave(mine),
      describe: (operation) => {
        const who = `lock of ${this.#name} by rank ${this.#comm.rank}`;
        return operation === undefined ? who : operation.describe().replace(lock.name, who);
      },
    });
    this.#line.push(acquisition);
    return acquisition;
  }

  #leave(mine: Acquisition): void {
    this.#line.splice(this.#line.indexOf(mine), 1);
    const { job, group, rank } = this.#comm;
    if (this.#line.length > 0) job.context.wake(group.worldRanks[rank]);
  }
}

/** One call of `lock`: waits, has the mutex, releases it. */
class Acquisition implements Operation {
  held = false;
  readonly hold: MutexHold;
  readonly #steps: Steps;
  #operation: Operation | undefined;

  constructor(steps: Steps) {
    this.#steps = steps;
    const release = () => {
      if (!this.held) return;
      this.held = false;
      steps.release(this);
    };
    this.hold = { release, [Symbol.dispose]: release };
  }

  advance(): boolean {
    if (this.held) return true;
    if (!this.#steps.isFirst(this)) return false;
    this.#operation ??= this.#steps.begin();
    this.held = this.#operation.advance();
    return this.held;
  }

  abandon(): void {
    if (this.held) this.hold.release();
    else {
      if (this.#operation !== undefined) abandonQuietly(this.#operation);
      this.#steps.leave(this);
    }
  }

  isPolling(): boolean | number {
    return this.#operation?.isPolling?.() ?? false;
  }

  describe(): string {
    return this.#steps.describe(this.#operation);
  }
}

interface Steps {
  isFirst(mine: Acquisition): boolean;
  begin(): Operation;
  release(mine: Acquisition): void;
  leave(mine: Acquisition): void;
  describe(operation: Operation | undefined): string;
}
