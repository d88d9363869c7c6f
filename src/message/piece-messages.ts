/**
 * Messages whose parts lie in pieces of memory that all ranks map (shared-pieces.ts). A chunk tells of a part where
 * others have its bytes:
 *
 *     total of the message · length of the part · key and address of its slab · piece · reader · may be kept
 *
 * Parts of one message follow each other on its connection, as chunks do, so order and the end of a message are known
 * in the same way. What finds no piece is put aside and waits in its connection's backlog (remainder.ts).
 *
 * No wait without end. A message that waits gets a piece when its own target has released one, or goes on in plain
 * chunks if that target has none of this rank's pieces to release: it does not depend on what other ranks do. The chunk
 * that tells of a piece that the target has still to release has left before, or will leave: no chunk that tells of a
 * piece is queued behind a message that waits for one (`send`), except for kept pieces, which that message does not
 * count on.
 */
import { RmaError } from '../errors.ts';
import { HEADER_BYTES, IN_PIECE, LENGTH_BYTES, LONG } from './chunk.ts';
import type { MessageConnection } from './message-connections.ts';
import type { PartialMessages } from './partial-messages.ts';
import { Remainder } from './remainder.ts';
import type { ForeignPiece, Piece, SharedPieces } from './shared-pieces.ts';

const PART_NUMBERS = 7;
const PART_BYTES = 8 * PART_NUMBERS;
/** The length of a part that ends a message early, since its sender has no memory for the rest. */
const ENDS = -1;
const NOTHING = new Uint8Array(0);

/** Takes a message where it lies in its sender's memory, and releases that when it needs it no more. */
export type Keep = (source: number, message: Uint8Array, release: () => void) => void;

/** Takes messages as they arrive; `borrows`: it may be given memory that is used again when it returns. */
export interface Listener {
  readonly take: (source: number, message: Uint8Array) => void;
  readonly borrows: boolean;
  readonly keep: Keep | undefined;
}

/** What the messenger does for them. */
interface PieceCarrier {
  to(target: number): MessageConnection;
  hasFailed(peer: number): boolean;
  hasLeft(peer: number): boolean;
  /** Puts a chunk behind those that wait on a connection, and sends what can be sent. */
  queue(connection: MessageConnection, chunk: Uint8Array | Remainder): void;
  listener(context: number): Listener | undefined;
  /** A message was sent to a rank, or has come from one. */
  sent(target: number, bytes: number): void;
  seen(source: number, bytes: number): void;
  lose(source: number, error: RmaError): void;
}

/** What a chunk said of a part. */
interface Part {
  readonly total: number;
  /** Absent if the message ends here. */
  readonly piece: ForeignPiece | undefined;
  /** The reader may release it when it likes. */
  readonly kept: boolean;
}

export class PieceMessages {
  readonly #pieces: SharedPieces;
  readonly #partial: PartialMessages;
  readonly #carrier: PieceCarrier;
  /** Bytes of a plain chunk, with its header. */
  readonly #chunk: number;
  /** From so many bytes on, the length of a message takes 64 bits. */
  readonly #long: number;

  constructor(
    pieces: SharedPieces,
    partial: PartialMessages,
    { chunk, long }: { readonly chunk: number; readonly long: number },
    carrier: PieceCarrier,
  ) {
    this.#pieces = pieces;
    this.#partial = partial;
    this.#chunk = chunk;
    this.#long = long;
    this.#carrier = carrier;
  }

  /** Bytes of a message that can be shared. */
  get sharedBytes(): number {
    return this.#pieces.bytes;
  }

  /** Sends a message; it is copied before this returns. */
  send(connection: MessageConnection, context: number, payload: Uint8Array, head: Uint8Array): void {
    const { peer } = connection;
    if (this.#carrier.hasFailed(peer)) return;
    const total = head.length + payload.length;
    const readers = [peer];
    let at = 0;
    while (at < total && connection.remainders === 0) {
      const piece = this.#pieces.takeSoon(readers, total - at);
      if (piece === undefined) break;
      const length = fillPart(piece.bytes, head, payload, at);
      this.#carrier.queue(connection, partChunk(context, piece, total, length, 0));
      at += length;
    }
    if (at === total) return;
    let rest: Uint8Array;
    try {
      rest = new Uint8Array(total - at);
    } catch (error) {
      // What has left leads nowhere.
      if (at > 0) this.#carrier.queue(connection, endChunk(context, total));
      throw error;
    }
    fillPart(rest, head, payload, at);
    this.#carrier.queue(connection, new Remainder(context, total, rest));
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
    const pieces = this.#pieces;
    const total = head.length + payload.length;
    if (total > pieces.bytes) return undefined;
    const connections = targets.map((target) => this.#carrier.to(target));
    const piece = pieces.take(targets, true);
    if (piece === undefined) return undefined;
    fillPart(piece.bytes, head, payload, 0);
    for (const [reader, target] of targets.entries()) {
      this.#carrier.sent(target, total);
      this.#carrier.queue(connections[reader], partChunk(context, piece, total, total, reader));
    }
    const { use } = piece;
    return () => pieces.reader(piece, use);
  }

  /** The next chunk of a message that waits; `undefined` if it waits on, for a piece that its target will release. */
  next(rest: Remainder, peer: number): Uint8Array | undefined {
    const { context, total, bytes } = rest;
    const piece = this.#pieces.take([peer], false);
    if (piece !== undefined) {
      const length = fillPart(piece.bytes, NOTHING, bytes, rest.at);
      rest.at += length;
      return partChunk(context, piece, total, length, 0);
    }
    return this.#pieces.comesBackFrom(peer) ? undefined : this.#plainChunk(rest);
  }

  #plainChunk(rest: Remainder): Uint8Array {
    const { context, total, bytes, at, isWhole } = rest;
    const mark = total >= this.#long ? LONG : total;
    const before = isWhole && at === 0 && mark === LONG ? LENGTH_BYTES : 0;
    const length = Math.min(this.#chunk - HEADER_BYTES - before, bytes.length - at);
    const chunk = new Uint8Array(HEADER_BYTES + before + length);
    new Uint32Array(chunk.buffer, 0, HEADER_BYTES / 4).set([context, mark]);
    if (before > 0) new Float64Array(chunk.buffer, HEADER_BYTES, 1)[0] = total;
    chunk.set(bytes.subarray(at, at + length), HEADER_BYTES + before);
    rest.at += length;
    return chunk;
  }

  /** A chunk has come that tells of a part. @param at where its numbers begin in `buffer`, in bytes */
  take(source: number, context: number, buffer: ArrayBufferLike, at: number): void {
    let part: Part;
    try {
      part = readPart(this.#pieces, source, buffer, at);
    } catch (error) {
      // Mostly its sender has gone: nothing more of the message comes.
      if (!(error instanceof RmaError)) throw error;
      if (!this.#carrier.hasLeft(source)) this.#carrier.lose(source, error);
      return;
    }
    const { total, piece, kept } = part;
    if (piece === undefined) {
      this.#partial.end(source);
      return;
    }
    let message = this.#partial.of(source);
    if (message === undefined && piece.bytes.length === total && this.#lend(source, context, piece, kept)) return;
    message ??= this.#partial.beginInPlace(source, context, total);
    try {
      this.#partial.fill(source, message, piece.bytes);
    } finally {
      piece.release();
    }
  }

  /** Gives a message that is whole to a listener where it lies. @returns false if it must be copied */
  #lend(source: number, context: number, piece: ForeignPiece, kept: boolean): boolean {
    const listener = this.#carrier.listener(context);
    if (kept && listener?.keep !== undefined) {
      this.#carrier.seen(source, piece.bytes.length);
      listener.keep(source, piece.bytes, piece.release);
      return true;
    }
    if (listener?.borrows !== true) return false;
    this.#carrier.seen(source, piece.bytes.length);
    try {
      listener.take(source, piece.bytes);
    } finally {
      piece.release();
    }
    return true;
  }

  close(): void {
    this.#pieces.close();
  }
}

/** Errors: `ERR_VERBS` if the memory cannot be mapped. */
function readPart(pieces: SharedPieces, source: number, buffer: ArrayBufferLike, at: number): Part {
  const [total, length, rkey, address, number, reader, kept] = new Float64Array(buffer, at, PART_NUMBERS);
  const piece = length === ENDS ? undefined : pieces.find(source, rkey, address, number, length, reader);
  return { total, piece, kept: kept === 1 };
}

/** A chunk that tells of a part. @param reader the place of its reader among those of the piece */
function partChunk(context: number, piece: Piece, total: number, length: number, reader: number): Uint8Array {
  return chunkOf(context, [total, length, piece.rkey, piece.address, piece.number, reader, piece.kept ? 1 : 0]);
}

/** One that says that a message ends. */
function endChunk(context: number, total: number): Uint8Array {
  return chunkOf(context, [total, ENDS]);
}

function chunkOf(context: number, numbers: readonly number[]): Uint8Array {
  const chunk = new Uint8Array(HEADER_BYTES + PART_BYTES);
  new Uint32Array(chunk.buffer, 0, HEADER_BYTES / 4).set([context, IN_PIECE]);
  new Float64Array(chunk.buffer, HEADER_BYTES).set(numbers);
  return chunk;
}

/** Copies what fits of a head and a payload, from byte `at` of both together on. @returns how much */
function fillPart(to: Uint8Array, head: Uint8Array, payload: Uint8Array, at: number): number {
  const length = Math.min(to.length, head.length + payload.length - at);
  const ofHead = Math.max(0, Math.min(length, head.length - at));
  if (ofHead > 0) to.set(head.subarray(at, at + ofHead));
  const from = Math.max(0, at - head.length);
  if (length > ofHead) to.set(payload.subarray(from, from + length - ofHead), ofHead);
  return length;
}
