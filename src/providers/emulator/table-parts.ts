/**
 * Memory of a context's tables beyond what lies in its root. Most contexts have few queue pairs and regions, and every
 * peer maps their tables: V8 counts what is mapped as if it were memory of the heap's own, and collects garbage when
 * much has been added. With roots of nine megabytes, that was nine tenths of what the first access to a peer costs.
 *
 * So the owner makes a part when the tables before it are full, and a peer maps it when a number or key lies there. The
 * owner writes HANDLE, then READY; then it stores something in the part and tells others of it. A peer that has been
 * told so finds READY. A peer that guesses may come too early: for it there is nothing yet, and it looks again.
 */
import type { Allocation } from './emulator-fabric.ts';

/** One 64-bit word and one 32-bit word for each part. */
const MAX_PARTS = 8;

export class Parts {
  readonly #handles: Float64Array;
  readonly #ready: Int32Array;
  readonly #attach: (handle: number, byteLength: number) => ArrayBufferLike | undefined;
  #given = 0;

  /** @param attach maps the owner's memory; `undefined` if it is gone */
  constructor(
    buffer: ArrayBufferLike,
    byteOffset: number,
    attach: (handle: number, byteLength: number) => ArrayBufferLike | undefined,
  ) {
    this.#handles = new Float64Array(buffer, byteOffset, MAX_PARTS);
    this.#ready = new Int32Array(buffer, byteOffset + 8 * MAX_PARTS, MAX_PARTS);
    this.#attach = attach;
  }

  /** The next part's number: the same on both sides, which ask in the same order. */
  number(): number {
    return this.#given++;
  }

  /** Owner: from now on this is the part. */
  publish(part: number, allocation: Allocation): void {
    this.#handles[part] = allocation.handle;
    Atomics.store(this.#ready, part, 1);
  }

  /** Peer: the part, mapped, if the owner has made it. To be kept: each call maps it again. */
  open(part: number, byteLength: number): ArrayBufferLike | undefined {
    return Atomics.load(this.#ready, part) === 0 ? undefined : this.#attach(this.#handles[part], byteLength);
  }
}
