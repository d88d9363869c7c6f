/**
 * What ranks of a window tell each other behind their puts: writes of no bytes with immediate, and messages, on the
 * connections that the puts take. Requests of one connection are carried out in their order, so a rank that is told
 * finds in memory what was put before (dissertation §6.3.3). What has arrived is counted (arrivals.ts).
 *
 * A fence scheme numbers what it tells, and what it flags, from 0 to 7 each: no other scheme has the window's fences.
 */
import { SendFlag } from '../../verbs/queue-pair.ts';
import { type Arrivals, COMPLETED, FLAG, SIGNAL, TOLD } from './arrivals.ts';
import type { Connections, WindowConnection } from './connections.ts';
import type { Outstanding } from './outstanding.ts';
import type { Regions } from './regions.ts';
import type { RequestTasks } from './request-tasks.ts';

const AT_ONCE: Iterable<void> = [];

export class Notifications {
  /** Those that have come from the other ranks, and signals that came by another way. */
  readonly arrivals: Arrivals;
  /** Known when the ranks have connected. */
  regions: Regions | undefined;
  readonly #connections: Connections;
  readonly #outstanding: Outstanding;
  readonly #tasks: RequestTasks;
  readonly #size: number;

  constructor(
    arrivals: Arrivals,
    connections: Connections,
    outstanding: Outstanding,
    tasks: RequestTasks,
    size: number,
  ) {
    this.arrivals = arrivals;
    this.#connections = connections;
    this.#outstanding = outstanding;
    this.#tasks = tasks;
    this.#size = size;
  }

  // ---- to others ----------------------------------------------------------------------------------------------------

  /**
   * Raises the target's count of signals, after all that was put there before: requests of one queue pair are carried
   * out in order.
   * @param behindTasks also after tasks that were begun there: the signal leaves when they have ended, in a call of
   * this rank that waits
   */
  signal(rank: number, behindTasks = false): void {
    if (behindTasks && this.#tasks.left(rank) > 0) this.#tasks.begin(rank, this.#signalling(rank));
    else this.#notify(rank, SIGNAL, false);
  }

  *#signalling(rank: number): Generator<void, void> {
    yield* AT_ONCE;
    this.#notify(rank, SIGNAL, false);
  }

  /**
   * Tells a rank something, behind all that was begun there before. Writes take effect in their order; a read or an
   * atomic need not have been carried out when a write behind it arrives (InfiniBand's ordering rules), unless that one
   * waits for it (`FENCE`).
   * @param what a number of the fence scheme's own
   */
  tell(rank: number, what: number): void {
    this.#notify(rank, TOLD + what, true);
  }

  /** Tells a rank in the same way that this one's access epoch is complete there. */
  tellCompleted(rank: number): void {
    this.#notify(rank, COMPLETED, true);
    // It is told behind all puts.
    this.#connections.to(rank).unplaced = undefined;
  }

  /**
   * A write of no bytes, with immediate.
   * @param behindReads also those that are outstanding when it is posted are carried out before it
   */
  #notify(rank: number, immediate: number, behindReads: boolean): void {
    const { rkey, address } = this.regions!.of(rank);
    this.#outstanding.post(rank, (qp) => {
      const fence = behindReads && this.#connections.to(rank).reading ? SendFlag.FENCE : 0;
      qp.wrRdmaWriteImm(rank, SendFlag.SIGNALED | fence, rkey, address, immediate);
    });
  }

  /**
   * Sends a message to each rank that a fenced put was sent to since the last call, behind it: requests of one queue
   * pair are carried out in order.
   * @param what it tells, as `tell` does
   * @returns 1 for each of those ranks, 0 for the others
   */
  sendFinishes(what: number): Int32Array {
    const targets = new Int32Array(this.#size);
    for (const { rank } of this.#connections.all) {
      if (!this.takePut(rank)) continue;
      targets[rank] = 1;
      this.#outstanding.post(rank, (qp) => qp.wrSendImm(rank, SendFlag.SIGNALED, TOLD + what));
    }
    return targets;
  }

  /** Whether a fenced put was sent to the rank since the last call, or the last `sendFinishes`. */
  takePut(rank: number): boolean {
    const connection = this.#connections.to(rank);
    const { fenced } = connection;
    connection.fenced = false;
    return fenced;
  }

  /**
   * Tells a rank that this one has come to the fence, by a write. The other rank does not look for it among the
   * messages of its connection, and counts it for this rank alone.
   * @param what a number of the fence scheme's own
   */
  flag(rank: number, what: number): void {
    this.#notify(rank, FLAG + what, false);
  }

  /** Notified puts to each rank since the last call. */
  takeSent(): Int32Array {
    const sent = new Int32Array(this.#size);
    for (const connection of this.#connections.all) {
      sent[connection.rank] = connection.sent;
      connection.sent = 0;
    }
    return sent;
  }

  // ---- from others --------------------------------------------------------------------------------------------------

  /** How many ranks have told `what` since the window was made. */
  told(what: number): number {
    return this.arrivals.told[what];
  }

  /** Notifications that have arrived since the window was made. */
  get received(): number {
    return this.arrivals.received;
  }

  /** Flags `what` of fences that have come from a rank since the window was made. */
  flagsFrom(rank: number, what: number): number {
    return this.#connections.to(rank).flagsOf(what);
  }

  /** How often a rank has told that its access epoch is complete here. */
  completedBy(rank: number): number {
    return this.#connections.to(rank).completed;
  }

  /** Takes in what has come. A connection that carries nothing any more is lost, or the queue; waits say so. */
  take(): void {
    if (this.#outstanding.isQueueLost) return;
    try {
      this.arrivals.take(this.#connections, this.#lose);
    } catch (error) {
      this.#outstanding.loseQueue(error, 'the notifications of a window');
    }
  }

  /** The queues of what comes; no connection uses them any more. */
  close(): void {
    this.arrivals.srq.destroy();
    this.arrivals.cq.destroy();
  }

  readonly #lose = (connection: WindowConnection, status: number): void =>
    this.#outstanding.lose(connection, status, 'a notification');
}
