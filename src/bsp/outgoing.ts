/**
 * What a process has asked for in a superstep: puts and messages, and requests of gets, packed for each destination as
 * they are called (BSP-IB §3.1), so that the source may be changed at once. Also where the results of its gets go.
 */
import type { TypedArray } from '../datatype/base-types.ts';
import type { Processor } from '../verbs/processor.ts';
import { fitsShort, HEADER_WORDS, MESSAGE, MESSAGE_MORE, shortHeader } from './chunk-records.ts';
import { type ChunkPool, Stream } from './chunks.ts';
import { type Part, packBytes, packDouble, packElements } from './element-words.ts';
import { Results } from './get-results.ts';
import type { RepeatedPut } from './repeated.ts';
import type { Slot } from './slot.ts';
import { atPid } from './variables.ts';

const DOUBLE = 8;
/** A piece of data is worth the rest of a chunk from so many words on. */
const LEAST_PIECE = 64;

/** Of up to 2³¹ − 1 bytes. */
const wordsFor = (bytes: number): number => (bytes + 3) >>> 2;

/** Another way for puts than in chunks with everything else. */
export interface Route {
  /** Takes a put, or leaves it. @param at byte of the variable */
  put(pid: number, slot: Slot, at: number, part: Part): boolean;
  /** Bytes that went this way to others; the caller takes and clears them. */
  sent: number;
}

export class Outgoing {
  /** By destination; made when first used. */
  readonly puts: (Stream | undefined)[];
  readonly gets: (Stream | undefined)[];
  /** What comes back from each process. */
  readonly results: (Results | undefined)[];
  /** Calls of this superstep whose elements go another way than in chunks. */
  apart = 0;
  /** Nothing was asked for in this superstep. */
  isEmpty = true;
  readonly #pool: () => ChunkPool;
  readonly #short: boolean;
  readonly #processor: Processor;
  readonly #route: Route | undefined;

  /**
   * @param pool the one of the superstep under way
   * @param route asked first
   * @param short whether headers are compressed
   */
  constructor(nprocs: number, pool: () => ChunkPool, route: Route | undefined, short: boolean, processor: Processor) {
    this.#route = route;
    this.puts = new Array<undefined>(nprocs).fill(undefined);
    this.gets = new Array<undefined>(nprocs).fill(undefined);
    this.results = new Array<undefined>(nprocs).fill(undefined);
    this.#pool = () => {
      this.isEmpty = false;
      return pool();
    };
    this.#short = short;
    this.#processor = processor;
  }

  /**
   * To byte `at` of a variable at a process, which has room.
   * Errors: `ERR_SIZE`.
   */
  put(pid: number, variable: Slot, at: number, part: Part): void {
    if (this.#route?.put(pid, variable, at, part) === true) {
      this.isEmpty = false;
      this.apart++;
      return;
    }
    const slot = variable.id;
    const stream = this.puts[pid] ?? this.#make(this.puts, pid);
    const bytes = part.count * part.width;
    const words = wordsFor(bytes);
    const isShort = this.#short && ((bytes | at) & 3) === 0 && fitsShort(slot, at >> 2, words);
    const header = isShort ? 1 : HEADER_WORDS;
    this.#processor.record(bytes + 4 * header);
    if (stream.end - stream.pos < header + words) {
      if (words > LEAST_PIECE) {
        this.#putPieces(stream, slot, at, part, bytes);
        return;
      }
      stream.grow();
    }
    stream.data += bytes;
    stream.calls++;
    const { i32, pos } = stream;
    if (isShort) i32[pos] = shortHeader(slot, at >> 2, words);
    else {
      i32[pos] = slot;
      i32[pos + 1] = at;
      i32[pos + 2] = bytes;
    }
    const data = pos + header;
    stream.pos = data + words;
    if (part.count === 1 && part.tag === 'Float64Array') packDouble(i32, data, part.array as Float64Array, part.start);
    else packElements(i32, stream.u8, data, part);
  }

  /** Has `repeated` append doubles like one that was put, if such puts go into chunks and nothing else counts them. */
  remember(
    repeated: RepeatedPut,
    pid: number,
    variable: TypedArray,
    { id, lengths }: Slot,
    source: Float64Array,
  ): void {
    const stream = this.puts[pid];
    if (stream === undefined || this.#route !== undefined || this.#processor.isVirtual) return;
    const room = Math.floor(atPid(lengths, pid) / DOUBLE);
    repeated.remember(pid, source, variable, id, room, this.#short && fitsShort(id, 0, DOUBLE / 4), stream);
  }

  /** A message of a payload and, behind it, a tag: bytes of two arrays. Errors: `ERR_SIZE`. */
  send(pid: number, payload: TypedArray, payloadBytes: number, tag: TypedArray | undefined, tagBytes: number): void {
    const stream = this.puts[pid] ?? this.#make(this.puts, pid);
    const total = payloadBytes + tagBytes;
    this.#processor.record(total + 4 * HEADER_WORDS);
    if (stream.end - stream.pos >= HEADER_WORDS + wordsFor(total)) {
      sendPieces(stream, payload, payloadBytes, tag, total);
    } else {
      const before = stream.state();
      try {
        sendPieces(stream, payload, payloadBytes, tag, total);
      } catch (error) {
        stream.restore(before);
        throw error;
      }
    }
    stream.data += total;
    stream.calls++;
  }

  /** Asks for bytes of a variable at a process, from `at` on, which go to elements of an array. Errors: `ERR_SIZE`. */
  get(pid: number, slot: number, at: number, { array, start, count, width }: Part): void {
    const bytes = count * width;
    const stream = this.gets[pid] ?? this.#make(this.gets, pid);
    if (stream.end - stream.pos < HEADER_WORDS) stream.grow();
    stream.calls++;
    writeHeader(stream, slot, at, bytes, 0);
    this.results[pid] ??= new Results();
    this.results[pid].expect(array, start * width, bytes);
  }

  /**
   * Tells a process of bytes that so many calls of `hpput` write and of `hpget` read there, for its report: nothing
   * else says so. The calls themselves are among `apart`. Errors: `ERR_SIZE`.
   */
  tellDirect(pid: number, calls: number, written: number, read: number): void {
    const stream = this.gets[pid] ?? this.#make(this.gets, pid);
    if (stream.end - stream.pos < HEADER_WORDS) stream.grow();
    writeHeader(stream, -calls, written, read, 0);
    // There are none, which the process says, too.
    this.results[pid] ??= new Results();
  }

  /** Bytes of data that go to the others, and that they send for this one's gets. */
  bytesBeside(pid: number): { readonly sent: number; readonly got: number } {
    let [sent, got] = [0, 0];
    for (let other = 0; other < this.puts.length; other++) {
      if (other === pid) continue;
      sent += this.puts[other]?.data ?? 0;
      got += this.results[other]?.bytes ?? 0;
    }
    return { sent, got };
  }

  /** Calls of this superstep that concern others than process `pid`, which is this one. */
  callsBeside(pid: number): number {
    let calls = this.apart;
    if (this.isEmpty) return calls;
    for (let other = 0; other < this.puts.length; other++) {
      if (other !== pid) calls += (this.puts[other]?.calls ?? 0) + (this.gets[other]?.calls ?? 0);
    }
    return calls;
  }

  /** The superstep is over; its chunks have been read. */
  reset(): void {
    this.apart = 0;
    if (this.isEmpty) return;
    this.isEmpty = true;
    for (let pid = 0; pid < this.puts.length; pid++) {
      this.puts[pid]?.reset();
      this.gets[pid]?.reset();
      this.results[pid]?.reset();
    }
  }

  #make(streams: (Stream | undefined)[], pid: number): Stream {
    const stream = new Stream(this.#pool);
    streams[pid] = stream;
    return stream;
  }

  /** A put that does not fit into what is left of the chunk: as several. */
  #putPieces(stream: Stream, slot: number, at: number, part: Part, bytes: number): void {
    const start = part.start * part.width;
    const before = stream.state();
    try {
      for (let done = 0; done < bytes; ) {
        const piece = roomFor(stream, bytes - done);
        const pos = 4 * (stream.pos + HEADER_WORDS);
        writeHeader(stream, slot, at + done, piece, wordsFor(piece));
        packBytes(stream.u8, pos, part.array, start + done, piece);
        done += piece;
      }
    } catch (error) {
      stream.restore(before);
      throw error;
    }
    stream.data += bytes;
    stream.calls++;
  }
}

/** A message, in as many records as chunks have room for. Errors: `ERR_SIZE`, with some of them written. */
function sendPieces(
  stream: Stream,
  payload: TypedArray,
  payloadBytes: number,
  tag: TypedArray | undefined,
  total: number,
): void {
  let done = 0;
  do {
    const bytes = roomFor(stream, total - done);
    const pos = 4 * (stream.pos + HEADER_WORDS);
    writeHeader(stream, done === 0 ? MESSAGE : MESSAGE_MORE, done === 0 ? total : 0, bytes, wordsFor(bytes));
    const ofPayload = Math.min(bytes, Math.max(0, payloadBytes - done));
    if (ofPayload > 0) packBytes(stream.u8, pos, payload, done, ofPayload);
    if (ofPayload < bytes) {
      packBytes(stream.u8, pos + ofPayload, tag!, done + ofPayload - payloadBytes, bytes - ofPayload);
    }
    done += bytes;
  } while (done < total);
}

/** Moves the stream behind the record. */
function writeHeader(stream: Stream, first: number, second: number, third: number, words: number): void {
  const { i32, pos } = stream;
  i32[pos] = first;
  i32[pos + 1] = second;
  i32[pos + 2] = third;
  stream.pos = pos + HEADER_WORDS + words;
}

/** How many of these bytes the next record takes: in this chunk, or in a new one if little is left here. */
function roomFor(stream: Stream, bytes: number): number {
  const wanted = Math.min(wordsFor(bytes), LEAST_PIECE);
  if (stream.end - stream.pos - HEADER_WORDS < wanted) stream.grow();
  return Math.min(bytes, 4 * (stream.end - stream.pos - HEADER_WORDS));
}
