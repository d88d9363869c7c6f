/**
 * Long messages: a handshake, then the data by RDMA from the sender's memory into the receiver's, without copies
 * (dissertation §2.4.1: rendezvous). For devices that reach memory of the program's own (`remoteUserMemory`).
 *
 *   by write   REQUEST id, length, head                  ->   the receiver makes room and registers it
 *              <-   ROOM id, address, rkey                    the sender writes, and behind it goes
 *              DONE id                                   ->   the receiver has the message
 *   by read    REQUEST id, length, address, rkey, head   ->   the receiver makes room, and reads
 *              <-   DONE id                                   the sender's memory is its own again
 *   either     <-   REFUSED id                                there was no room: the sender sends it in chunks
 *
 * Who sees what. A write is in memory before a message that was sent behind it on its connection is received, so with
 * DONE the receiver finds all data. A read is complete at the receiver before it says DONE. Until then, the sender's
 * bytes belong to the transfer.
 *
 * Order. Messages of one source are delivered in the order of their sends: what comes behind a REQUEST waits until that
 * message is complete (`hold`).
 *
 * Memory: a message that is written in place (`compose`), or that its receiver reads where it has arrived (`borrows`),
 * lies in staging memory if there is room (staging.ts); any other message is registered while it is under way. A sender
 * whose device has no room for that is told by `offer`, and sends chunks.
 */
import { RmaError } from '../errors.ts';
import { Fifo } from '../fifo.ts';
import type { Context } from '../verbs/device.ts';
import { Access, type ProtectionDomain } from '../verbs/memory.ts';
import { type QueuePair, SendFlag } from '../verbs/queue-pair.ts';
import { type RegisteredPlace, type Staged, Staging } from './staging.ts';

/** What the chunks of the handshake say in place of a length. */
export const Handshake = Object.freeze({
  REQUEST: 0xfffffffd,
  ROOM: 0xfffffffc,
  DONE: 0xfffffffb,
  REFUSED: 0xfffffffa,
});
/** RDMA requests under way at a time, of all connections. */
export const MOST_TRANSFERS = 16;
/** From here on, identifiers of requests are those of transfers. */
export const TRANSFER_ID = 2 ** 41;
/** Bytes of one request, if the device allows as many. */
const PIECE = 2 ** 30;
const NOTHING = new Uint8Array(0);

/** Writes a message from byte `at` of `memory` on. */
export type Fill = (memory: Uint8Array, at: number) => void;

/** What the messenger does for its long messages. */
export interface Carrier {
  /** Sends a chunk of the handshake behind all that was sent to the peer before. */
  control(peer: number, what: number, context: number, numbers: readonly number[], head: Uint8Array): void;
  /** Sends a message in chunks, in the place of one that was requested. */
  instead(peer: number, context: number, id: number, head: Uint8Array, payload: Uint8Array): void;
  queuePair(peer: number): QueuePair;
  /** A message is complete, and its turn has come. */
  deliver(source: number, context: number, message: Uint8Array): void;
  /** Whether the listener that takes messages of a context keeps nothing of them. */
  borrows(context: number): boolean;
  /** Whether a peer has left in agreement with all, or has failed. */
  hasLeft(peer: number): boolean;
  /** There was no memory for a message. */
  lose(source: number, error: RmaError): void;
}

/** A message that waits for those before it, or for its data. */
export interface Arriving {
  readonly context: number;
  message: Uint8Array;
  isComplete: boolean;
  /** Where it lies, if that is used again. */
  readonly staged?: Staged | undefined;
}

interface Outgoing {
  readonly peer: number;
  readonly context: number;
  readonly head: Uint8Array;
  readonly payload: Uint8Array;
  readonly place: RegisteredPlace;
}

interface Incoming {
  readonly arriving: Arriving;
  /** Where its data goes, if that is given back when it is there. */
  readonly place: RegisteredPlace | undefined;
}

/** Data that an RDMA request moves, or several, one after the other. */
interface Transfer {
  readonly peer: number;
  readonly place: RegisteredPlace;
  readonly address: number;
  readonly rkey: number;
  moved: number;
  /** All requests have been posted. */
  posted(): void;
  /** The last one is complete. */
  complete(): void;
}

export class LongMessages {
  readonly #context: Context;
  readonly #pd: ProtectionDomain;
  readonly #carrier: Carrier;
  readonly #byRead: boolean;
  readonly #piece: number;
  readonly #staging: Staging;
  #lastId = 0;
  readonly #outgoing = new Map<number, Outgoing>();
  /** By source and the sender's number. */
  readonly #incoming = new Map<number, Map<number, Incoming>>();
  /** For each source, its messages from the first long one that is not complete onwards. */
  readonly #behind = new Map<number, Fifo<Arriving>>();
  readonly #waiting = new Fifo<Transfer>();
  readonly #transfers = new Map<number, Transfer>();
  #lastTransfer = 0;

  /** @param byRead the receiver reads; otherwise the sender writes */
  constructor(context: Context, pd: ProtectionDomain, byRead: boolean, carrier: Carrier) {
    this.#context = context;
    this.#pd = pd;
    this.#byRead = byRead;
    this.#carrier = carrier;
    this.#piece = Math.min(PIECE, context.device.maxMsgSize);
    this.#staging = new Staging(context, pd);
  }

  /** Whether this rank has nothing under way, except what ranks that have left did not take. */
  get idle(): boolean {
    if (this.#transfers.size > 0 || this.#waiting.length > 0) return false;
    if (this.#outgoing.size === 0) return true;
    for (const { peer } of this.#outgoing.values()) if (!this.#carrier.hasLeft(peer)) return false;
    return true;
  }

  // ---- sender -------------------------------------------------------------------------------------------------------

  /**
   * Asks a peer to take a message. The payload stays as it is until it has.
   * @returns false if the device has no room for its registration
   */
  offer(peer: number, context: number, head: Uint8Array, payload: Uint8Array): boolean {
    const place = this.#register(payload, this.#byRead ? Access.REMOTE_READ : 0);
    if (place === undefined) return false;
    this.#request(peer, context, head, payload, place);
    return true;
  }

  /**
   * Asks a peer to take a message that `fill` writes, at a multiple of 8.
   * @returns false if there is no room for it in staging memory; nothing was written then
   */
  compose(peer: number, context: number, head: Uint8Array, bytes: number, fill: Fill): boolean {
    const place = this.#staging.take(bytes);
    if (place === undefined) return false;
    const { memory, at } = place;
    try {
      fill(memory, at);
    } catch (error) {
      place.release();
      throw error;
    }
    this.#request(peer, context, head, memory.subarray(at, at + bytes), place);
    return true;
  }

  #request(peer: number, context: number, head: Uint8Array, payload: Uint8Array, place: RegisteredPlace): void {
    const id = ++this.#lastId;
    this.#outgoing.set(id, { peer, context, head, payload, place });
    const { address, rkey } = place;
    const numbers = [id, payload.length, this.#byRead ? address : 0, this.#byRead ? rkey : 0];
    this.#carrier.control(peer, Handshake.REQUEST, context, numbers, head);
  }

  #room(peer: number, id: number, address: number, rkey: number): void {
    const sent = this.#outgoing.get(id)!;
    this.#start({
      peer,
      place: sent.place,
      address,
      rkey,
      moved: 0,
      posted: () => this.#carrier.control(peer, Handshake.DONE, sent.context, [id], NOTHING),
      complete: () => this.#sent(id),
    });
  }

  #refused(peer: number, id: number): void {
    const { context, head, payload } = this.#outgoing.get(id)!;
    this.#carrier.instead(peer, context, id, head, payload);
    this.#sent(id);
  }

  #sent(id: number): void {
    this.#outgoing.get(id)!.place.release();
    this.#outgoing.delete(id);
  }

  // ---- receiver -----------------------------------------------------------------------------------------------------

  /** A chunk of the handshake has come. */
  take(source: number, what: number, context: number, numbers: Float64Array, head: Uint8Array): void {
    const [id, first, second, third] = numbers;
    if (what === Handshake.REQUEST) this.#requested(source, context, id, first, second, third, head);
    else if (what === Handshake.ROOM) this.#room(source, id, first, second);
    else if (what === Handshake.REFUSED) this.#refused(source, id);
    else if (this.#byRead) this.#sent(id);
    else this.#received(source, id);
  }

  /** Whether messages of a source wait for one that is not complete. */
  holds(source: number): boolean {
    return this.#behind.has(source);
  }

  /** Keeps a message that is complete if an earlier one of its source is not. @returns whether it does */
  hold(source: number, context: number, message: Uint8Array): boolean {
    const behind = this.#behind.get(source);
    if (behind === undefined) return false;
    behind.push({ context, message, isComplete: true });
    return true;
  }

  /** The message that comes in chunks in the place of a request. */
  replaced(source: number, id: number): { readonly context: number; readonly bytes: Uint8Array; complete(): void } {
    const { arriving } = this.#incoming.get(source)!.get(id)!;
    return { context: arriving.context, bytes: arriving.message, complete: () => this.#received(source, id) };
  }

  #requested(
    source: number,
    context: number,
    id: number,
    length: number,
    address: number,
    rkey: number,
    head: Uint8Array,
  ): void {
    const total = head.length + length;
    const staged = this.#carrier.borrows(context) ? this.#staging.take(total) : undefined;
    let message: Uint8Array = NOTHING;
    try {
      message = staged?.memory.subarray(staged.at, staged.at + total) ?? new Uint8Array(total);
    } catch (cause) {
      const what = `receive: cannot allocate the ${length} bytes of a message from rank ${source}`;
      this.#carrier.lose(source, new RmaError('ERR_SIZE', `${what}; send it in several messages`, { cause }));
      return;
    }
    message.set(head);
    const access = this.#byRead ? Access.LOCAL_WRITE : Access.LOCAL_WRITE | Access.REMOTE_WRITE;
    const place =
      staged === undefined ? this.#register(message.subarray(head.length), access) : behindHead(staged, head);
    const arriving = { context, message, isComplete: false, staged };
    let behind = this.#behind.get(source);
    if (behind === undefined) this.#behind.set(source, (behind = new Fifo()));
    behind.push(arriving);
    let mine = this.#incoming.get(source);
    if (mine === undefined) this.#incoming.set(source, (mine = new Map()));
    mine.set(id, { arriving, place });
    if (place === undefined) this.#carrier.control(source, Handshake.REFUSED, context, [id], NOTHING);
    else if (!this.#byRead)
      this.#carrier.control(source, Handshake.ROOM, context, [id, place.address, place.rkey], NOTHING);
    else {
      this.#start({
        peer: source,
        place,
        address,
        rkey,
        moved: 0,
        posted: () => {},
        complete: () => {
          this.#carrier.control(source, Handshake.DONE, context, [id], NOTHING);
          this.#received(source, id);
        },
      });
    }
  }

  #received(source: number, id: number): void {
    const mine = this.#incoming.get(source)!;
    const { arriving, place } = mine.get(id)!;
    mine.delete(id);
    place?.release();
    arriving.isComplete = true;
    const behind = this.#behind.get(source)!;
    while (behind.length > 0 && behind.first!.isComplete) {
      const first = behind.shift()!;
      if (behind.length === 0) this.#behind.delete(source);
      this.#deliver(source, first);
    }
  }

  #deliver(source: number, { context, message, staged }: Arriving): void {
    if (staged === undefined) {
      this.#carrier.deliver(source, context, message);
      return;
    }
    try {
      // The listener that borrows may have gone meanwhile; then the message is kept.
      this.#carrier.deliver(source, context, this.#carrier.borrows(context) ? message : message.slice());
    } finally {
      staged.release();
    }
  }

  // ---- transfers ----------------------------------------------------------------------------------------------------

  #start(transfer: Transfer): void {
    this.#waiting.push(transfer);
    this.#post();
  }

  #post(): void {
    while (this.#waiting.length > 0 && this.#transfers.size < MOST_TRANSFERS) {
      const transfer = this.#waiting.shift()!;
      const { peer, place, rkey, moved } = transfer;
      const length = Math.min(this.#piece, place.length - moved);
      const id = ++this.#lastTransfer;
      this.#transfers.set(id, transfer);
      const qp = this.#carrier.queuePair(peer);
      qp.wrStart();
      if (this.#byRead) qp.wrRdmaRead(TRANSFER_ID + id, SendFlag.SIGNALED, rkey, transfer.address + moved);
      else qp.wrRdmaWrite(TRANSFER_ID + id, SendFlag.SIGNALED, rkey, transfer.address + moved);
      qp.wrSetSge(place.lkey, place.address + moved, length);
      qp.wrComplete();
      transfer.moved += length;
      if (transfer.moved === place.length) transfer.posted();
    }
  }

  /** Nothing more is moved from or to those that have left. */
  forgetLeft(): void {
    for (let left = this.#waiting.length; left > 0; left--) {
      const transfer = this.#waiting.shift()!;
      if (!this.#carrier.hasLeft(transfer.peer)) this.#waiting.push(transfer);
    }
  }

  /** A request of a transfer is complete. */
  completed(wrId: number): void {
    const id = wrId - TRANSFER_ID;
    const transfer = this.#transfers.get(id)!;
    this.#transfers.delete(id);
    if (transfer.moved === transfer.place.length) transfer.complete();
    else if (!this.#carrier.hasLeft(transfer.peer)) this.#waiting.push(transfer);
    this.#post();
  }

  /** A request of a transfer has failed: nothing more of it comes. */
  failed(wrId: number): void {
    this.#transfers.delete(wrId - TRANSFER_ID);
    this.#post();
  }

  close(): void {
    for (const { place } of this.#outgoing.values()) place.release();
    for (const mine of this.#incoming.values()) for (const { place } of mine.values()) place?.release();
    this.#staging.close();
  }

  #register(bytes: Uint8Array, access: number): RegisteredPlace | undefined {
    try {
      const memory = this.#context.adoptMemory(bytes.buffer);
      const region = this.#pd.registerMemory(memory, bytes.byteOffset, bytes.length, access);
      const { lkey, rkey, address, length } = region;
      return { lkey, rkey, address, length, release: () => region.deregister() };
    } catch (error) {
      if (error instanceof RmaError) return undefined;
      throw error;
    }
  }
}

/**
 * Where the data of a message goes, if the message lies in staging memory. That memory is given back when the message
 * has been delivered.
 */
function behindHead({ lkey, rkey, address, length }: Staged, head: Uint8Array): RegisteredPlace {
  return { lkey, rkey, address: address + head.length, length: length - head.length, release: () => {} };
}
