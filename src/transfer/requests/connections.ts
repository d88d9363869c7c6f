/**
 * The connections of a window: a queue pair for each rank that this one talks to, and what is under way on it.
 *
 * Between real devices all are made when the window is, since both ends must know each other's numbers. Where the other
 * end is found in this process, each is made when something is first sent on it.
 */
import { RmaError } from '../../errors.ts';
import { Fifo } from '../../fifo.ts';
import { beginQueuePair, connectQueuePair } from '../../message/reliable-queue-pairs.ts';
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import type { Context } from '../../verbs/device.ts';
import { Access, type ProtectionDomain } from '../../verbs/memory.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import type { QpAddress } from '../../verbs/queue-pair-address.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import { ByRank } from './by-rank.ts';
import type { RemoteRegion } from './regions.ts';

/** Requests that may be outstanding on a connection. */
export const DEPTH = 128;

/** Writes request `index` of a list into the queue pair. @param id its identity, @param flags as it must have them */
export type BuildListed = (qp: QueuePair, index: number, id: number, flags: number) => void;

/** Requests of one list that wait for room: one, or those that are posted together. */
export interface BacklogEntry {
  readonly build: BuildListed;
  readonly count: number;
  /** So many of them are posted. */
  posted: number;
  /** What must be registered for them. */
  readonly origin: ArrayBufferLike | undefined;
  /** They raise completions at the target, which the next fence counts. */
  readonly counted: boolean;
  /** They need no completions of their own: that of a later request of the connection stands for them. */
  readonly quiet: boolean;
  /** They wait to be posted with others (`Outstanding.collectFor`), not for room. */
  readonly collected: boolean;
  /** In which they were issued (operation-failures.ts). */
  readonly turn: number;
}

/** What is under way to one rank. */
export class WindowConnection {
  readonly rank: number;
  /** Absent until something is sent, where connections are made then. */
  queuePair: QueuePair | undefined;
  /** Requests that are posted and not complete. */
  outstanding = 0;
  /** Whether reads or atomics may be among them. */
  reading = false;
  /** Requests since the window was made. */
  issued = 0;
  /** So many of them are over, the first ones: complete, or refused. */
  over = 0;
  /** Those that could not be posted, and behind how many others, as long as not all of those are over; in order. */
  readonly #refused: { readonly behind: number; readonly count: number }[] = [];
  /** Those that wait for room, how many, and oldest first. */
  waiting = 0;
  readonly backlog = new Fifo<BacklogEntry>();
  /** Entries of the backlog that wait to be posted together. */
  collected = 0;
  /** Notified puts since the last fence. */
  sent = 0;
  /** Whether the rank was put to since the last fence. */
  fenced = false;
  /** Flags of fences that have come from the rank, by the scheme's numbers, and ends of its access epochs. */
  readonly flags: number[] = [];
  completed = 0;
  /**
   * Where the last put went, if it may be complete before it is in the target's memory, and was not confirmed. A
   * provider's completions may not say that data is in memory (capability `completionImpliesPlacement`); there a flush
   * or an unlock confirms the put by a read.
   *
   * A device carries out the requests of a connection in order, and a read finds in memory what was written before it
   * (InfiniBand 1.3, o9-20; on the target's bus, a read pushes the writes before it). So the answer to a read of one
   * byte says that all puts of its connection are where the target's processor finds them, even if a message that takes
   * another way tells the target of them. The byte is one of the last put's, which is certainly there to be read.
   *
   * Fences and complete need none of this: they notify the target behind the puts, on the same connection.
   */
  unplaced: RemoteRegion | undefined;

  constructor(rank: number) {
    this.rank = rank;
  }

  /** Of those that were issued, how many had been before the first one that waits. */
  get behind(): number {
    return this.issued - this.waiting;
  }

  flagsOf(what: number): number {
    return this.flags[what] ?? 0;
  }

  /** `count` of them, which were issued behind so many others, could not be posted. */
  noteRefused(behind: number, count: number): void {
    const refused = this.#refused;
    const place = refused.findIndex((other) => other.behind > behind);
    refused.splice(place < 0 ? refused.length : place, 0, { behind, count });
    this.#passRefused();
  }

  /** So many of those that are outstanding are complete: the first ones. */
  noteComplete(requests: number): void {
    this.outstanding -= requests;
    this.over += requests;
    if (this.outstanding === 0) this.reading = false;
    if (this.#refused.length > 0) this.#passRefused();
  }

  #passRefused(): void {
    const refused = this.#refused;
    while (refused.length > 0 && refused[0].behind <= this.over) this.over += refused.shift()!.count;
  }
}

/** Is told of connections that are made. */
export interface ConnectionTrace {
  connected(rank: number, queuePair: QueuePair): void;
}

/** How transfers of one window find each other's ends, in one process. */
export interface ConnectionRegistry {
  /** This rank in the window. */
  readonly rank: number;
  offer(connections: Connections): void;
  /** That of another rank, as long as it has not withdrawn it. */
  find(rank: number): Connections | undefined;
  withdraw(): void;
}

export class Connections {
  readonly #context: Context;
  readonly #pd: ProtectionDomain;
  readonly #sendCq: CompletionQueue;
  readonly #recvCq: CompletionQueue;
  readonly #srq: SharedReceiveQueue;
  readonly #byRank = new ByRank((rank) => new WindowConnection(rank));
  readonly #byNumber = new Map<number, WindowConnection>();
  readonly #trace: ConnectionTrace | undefined;
  /** Where the other ranks' ends are found, if connections are made when they are first used. */
  #registry: ConnectionRegistry | undefined;
  /** World ranks, for messages. */
  #members: readonly number[] = [];

  constructor(
    context: Context,
    pd: ProtectionDomain,
    sendCq: CompletionQueue,
    recvCq: CompletionQueue,
    srq: SharedReceiveQueue,
    trace?: ConnectionTrace,
  ) {
    this.#trace = trace;
    this.#context = context;
    this.#pd = pd;
    this.#sendCq = sendCq;
    this.#recvCq = recvCq;
    this.#srq = srq;
  }

  to(rank: number): WindowConnection {
    return this.#byRank.of(rank);
  }

  /** Those that something was sent on, or that are connected, in the order of ranks. */
  get all(): readonly WindowConnection[] {
    return this.#byRank.all;
  }

  /** By the number of its queue pair here. */
  numbered(qpNumber: number): WindowConnection {
    return this.#byNumber.get(qpNumber)!;
  }

  /** The world rank, for messages. */
  memberOf(rank: number): number {
    return this.#members[rank];
  }

  /** The number of the queue pair that rank `rank` connects to; it is made, if there is none. */
  numberFor(rank: number): number {
    return (this.to(rank).queuePair ?? this.#makeQueuePair(rank)).number;
  }

  /** Connects to all ranks. */
  connect(members: readonly number[], numbers: ArrayLike<number>): void {
    this.#members = members;
    for (const [rank, member] of members.entries()) {
      const qp = this.to(rank).queuePair ?? this.#makeQueuePair(rank);
      this.#connect(qp, { member, qpNumber: numbers[rank] });
    }
  }

  /**
   * Connects to each rank when something is first sent to it: there are as many connections as pairs of ranks that
   * talk.
   */
  connectLater(registry: ConnectionRegistry, members: readonly number[]): void {
    this.#members = members;
    this.#registry = registry;
    registry.offer(this);
  }

  /** That to a rank, connected. Errors: `ERR_WIN` (the other rank has freed the window). */
  queuePairTo(rank: number): QueuePair {
    return this.to(rank).queuePair ?? this.#connectBothEnds(rank);
  }

  close(): void {
    this.#registry?.withdraw();
    for (const { queuePair } of this.all) queuePair?.destroy();
  }

  /** Makes both ends of a connection. */
  #connectBothEnds(rank: number): QueuePair {
    const { rank: me, find } = this.#registry!;
    const other = find(rank);
    if (other === undefined) throw new RmaError('ERR_WIN', `rank ${rank} has already freed the window`);
    const mine = this.#makeQueuePair(rank);
    try {
      const theirs = other === this ? mine : other.#makeQueuePair(me);
      this.#connect(mine, theirs.address);
      if (other !== this) other.#connect(theirs, mine.address);
    } catch (error) {
      // The next request to the rank makes both again.
      this.#forget(rank);
      if (other !== this) other.#forget(me);
      throw error;
    }
    return mine;
  }

  #forget(rank: number): void {
    const connection = this.to(rank);
    const { queuePair } = connection;
    if (queuePair === undefined) return;
    connection.queuePair = undefined;
    this.#byNumber.delete(queuePair.number);
    queuePair.destroy();
  }

  #makeQueuePair(rank: number): QueuePair {
    const init = {
      sendCq: this.#sendCq,
      recvCq: this.#recvCq,
      srq: this.#srq,
      maxSendWr: DEPTH,
      maxInlineData: Math.min(64, this.#context.device.maxInlineData),
    };
    const qp = beginQueuePair(this.#pd, init, Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC);
    const connection = this.to(rank);
    connection.queuePair = qp;
    this.#byNumber.set(qp.number, connection);
    this.#trace?.connected(rank, qp);
    return qp;
  }

  #connect(qp: QueuePair, dest: QpAddress): void {
    // Reads and atomics that may be outstanding.
    connectQueuePair(qp, dest, Math.min(16, this.#context.device.maxQpInitRdAtom));
  }
}
