/**
 * Control messages between the ranks of a job, on reliable-connected queue pairs with one shared receive queue.
 *
 * A message is cut into chunks of at most `chunk` bytes, each one SEND into a receive posted by the target. Chunks of
 * one sender arrive in order (a reliable connection keeps it), so a message is put together without sequence numbers. A
 * queue pair is made when two ranks first talk (message-connections.ts). Memory: `receives + sends` chunks a rank, one
 * queue pair a peer that was talked to. Messages above the eager limit go from memory to memory instead
 * (long-messages.ts), where the device can do that; for those of some tens of KiB there is staging memory (staging.ts).
 * Where ranks map each other's memory, they go in pieces of that (shared-pieces.ts).
 *
 * Messages are matched by (communicator, source): the receives of one communicator from one source complete in the
 * order of the sends. A message that no call waits for yet is kept.
 */
import { RmaError } from '../errors.ts';
import { Fifo } from '../fifo.ts';
import type { Flow } from '../trace/recorder.ts';
import type { CompletionQueue } from '../verbs/completion-queue.ts';
import { WcOpcode, WcStatus } from '../verbs/completion-queue.ts';
import type { Context } from '../verbs/device.ts';
import { Access, type MemoryRegion, type ProtectionDomain } from '../verbs/memory.ts';
import { type Processor, REAL_PROCESSOR } from '../verbs/processor.ts';
import { QpState, type QueuePair, SendFlag } from '../verbs/queue-pair.ts';
import type { SharedReceiveQueue } from '../verbs/shared-receive-queue.ts';
import { HANDSHAKE_BYTES, HEADER_BYTES, IN_PIECE, INSTEAD, LENGTH_BYTES, LONG, withNumber } from './chunk.ts';
import { type Fill, Handshake, LongMessages, MOST_TRANSFERS, TRANSFER_ID } from './long-messages.ts';
import { lostConnection, lostQueue } from './lost-connection.ts';
import { MessageCompletions } from './message-completions.ts';
import { type MessageConnection, MessageConnections, type Rendezvous } from './message-connections.ts';
import { noMemory, PartialMessages, type Room } from './partial-messages.ts';
import { type Keep, type Listener, PieceMessages } from './piece-messages.ts';
import { allocateRegistered, freeRegistered } from './registered-memory.ts';
import { beginQueuePair } from './reliable-queue-pairs.ts';
import type { Remainder } from './remainder.ts';
import { type PieceMemory, SharedPieces } from './shared-pieces.ts';

const MEMORY: MessageMemory = {
  chunk: 8192,
  receives: 64,
  sends: 32,
  eager: 16_384,
  byRead: true,
  // 64 MiB at most.
  pieces: { bytes: 262_144, most: 256 },
};
const RECEIVE_ID = 2 ** 40;
const NOTHING = new Uint8Array(0);

/** How much memory a rank has for messages. */
export interface MessageMemory {
  /** Bytes of one chunk, with its header. */
  readonly chunk: number;
  readonly receives: number;
  readonly sends: number;
  /** From so many bytes on, the length of a message takes 64 bits; where it does not fit into 32 if absent. */
  readonly long?: number;
  /** Messages of more bytes go from memory to memory, where the device can; in chunks if absent. */
  readonly eager?: number;
  /** Whether the receiver then reads; otherwise the sender writes. */
  readonly byRead?: boolean;
  /** Messages above `eager` go in such pieces, where ranks map each other's memory. */
  readonly pieces?: PieceMemory;
}

export class Messenger {
  readonly rank: number;
  readonly size: number;
  readonly #connections: MessageConnections;
  #cq: CompletionQueue;
  readonly #completions: MessageCompletions;
  #srq: SharedReceiveQueue;
  #region: MemoryRegion;
  #bytes: Uint8Array;
  #words: Uint32Array;
  readonly #memory: MessageMemory;
  readonly #long: number;
  readonly #processor: Processor;
  /** Connections with a backlog, and perhaps some whose backlog has gone since, in the order of their making. */
  #waiting: MessageConnection[] = [];
  readonly #partial: PartialMessages;
  #freeSends: number[] = [];
  readonly #takeBack = (slot: number): void => void this.#freeSends.push(slot);
  /** Complete messages, by context and source. */
  readonly #inbox = new Map<number, Map<number, Fifo<Uint8Array>>>();
  /** The listeners that take messages of a communicator as they arrive. */
  readonly #listeners = new Map<number, Listener>();
  /**
   * Nothing waits to leave, so `poll` need not be called for it: one load for calls that never wait. It is also false
   * while sends are under way: where a device has no processor of its own, as a modelled one has, a send that its
   * target cannot take yet is tried again when this rank polls.
   */
  idle = true;
  #unsent = 0;
  readonly #context: Context;
  /**
   * For each rank with which the connection was lost or could not be made, or of which a message was lost: its first
   * error. From then on, all waits for that rank end with it. If the queue of all messages is lost, that is every rank,
   * this one too.
   */
  readonly lost = new Map<number, RmaError>();
  /** Ranks that have failed: they are sent nothing any more, and nothing of theirs is waited for. */
  readonly #gone = new Set<number>();
  /** Those whose connections are still open. */
  #parting: number[] = [];
  /** Absent where the device does not reach memory of the program's own. */
  readonly #longs: LongMessages | undefined;
  readonly #eager: number;
  /** Absent where ranks do not map each other's memory. */
  readonly #pieces: PieceMessages | undefined;
  readonly #trace: Flow | undefined;

  /**
   * @param trace where messages are recorded, in a job that is traced
   * @param processor told of what is copied
   */
  constructor(
    context: Context,
    pd: ProtectionDomain,
    rank: number,
    size: number,
    rendezvous: Rendezvous,
    memory: MessageMemory = MEMORY,
    trace?: Flow,
    processor = REAL_PROCESSOR,
  ) {
    const { chunk, receives, sends } = memory;
    const bytes = (receives + sends) * chunk;
    this.#memory = memory;
    this.#long = memory.long ?? IN_PIECE;
    this.#processor = processor;
    this.#context = context;
    this.#trace = trace;
    this.rank = rank;
    this.size = size;
    const { eager = Number.POSITIVE_INFINITY, byRead = true } = memory;
    const reachesAll = context.capabilities.remoteUserMemory;
    this.#eager = reachesAll ? eager : Number.POSITIVE_INFINITY;
    this.#longs = this.#eager === Number.POSITIVE_INFINITY ? undefined : this.#makeLongs(pd, byRead);
    this.#partial = new PartialMessages({
      hasEarlier: (from, source) => this.#inbox.get(from)?.has(source) === true,
      deliver: (source, to, message) => {
        if (this.#longs?.hold(source, to, message) !== true) this.#deliver(to, source, message);
      },
      lose: (source, error) => this.#note(source, error),
    });
    const { pieces } = memory;
    if (pieces !== undefined && this.#longs === undefined && context.capabilities.loadStore)
      this.#pieces = this.#makePieces(new SharedPieces(context, pd, size, pieces, (peer) => this.#hasLeft(peer)));
    this.#cq = context.createCq(2 * (receives + sends) + MOST_TRANSFERS);
    this.#completions = new MessageCompletions(
      this.#cq,
      (id, status, opcode, byteLen, qpNum) => this.#complete(id, status, opcode, byteLen, qpNum),
      (error) => this.#loseAll(error),
      !context.capabilities.loadStore && !processor.isVirtual,
    );
    this.#srq = pd.createSharedReceiveQueue({ maxWr: receives });
    this.#connections = new MessageConnections(rank, rendezvous, (): QueuePair => {
      const init = {
        sendCq: this.#cq,
        recvCq: this.#cq,
        srq: this.#srq,
        maxSendWr: sends + (this.#longs === undefined ? 0 : MOST_TRANSFERS),
        maxSendSge: 1,
      };
      const access = this.#longs === undefined ? 0 : Access.REMOTE_READ | Access.REMOTE_WRITE;
      return beginQueuePair(pd, init, access);
    });
    this.#region = allocateRegistered(context, pd, bytes, Access.LOCAL_WRITE);
    this.#bytes = new Uint8Array(this.#region.memory.buffer);
    this.#words = new Uint32Array(this.#region.memory.buffer);
    for (let i = 0; i < receives; i++) this.#postReceive(i);
    const [unusable] = this.lost.values();
    if (unusable !== undefined) throw unusable;
    for (let i = 0; i < sends; i++) this.#freeSends.push(receives + i);
    this.#cq.reqNotify();
  }

  /**
   * Starts a message; it is copied before this returns. `context` names the communicator.
   * @param head comes before the payload in the message; shorter than a chunk by 40 bytes at least
   */
  send(target: number, context: number, payload: Uint8Array, head: Uint8Array = NOTHING): void {
    if (!this.#isLong(target, head.length + payload.length)) this.#sendChunks(target, context, payload, head);
    else {
      this.#processor.copy(payload.length);
      const fill: Fill = (memory, at) => memory.set(payload, at);
      if (!this.#composeLong(target, context, head, payload.length, fill))
        this.#sendLong(target, context, payload.slice(), head);
    }
  }

  /** The same for a message that is not copied, since it is not changed any more. */
  give(target: number, context: number, message: Uint8Array): void {
    if (this.#isLong(target, message.length)) this.#sendLong(target, context, message, NOTHING);
    else this.#sendChunks(target, context, message, NOTHING);
  }

  /**
   * The same for a message that `fill` writes, at a multiple of 8: without a copy, if one chunk can leave at once, or
   * if it is a long one and there is staging memory for it.
   * @param fill must neither send nor poll
   */
  compose(target: number, context: number, bytes: number, fill: Fill): void {
    const connection = this.#connections.find(target);
    const fits = bytes <= Math.min(this.#memory.chunk - HEADER_BYTES, this.#eager, this.#long - 1);
    const leaves = connection?.stage === 3 && connection.backlog.length === 0 && this.#freeSends.length > 0;
    if (this.#gone.size > 0 && this.#gone.has(target)) return;
    if (!fits || !leaves) {
      if (this.#isLong(target, bytes) && this.#composeLong(target, context, NOTHING, bytes, fill)) return;
      const message = new Uint8Array(bytes);
      fill(message, 0);
      this.give(target, context, message);
      return;
    }
    const slot = this.#freeSends.pop()!;
    const at = slot * this.#memory.chunk;
    try {
      fill(this.#bytes, at + HEADER_BYTES);
      this.#trace?.sent(target, bytes);
      this.#processor.copy(bytes);
    } catch (error) {
      this.#freeSends.push(slot);
      throw error;
    }
    this.#words[at / 4] = context;
    this.#words[at / 4 + 1] = bytes;
    this.idle = false;
    const { qp } = connection;
    qp.wrStart();
    qp.wrSend(slot, SendFlag.SIGNALED);
    qp.wrSetSge(this.#region.lkey, this.#region.address + at, HEADER_BYTES + bytes);
    qp.wrComplete();
  }

  #isLong(target: number, bytes: number): boolean {
    return bytes > this.#eager && target !== this.rank && !this.#gone.has(target);
  }

  /** @returns false if there is no staging memory for it */
  #composeLong(target: number, context: number, head: Uint8Array, bytes: number, fill: Fill): boolean {
    this.#connections.to(target);
    if (!this.#longs!.compose(target, context, head, bytes, fill)) return false;
    this.#trace?.sent(target, head.length + bytes);
    return true;
  }

  #sendLong(target: number, context: number, payload: Uint8Array, head: Uint8Array): void {
    this.#connections.to(target);
    if (!this.#longs!.offer(target, context, head, payload)) this.#sendChunks(target, context, payload, head);
    else this.#trace?.sent(target, head.length + payload.length);
  }

  #sendChunks(target: number, context: number, payload: Uint8Array, head: Uint8Array, instead?: number): void {
    const total = head.length + payload.length;
    if (target === this.rank) {
      const message = new Uint8Array(total);
      message.set(head);
      message.set(payload, head.length);
      this.#deliver(context, target, message);
      return;
    }
    const connection = this.#connections.to(target);
    if (instead === undefined) this.#trace?.sent(target, total);
    if (this.#pieces !== undefined && total > (this.#memory.eager ?? Number.POSITIVE_INFINITY)) {
      this.#pieces.send(connection, context, payload, head);
      return;
    }
    this.#processor.copy(total);
    const most = this.#memory.chunk - HEADER_BYTES;
    const mark = instead !== undefined ? INSTEAD : total >= this.#long ? LONG : undefined;
    const before = mark === undefined ? head : withNumber(instead ?? total, head);
    const end = before.length + payload.length;
    let at = 0;
    do {
      const length = Math.min(most, end - at);
      const chunk = new Uint8Array(HEADER_BYTES + length);
      const header = new Uint32Array(chunk.buffer, 0, HEADER_BYTES / 4);
      header[0] = context;
      header[1] = mark ?? total;
      if (at === 0) {
        chunk.set(before, HEADER_BYTES);
        chunk.set(payload.subarray(0, length - before.length), HEADER_BYTES + before.length);
      } else chunk.set(payload.subarray(at - before.length, at - before.length + length), HEADER_BYTES);
      this.#enqueue(connection, chunk);
      at += length;
    } while (at < end);
    this.#push(connection);
  }

  /**
   * Sends a message that all targets read where it lies, and may keep there; it is copied before this returns. Those
   * that do not `keep` it get a copy.
   * @returns whether it is read still; `undefined` if there is no memory for it: nothing was sent then
   */
  share(
    targets: readonly number[],
    context: number,
    payload: Uint8Array,
    head: Uint8Array,
  ): (() => number | undefined) | undefined {
    return this.#pieces?.share(targets, context, payload, head);
  }

  /** Bytes of a message that can be shared; 0 if none can. */
  get sharedBytes(): number {
    return this.#pieces?.sharedBytes ?? 0;
  }

  /** Has long messages of a context go to the memory of the calls that wait for them. @returns ends it */
  receiveInto(context: number, room: Room): () => void {
    return this.#partial.receiveInto(context, room);
  }

  /** A call waits for a message of a source: one that is on its way in goes to its memory from now on. */
  awaitFrom(source: number, context: number): void {
    this.#partial.awaitFrom(source, context);
  }

  #makePieces(pieces: SharedPieces): PieceMessages {
    return new PieceMessages(
      pieces,
      this.#partial,
      { chunk: this.#memory.chunk, long: this.#long },
      {
        to: (target) => this.#connections.to(target),
        hasFailed: (peer) => this.#gone.has(peer),
        hasLeft: (peer) => this.#hasLeft(peer),
        queue: (connection, chunk) => {
          // Without this, only the first parts would leave before the whole message is copied.
          if (this.#freeSends.length === 0) this.#completions.reap(RECEIVE_ID, this.#takeBack);
          this.#enqueue(connection, chunk);
          this.#push(connection);
        },
        listener: (context) => this.#listeners.get(context),
        sent: (target, bytes) => this.#trace?.sent(target, bytes),
        seen: (source, bytes) => this.#trace?.seen(source, bytes),
        lose: (source, error) => this.#note(source, error),
      },
    );
  }

  #makeLongs(pd: ProtectionDomain, byRead: boolean): LongMessages {
    return new LongMessages(this.#context, pd, byRead, {
      control: (peer, what, context, numbers, head) => {
        const chunk = new Uint8Array(HEADER_BYTES + HANDSHAKE_BYTES + head.length);
        new Uint32Array(chunk.buffer, 0, HEADER_BYTES / 4).set([context, what]);
        new Float64Array(chunk.buffer, HEADER_BYTES, HANDSHAKE_BYTES / 8).set(numbers);
        chunk.set(head, HEADER_BYTES + HANDSHAKE_BYTES);
        const connection = this.#connections.to(peer);
        this.#enqueue(connection, chunk);
        this.#push(connection);
      },
      instead: (peer, context, id, head, payload) => this.#sendChunks(peer, context, payload, head, id),
      queuePair: (peer) => this.#connections.to(peer).qp,
      deliver: (source, context, message) => this.#deliver(context, source, message),
      borrows: (context) => this.#listeners.get(context)?.borrows === true,
      hasLeft: (peer) => this.#hasLeft(peer),
      lose: (source, error) => this.#note(source, error),
    });
  }

  /** Takes the next complete message from `source`, if it is there. */
  receive(source: number, context: number): Uint8Array | undefined {
    const sources = this.#inbox.get(context);
    const queue = sources?.get(source);
    if (queue === undefined) return undefined;
    const message = queue.shift();
    if (queue.length === 0) {
      sources!.delete(source);
      if (sources!.size === 0) this.#inbox.delete(context);
    }
    return message;
  }

  /**
   * The message that came in where a call waited for it is in other memory now: that call has ended. @param bytes
   * absent if there is none, and the message is lost
   */
  exchange(source: number, context: number, from: Uint8Array, bytes: Uint8Array | undefined): void {
    const queue = this.#inbox.get(context)?.get(source);
    // It came when no other waited to be received, so it is the oldest.
    if (queue?.first !== from) return;
    if (bytes !== undefined) queue.replaceFirst(bytes);
    else {
      this.receive(source, context);
      this.#note(source, noMemory(source, from.length));
    }
  }

  /**
   * Hands messages of `context` to `listener` as they arrive, and those that have arrived before. It may send, but
   * neither wait nor poll.
   * @param borrows the listener keeps nothing of a message, whose memory may be used again when it returns; messages
   * that are given in this way begin at a multiple of 8
   * @param keep takes those that were shared
   * @returns ends it
   */
  listen(
    context: number,
    listener: (source: number, message: Uint8Array) => void,
    borrows = false,
    keep?: Keep,
  ): () => void {
    this.#listeners.set(context, { take: listener, borrows, keep });
    const before = this.#inbox.get(context);
    this.#inbox.delete(context);
    if (before !== undefined) {
      for (const [source, queue] of before) for (const message of queue) listener(source, message);
    }
    return () => void this.#listeners.delete(context);
  }

  /**
   * Whether a completion of a queue lets messages go on: one has come, or one that was sent makes room for those that
   * wait.
   * @param receives the completion is that of a receive
   */
  goesOnWith(cq: CompletionQueue, receives: boolean): boolean {
    return cq === this.#cq && (receives || this.#unsent > 0 || this.#longs?.idle === false);
  }

  /** Whether there is a connection with every other rank. */
  get isComplete(): boolean {
    return this.#connections.connected === this.size - 1;
  }

  /** Whether this rank has no message under way that it must bring on itself. */
  get isSilent(): boolean {
    return this.#unsent === 0 && this.#longs?.idle !== false;
  }

  /** Whether everything sent has left this rank. */
  get drained(): boolean {
    return this.#unsent === 0 && this.#freeSends.length === this.#memory.sends && this.#longs?.idle !== false;
  }

  /**
   * Brings in what has arrived and sends what can be sent. Allocates only where there are messages. What is lost (a
   * connection, a message for which there was no memory, the queue of all) is in `lost` from then on. Errors: what a
   * listener throws, after the others have been told what has arrived for them.
   */
  poll(): void {
    this.#connections.answerCallers(this.#notMade);
    const isParting = this.#parting.length > 0;
    const failure = this.#completions.poll(isParting);
    if (isParting) this.#part();
    if (this.#unsent > 0) this.#pushAll();
    this.idle = this.#processor.isVirtual ? this.#unsent === 0 : this.drained;
    this.#completions.wantNews();
    if (failure !== undefined) throw failure.error;
  }

  /** Acknowledges what has arrived, for a rank that has nothing more to send for now. Cheap. */
  acknowledge(): void {
    this.#context.acknowledge?.();
  }

  /** The queue of all messages is lost. */
  #loseAll(error: unknown): void {
    const lost = lostQueue(error, 'the messages of this rank');
    for (let peer = 0; peer < this.size; peer++) this.#note(peer, lost);
  }

  readonly #notMade = (peer: number, error: unknown): void => {
    if (!(error instanceof RmaError) || error.code !== 'ERR_VERBS') throw error;
    this.#note(peer, error);
  };

  /**
   * A rank has failed. What waits for room to it is dropped, and what is on its way to it is given up, since no rank
   * will take it: it would keep the memory for sends from the other ranks, and would hold up every call that waits
   * until everything has left.
   */
  forget(peer: number): void {
    if (this.#gone.has(peer)) return;
    this.#gone.add(peer);
    this.#parting.push(peer);
    this.lost.delete(peer);
    this.idle = false;
  }

  /** Ends the connections with ranks that have failed, but not before all that has arrived from them was taken. */
  #part(): void {
    for (const peer of this.#parting) {
      const connection = this.#connections.find(peer);
      if (connection === undefined) continue;
      this.#unsent -= connection.backlog.length;
      while (connection.backlog.length > 0) connection.backlog.shift();
      connection.remainders = 0;
      if (connection.stage === 3) connection.qp.modify({ state: QpState.ERR });
    }
    this.#parting = [];
    this.#longs?.forgetLeft();
  }

  #hasLeft(peer: number): boolean {
    return this.#gone.has(peer) || this.#connections.hasLeft(peer);
  }

  close(): void {
    this.#connections.close();
    this.#longs?.close();
    this.#pieces?.close();
    this.#srq.destroy();
    this.#cq.destroy();
    freeRegistered(this.#region);
  }

  #complete(id: number, status: number, opcode: number, byteLen: number, qpNum: number): void {
    const slot = id - RECEIVE_ID;
    const failed = status !== WcStatus.SUCCESS;
    try {
      if (failed) this.#lose(this.#connections.peerOf(qpNum), status);
      else if (opcode === WcOpcode.RECV) this.#take(this.#connections.peerOf(qpNum), slot, byteLen);
    } finally {
      if (id >= TRANSFER_ID) {
        if (failed) this.#longs!.failed(id);
        else this.#longs!.completed(id);
      } else if (id >= RECEIVE_ID) this.#postReceive(slot);
      else this.#freeSends.push(id);
    }
  }

  #lose(peer: number, status: number): void {
    if (this.#hasLeft(peer)) return;
    this.#note(peer, lostConnection(this.#context, peer, status, 'a control message'));
  }

  #note(peer: number, error: RmaError): void {
    if (!this.lost.has(peer)) this.lost.set(peer, error);
  }

  #take(source: number, slot: number, length: number): void {
    const at = slot * this.#memory.chunk;
    let from = at + HEADER_BYTES;
    const said = this.#words[at / 4 + 1];
    if (said === IN_PIECE && this.#pieces !== undefined) {
      this.#pieces.take(source, this.#words[at / 4], this.#bytes.buffer, from);
      return;
    }
    let message = this.#partial.of(source);
    if (message === undefined) {
      const context = this.#words[at / 4];
      if (said === length - HEADER_BYTES && this.#lend(source, context, from, said)) return;
      if (said >= Handshake.REFUSED && said <= Handshake.REQUEST) {
        // A copy: the code that is told of the message may post receives, and send.
        const chunk = this.#bytes.slice(from, at + length);
        const numbers = new Float64Array(chunk.buffer, 0, HANDSHAKE_BYTES / 8);
        this.#longs!.take(source, said, context, numbers, chunk.subarray(HANDSHAKE_BYTES));
        return;
      }
      const number = said >= INSTEAD ? new Float64Array(this.#bytes.buffer, from, 1)[0] : said;
      if (said >= INSTEAD) from += LENGTH_BYTES;
      if (said === INSTEAD) {
        const { bytes, complete } = this.#longs!.replaced(source, number);
        message = this.#partial.beginInstead(source, context, bytes, complete);
      } else message = this.#partial.begin(source, context, number);
    }
    this.#processor.copy(at + length - from);
    this.#partial.fill(source, message, this.#bytes.subarray(from, at + length));
  }

  /**
   * Shows a message of one chunk to a listener that borrows it. The chunk's receive is posted again when the listener
   * has returned.
   * @returns false if it must be copied
   */
  #lend(source: number, context: number, from: number, bytes: number): boolean {
    const listener = this.#listeners.get(context);
    if (listener?.borrows !== true || this.#longs?.holds(source) === true) return false;
    this.#processor.copy(bytes);
    this.#trace?.seen(source, bytes);
    listener.take(source, this.#bytes.subarray(from, from + bytes));
    return true;
  }

  #deliver(context: number, source: number, message: Uint8Array): void {
    if (source !== this.rank) this.#trace?.seen(source, message.length);
    const listener = this.#listeners.get(context);
    if (listener !== undefined) {
      listener.take(source, message);
      return;
    }
    let sources = this.#inbox.get(context);
    if (sources === undefined) this.#inbox.set(context, (sources = new Map()));
    const queue = sources.get(source);
    if (queue !== undefined) queue.push(message);
    else {
      const first = new Fifo<Uint8Array>();
      first.push(message);
      sources.set(source, first);
    }
  }

  #postReceive(slot: number): void {
    const { chunk } = this.#memory;
    try {
      this.#srq.postRecv(RECEIVE_ID + slot, this.#region.lkey, this.#region.address + slot * chunk, chunk);
    } catch (error) {
      this.#loseAll(error);
    }
  }

  #enqueue(connection: MessageConnection, chunk: Uint8Array | Remainder): void {
    if (this.#gone.size > 0 && this.#gone.has(connection.peer)) return;
    connection.backlog.push(chunk);
    if (!(chunk instanceof Uint8Array)) connection.remainders++;
    this.#unsent++;
    this.idle = false;
    if (connection.waits) return;
    connection.waits = true;
    const waiting = this.#waiting;
    let at = waiting.length;
    while (at > 0 && waiting[at - 1].order > connection.order) at--;
    waiting.splice(at, 0, connection);
  }

  /**
   * Sends what can be sent on each connection on which something waits: of very many connections, few have anything
   * waiting. They are visited in the order in which they were made, so which of them gets free slots first does not
   * depend on which began to wait first.
   */
  #pushAll(): void {
    let left = 0;
    for (const connection of this.#waiting) {
      try {
        this.#push(connection);
      } catch (error) {
        // It is not this call that sends it.
        this.#notMade(connection.peer, error);
      }
      connection.waits = connection.backlog.length > 0;
      if (connection.waits) this.#waiting[left++] = connection;
    }
    this.#waiting.length = left;
  }

  #push(connection: MessageConnection): void {
    if (connection.stage !== 3) this.#connections.advance(connection);
    if (connection.stage !== 3 || connection.backlog.length === 0 || this.#freeSends.length === 0) return;
    const { qp, backlog } = connection;
    const { chunk: room } = this.#memory;
    qp.wrStart();
    while (backlog.length > 0 && this.#freeSends.length > 0) {
      const chunk = this.#next(connection);
      if (chunk === undefined) break;
      const slot = this.#freeSends.pop()!;
      this.#bytes.set(chunk, slot * room);
      qp.wrSend(slot, SendFlag.SIGNALED);
      qp.wrSetSge(this.#region.lkey, this.#region.address + slot * room, chunk.length);
    }
    qp.wrComplete();
  }

  /** The oldest chunk that waits; `undefined` if a message comes first that waits for a piece. */
  #next(connection: MessageConnection): Uint8Array | undefined {
    const { backlog, peer } = connection;
    const first = backlog.first!;
    const chunk = first instanceof Uint8Array ? first : this.#pieces!.next(first, peer);
    if (chunk !== undefined && (first instanceof Uint8Array || first.at === first.bytes.length)) {
      backlog.shift();
      this.#unsent--;
      if (!(first instanceof Uint8Array)) connection.remainders--;
    }
    return chunk;
  }
}
