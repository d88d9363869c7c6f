/**
 * Puts and gets that are packed (dissertation §8.2: the generic scheme): the origin gathers the bytes of a put into a
 * message, and the target's processor spreads them; for a get, the target gathers and the origin spreads.
 *
 *   PUT at, skip, bytes, layout, data   ->   DONE      bytes `skip` … `skip` + `bytes` of the layout
 *   GET at, skip, bytes, layout         ->   DATA data
 *   either                              ->   FAILURE code and message
 *
 * What is larger than `CHUNK` goes in several messages, of which `UNDER_WAY` may be on their way to a rank: while one
 * is on the wire, the next is packed, and the one before it unpacked. The first leaves in the call itself, if none
 * waits; the others leave when answers arrive. Answers of one rank arrive in the order of the messages, so nothing is
 * numbered.
 *
 * Each put or get is also a task of the window's requests (request-tasks.ts), which ends with its last answer: flush,
 * fence, complete, requests and notifications wait for it as for any other. With DONE the bytes are in the target's
 * memory, put there by its own processor.
 *
 * Memory at each end, for each rank that it talks to: `UNDER_WAY` messages, which belong to the messenger.
 */
import type { OwnChannel } from '../../collective/communicator.ts';
import { type CopyKernels, copyPlaces, type Places } from '../../datatype/copy.ts';
import type { Side } from '../../datatype/sides.ts';
import { Fifo } from '../../fifo.ts';
import type { Fill } from '../../message/long-messages.ts';
import type { RemotePart } from '../loads/remote-part.ts';
import { ByRank } from '../requests/by-rank.ts';
import type { RequestTransfer } from '../requests/request-transfer.ts';
import { failureIn, failureText } from '../served/operation-messages.ts';
import type { MessageMover } from './layout-moves.ts';
import { decodeLayout, dense, encodeLayout, layoutWords, partOf } from './layout-words.ts';
import { sameLayout } from './matching.ts';
import { MessageWords } from './message-words.ts';
import { Moving, steps } from './moving.ts';
import { RunWalk } from './run-walk.ts';

/** Bytes of a message's data: some tens of microseconds of copying, which is what pipelining hides. */
const CHUNK = 2 ** 16;
/** Messages that may be under way to a rank. */
const UNDER_WAY = 4;
/** A layout of more words is not sent with each chunk; a chunk has the part of it that it needs. */
const WHOLE_LAYOUT = 64;

const What = Object.freeze({ PUT: 1, GET: 2, DONE: 3, DATA: 4, FAILURE: 5 });
/** What the message is, and how many words its layout has: 32 bits each. Answers have the first alone. */
const HEADER = 8;
/** `at`, `skip` and `bytes`. */
const NUMBERS = 24;

interface Chunk {
  readonly operation: Moving;
  readonly skip: number;
  readonly bytes: number;
}

interface Lane {
  /** Operations of which not everything was sent. */
  readonly waiting: Fifo<Moving>;
  /** What answers are expected for, in order. */
  readonly chunks: Fifo<Chunk>;
}

export class PackedTransfers implements MessageMover {
  readonly family = 0;
  readonly #channel: OwnChannel;
  readonly #requests: RequestTransfer;
  readonly #part: () => RemotePart;
  readonly #kernels: CopyKernels | undefined;
  /** Puts and gets that were begun. */
  issued = 0;
  /** The layout that was sent last, and its words: programs move the same one again and again. */
  #said: Places = dense(0);
  #saidWords = encodeLayout(this.#said);
  readonly #words = new MessageWords();
  readonly #lanes = new ByRank((): Lane => ({ waiting: new Fifo(), chunks: new Fifo() }));

  /** @param part this rank's part, or an error if it is gone */
  constructor(
    channel: OwnChannel,
    requests: RequestTransfer,
    part: () => RemotePart,
    kernels: CopyKernels | undefined,
  ) {
    this.#channel = channel;
    this.#requests = requests;
    this.#part = part;
    this.#kernels = kernels;
  }

  /** The arguments are those of `RequestTransfer.put` and `get`. */
  move(puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side): void {
    const operation = this.issue(puts, origin, from, rank, at, to);
    this.#requests.begin(
      rank,
      steps(operation, () => this.#channel.poll()),
    );
  }

  /** The same for a caller that waits for it. */
  issue(puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side): Moving {
    const operation = new Moving(puts, origin, from, rank, at, to);
    const lane = this.#lanes.of(rank);
    this.issued++;
    lane.waiting.push(operation);
    this.#sendMore(rank, lane);
    return operation;
  }

  // ---- the origin ---------------------------------------------------------------------------------------------------

  /** Sends as much of what waits as may be under way. Never throws: the operation's task does. */
  #sendMore(rank: number, { waiting, chunks }: Lane): void {
    while (waiting.length > 0 && chunks.length < UNDER_WAY) {
      const operation = waiting.first!;
      const skip = operation.begun;
      const bytes = Math.min(CHUNK, operation.from.bytes - skip);
      try {
        if (!operation.isThere) throw operation.lost();
        this.#send(rank, operation, skip, bytes);
        operation.begun += bytes;
        operation.left++;
        chunks.push({ operation, skip, bytes });
      } catch (error) {
        operation.giveUp(error);
      }
      if (operation.isBegun) waiting.shift();
    }
  }

  #send(rank: number, { puts, origin, from, at, to }: Moving, skip: number, bytes: number): void {
    const whole = bytes === to.bytes || layoutWords(to) <= WHOLE_LAYOUT;
    const layout = whole ? this.#wordsOf(to) : partOf(to, skip, bytes);
    const data = HEADER + NUMBERS + layout.byteLength;
    this.#channel.compose(rank, data + (puts ? bytes : 0), (memory, start) => {
      const { i32, f64 } = this.#words.of(memory.buffer);
      i32[start / 4] = puts ? What.PUT : What.GET;
      i32[start / 4 + 1] = layout.length;
      const numbers = (start + HEADER) / 8;
      f64[numbers] = at;
      f64[numbers + 1] = whole ? skip : 0;
      f64[numbers + 2] = bytes;
      f64.set(layout, numbers + 3);
      if (puts) this.#gather(from, origin, 0, skip, bytes, memory, start + data);
    });
  }

  #wordsOf(layout: Places): Float64Array {
    if (!sameLayout(layout, this.#said)) {
      this.#said = layout;
      this.#saidWords = encodeLayout(layout);
    }
    return this.#saidWords;
  }

  #takeAnswer(source: number, what: number, message: Uint8Array): void {
    const lane = this.#lanes.of(source);
    const { operation, skip, bytes } = lane.chunks.shift()!;
    operation.left--;
    if (what === What.FAILURE) operation.giveUp(failureIn(source, message.subarray(HEADER)));
    else if (what === What.DATA) {
      const { origin, from } = operation;
      if (!operation.isThere) operation.giveUp(operation.lost());
      else this.#spread(from, origin, 0, skip, bytes, message, HEADER);
    }
    // One that was given up may still stand first.
    while (lane.waiting.first?.isBegun) lane.waiting.shift();
    this.#sendMore(source, lane);
  }

  // ---- the target ---------------------------------------------------------------------------------------------------

  /** Takes a message that has come by the channel; it begins at a multiple of 8, and nothing of it is kept. */
  take(source: number, message: Uint8Array): void {
    const { buffer, byteOffset } = message;
    const { i32, f64 } = this.#words.of(buffer);
    const what = i32[byteOffset / 4];
    if (what >= What.DONE) {
      this.#takeAnswer(source, what, message);
      return;
    }
    const words = i32[byteOffset / 4 + 1];
    const numbers = (byteOffset + HEADER) / 8;
    const at = f64[numbers];
    const skip = f64[numbers + 1];
    const bytes = f64[numbers + 2];
    try {
      const layout = decodeLayout(f64.subarray(numbers + 3, numbers + 3 + words));
      const part = this.#part();
      if (what === What.PUT) {
        this.#spread(layout, part.u8, part.skew + at, skip, bytes, message, HEADER + NUMBERS + 8 * words);
        this.#answer(source, What.DONE, 0, () => {});
      } else {
        this.#answer(source, What.DATA, bytes, (memory, start) =>
          this.#gather(layout, part.u8, part.skew + at, skip, bytes, memory, start),
        );
      }
    } catch (error) {
      const text = failureText(error);
      this.#answer(source, What.FAILURE, text.length, (memory, start) => memory.set(text, start));
    }
  }

  #answer(source: number, what: number, bytes: number, fill: Fill): void {
    this.#channel.compose(source, HEADER + bytes, (memory, start) => {
      this.#words.of(memory.buffer).i32[start / 4] = what;
      fill(memory, start + HEADER);
    });
  }

  // ---- both ---------------------------------------------------------------------------------------------------------

  /** Copies bytes `skip` … of a layout, which begins at byte `at` of `memory`, to `sink`, one after the other. */
  #gather(
    layout: Places,
    memory: Uint8Array,
    at: number,
    skip: number,
    bytes: number,
    sink: Uint8Array,
    sinkAt: number,
  ): void {
    this.#channel.processor.copy(bytes);
    if (bytes === layout.bytes) {
      copyPlaces(layout, memory, at, dense(bytes), sink, sinkAt, this.#kernels);
      return;
    }
    const walk = new RunWalk(layout, skip);
    for (let done = 0; done < bytes && walk.next(bytes - done); done += walk.bytes) {
      const { offset } = walk;
      sink.set(memory.subarray(at + offset, at + offset + walk.bytes), sinkAt + done);
    }
  }

  /** The other way round, from byte `dataAt` of `data` on. */
  #spread(
    layout: Places,
    memory: Uint8Array,
    at: number,
    skip: number,
    bytes: number,
    data: Uint8Array,
    dataAt: number,
  ): void {
    this.#channel.processor.copy(bytes);
    if (bytes === layout.bytes) {
      copyPlaces(dense(bytes), data, dataAt, layout, memory, at, this.#kernels);
      return;
    }
    const walk = new RunWalk(layout, skip);
    for (let done = 0; done < bytes && walk.next(bytes - done); done += walk.bytes)
      memory.set(data.subarray(dataAt + done, dataAt + done + walk.bytes), at + walk.offset);
  }
}
