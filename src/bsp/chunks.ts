/**
 * Chunks of memory that puts, messages and requests of gets are packed into, a list of them for each destination
 * (BSP-IB §3.1: 16 KiB, one transfer each, full bandwidth).
 *
 * A chunk begins with two words: how many words of it are used, these two among them, and which chunk comes next in its
 * list (−1: none). Everything in it begins at a multiple of four bytes.
 */

export const CHUNK_BYTES = 16_384;
export const CHUNK_WORDS = CHUNK_BYTES / 4;
/** Words at the beginning of a chunk. */
export const HEAD_WORDS = 2;

export interface Chunk {
  /** Views of the memory in which the chunk lies. */
  readonly i32: Int32Array;
  readonly u8: Uint8Array;
  /** The word at which it begins. */
  readonly at: number;
  /** By which other ranks find it, where they can. */
  readonly id: number;
}

/** Where chunks come from. */
export interface ChunkPool {
  /** Errors: `ERR_SIZE` if there is no memory. */
  take(): Chunk;
  /** All chunks that were taken are free again. */
  recycle(): void;
  /** Bytes that the pool has allocated. It keeps them until the end. */
  readonly bytes: number;
}

/** What `Stream.restore` brings back. */
export interface StreamState {
  readonly chunks: number;
  readonly i32: Int32Array;
  readonly u8: Uint8Array;
  readonly pos: number;
  readonly end: number;
  readonly data: number;
  readonly calls: number;
}

const NOTHING = new Int32Array(0);
const NO_BYTES = new Uint8Array(0);

/**
 * A list of chunks that is being written. The fields are for the writers of records, which look for room, write from
 * `pos` on, and move it; they are the hot path of `put`.
 */
export class Stream {
  i32: Int32Array = NOTHING;
  u8: Uint8Array = NO_BYTES;
  /** The word at which the next record begins, and where the room of the chunk ends. */
  pos = 0;
  end = 0;
  readonly chunks: Chunk[] = [];
  /** Bytes of data in it, without headers. */
  data = 0;
  /** Calls that wrote them. */
  calls = 0;
  readonly #pool: () => ChunkPool;

  /** @param pool the one of the superstep under way */
  constructor(pool: () => ChunkPool) {
    this.#pool = pool;
  }

  /** Goes on in a new chunk. Errors: `ERR_SIZE`. */
  grow(): void {
    const chunk = this.#pool().take();
    this.#close(chunk.id);
    this.chunks.push(chunk);
    this.i32 = chunk.i32;
    this.u8 = chunk.u8;
    this.pos = chunk.at + HEAD_WORDS;
    this.end = chunk.at + CHUNK_WORDS;
  }

  /** As it is now. */
  state(): StreamState {
    const { i32, u8, pos, end, data, calls } = this;
    return { chunks: this.chunks.length, i32, u8, pos, end, data, calls };
  }

  /** As it was: what was written since is none of it. Chunks that were taken since are free with all others. */
  restore({ chunks, i32, u8, pos, end, data, calls }: StreamState): void {
    this.chunks.length = chunks;
    this.i32 = i32;
    this.u8 = u8;
    this.pos = pos;
    this.end = end;
    this.data = data;
    this.calls = calls;
  }

  /** The list is complete: its chunks say how long they are. */
  finish(): void {
    this.#close(-1);
  }

  /** Begins with an empty list. */
  reset(): void {
    if (this.chunks.length === 0) return;
    this.chunks.length = 0;
    this.i32 = NOTHING;
    this.u8 = NO_BYTES;
    this.pos = this.end = this.data = this.calls = 0;
  }

  /** Writes words that may go over several chunks. */
  writeWords(words: Int32Array): void {
    for (let done = 0; done < words.length; ) {
      if (this.pos === this.end) this.grow();
      const count = Math.min(words.length - done, this.end - this.pos);
      this.i32.set(words.subarray(done, done + count), this.pos);
      this.pos += count;
      done += count;
    }
  }

  #close(next: number): void {
    const last = this.chunks.at(-1);
    if (last === undefined) return;
    last.i32[last.at] = this.pos - last.at;
    last.i32[last.at + 1] = next;
  }
}
