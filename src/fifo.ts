/**
 * First in, first out: each push and shift takes constant time, however many wait (`Array.shift` moves all that are
 * left).
 */

/** Entries that were taken and still have their place, before the others move up. */
const SLACK = 64;

export class Fifo<T> {
  #entries: (T | undefined)[] = [];
  #taken = 0;

  get length(): number {
    return this.#entries.length - this.#taken;
  }

  /** The oldest entry. */
  get first(): T | undefined {
    return this.#entries[this.#taken];
  }

  /** Puts another entry in the place of the oldest one. */
  replaceFirst(entry: T): void {
    if (this.length > 0) this.#entries[this.#taken] = entry;
  }

  push(entry: T): void {
    this.#entries.push(entry);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const entry = this.#entries[this.#taken];
    this.#entries[this.#taken++] = undefined;
    if (this.#taken === this.#entries.length) {
      this.#entries = [];
      this.#taken = 0;
    } else if (this.#taken >= SLACK && 2 * this.#taken >= this.#entries.length) {
      // As many were taken since the last time as are moved now, at least.
      this.#entries = this.#entries.slice(this.#taken);
      this.#taken = 0;
    }
    return entry;
  }

  *[Symbol.iterator](): Generator<T> {
    for (let i = this.#taken; i < this.#entries.length; i++) yield this.#entries[i]!;
  }
}
