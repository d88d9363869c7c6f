/**
 * A second connection to each rank that layouts are sent to with gather lists and received with scatter lists
 * (dissertation §8.1.1): posted receives are for these messages alone, and never meet others. Its completions come to
 * the queue of the window's requests, which gives them over (`completed`, `settle`).
 *
 * A connection is made when it is first needed, by messages of its users: both sides call `make`, the numbers go over,
 * and both sides call `connect`. Messages of one connection fill receives in the order in which both were posted.
 *
 * What is registered stays so while anything is under way here (`OriginRegistrations`). Nothing here waits for
 * registrations to be given up (`draining`): a message that its receiver waits for always leaves, so that two ranks
 * that both drain do not wait for each other.
 */
import { beginQueuePair, connectQueuePair } from '../../message/reliable-queue-pairs.ts';
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import { WcStatus } from '../../verbs/completion-queue.ts';
import type { Context } from '../../verbs/device.ts';
import { Access, type ProtectionDomain } from '../../verbs/memory.ts';
import { type QueuePair, SendFlag } from '../../verbs/queue-pair.ts';
import { type MessageCounts, noMessages } from './layout-statistics.ts';
import type { OriginRegistrations } from './origin-registrations.ts';

/** Messages that may be under way on a connection, each way. */
const MESSAGES = 32;
/** Entries that a window's completion queue has for each of them: sent, confirmed and received. */
export const SECOND_ENTRIES = 3 * MESSAGES;
/** Entries of a message's list; more of them cost memory of the device for each place of a queue. */
const MOST_ENTRIES = 60;
/** Reads under way that confirm what was sent, at most. */
const READS = 4;

/** Identities of requests begin here. */
export const FIRST_BATCH = 2 ** 32;

/** Memory that a message is gathered from, or scattered to: offsets are counted from `address`. */
export interface LocalPlace {
  readonly lkey: number;
  readonly address: number;
}

/** Pieces of the next `bytes` bytes of a layout, one after the other. */
export type Entries = (bytes: number, each: (offset: number, bytes: number) => void) => void;

/** Where a byte of the target is that is read back behind messages, so that they are in its memory. */
export interface Confirmation {
  readonly rkey: number;
  readonly address: number;
  readonly sink: LocalPlace;
}

/**
 * Records messages of second connections: it is told before one is sent to a rank, and after one of a rank has filled a
 * receive, both in the order of the messages. It is not told of the reads that confirm them.
 */
export interface MessageTrace {
  sends(rank: number, bytes: number): void;
  received(rank: number): void;
}

export class SecondConnection {
  readonly rank: number;
  readonly queuePair: QueuePair;
  /** Entries of a message's list at both ends; 0 until it is connected. */
  entries = 0;
  sending = 0;
  receiving = 0;

  constructor(rank: number, queuePair: QueuePair) {
    this.rank = rank;
    this.queuePair = queuePair;
  }
}

/** Messages that were posted together. */
interface Batch {
  readonly connection: SecondConnection;
  readonly receives: boolean;
  readonly messages: number;
  /** Completions that have not come yet. */
  left: number;
  readonly done: () => void;
}

export class SecondConnections {
  /** As many entries as a list can have here. */
  readonly entries: number;
  /** Reads that may be under way on a connection. */
  readonly #reads: number;
  readonly counts: MessageCounts = noMessages();
  readonly #reachesAll: boolean;
  readonly #pd: ProtectionDomain;
  readonly #cq: CompletionQueue;
  readonly #registrations: OriginRegistrations;
  readonly #memberOf: (rank: number) => number;
  readonly #lose: (rank: number, status: number) => void;
  readonly #trace: MessageTrace | undefined;
  readonly #connections: SecondConnection[] = [];
  readonly #batches: (Batch | undefined)[] = [];
  readonly #free: number[] = [];
  #done: Batch[] = [];
  /** Messages that may be posted, each way, on all connections together. */
  readonly #most: number;
  #sending = 0;
  #receiving = 0;
  /** Called when there is room. */
  readonly #waiting = new Set<() => void>();
  /** Users of registrations, posted or not. */
  #holding = 0;

  /**
   * @param reserve entries of the completion queue that nothing else uses
   * @param trace where messages are recorded, in a job that is traced
   * @param lose is told of connections that carry nothing any more
   */
  constructor(
    { device, capabilities }: Context,
    pd: ProtectionDomain,
    cq: CompletionQueue,
    registrations: OriginRegistrations,
    memberOf: (rank: number) => number,
    lose: (rank: number, status: number) => void,
    reserve: number,
    trace: MessageTrace | undefined,
  ) {
    this.#trace = trace;
    this.#pd = pd;
    this.#cq = cq;
    this.#registrations = registrations;
    this.#memberOf = memberOf;
    this.#lose = lose;
    this.entries = Math.min(MOST_ENTRIES, device.maxSge);
    this.#reads = Math.min(READS, device.maxQpInitRdAtom);
    this.#reachesAll = capabilities.remoteUserMemory;
    this.#most = Math.floor(reserve / 3);
  }

  /**
   * This end of a connection. Errors: `ERR_VERBS` (the device has no room for it).
   * @param entries of a message's list
   */
  make(rank: number, entries = this.entries): SecondConnection {
    const init = {
      sendCq: this.#cq,
      recvCq: this.#cq,
      // Each message may have a read behind it.
      maxSendWr: 2 * MESSAGES,
      maxRecvWr: MESSAGES,
      maxSendSge: entries,
      maxRecvSge: entries,
      maxInlineData: 0,
    };
    const queuePair = beginQueuePair(this.#pd, init, Access.REMOTE_READ);
    const connection = new SecondConnection(rank, queuePair);
    this.#connections.push(connection);
    this.counts.connections++;
    return connection;
  }

  /** @param qpNumber the number of the other end's queue pair */
  connect({ queuePair, rank }: SecondConnection, qpNumber: number): void {
    connectQueuePair(queuePair, { member: this.#memberOf(rank), qpNumber }, this.#reads);
  }

  // ---- registrations ------------------------------------------------------------------------------------------------

  /** Whether nothing that is under way needs a registration. */
  get isSilent(): boolean {
    return this.#holding === 0;
  }

  /**
   * Registers what a message comes from or goes to, until `release`. @returns false if it has to wait. Errors: the
   * device's.
   */
  hold(buffer: ArrayBufferLike): boolean {
    // What waits for the others to end comes first.
    if (this.#registrations.draining || !this.#registrations.register(buffer)) return false;
    this.#holding++;
    return true;
  }

  release(): void {
    this.#holding--;
  }

  /** Whether messages may be received into a buffer that is held. */
  mayReceiveInto(buffer: ArrayBufferLike): boolean {
    return this.#reachesAll || this.#registrations.regionOf(buffer).memory.fromLibrary;
  }

  /** Bytes of an array that is held. */
  placeOf(bytes: Uint8Array): LocalPlace {
    const { lkey, address } = this.#registrations.regionOf(bytes.buffer);
    return { lkey, address: address + bytes.byteOffset };
  }

  // ---- messages -----------------------------------------------------------------------------------------------------

  mayReceive(connection: SecondConnection, messages: number): boolean {
    return connection.receiving + messages <= MESSAGES && this.#receiving + messages <= this.#most;
  }

  maySend(connection: SecondConnection, messages: number): boolean {
    return connection.sending + messages <= MESSAGES && this.#sending + messages <= this.#most;
  }

  /** Posts a receive for each length. @param done when all are filled */
  receive(
    connection: SecondConnection,
    { lkey, address }: LocalPlace,
    entries: Entries,
    lengths: readonly number[],
    done: () => void,
  ): void {
    const { queuePair } = connection;
    const id = this.#begin({ connection, receives: true, messages: lengths.length, left: lengths.length, done });
    connection.receiving += lengths.length;
    this.#receiving += lengths.length;
    this.counts.receives += lengths.length;
    for (const length of lengths) {
      let last = 0;
      let bytes = 0;
      let count = 0;
      entries(length, (offset, n) => {
        if (bytes > 0) queuePair.addRecvSge(lkey, address + last, bytes);
        last = offset;
        bytes = n;
        count++;
      });
      this.counts.receiveEntries += count;
      this.#noteList(count);
      queuePair.postRecv(id, lkey, address + last, bytes);
    }
  }

  /**
   * Sends a message of each length, all with one doorbell.
   * @param place where they come from; without it they are empty, and fill receives with nothing
   * @param confirmation where completions do not say that what was sent is in memory
   * @param done when they are there
   */
  send(
    connection: SecondConnection,
    place: LocalPlace | undefined,
    entries: Entries,
    lengths: readonly number[],
    confirmation: Confirmation | undefined,
    done: () => void,
  ): void {
    const { queuePair } = connection;
    // One completion says it of all that was posted before.
    const id = this.#begin({ connection, receives: false, messages: lengths.length, left: 1, done });
    connection.sending += lengths.length;
    this.#sending += lengths.length;
    queuePair.wrStart();
    for (const [i, length] of lengths.entries()) {
      const last = i === lengths.length - 1 && confirmation === undefined;
      this.#trace?.sends(connection.rank, place === undefined ? 0 : length);
      queuePair.wrSend(id, last ? SendFlag.SIGNALED : 0);
      if (place === undefined) continue;
      const { lkey, address } = place;
      let count = 0;
      entries(length, (offset, bytes) => {
        queuePair.wrAddSge(lkey, address + offset, bytes);
        count++;
      });
      this.counts.sendEntries += count;
      this.#noteList(count);
    }
    this.counts.sends += lengths.length;
    if (confirmation !== undefined) {
      const { rkey, address, sink } = confirmation;
      queuePair.wrRdmaRead(id, SendFlag.SIGNALED, rkey, address);
      queuePair.wrSetSge(sink.lkey, sink.address, 1);
    }
    queuePair.wrComplete();
  }

  #noteList(entries: number): void {
    if (entries > this.counts.mostEntries) this.counts.mostEntries = entries;
  }

  #begin(batch: Batch): number {
    const slot = this.#free.pop() ?? this.#batches.length;
    this.#batches[slot] = batch;
    return FIRST_BATCH + slot;
  }

  /** A completion. What it leads to is done by `settle`, when no completion is being looked at. */
  completed(id: number, status: number): void {
    const slot = id - FIRST_BATCH;
    const batch = this.#batches[slot];
    if (batch === undefined) return;
    const { connection, receives, messages } = batch;
    if (status !== WcStatus.SUCCESS) {
      this.#lose(connection.rank, status);
      return;
    }
    if (receives) {
      this.#trace?.received(connection.rank);
      connection.receiving--;
      this.#receiving--;
    }
    if (--batch.left > 0) return;
    if (!receives) {
      connection.sending -= messages;
      this.#sending -= messages;
    }
    this.#batches[slot] = undefined;
    this.#free.push(slot);
    this.#done.push(batch);
  }

  settle(): void {
    if (this.#done.length === 0) return;
    while (this.#done.length > 0) {
      const done = this.#done;
      this.#done = [];
      for (const batch of done) batch.done();
    }
    this.noteRoom();
  }

  /**
   * Calls `look` once, when messages have completed on any connection, or registrations have been given up: what could
   * not be posted or held before may be now.
   */
  whenRoom(look: () => void): void {
    this.#waiting.add(look);
  }

  /** There may be room that was not there before. */
  noteRoom(): void {
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const look of waiting) look();
  }

  close(): void {
    for (const { queuePair } of this.#connections) queuePair.destroy();
  }
}
