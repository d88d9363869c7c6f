/** Packets of one process in one superstep, which come in any order, or not at all, and are taken in theirs. */

export class Incoming {
  readonly pid: number;
  /** Packets that there are. */
  readonly count: number;
  /** The first that was not taken. */
  next = 0;
  /** Those behind it that have come. */
  readonly #held = new Map<number, Uint8Array>();
  /** When to ask for what is missing, in microseconds, and how much longer to wait the next time. */
  askAt = 0;
  backoff = 1;

  constructor(pid: number, count: number) {
    this.pid = pid;
    this.count = count;
  }

  has(index: number): boolean {
    return index < this.next || this.#held.has(index);
  }

  hold(index: number, data: Uint8Array): void {
    this.#held.set(index, data);
  }

  /** Takes the next packet, if it is there. */
  take(): Uint8Array | undefined {
    const data = this.#held.get(this.next);
    if (data !== undefined) this.#held.delete(this.next++);
    return data;
  }

  get isComplete(): boolean {
    return this.next === this.count;
  }

  /** Sets the bits of the packets that are missing, the first bit being that of `next`. @returns the words it took */
  writeMissing(bits: Int32Array): number {
    const packets = Math.min(this.count - this.next, 32 * bits.length);
    const words = Math.ceil(packets / 32);
    bits.fill(0, 0, words);
    for (let i = 0; i < packets; i++) if (!this.#held.has(this.next + i)) bits[i >> 5] |= 1 << (i & 31);
    return words;
  }
}
