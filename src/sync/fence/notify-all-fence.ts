/**
 * The fence `notify-all`, of few ranks on a device: a write of no bytes with immediate to each other rank, behind all
 * puts, and waiting for theirs.
 *
 * Requests of one connection take effect in their order, and the immediate arrives after the data of all writes before
 * it: a rank that has been told by all others has all their puts in memory. Nothing is counted, puts raise no
 * notifications, and no messages go through the library.
 *
 * That a put is complete at its origin is not enough for the target's loads (see immediate-optimized-fence.ts), so a
 * rank that has put to itself by a request tells itself, too.
 *
 * A rank is told only when no operation is outstanding to any other rank. Otherwise it could go on, and get from a
 * third rank what this rank's put has not yet brought there: the order of requests holds on one connection only. (Other
 * requests find what is complete at its origin: locks rely on that as well.) Between two ranks there is no third one,
 * unless a rank puts to itself.
 *
 * That what it has told has arrived, a rank does not wait for, as `complete` does not (pscw-by-requests.ts): the others
 * wait for it. Nothing piles up: they leave the fence, and tell this rank of their next one, when it has arrived.
 *
 * A rank can be one fence ahead of another, not two: for each fence it needs the other's notification. So two kinds of
 * notifications, in turn, keep apart what belongs to which fence.
 *
 * `NO_PRECEDE` or `NO_SUCCEED` alone leaves nothing out: the one message to each rank is all there is, and says both
 * that the puts before it are in memory and that its sender has come.
 *
 * An operation that has failed does not end the fence (stepwise-fence.ts).
 *
 * Each rank sends one message to each other one, where the remote-notify fence has ⌈log2 p⌉ rounds: up to `FEW` ranks
 * it is the default.
 */

import type { Notifications } from '../../transfer/requests/notifications.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { Operation } from '../../wait/operation.ts';
import { fenceKind } from './fence-kind.ts';
import { type FenceScheme, noFences } from './fence-scheme.ts';

/** Ranks of a window on a device up to which it is the default. */
export const FEW = 8;

class NotifyAllFence implements FenceScheme {
  readonly statistics = noFences();
  readonly #requests: RequestTransfer;
  readonly #notifications: Notifications;
  readonly #rank: number;
  readonly #size: number;
  readonly #description: string;
  readonly #flush: Operation;
  #active = false;
  /** The first operation of the fence that is under way that has failed. */
  #failure: { readonly error: unknown } | undefined;
  /** The fence has been carried out, and has failed. */
  #failed = false;
  /** Whether this fence tells this rank itself. */
  #self = false;
  /** Which kind of notification this fence has. */
  #parity = 0;
  /** Notifications of each kind that all fences so far have waited for. */
  readonly #expected = [0, 0];
  /** Ranks before this one have been told. */
  #next = 0;
  /** By rank: how much had been issued to it when all was posted, and it had not been told yet; −1: not so far yet. */
  readonly #issued: Float64Array;

  constructor(requests: RequestTransfer, rank: number, size: number, description: string) {
    this.#requests = requests;
    this.#notifications = requests.notifications;
    this.#rank = rank;
    this.#size = size;
    this.#issued = new Float64Array(size);
    this.#description = description;
    this.#flush = requests.flushAnyway((error) => {
      this.#failure ??= { error };
    });
  }

  begin(precedes: boolean, succeeds: boolean): void {
    if (this.#active || this.#failed) return;
    this.statistics.fences++;
    if (!precedes && !succeeds) return;
    this.#active = true;
    this.#next = 0;
    this.#issued.fill(-1);
    this.#self = this.#notifications.takePut(this.#rank);
    const tells = this.#size - 1 + (this.#self ? 1 : 0);
    this.statistics.flags += tells;
    this.#expected[this.#parity] += tells;
  }

  advance(): boolean {
    if (!this.#active) {
      this.#failed = false;
      return true;
    }
    let flushed: boolean;
    do {
      this.#tell();
      flushed = this.#flush.advance() || (!this.#requests.confirms && this.#areOver());
      // What the flush has just found complete may be what the next rank's turn waited for, and no bell rings for it
      // again.
    } while (this.#mayTell());
    if (!flushed || this.#next < this.#size) return false;
    if (this.#notifications.told(this.#parity) < this.#expected[this.#parity]) {
      this.#requests.poll();
      if (this.#notifications.told(this.#parity) < this.#expected[this.#parity]) return false;
    }
    this.#parity ^= 1;
    this.#active = false;
    const failure = this.#failure;
    if (failure === undefined) return true;
    this.#failure = undefined;
    this.#failed = true;
    throw failure.error;
  }

  /** Ranks that have told this one are counted, not noted. */
  askedFor(): readonly number[] {
    return Array.from({ length: this.#size - 1 }, (_, i) => (this.#rank + 1 + i) % this.#size);
  }

  /** The fence goes on when it is called again; meanwhile no rank waits for this rank's stripes. */
  abandon(): void {
    this.#requests.endHolding();
  }

  isPolling(): boolean {
    return this.#requests.isPolling;
  }

  describe(): string {
    const missing = this.#expected[this.#parity] - this.#notifications.told(this.#parity);
    return (
      `fence of ${this.#description} ` +
      `(${this.#next < this.#size ? 'waiting for its own requests' : `waiting for ${missing} notifications`})`
    );
  }

  #tell(): void {
    for (; this.#mayTell(); this.#next++)
      if (!this.#skips(this.#next)) this.#notifications.tell(this.#next, this.#parity);
  }

  #skips(rank: number): boolean {
    return rank === this.#rank && !this.#self;
  }

  /** Whether the next rank can be told. */
  #mayTell(): boolean {
    const next = this.#next;
    return next < this.#size && (this.#skips(next) || (this.#isPosted(next) && this.#areOver(next)));
  }

  /** Whether all operations to all ranks, or to all others, are complete. */
  #areOver(but?: number): boolean {
    for (let rank = 0; rank < this.#size; rank++) if (rank !== but && !this.#isOver(rank)) return false;
    return true;
  }

  #isOver(rank: number): boolean {
    return this.#isPosted(rank) && this.#requests.isOver(rank, this.#issued[rank]);
  }

  /** Whether all operations to a rank have been posted. Then it is noted how many there are. */
  #isPosted(rank: number): boolean {
    if (this.#issued[rank] >= 0) return true;
    if (!this.#requests.isPosted(rank)) return false;
    this.#issued[rank] = this.#requests.issuedTo(rank);
    return true;
  }
}

export const notifyAll = fenceKind({
  name: 'notify-all',
  moves: 'by requests',
  isDefault: ({ immediateCompletion, size }) => !immediateCompletion && size <= FEW,
  make: ({ comm, wire, description }) => new NotifyAllFence(wire!, comm.rank, comm.size, description),
});
