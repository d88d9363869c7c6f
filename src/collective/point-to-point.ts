/**
 * Messages from rank to rank: each message from a source goes to the oldest receive from it with its tag.
 *
 * Messages without a tag (tag 0) have a space of their own, in which nothing is matched but the source. All others
 * share a second space and begin with their tag. No receive takes messages of several tags, so no program sees in which
 * order messages of different tags came.
 *
 * A receive that looks for its message takes all earlier messages out of the second space, and keeps them by source and
 * tag. Only this rank's thread touches what is kept. A receive looks there first, so it finds its message whichever
 * receive took it in. And no wake-up is lost: a message that arrives after a waiting rank has polled rings the bell,
 * and then all waiting receives are looked at once more.
 */
import { bytesOf, type TypedArray } from '../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { Fifo } from '../fifo.ts';
import type { Channel } from '../message/message-channel.ts';
import type { Place } from '../message/partial-messages.ts';
import { refuseUnknown } from '../options.ts';
import type { Operation, WaitOptions } from '../wait/operation.ts';

/** Options of `send`. */
export interface SendOptions {
  /** Only a receive with the same tag takes the message: 0 … 2^31 − 1; 0 if absent. */
  readonly tag?: number | undefined;
}

/** Options of `receive`. */
export interface ReceiveOptions extends WaitOptions {
  /** Messages with other tags are left for other receives: 0 … 2^31 − 1; 0 if absent. */
  readonly tag?: number | undefined;
}

const MOST_TAG = 2 ** 31 - 1;
const TAG_BYTES = 4;

/** The tag in the options of a call, read once. */
export function readTag(call: string, options: SendOptions | undefined): number {
  if (options === undefined) return 0;
  const tag: unknown = reading(call, 'tag of the options', () => options.tag);
  if (tag === undefined) return 0;
  if (typeof tag !== 'number') throw argumentTypeError(`${call}: tag must be a number, not ${show(tag)}`);
  if (!Number.isInteger(tag) || tag < 0 || tag > MOST_TAG) {
    throw argumentRangeError(`${call}: tag must be an integer from 0 to ${MOST_TAG}, not ${show(tag)}`);
  }
  return tag;
}

/** The options of `send`. */
export function readSend(call: string, options: SendOptions | undefined): number {
  if (options === undefined) return 0;
  if (typeof options !== 'object' || options === null) {
    throw argumentTypeError(`${call}: options must be { tag }, not ${show(options)}`);
  }
  refuseUnknown(call, 'the options', options, ['tag']);
  return readTag(call, options);
}

/** `receive` from `Rank.NULL`. */
export const NOTHING_TO_RECEIVE: Operation = {
  advance: () => true,
  describe: () => 'receive() from Rank.NULL',
};

/** One `receive`. Advancing it advances those before it first, so each gets the message that belongs to it. */
class Receive implements Operation {
  readonly #next: (source: number) => Uint8Array | undefined;
  readonly #exchange: RoomChannel['exchange'];
  readonly #buffer: TypedArray;
  readonly #bytes: number;
  readonly #source: number;
  readonly #tag: number;
  readonly #line: Receive[];
  #complete = false;
  #error: RmaError | undefined;
  /** Where its message comes in, if that is its buffer, or was its buffer until the receive ended early. */
  #place: Place | undefined;

  /** @param line those of the same source and tag that wait, whose messages `next` gives */
  constructor({ next, line, exchange }: Line, buffer: TypedArray, source: number, tag: number) {
    this.#next = next;
    this.#exchange = exchange;
    this.#buffer = buffer;
    this.#bytes = buffer.byteLength;
    this.#source = source;
    this.#tag = tag;
    this.#line = line;
  }

  advance(): boolean {
    while (!this.#complete) {
      const message = this.#next(this.#source);
      if (message === undefined) return false;
      this.#line.shift()!.#take(message);
    }
    if (this.#error !== undefined) throw this.#error;
    return true;
  }

  describe(): string {
    return `receive() from rank ${this.#source}${this.#tag === 0 ? '' : ` (tag ${this.#tag})`}`;
  }

  abandon(): void {
    const at = this.#line.indexOf(this);
    if (at >= 0) this.#line.splice(at, 1);
    if (this.#place === undefined || this.#complete) return;
    // The message is that of the next receive. What there is no memory for is lost.
    const from = this.#place.bytes;
    try {
      this.#place.bytes = from?.slice();
    } catch {
      this.#place.bytes = undefined;
    }
    // All of it may have come already.
    if (from !== undefined) this.#exchange(this.#source, from, this.#place.bytes);
  }

  /**
   * Its buffer, for a message of so many bytes that comes next. Only the first in line is asked for it, and only when
   * no message waits to be taken.
   */
  room(bytes: number): Place | undefined {
    if (this.#place !== undefined || this.#complete || bytes !== this.#bytes) return undefined;
    try {
      const own = bytesOf(this.#buffer);
      if (own.length !== bytes) return undefined;
      this.#place = { bytes: own };
    } catch {
      return undefined;
    }
    return this.#place;
  }

  #take(message: Uint8Array): void {
    this.#complete = true;
    const isInPlace = message === this.#place?.bytes;
    if (isInPlace && message.length === this.#bytes) return;
    if (!isInPlace && message.length !== this.#bytes) {
      this.#error = new RmaError(
        'ERR_TRUNCATE',
        `receive: the message from rank ${this.#source} has ${message.length} bytes, but the buffer has ${this.#bytes}`,
      );
      return;
    }
    try {
      if (isInPlace) throw new TypeError('the buffer has lost its memory');
      bytesOf(this.#buffer).set(message);
    } catch (cause) {
      this.#error = new RmaError(
        'ERR_BUFFER',
        `receive: the buffer was transferred or resized before the message from rank ${this.#source} came, ` +
          'which is lost; leave buffers alone until the call is complete',
        { cause },
      );
    }
  }
}

/** The receives of one source and tag that wait, in the order of the calls: messages go to them in that order. */
interface Line {
  readonly next: (source: number) => Uint8Array | undefined;
  readonly line: Receive[];
  readonly exchange: RoomChannel['exchange'];
}

/** A channel that can put long messages where they are waited for. */
export interface RoomChannel {
  /** @param room asked for the next message of a source, when no earlier one waits to be taken */
  receiveInto(room: (source: number, bytes: number) => Place | undefined): () => void;
  /** A message that has come where it was waited for, and was not received, is in other memory now. */
  exchange(source: number, from: Uint8Array, to: Uint8Array | undefined): void;
  /** There is a first receive for a source now: what is on its way in may go there. */
  awaitFrom(source: number): void;
}

export class PointToPoint {
  readonly #plain: Channel & RoomChannel;
  readonly #tagged: Channel;
  /** The lines of tag 0, by source. */
  readonly #receiving = new Map<number, Line>();
  /** The others, by source and tag. */
  readonly #taggedLines = new Map<number, Map<number, Line>>();
  /** Messages with a tag that no receive has taken, by source and tag. An entry has at least one. */
  readonly #unexpected = new Map<number, Map<number, Fifo<Uint8Array>>>();
  readonly #endRooms: () => void;
  readonly #nextPlain = (source: number): Uint8Array | undefined => this.#plain.receive(source);

  /**
   * @param plain for messages of tag 0
   * @param tagged for all others; nothing else goes through either
   */
  constructor(plain: Channel & RoomChannel, tagged: Channel) {
    this.#plain = plain;
    this.#tagged = tagged;
    this.#endRooms = plain.receiveInto((source, bytes) => this.#receiving.get(source)?.line[0]?.room(bytes));
  }

  /** The communicator has ended. */
  end(): void {
    this.#endRooms();
  }

  send(target: number, payload: Uint8Array, tag: number): void {
    if (tag === 0) {
      this.#plain.send(target, payload);
      return;
    }
    const message = new Uint8Array(TAG_BYTES + payload.length);
    new DataView(message.buffer).setUint32(0, tag, true);
    message.set(payload, TAG_BYTES);
    this.#tagged.send(target, message);
  }

  receive(buffer: TypedArray, source: number, tag: number): Operation {
    const line = tag === 0 ? this.#plainLine(source) : this.#taggedLine(source, tag);
    const receive = new Receive(line, buffer, source, tag);
    line.line.push(receive);
    if (tag === 0 && line.line.length === 1) this.#plain.awaitFrom(source);
    return receive;
  }

  #plainLine(source: number): Line {
    let line = this.#receiving.get(source);
    if (line === undefined) {
      line = { next: this.#nextPlain, line: [], exchange: this.#plain.exchange };
      this.#receiving.set(source, line);
    }
    return line;
  }

  /**
   * Lines in which no receive waits are dropped when another is made, so that tags that are used once do not pile up.
   */
  #taggedLine(source: number, tag: number): Line {
    let lines = this.#taggedLines.get(source);
    if (lines === undefined) {
      lines = new Map();
      this.#taggedLines.set(source, lines);
    }
    let line = lines.get(tag);
    if (line === undefined) {
      for (const [known, { line: waiting }] of lines) if (waiting.length === 0) lines.delete(known);
      line = { next: () => this.#nextTagged(source, tag), line: [], exchange: () => {} };
      lines.set(tag, line);
    }
    return line;
  }

  #nextTagged(source: number, tag: number): Uint8Array | undefined {
    const kept = this.#takeKept(source, tag);
    if (kept !== undefined) return kept;
    for (;;) {
      const message = this.#tagged.receive(source);
      if (message === undefined) return undefined;
      const itsTag = new DataView(message.buffer, message.byteOffset).getUint32(0, true);
      const payload = message.subarray(TAG_BYTES);
      if (itsTag === tag) return payload;
      this.#keep(source, itsTag, payload);
    }
  }

  #keep(source: number, tag: number, payload: Uint8Array): void {
    let tags = this.#unexpected.get(source);
    if (tags === undefined) {
      tags = new Map();
      this.#unexpected.set(source, tags);
    }
    let messages = tags.get(tag);
    if (messages === undefined) {
      messages = new Fifo();
      tags.set(tag, messages);
    }
    messages.push(payload);
  }

  #takeKept(source: number, tag: number): Uint8Array | undefined {
    const tags = this.#unexpected.get(source);
    const messages = tags?.get(tag);
    if (messages === undefined) return undefined;
    const message = messages.shift();
    if (messages.length === 0) tags!.delete(tag);
    return message;
  }
}
