/**
 * Messages that came with the last `sync` (BSPlib's BSMP): a queue in memory of this process's own, from which `move`
 * copies and `hpmove` does not. What the queue holds is gone when the next `sync` begins to deliver.
 *
 * Pieces of one source come in order; those of several sources may come in turns. A payload begins at a multiple of
 * eight bytes, so that it can be seen as any array; its tag stands behind it.
 */

const ALIGNMENT = 8;
const FIRST_BYTES = 4096;

/** Of a message that is coming in: where its next piece goes. */
interface Incoming {
  at: number;
  left: number;
}

export class MessageQueue {
  #u8 = new Uint8Array(0);
  #filled = 0;
  /** Of each message: where it begins, and the bytes of its payload. */
  readonly #starts: number[] = [];
  readonly #lengths: number[] = [];
  readonly #incoming = new Map<number, Incoming>();
  /** The first message that was not taken. */
  #next = 0;
  /** Of the messages in the queue. */
  #tagBytes = 0;
  #payloads = 0;

  /** New messages come: those that were not taken are dropped. @param tagBytes of each of them */
  begin(tagBytes: number): void {
    this.#tagBytes = tagBytes;
    if (this.#starts.length === 0) return;
    this.#starts.length = this.#lengths.length = this.#next = this.#payloads = this.#filled = 0;
  }

  /** A message from a source begins. @param total bytes of payload and tag */
  start(source: number, total: number): void {
    const at = Math.ceil(this.#filled / ALIGNMENT) * ALIGNMENT;
    const end = at + total;
    if (end > this.#u8.length) this.#grow(end);
    this.#filled = end;
    this.#starts.push(at);
    this.#lengths.push(total - this.#tagBytes);
    this.#payloads += total - this.#tagBytes;
    if (total > 0) this.#incoming.set(source, { at, left: total });
  }

  /** The next piece of the message that comes from a source. */
  add(source: number, piece: Uint8Array): void {
    const incoming = this.#incoming.get(source)!;
    this.#u8.set(piece, incoming.at);
    incoming.at += piece.length;
    incoming.left -= piece.length;
    if (incoming.left === 0) this.#incoming.delete(source);
  }

  /** Messages that were not taken yet. */
  get count(): number {
    return this.#starts.length - this.#next;
  }

  /** Bytes of their payloads. */
  get bytes(): number {
    return this.#payloads;
  }

  get tagBytes(): number {
    return this.#tagBytes;
  }

  /** Bytes of the first one's payload; −1 if there is none. */
  get firstBytes(): number {
    return this.count === 0 ? -1 : this.#lengths[this.#next];
  }

  /** Views of the first message. There must be one. */
  get first(): { readonly tag: Uint8Array; readonly payload: Uint8Array } {
    const at = this.#starts[this.#next];
    const end = at + this.#lengths[this.#next];
    return { tag: this.#u8.subarray(end, end + this.#tagBytes), payload: this.#u8.subarray(at, end) };
  }

  drop(): void {
    this.#payloads -= this.#lengths[this.#next];
    this.#next++;
  }

  /** Views that a program has of the old memory keep it. */
  #grow(bytes: number): void {
    const larger = new Uint8Array(Math.max(bytes, 2 * this.#u8.length, FIRST_BYTES));
    larger.set(this.#u8.subarray(0, this.#filled));
    this.#u8 = larger;
  }
}
