/**
 * Chunks that stay as they are for another superstep: those of even and odd supersteps are different ones. What this
 * process has sent in a superstep can be sent again until all processes have come to the end of the next one.
 */
import type { Chunk, ChunkPool } from '../chunks.ts';

export class KeptChunks implements ChunkPool {
  readonly #pools: readonly [ChunkPool, ChunkPool];
  #now = 0;

  constructor(even: ChunkPool, odd: ChunkPool) {
    this.#pools = [even, odd];
  }

  take(): Chunk {
    return this.#pools[this.#now].take();
  }

  /** Those that were taken before the last call are free; those that were taken since stay. */
  recycle(): void {
    this.#now ^= 1;
    this.#pools[this.#now].recycle();
  }

  get bytes(): number {
    return this.#pools[0].bytes + this.#pools[1].bytes;
  }
}
