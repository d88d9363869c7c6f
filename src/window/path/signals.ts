/**
 * Put with signal: a count at the target that a put raises after its data is there.
 *
 * Where remote memory can be stored to, the count is a word of the target's block. The origin raises it by an atomic
 * addition, which no earlier store passes; the target loads it before the data. Origins add, only the target takes, and
 * what it has taken it counts by itself, so the word only grows (wrapping around). Where puts are requests, the signal
 * is a write with immediate behind them.
 */
import type { Communicator } from '../../collective/communicator.ts';
import { loadAcquire } from '../../memory-model.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';

export interface Signals {
  /**
   * Whether a signal needs the target's doing: it takes a receive, which the target posts when it calls the library.
   */
  readonly needTarget: boolean;
  /** Raises a rank's count, after everything that was issued to it by this way. */
  raise(rank: number): void;
  /** Raises this rank's count: a put was carried out here for another rank. */
  raiseOwn(): void;
  /** This rank's count, a 32-bit integer that wraps around. */
  count(): number;
}

export class SignalWords implements Signals {
  readonly needTarget = false;
  readonly #comm: Communicator;
  readonly #wordOf: (rank: number) => Int32Array;
  readonly #words: (Int32Array | undefined)[] = [];

  /** @param wordOf a rank's word; index 0 */
  constructor(comm: Communicator, wordOf: (rank: number) => Int32Array) {
    this.#comm = comm;
    this.#wordOf = wordOf;
  }

  raise(rank: number): void {
    const { job, group, rank: me } = this.#comm;
    Atomics.add(this.#word(rank), 0, 1);
    if (rank !== me) job.context.wake(group.worldRanks[rank]);
  }

  raiseOwn(): void {
    Atomics.add(this.#word(this.#comm.rank), 0, 1);
  }

  count(): number {
    return loadAcquire(this.#word(this.#comm.rank), 0);
  }

  #word(rank: number): Int32Array {
    this.#words[rank] ??= this.#wordOf(rank);
    return this.#words[rank];
  }
}

export class SignalsByRequests implements Signals {
  readonly needTarget = true;
  readonly #requests: RequestTransfer;
  readonly #behindTasks: boolean;

  /** @param behindTasks puts may be tasks, behind which a signal comes as well */
  constructor(requests: RequestTransfer, behindTasks: boolean) {
    this.#requests = requests;
    this.#behindTasks = behindTasks;
  }

  raise(rank: number): void {
    this.#requests.notifications.signal(rank, this.#behindTasks);
  }

  raiseOwn(): void {
    this.#requests.notifications.arrivals.signals++;
  }

  count(): number {
    this.#requests.poll();
    return this.#requests.notifications.arrivals.signals;
  }
}
