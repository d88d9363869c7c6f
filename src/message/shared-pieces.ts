/**
 * Long messages where ranks map each other's memory: the sender copies each part of a message into a piece of memory
 * that all ranks map, and a chunk tells where that piece is. The receiver copies the part from there while the sender
 * fills the next piece: two copies that overlap, of memory that stays in caches and is mapped once.
 *
 * A slab is `SLAB_PIECES` pieces, made when no piece is free, and lasts as long as the rank's messages. A rank has at
 * most `most` pieces; a message that finds none free waits at the sender in memory of its own.
 *
 *     slab      for each piece a word for each rank that may read it, then the pieces
 *
 * Who writes what. The sender clears the words of a piece that no rank reads, fills the piece, and sends the chunks;
 * sending them makes all of that visible (emulator-requester.ts). A reader loads the data, then stores 1 into its word
 * with `Atomics`. The sender fills the piece again only when it has loaded 1 from the words of all readers that are
 * alive: all their loads came before. A reader that has failed reads nothing any more.
 *
 * A reader may keep a piece until a call of the program comes (`kept`). A rank gives away at most half of its pieces in
 * this manner; the others come back whenever their readers poll.
 */
import { RmaError } from '../errors.ts';
import { ALL_ACCESS } from '../verbs/checks.ts';
import type { Context } from '../verbs/device.ts';
import type { MemoryRegion, ProtectionDomain, RemotePointer } from '../verbs/memory.ts';
import { allocateRegistered, freeRegistered } from './registered-memory.ts';

const SLAB_PIECES = 16;
const LINE = 128;
/**
 * How long a sender looks for a piece, and from how many remaining bytes of its message on it does so: a reader copies
 * a piece in a tenth of that time, and putting the bytes aside takes longer.
 */
const PATIENCE_MS = 0.3;
const PATIENT_FROM = 1_048_576;

/** From so many pieces on that are under way, released ones are looked for, though others are free. */
const FEW = 4;

/** How a rank's pieces are. All ranks of a job have the same. */
export interface PieceMemory {
  /** Bytes of one piece, a multiple of 128. */
  readonly bytes: number;
  /** At most so many; a multiple of 16. */
  readonly most: number;
}

interface Slab {
  readonly region: MemoryRegion;
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
}

/** A piece of this rank's. */
export interface Piece {
  readonly rkey: number;
  /** Of its slab. */
  readonly address: number;
  /** Its place in the slab. */
  readonly number: number;
  readonly bytes: Uint8Array;
  /** The ranks that read it; the place of a rank in this list is that of its word. */
  readers: readonly number[];
  kept: boolean;
  /** How often it was given out. */
  use: number;
  /** Its words. */
  readonly words: Int32Array;
}

/** A piece of another rank's. */
export interface ForeignPiece {
  readonly bytes: Uint8Array;
  /** It is not read any more. Once. */
  release(): void;
}

interface ForeignSlab {
  readonly pointer: RemotePointer;
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
}

export class SharedPieces {
  /** Bytes of one piece. */
  readonly bytes: number;
  /** Pieces that readers may keep and have not released yet. */
  kept = 0;
  readonly #context: Context;
  readonly #pd: ProtectionDomain;
  readonly #most: number;
  readonly #hasLeft: (peer: number) => boolean;
  /** Words of one piece: whole lines. */
  readonly #words: number;
  readonly #slabs: Slab[] = [];
  readonly #free: Piece[] = [];
  /** Pieces that count as read by some rank, until a look finds that all of their readers have released them. */
  #read: Piece[] = [];
  #refused = false;
  /** By source, then by key. */
  readonly #foreign = new Map<number, Map<number, ForeignSlab>>();

  /** @param hasLeft whether a rank reads nothing any more */
  constructor(
    context: Context,
    pd: ProtectionDomain,
    size: number,
    { bytes, most }: PieceMemory,
    hasLeft: (peer: number) => boolean,
  ) {
    this.#context = context;
    this.#pd = pd;
    this.bytes = bytes;
    this.#most = most;
    this.#hasLeft = hasLeft;
    this.#words = (Math.ceil((4 * size) / LINE) * LINE) / 4;
  }

  /** Whether a reader will release a piece, whatever other readers do. Those that it may keep are not counted. */
  comesBackFrom(reader: number): boolean {
    for (const { readers, words, kept } of this.#read) {
      if (kept) continue;
      const at = readers.indexOf(reader);
      if (at >= 0 && Atomics.load(words, at) === 0 && !this.#hasLeft(reader)) return true;
    }
    return false;
  }

  /**
   * A piece for these readers; `undefined` if none is free now.
   * @param kept they may keep it
   */
  take(readers: readonly number[], kept: boolean): Piece | undefined {
    if (kept && 2 * (this.kept + 1) > this.#most) {
      this.#look();
      if (2 * (this.kept + 1) > this.#most) return undefined;
    }
    // A piece that was read a moment ago lies in the caches still; of those that were never used, the system would have
    // to make the memory first.
    if (this.#free.length === 0 || this.#read.length > FEW) this.#look();
    if (this.#free.length === 0) this.#make();
    const piece = this.#free.pop();
    if (piece === undefined) return undefined;
    piece.readers = readers;
    piece.kept = kept;
    piece.use++;
    piece.words.fill(0, 0, readers.length);
    if (kept) this.kept++;
    this.#read.push(piece);
    return piece;
  }

  /**
   * The same, where the readers are likely to release one soon: it looks for some time. @param wanted bytes that there
   * are pieces for; for few, that is not worth it
   */
  takeSoon(readers: readonly number[], wanted: number): Piece | undefined {
    const piece = this.take(readers, false);
    if (piece !== undefined || wanted < PATIENT_FROM || this.#read.length === 0) return piece;
    const deadline = performance.now() + PATIENCE_MS;
    while (performance.now() < deadline) {
      const found = this.take(readers, false);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Looks which pieces were released. */
  #look(): void {
    let left = 0;
    const read = this.#read;
    for (const piece of read) {
      if (this.reader(piece, piece.use) !== undefined) read[left++] = piece;
      else {
        this.#free.push(piece);
        if (piece.kept) this.kept--;
      }
    }
    read.length = left;
  }

  /** A reader that is alive and has not released that use of a piece. */
  reader({ readers, words, use }: Piece, given: number): number | undefined {
    if (use !== given) return undefined;
    for (let i = 0; i < readers.length; i++) {
      if (Atomics.load(words, i) === 0 && !this.#hasLeft(readers[i])) return readers[i];
    }
    return undefined;
  }

  get #canMake(): boolean {
    return !this.#refused && this.#slabs.length * SLAB_PIECES < this.#most;
  }

  #make(): void {
    if (!this.#canMake) return;
    try {
      const region = allocateRegistered(this.#context, this.#pd, this.#slabBytes);
      const { memory } = region;
      const words = new Int32Array(memory.buffer, 0, SLAB_PIECES * this.#words);
      const bytes = new Uint8Array(memory.buffer);
      this.#slabs.push({ region, words, bytes });
      for (let number = SLAB_PIECES - 1; number >= 0; number--) {
        this.#free.push({
          rkey: region.rkey,
          address: region.address,
          number,
          bytes: bytes.subarray(this.#startOf(number), this.#startOf(number) + this.bytes),
          readers: [],
          kept: false,
          use: 0,
          words: words.subarray(number * this.#words, (number + 1) * this.#words),
        });
      }
    } catch (error) {
      if (!(error instanceof RmaError)) throw error;
      this.#refused = true;
    }
  }

  get #slabBytes(): number {
    return SLAB_PIECES * (4 * this.#words + this.bytes);
  }

  #startOf(number: number): number {
    return SLAB_PIECES * 4 * this.#words + number * this.bytes;
  }

  /**
   * A piece that a rank tells of.
   * @param reader the place of this rank among its readers
   * Errors: `ERR_VERBS` if it cannot be mapped.
   */
  find(source: number, rkey: number, address: number, number: number, length: number, reader: number): ForeignPiece {
    let slabs = this.#foreign.get(source);
    if (slabs === undefined) this.#foreign.set(source, (slabs = new Map()));
    let slab = slabs.get(rkey);
    if (slab === undefined) {
      const pointer = this.#context.remotePointer(source, rkey, address, this.#slabBytes, ALL_ACCESS);
      const words = new Int32Array(pointer.buffer, pointer.offset, SLAB_PIECES * this.#words);
      const bytes = new Uint8Array(pointer.buffer, pointer.offset, this.#slabBytes);
      slabs.set(rkey, (slab = { pointer, words, bytes }));
    }
    const { words, bytes } = slab;
    const start = this.#startOf(number);
    const word = number * this.#words + reader;
    return {
      bytes: bytes.subarray(start, start + length),
      release: () => {
        Atomics.store(words, word, 1);
        this.#context.wake(source);
      },
    };
  }

  close(): void {
    for (const slabs of this.#foreign.values()) for (const { pointer } of slabs.values()) pointer.release();
    this.#foreign.clear();
    for (const { region } of this.#slabs) freeRegistered(region);
    this.#slabs.length = 0;
  }
}
