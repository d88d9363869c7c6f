/**
 * A helper: something beside the program's processor that serves other ranks' puts and gets of layouts in one part of a
 * window, while the program computes (`Capabilities.helper`).
 *
 * It has a lane for each rank that may ask: two connections. On the first, requests come in and answers of no bytes go
 * out; the data go over the second, so that posted receives meet nothing else. A request is a list of messages, and for
 * each the pieces of the part that it is scattered to, or gathered from: the rank that asks has matched them with the
 * other side's.
 *
 *   PUT   the helper posts receives for the messages, and answers; then they are sent to it
 *   GET   the helper sends the messages, for which receives are posted already
 *
 * A rank asks for at most `HELPER_GROUPS` groups before the first is through. What is not a request, or lies outside of
 * the part, breaks both connections of its lane; so does the end of the rank that asks. A helper waits for no rank.
 */
import type { QpAddress } from './queue-pair-address.ts';

/** Messages of a request. */
export const HELPER_GROUP = 8;
/** Requests of one rank under way. */
export const HELPER_GROUPS = 4;
/** Messages under way on a lane, each way: what its second connection's queues hold. */
export const HELPER_MESSAGES = HELPER_GROUP * HELPER_GROUPS;

export const HelperRequest = Object.freeze({ PUT: 1, GET: 2 });

/** What the request is, how many messages, and how many pieces each of them has: 32 bits each. */
const HEADER_BYTES = 8 + 4 * HELPER_GROUP;
/** Where a piece begins in the part, and its bytes: 64-bit floats. */
const PIECE_BYTES = 16;

/** Bytes of a request whose messages have up to so many pieces. */
export function helperRequestBytes(pieces: number): number {
  return HEADER_BYTES + HELPER_GROUP * pieces * PIECE_BYTES;
}

/** Writes requests to a piece of memory. Allocates once. */
export class HelperRequestWriter {
  readonly #words: Uint32Array;
  readonly #numbers: Float64Array;
  #pieces = 0;
  #message = 0;

  /** @param at a multiple of 8; from here on, `helperRequestBytes` are there */
  constructor(buffer: ArrayBufferLike, at: number, pieces: number) {
    this.#words = new Uint32Array(buffer, at, HEADER_BYTES / 4);
    this.#numbers = new Float64Array(buffer, at + HEADER_BYTES, (HELPER_GROUP * pieces * PIECE_BYTES) / 8);
  }

  begin(what: number): void {
    this.#words[0] = what;
    this.#pieces = 0;
    this.#message = 0;
  }

  piece(offset: number, bytes: number): void {
    this.#numbers[2 * this.#pieces] = offset;
    this.#numbers[2 * this.#pieces + 1] = bytes;
    this.#pieces++;
  }

  /** The pieces since the last one are those of a message. */
  endMessage(): void {
    let before = 0;
    for (let m = 0; m < this.#message; m++) before += this.#words[2 + m];
    this.#words[2 + this.#message++] = this.#pieces - before;
    this.#words[1] = this.#message;
  }

  /** Its bytes. */
  get bytes(): number {
    return HEADER_BYTES + this.#pieces * PIECE_BYTES;
  }
}

/** A lane's ends: of the connection for requests, and of that for data. */
export interface HelperLane {
  readonly control: number;
  readonly data: number;
}

export interface Helper {
  /** Pieces of a message at most. */
  readonly entries: number;
  /** Adds a lane. Errors: `ERR_VERBS` (the device has no room). @returns the numbers of its queue pairs */
  addLane(): HelperLane;
  /** Connects a lane's ends, by the order in which lanes were added. */
  connect(lane: number, control: QpAddress, data: QpAddress): void;
  /** From now on it serves. */
  start(): void;
  /** Ends it, and its connections. Idempotent. Waits for nothing that another rank does. */
  close(): void;
}
