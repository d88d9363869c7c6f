/**
 * Chunks as packets: those of one process to another in one superstep are one line of bytes, which is cut into packets
 * of equal length, the last one shorter. A packet may have the end of one chunk and the beginning of the next. The
 * receiver puts chunks together again.
 *
 * Packets come in order, so they need no headers: a chunk says itself how long it is, in the word that has its kind.
 */
import { RmaError } from '../../errors.ts';
import { CHUNK_BYTES, type Chunk } from '../chunks.ts';
import type { Buffer } from './carrier-user.ts';

/** A part of a packet. */
export interface Piece {
  readonly chunk: Chunk;
  /** Bytes of the chunk from which on, and how many. */
  readonly from: number;
  readonly bytes: number;
}

/** Bytes of a chunk in front of its records. */
const HEAD_BYTES = 8;
/** Kinds are below 2 to this power; the length of a chunk lies above. */
const KIND_BITS = 8;

/** How packets are cut. */
export interface PacketSize {
  /** Bytes of a packet at most. */
  readonly bytes: number;
  /** Chunks of which a packet has something at most: entries of a request. */
  readonly pieces: number;
}

/** Packets for chunks of these bytes. */
export function packetsFor(chunks: readonly number[], { bytes, pieces }: PacketSize): number {
  let packets = 0;
  let [room, left] = [0, 0];
  for (const length of chunks) {
    let rest = length;
    while (rest > 0) {
      if (room === 0 || left === 0) {
        packets++;
        room = bytes;
        left = pieces;
      }
      const taken = Math.min(room, rest);
      rest -= taken;
      room -= taken;
      left--;
    }
  }
  return packets;
}

/** Chunks that wait for one process. */
export class Line {
  readonly pid: number;
  readonly #chunks: Piece[] = [];
  /** The chunk that the next packet begins in, and where. */
  #first = 0;
  #from = 0;

  constructor(pid: number) {
    this.pid = pid;
  }

  add(chunk: Chunk, bytes: number): void {
    chunk.i32[chunk.at + 1] |= bytes << KIND_BITS;
    this.#chunks.push({ chunk, from: 0, bytes });
  }

  get isEmpty(): boolean {
    return this.#first === this.#chunks.length;
  }

  /** The next packet. */
  take({ bytes, pieces }: PacketSize): Piece[] {
    const packet: Piece[] = [];
    for (let room = bytes; room > 0 && packet.length < pieces && !this.isEmpty; ) {
      const { chunk, bytes: length } = this.#chunks[this.#first];
      const taken = Math.min(room, length - this.#from);
      packet.push({ chunk, from: this.#from, bytes: taken });
      room -= taken;
      this.#from += taken;
      if (this.#from < length) continue;
      this.#first++;
      this.#from = 0;
    }
    return packet;
  }
}

/** A chunk that is being put together. */
interface Part {
  readonly buffer: Buffer;
  /** Bytes that are there, and that there will be: of its head first. */
  have: number;
  need: number;
}

/** What `Assembly` hands over. */
interface Whole {
  readonly pid: number;
  readonly buffer: Buffer;
  readonly bytes: number;
}

/**
 * Chunks that have come, or are coming. Their memory is bounded: while `most` whole chunks are kept, no other chunk is
 * begun (`accepts`), so that packets wait in the carrier's buffers, and behind these at their senders. A chunk that has
 * begun can always be completed: each process has one such at most.
 */
export class Assembly {
  readonly #most: number;
  readonly #parts = new Map<number, Part>();
  readonly #free: Buffer[] = [];
  #made = 0;
  /** Whole chunks that are kept. */
  #kept = 0;
  /** Those that `add` has completed. */
  readonly whole: Whole[] = [];

  /** @param most whole chunks that are kept at once */
  constructor(most: number) {
    this.#most = most;
  }

  get bytes(): number {
    return this.#made * CHUNK_BYTES;
  }

  /** There is room for a packet. */
  accepts(pid: number): boolean {
    return this.#kept < this.#most || this.#parts.has(pid);
  }

  /**
   * Takes from the packet of a process what it can.
   * @param from of its bytes
   * @returns up to which byte; the rest begins a chunk for which there is no room
   * Errors: `ERR_VERBS`, from then on, if a chunk says a length that no chunk has.
   */
  add(pid: number, packet: Uint8Array, from: number): number {
    let at = from;
    while (at < packet.length && this.accepts(pid)) {
      const part = this.#parts.get(pid) ?? this.#begin(pid);
      const taken = Math.min(part.need - part.have, packet.length - at);
      part.buffer.u8.set(packet.subarray(at, at + taken), part.have);
      part.have += taken;
      at += taken;
      this.#look(pid, part);
    }
    return at;
  }

  release(buffer: Buffer): void {
    this.#kept--;
    this.#free.push(buffer);
  }

  #begin(pid: number): Part {
    const part = { buffer: this.#free.pop() ?? this.#make(), have: 0, need: HEAD_BYTES };
    this.#parts.set(pid, part);
    return part;
  }

  #make(): Buffer {
    const u8 = new Uint8Array(CHUNK_BYTES);
    return { i32: new Int32Array(u8.buffer), u8, slot: this.#made++ };
  }

  #look(pid: number, part: Part): void {
    if (part.have < part.need) return;
    const { i32 } = part.buffer;
    if (part.need === HEAD_BYTES) {
      // The length comes from another process: it is checked before it is used. The head stays as it is, so a later
      // look finds the same.
      const bytes = i32[1] >>> KIND_BITS;
      if (bytes < HEAD_BYTES || bytes > CHUNK_BYTES || bytes % 4 !== 0) throw wrongLength(pid, bytes);
      part.need = bytes;
      i32[1] &= (1 << KIND_BITS) - 1;
      if (part.have < part.need) return;
    }
    this.#parts.delete(pid);
    this.#kept++;
    this.whole.push({ pid, buffer: part.buffer, bytes: part.need });
  }
}

function wrongLength(pid: number, bytes: number): RmaError {
  return new RmaError(
    'ERR_VERBS',
    `bsp: a chunk in the packets of process ${pid} has ${bytes} bytes, and chunks have ${HEAD_BYTES} to ` +
      `${CHUNK_BYTES}, whole words: give all processes the same version of onesided`,
  );
}
