/**
 * Cuts two layouts of the same bytes into messages (dissertation §8.1.1, "posting descriptors"): as many sends as
 * receives, of the same lengths, each with no more pieces on either side than a list has entries.
 */
import type { Places } from '../../datatype/copy.ts';
import type { Entries } from '../requests/second-connections.ts';
import { RunWalk } from './run-walk.ts';

/** One side: the stretch that is being cut, and the pieces that it has had in the message so far. */
class Side {
  readonly #walk: RunWalk;
  #end = 0;
  left = 0;
  entries = 0;

  constructor(places: Places) {
    this.#walk = new RunWalk(places);
  }

  /** Sees to it that there is a stretch. @returns whether it begins a further entry: it does not touch the last */
  next(): boolean {
    if (this.left > 0) return this.entries === 0;
    if (!this.#walk.next(Number.POSITIVE_INFINITY)) return false;
    const { offset, bytes } = this.#walk;
    const touches = this.entries > 0 && offset === this.#end;
    this.left = bytes;
    this.#end = offset + bytes;
    return !touches;
  }
}

export class Matching {
  readonly #one: Side;
  readonly #other: Side;
  readonly #bytes: number;
  readonly #entries: number;
  readonly #most: number;
  #cut = 0;

  /** @param entries of a list; @param most bytes of a message */
  constructor(one: Places, other: Places, entries: number, most: number) {
    this.#one = new Side(one);
    this.#other = new Side(other);
    this.#bytes = one.bytes;
    this.#entries = entries;
    this.#most = most;
  }

  /** Bytes of the next messages, at most `count`; none at the end. */
  next(count: number): number[] {
    const lengths: number[] = [];
    while (lengths.length < count && this.#cut < this.#bytes) {
      const length = this.#message();
      this.#cut += length;
      lengths.push(length);
    }
    return lengths;
  }

  #message(): number {
    const one = this.#one;
    const other = this.#other;
    one.entries = 0;
    other.entries = 0;
    let length = 0;
    while (this.#cut + length < this.#bytes && length < this.#most) {
      const further = one.next() ? 1 : 0;
      const otherFurther = other.next() ? 1 : 0;
      if (one.entries + further > this.#entries || other.entries + otherFurther > this.#entries) break;
      one.entries += further;
      other.entries += otherFurther;
      const bytes = Math.min(one.left, other.left, this.#most - length);
      one.left -= bytes;
      other.left -= bytes;
      length += bytes;
    }
    return length;
  }
}

/** Whether two layouts are the same, as far as that can be seen at once. */
export function sameLayout(a: Places, b: Places): boolean {
  return a.runs === b.runs && a.count === b.count && a.stride === b.stride && a.bytes === b.bytes;
}

/** The pieces of a layout from byte `skip` on, of which those that touch are one. */
export function entriesOf(places: Places, skip: number): Entries {
  const walk = new RunWalk(places, skip);
  return (bytes, each) => {
    let start = 0;
    let length = 0;
    for (let done = 0; done < bytes && walk.next(bytes - done); done += walk.bytes) {
      if (length > 0 && walk.offset === start + length) length += walk.bytes;
      else {
        if (length > 0) each(start, length);
        start = walk.offset;
        length = walk.bytes;
      }
    }
    if (length > 0) each(start, length);
  };
}
