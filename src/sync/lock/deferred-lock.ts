/**
 * Locks by requests that are deferred, where owners of memory carry out updates under a lock (`Capabilities.updates`;
 * transfer/requests/owner-updates.ts): `lock` returns without the lock. What is done under it waits.
 *
 *   one small operation by the time of the unlock   travels with its lock: the owner takes the lock if it is free,
 *                                                   carries the operation out, and gives the lock back. One round trip
 *   anything else                                   has the lock asked for, as soon as it is seen (`ask`), and is
 *                                                   issued when this rank has it
 *   nothing                                         asks for nothing
 *
 * If the lock is not free, the owner does nothing, and the operation goes the long way, which has the line of the lock.
 * MPI allows all of it: a lock only promises what is seen through the window.
 *
 * Exclusion. The owner takes the lock by the compare-and-swap of its word with which `RemoteLock` begins, and gives it
 * back by the subtraction with which that ends. So the two ways exclude each other, and the line sees no difference.
 * Between the two the owner's engine does nothing else, but processors of its host may add their mark to the word,
 * which a subtraction leaves there.
 *
 * An accumulate travels under an exclusive lock only: the owner updates the elements without their stripe, and ranks
 * that share a lock may update them under it meanwhile.
 *
 * A rank has one deferred lock at most (job/rank-locks.ts), so a window has, too.
 */
import type { Deferrable } from '../../job/rank-locks.ts';
import type { Lock } from '../../transfer/requests/remote-access.ts';
import type { Ahead } from '../../transfer/requests/request-tasks.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { Operation } from '../../wait/operation.ts';

/** An operation of an epoch whose lock is deferred. */
export interface UnderLock {
  /** What carries it out under the lock, and takes that and gives it back; `undefined`: nothing does. */
  travelling(lock: Lock, exclusive: boolean): Ahead | undefined;
  /** Issues it, under the lock. Errors: why it cannot be. */
  issue(): void;
}

/** The lock that is deferred. */
export interface DeferredBy {
  readonly target: number;
  readonly exclusive: boolean;
  readonly lock: Lock;
  acquire(): Operation;
  release(): void;
}

interface Waiting {
  readonly operation: UnderLock;
  /** In which it was called (operation-failures.ts). */
  readonly turn: number;
}

/**
 * `deferred`: not asked for. `travels`: it is under way with the only operation. `over`: it has come and gone with
 * that. `asked`: this rank stands in its line. `held`.
 */
type State = 'deferred' | 'travels' | 'over' | 'asked' | 'held';

/** An epoch whose lock is deferred. */
export class DeferredEpoch {
  readonly #requests: RequestTransfer;
  readonly #by: DeferredBy;
  readonly #stir: () => void;
  #state: State = 'deferred';
  readonly #waiting: Waiting[] = [];
  /** Of the only operation that waits. */
  #ahead: Ahead | undefined;
  #acquisition: Operation | undefined;

  constructor(requests: RequestTransfer, by: DeferredBy, stir: () => void) {
    this.#requests = requests;
    this.#by = by;
    this.#stir = stir;
  }

  get target(): number {
    return this.#by.target;
  }

  get isAsking(): boolean {
    return this.#state === 'asked';
  }

  /** Whether this rank has yet to get the lock. */
  get pending(): Deferrable['pending'] {
    if (this.#state === 'deferred') return 'not asked for';
    return this.#state === 'asked' || this.#state === 'travels' ? 'asked for' : undefined;
  }

  /** The lock has left with its operation: nothing more may be done under it. */
  get isGivenBack(): boolean {
    return this.#state === 'travels' || this.#state === 'over';
  }

  /** What became of it: it travelled; it had to be asked for; or there was nothing to do. */
  get ended(): 'travelled' | 'asked' | 'empty' {
    if (this.#state === 'over') return 'travelled';
    return this.#state === 'deferred' ? 'empty' : 'asked';
  }

  /** Issues it if this rank has the lock; otherwise it waits. Errors: why it cannot be issued. */
  hold(operation: UnderLock): void {
    if (this.#state === 'held') {
      operation.issue();
      return;
    }
    const waiting = this.#waiting;
    waiting.push({ operation, turn: this.#requests.turn });
    this.#ahead = waiting.length === 1 ? operation.travelling(this.#by.lock, this.#by.exclusive) : undefined;
    if (this.#ahead === undefined) this.ask();
  }

  /** Asks for the lock, if that was not done. */
  ask(): void {
    if (this.#state !== 'deferred') return;
    this.#state = 'asked';
    this.#acquisition = this.#by.acquire();
    this.#stir();
    this.#stepAcquisition();
  }

  #stepAcquisition(): boolean {
    if (!this.#acquisition!.advance()) return false;
    this.#state = 'held';
    const waiting = this.#waiting.splice(0);
    for (const { operation, turn } of waiting) this.#issue(operation, turn);
    return true;
  }

  /** One that fails does not keep the others from it: a call that waits for operations to the rank says why. */
  #issue(operation: UnderLock, turn: number): void {
    const requests = this.#requests;
    const now = requests.turn;
    requests.turn = turn;
    try {
      operation.issue();
    } catch (error) {
      requests.noteFailure(error, this.target);
    } finally {
      requests.turn = now;
    }
  }

  /**
   * Goes on. @param last nothing else is done in the epoch
   * @returns whether nothing waits any more: what did was issued, or has travelled
   */
  advance(last: boolean): boolean {
    for (;;) {
      switch (this.#state) {
        case 'deferred':
          if (this.#waiting.length === 0) return true;
          if (!last || !this.#leaves()) this.ask();
          break;
        case 'travels':
          // Nothing else is under way to the target. It says why, if the operation cannot be carried out.
          if (!this.#requests.tryFlush(this.target)) return false;
          this.#arrived();
          break;
        case 'asked':
          if (last && this.#waiting.length === 0) return true;
          if (!this.#stepAcquisition()) return false;
          break;
        default:
          return true;
      }
    }
  }

  /** Sends the only operation with its lock. @returns whether it could */
  #leaves(): boolean {
    const ahead = this.#ahead;
    if (ahead === undefined) return false;
    const requests = this.#requests;
    const now = requests.turn;
    requests.turn = this.#waiting[0].turn;
    try {
      ahead.post();
    } catch {
      // The long way says why, if it is in its way, too.
      this.#ahead = undefined;
      return false;
    } finally {
      requests.turn = now;
    }
    this.#state = 'travels';
    return true;
  }

  #arrived(): void {
    const ahead = this.#ahead!;
    this.#ahead = undefined;
    let done = true;
    try {
      done = ahead.end();
    } catch (error) {
      this.#requests.noteFailure(error, this.target);
    }
    if (done) {
      this.#waiting.length = 0;
      this.#state = 'over';
      return;
    }
    this.#state = 'deferred';
    this.ask();
  }

  /** Asks for the lock. Complete when this rank has it, or has given it back. Abandoned, it stays asked for. */
  confirm(): Operation {
    return {
      advance: () => {
        this.ask();
        if (this.pending !== undefined) this.advance(false);
        return this.pending === undefined;
      },
      describe: () => this.#acquisition?.describe() ?? `lock of rank ${this.target}`,
      isPolling: () => this.isPolling(),
    };
  }

  describe(): string | undefined {
    return this.isAsking ? this.#acquisition!.describe() : undefined;
  }

  isPolling(): boolean | number {
    return this.isAsking ? (this.#acquisition!.isPolling?.() ?? false) : this.#requests.isPolling;
  }

  /** The epoch is over, and nothing is under way in it. */
  end(): void {
    if (this.#state === 'held') this.#by.release();
    else if (this.#state === 'asked') this.#acquisition!.abandon?.();
  }
}

/** The deferred lock of a window, if it has one, and what completes operations under it. */
export class DeferredLocks {
  readonly #requests: RequestTransfer;
  #epoch: DeferredEpoch | undefined;
  /** Is called when a lock is asked for that no call need wait for. */
  whenAsking: () => void = () => {};

  constructor(requests: RequestTransfer) {
    this.#requests = requests;
  }

  open(by: DeferredBy): DeferredEpoch {
    this.#epoch = new DeferredEpoch(this.#requests, by, () => this.whenAsking());
    return this.#epoch;
  }

  /** That epoch is over. */
  close(epoch: DeferredEpoch): void {
    if (this.#epoch === epoch) this.#epoch = undefined;
    epoch.end();
  }

  /** Whether the lock of a rank is deferred, all the epoch long. */
  takes(rank: number): boolean {
    return this.#epoch?.target === rank;
  }

  /** Of that rank. */
  hold(operation: UnderLock): void {
    this.#epoch!.hold(operation);
  }

  /** Whether a lock is asked for. */
  get isAsking(): boolean {
    return this.#epoch?.isAsking === true;
  }

  /** Goes on with what no call waits for. */
  poll(): void {
    if (this.isAsking) this.#epoch!.advance(false);
  }

  flush(rank?: number): Operation {
    return this.#flush(rank, false);
  }

  /** The same before the lock is given back. */
  flushLast(rank?: number): Operation {
    return this.#flush(rank, true);
  }

  #flush(rank: number | undefined, last: boolean): Operation {
    const epoch = rank === undefined || this.takes(rank) ? this.#epoch : undefined;
    const flush = this.#requests.flush(epoch?.target ?? rank);
    return {
      advance: () => (epoch === undefined || epoch.advance(last)) && flush.advance(),
      describe: () => epoch?.describe() ?? flush.describe(),
      abandon: () => flush.abandon?.(),
      isPolling: () => epoch?.isPolling() ?? flush.isPolling?.() ?? false,
    };
  }

  /** Complete when what has been called so far is complete: it needs the lock, so it asks for it. */
  soFar(rank: number): Operation {
    const epoch = this.#epoch;
    if (epoch === undefined || epoch.pending === undefined) return this.#requests.soFar(rank);
    let posted: Operation | undefined;
    // Requests that are waited for later have turns of their own.
    this.#requests.nextTurn();
    return {
      advance: () => {
        if (posted === undefined && !epoch.advance(false)) return false;
        posted ??= this.#requests.soFar(rank);
        return posted.advance();
      },
      describe: () => posted?.describe() ?? epoch.describe() ?? `a request to rank ${rank}`,
      abandon: () => posted?.abandon?.(),
      isPolling: () => posted?.isPolling?.() ?? epoch.isPolling(),
    };
  }
}
