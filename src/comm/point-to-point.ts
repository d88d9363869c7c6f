/** Messages from rank to rank: each message from a source goes to the oldest receive from it. */
import { bytesOf, type TypedArray } from '../datatype/base.ts';
import { RmaError } from '../errors.ts';
import type { Channel } from './collectives.ts';
import type { Operation } from './operation.ts';

/** `receive` from `Rank.NULL`. */
export const NOTHING_TO_RECEIVE: Operation = {
  advance: () => true,
  describe: () => 'receive() from Rank.NULL',
};

/** One `receive`. Whoever advances it advances those before it first, so each gets the message that is its. */
class Receive implements Operation {
  readonly #channel: Channel;
  readonly #buffer: TypedArray;
  readonly #bytes: number;
  readonly #source: number;
  readonly #line: Receive[];
  #complete = false;
  #error: RmaError | undefined;

  constructor(channel: Channel, buffer: TypedArray, source: number, line: Receive[]) {
    this.#channel = channel;
    this.#buffer = buffer;
    this.#bytes = buffer.byteLength;
    this.#source = source;
    this.#line = line;
  }

  advance(): boolean {
    while (!this.#complete) {
      const message = this.#channel.receive(this.#source);
      if (message === undefined) return false;
      this.#line.shift()!.#take(message);
    }
    if (this.#error !== undefined) throw this.#error;
    return true;
  }

  describe(): string {
    return `receive() from rank ${this.#source}`;
  }

  abandon(): void {
    const at = this.#line.indexOf(this);
    if (at >= 0) this.#line.splice(at, 1);
  }

  #take(message: Uint8Array): void {
    this.#complete = true;
    if (message.length !== this.#bytes) {
      this.#error = new RmaError(
        'ERR_TRUNCATE',
        `receive: the message from rank ${this.#source} has ${message.length} bytes, but the buffer has ${this.#bytes}`,
      );
      return;
    }
    try {
      bytesOf(this.#buffer).set(message);
    } catch (cause) {
      this.#error = new RmaError(
        'ERR_BUFFER',
        `receive: the buffer was transferred or resized before the message from rank ${this.#source} came, which is lost; leave buffers alone until the call is complete`,
        { cause },
      );
    }
  }
}

export class PointToPoint {
  readonly #channel: Channel;
  /** Receives that wait, by source, in the order of the calls: messages go to them in that order. */
  readonly #receiving = new Map<number, Receive[]>();

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  send(target: number, payload: Uint8Array): void {
    this.#channel.send(target, payload);
  }

  receive(buffer: TypedArray, source: number): Operation {
    let line = this.#receiving.get(source);
    if (line === undefined) {
      line = [];
      this.#receiving.set(source, line);
    }
    const receive = new Receive(this.#channel, buffer, source, line);
    line.push(receive);
    return receive;
  }
}
