/**
 * Registered memory for chunks. Each process allocates regions when a superstep needs them, and keeps them until the
 * end (BSP-IB §3.1). Where processes load and store each other's memory, a table in the shared words of each says where
 * they are; the others map a region when they first read from it. Elsewhere requests name them.
 *
 * Which process sees what: the owner writes an entry of the table once, before it tells any process of a chunk in that
 * region. It tells of the chunk before a barrier (or by a word that is stored atomically). So a process that learns of
 * a chunk finds its entry.
 */

import type { Communicator } from '../../collective/communicator.ts';
import { RmaError } from '../../errors.ts';
import { allocateRegistered, freeRegistered } from '../../message/registered-memory.ts';
import { ALL_ACCESS } from '../../verbs/checks.ts';
import type { MemoryRegion, RemotePointer } from '../../verbs/memory.ts';
import { CHUNK_BYTES, CHUNK_WORDS, type Chunk, type ChunkPool } from '../chunks.ts';

/** Of the first region of a superstep; each further one is twice as large. */
const FIRST_BYTES = 16 * CHUNK_BYTES;
/** Chunks of a region at most: the number of a chunk is region × this + its place there. */
const REGION_CHUNKS = 16_384;
const MOST_BYTES = REGION_CHUNKS * CHUNK_BYTES;
/** Regions of a process: some 11 GiB. */
const MOST_REGIONS = 64;
/** An entry: key, address and bytes of a region, as numbers of 64 bits. */
const ENTRY_NUMBERS = 3;
/** 32-bit words of the table of one process. */
export const TABLE_WORDS = 2 * ENTRY_NUMBERS * MOST_REGIONS;

interface Views {
  readonly i32: Int32Array;
  readonly u8: Uint8Array;
}

function numbersOf(words: Int32Array): Float64Array {
  return new Float64Array(words.buffer, words.byteOffset, words.length >> 1);
}

/** The regions of this process. */
export class OwnRegions {
  readonly #comm: Communicator;
  readonly #table: Float64Array;
  readonly #all: { readonly region: MemoryRegion; readonly views: Views }[] = [];
  bytes = 0;

  /** @param table this process's words for it */
  constructor(comm: Communicator, table: Int32Array) {
    this.#comm = comm;
    this.#table = numbersOf(table);
  }

  /** @returns the number of a new region. Errors: `ERR_SIZE`. */
  allocate(bytes: number): number {
    const index = this.#all.length;
    const { context, pd } = this.#comm.job;
    if (index === MOST_REGIONS) throw noMemory(this.bytes + bytes);
    try {
      const region = allocateRegistered(context, pd, bytes);
      const { memory } = region;
      const views = { i32: new Int32Array(memory.buffer, 0, bytes >> 2), u8: new Uint8Array(memory.buffer, 0, bytes) };
      this.#all.push({ region, views });
      this.#table.set([region.rkey, region.address, bytes], ENTRY_NUMBERS * index);
    } catch (cause) {
      throw noMemory(this.bytes + bytes, cause);
    }
    this.bytes += bytes;
    return index;
  }

  views(index: number): Views {
    return this.#all[index].views;
  }

  /** By which requests name the region in which a chunk lies. */
  regionOf(chunk: number): MemoryRegion {
    return this.#all[Math.floor(chunk / REGION_CHUNKS)].region;
  }

  /** The views in which a chunk lies. */
  viewsOf(chunk: number): Views {
    return this.views(Math.floor(chunk / REGION_CHUNKS));
  }

  close(): void {
    for (const { region } of this.#all) freeRegistered(region);
    this.#all.length = 0;
    this.bytes = 0;
  }
}

function noMemory(bytes: number, cause?: unknown): RmaError {
  const message =
    `bsp: cannot allocate ${bytes} bytes of memory that others reach, for what this superstep puts, ` +
    'sends and gets; call sync() more often, or put less';
  return new RmaError('ERR_SIZE', message, cause === undefined ? undefined : { cause });
}

/** Chunks of the regions of this process; where memory is shared, for every second superstep. */
export class SharedChunks implements ChunkPool {
  readonly #regions: OwnRegions;
  readonly #chunks: Chunk[] = [];
  #taken = 0;
  #next: number;
  bytes = 0;

  /** @param first bytes of the first region that it allocates */
  constructor(regions: OwnRegions, first = FIRST_BYTES) {
    this.#regions = regions;
    this.#next = first;
  }

  take(): Chunk {
    if (this.#taken === this.#chunks.length) this.#grow();
    return this.#chunks[this.#taken++];
  }

  recycle(): void {
    this.#taken = 0;
  }

  #grow(): void {
    const index = this.#regions.allocate(this.#next);
    const { i32, u8 } = this.#regions.views(index);
    const count = this.#next / CHUNK_BYTES;
    for (let k = 0; k < count; k++) {
      this.#chunks.push({ i32, u8, at: k * CHUNK_WORDS, id: REGION_CHUNKS * index + k });
    }
    this.bytes += this.#next;
    this.#next = Math.min(2 * this.#next, MOST_BYTES);
  }
}

/** The regions of another process, mapped here. */
export class PeerRegions {
  readonly #comm: Communicator;
  readonly #member: number;
  readonly #table: Float64Array;
  readonly #mapped: (Views & { readonly pointer: RemotePointer })[] = [];

  /** @param table its words */
  constructor(comm: Communicator, rank: number, table: Int32Array) {
    this.#comm = comm;
    this.#member = comm.group.worldRanks[rank];
    this.#table = numbersOf(table);
  }

  /** The views in which a chunk lies. */
  viewsOf(chunk: number): Views {
    const index = Math.floor(chunk / REGION_CHUNKS);
    return this.#mapped[index] ?? this.#map(index);
  }

  #map(index: number): Views {
    const [rkey, address, bytes] = this.#table.subarray(ENTRY_NUMBERS * index, ENTRY_NUMBERS * (index + 1));
    const pointer = this.#comm.job.context.remotePointer(this.#member, rkey, address, bytes, ALL_ACCESS);
    const { buffer, offset } = pointer;
    const views = { i32: new Int32Array(buffer, offset, bytes >> 2), u8: new Uint8Array(buffer, offset, bytes) };
    this.#mapped[index] = { ...views, pointer };
    return views;
  }

  close(): void {
    for (const mapped of this.#mapped) mapped?.pointer.release();
    this.#mapped.length = 0;
  }
}

/** The word at which a chunk begins in its views. */
export function beginningOf(chunk: number): number {
  return (chunk % REGION_CHUNKS) * CHUNK_WORDS;
}
