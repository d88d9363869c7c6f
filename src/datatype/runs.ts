/**
 * Where the bytes of a datatype are: runs of consecutive bytes, in the order of the type map, relative to a starting
 * point in bytes.
 *
 * Three forms, so that what is regular costs nothing and what is not costs no more than its list:
 * - a nest: `n1` × `n0` runs of equal length at two strides (contiguous, vector, most of subarray), whatever their
 *   number;
 * - blocks: runs of equal length at the places of an `Int32Array` (indexedBlock and its like);
 * - a list: each run with its own start and length.
 *
 * A tree of constructors is flattened into one of these when it is made, runs that touch are joined, and the tree is
 * forgotten.
 */

/** Runs of a list: 256 MiB of starts and lengths. Blocks, at a quarter of that each, may be four times as many. */
export const MOST_RUNS = 2 ** 24;
export const MOST_BLOCKS = 2 ** 26;

/** Runs that meet from one instance to the next are joined if joining takes a list of at most so many. */
const WORTH_JOINING = 4096;

/** Thrown when a datatype would be too large; the code that knows the call puts it into words. */
export class TooLarge extends Error {}

function exact(value: number): number {
  if (!Number.isSafeInteger(value)) throw new TooLarge('an offset or a size exceeds 2^53 − 1 bytes');
  return value;
}

export class Runs {
  /** How many. */
  readonly count: number;
  /** Bytes in all. */
  readonly bytes: number;
  /** The lowest byte, and one past the highest; both 0 if there is none. */
  readonly low: number;
  readonly high: number;
  /** Bytes of each run; 0 if they differ. */
  readonly block: number;
  /** Run i begins at `starts[i] * unit`; without `starts`, run i·n0 + j at `first + i·s1 + j·s0`. */
  readonly starts: Int32Array | Float64Array | undefined;
  readonly unit: number;
  /** Bytes of run i, if they differ. */
  readonly lengths: Float64Array | undefined;
  readonly first: number;
  readonly n0: number;
  readonly s0: number;
  readonly n1: number;
  readonly s1: number;
  #overlapping: boolean | undefined;

  private constructor(
    starts: Int32Array | Float64Array | undefined,
    unit: number,
    block: number,
    lengths: Float64Array | undefined,
    nest: readonly [first: number, n0: number, s0: number, n1: number, s1: number],
  ) {
    this.starts = starts;
    this.unit = unit;
    this.block = block;
    this.lengths = lengths;
    [this.first, this.n0, this.s0, this.n1, this.s1] = nest;
    let low = 0;
    let high = 0;
    if (starts === undefined) {
      this.count = this.n0 * this.n1;
      this.bytes = this.count * block;
      if (this.count > 0) {
        const inner = (this.n0 - 1) * this.s0;
        const outer = (this.n1 - 1) * this.s1;
        low = this.first + Math.min(0, inner) + Math.min(0, outer);
        high = this.first + Math.max(0, inner) + Math.max(0, outer) + block;
      }
    } else if (lengths === undefined) {
      this.count = starts.length;
      this.bytes = starts.length * block;
      if (starts.length > 0) {
        low = starts[0];
        high = low;
        for (let i = 1; i < starts.length; i++) {
          const start = starts[i];
          if (start < low) low = start;
          else if (start > high) high = start;
        }
        low *= unit;
        high = high * unit + block;
      }
    } else {
      this.count = starts.length;
      low = Number.POSITIVE_INFINITY;
      high = Number.NEGATIVE_INFINITY;
      let bytes = 0;
      for (let i = 0; i < starts.length; i++) {
        bytes += lengths[i];
        if (starts[i] < low) low = starts[i];
        if (starts[i] + lengths[i] > high) high = starts[i] + lengths[i];
      }
      this.bytes = bytes;
    }
    this.low = exact(low);
    this.high = exact(high);
    exact(this.bytes);
  }

  static readonly none = new Runs(undefined, 1, 0, undefined, [0, 0, 0, 0, 0]);

  /** One run of bytes 0 … `bytes` − 1. */
  static dense(bytes: number): Runs {
    return bytes === 0 ? Runs.none : new Runs(undefined, 1, bytes, undefined, [0, 1, 0, 1, 0]);
  }

  /** Runs of `block` bytes at `starts[i] * unit`. The array is kept, not copied. */
  static blocks(starts: Int32Array, unit: number, block: number): Runs {
    return block === 0 || starts.length === 0 ? Runs.none : new Runs(starts, unit, block, undefined, [0, 0, 0, 0, 0]);
  }

  /** `n1` × `n0` runs, as the fields of the same names have it. */
  static nest(block: number, first: number, n0: number, s0: number, n1: number, s1: number): Runs {
    return block === 0 || n0 * n1 === 0 ? Runs.none : new Runs(undefined, 1, block, undefined, [first, n0, s0, n1, s1]);
  }

  /** Run i begins at `starts[i]` and has `lengths[i]` bytes. Touching runs are joined already; both are copied. */
  static list(starts: Float64Array, lengths: Float64Array): Runs {
    return Runs.#list(starts, lengths, starts.length);
  }

  /** From a list in order: touching runs are joined already. The arrays are cut to `count`. */
  static #list(starts: Float64Array, lengths: Float64Array, count: number): Runs {
    if (count === 0) return Runs.none;
    const block = lengths[0];
    let equal = true;
    let small = true;
    let regular = true;
    const stride = count > 1 ? starts[1] - starts[0] : 0;
    for (let i = 0; i < count; i++) {
      if (lengths[i] !== block) equal = false;
      if (starts[i] !== (starts[i] | 0)) small = false;
      if (starts[i] !== starts[0] + i * stride) regular = false;
    }
    if (equal && regular) return new Runs(undefined, 1, block, undefined, [starts[0], count, stride, 1, 0]);
    if (equal && small)
      return new Runs(Int32Array.from(starts.subarray(0, count)), 1, block, undefined, [0, 0, 0, 0, 0]);
    return new Runs(starts.slice(0, count), 1, 0, lengths.slice(0, count), [0, 0, 0, 0, 0]);
  }

  /** `pieces` in order. Errors: `TooLarge`. */
  static joined(pieces: readonly (readonly [runs: Runs, offset: number])[]): Runs {
    if (pieces.length === 1) return pieces[0][0].moved(pieces[0][1]);
    let count = 0;
    for (const [runs] of pieces) count += runs.count;
    return Runs.#collected(count, (add) => {
      for (const [runs, offset] of pieces) runs.forEach(offset, add);
    });
  }

  /** The same, `offset` bytes further on. Errors: `TooLarge`. */
  moved(offset: number): Runs {
    if (offset === 0 || this.count === 0) return this;
    const { first, block, n0, s0, n1, s1 } = this;
    if (this.starts === undefined) return new Runs(undefined, 1, block, undefined, [first + offset, n0, s0, n1, s1]);
    return Runs.#collected(this.count, (add) => this.forEach(offset, add));
  }

  /** `count` times these, `stride` bytes apart. Errors: `TooLarge`. */
  repeat(count: number, stride: number): Runs {
    if (count === 0 || this.count === 0) return Runs.none;
    if (count === 1) return this;
    exact(stride * (count - 1));
    const { first, block, n0, s0, n1, s1 } = this;
    // The runs at the seam of two instances are one.
    const last = this.#endOfLast();
    if (this.count === 1 && last === this.#startOf(0) + stride) {
      return new Runs(undefined, 1, exact(block * count), undefined, [this.#startOf(0), 1, 0, 1, 0]);
    }
    const joins = last === this.#startOf(0) + stride && this.count * count <= WORTH_JOINING;
    if (this.starts === undefined && !joins) {
      const nest = (a: number, b: number, c: number, d: number): Runs =>
        new Runs(undefined, 1, block, undefined, [first, a, b, c, d]);
      if (n0 === 1 && n1 === 1) return nest(count, stride, 1, 0);
      if (n1 === 1) return stride === n0 * s0 ? nest(n0 * count, s0, 1, 0) : nest(n0, s0, count, stride);
      if (stride === n1 * s1) return nest(n0, s0, n1 * count, s1);
    }
    return Runs.#collected(this.count * count, (add) => {
      for (let i = 0; i < count; i++) this.forEach(i * stride, add);
    });
  }

  static #collected(most: number, fill: (add: (start: number, bytes: number) => void) => void): Runs {
    if (most > MOST_RUNS) throw new TooLarge(`it has ${most} runs of consecutive bytes; the limit is 2^24`);
    const starts = new Float64Array(most);
    const lengths = new Float64Array(most);
    let count = 0;
    let end = Number.NaN;
    fill((start, bytes) => {
      if (start === end) lengths[count - 1] += bytes;
      else {
        starts[count] = exact(start);
        lengths[count++] = bytes;
      }
      end = exact(start + bytes);
    });
    return Runs.#list(starts, lengths, count);
  }

  /** Whether it is one run that begins at 0. */
  get isDense(): boolean {
    return this.count === 1 && this.low === 0;
  }

  /** Calls `run(byteOffset, bytes)` for each, in order, from `base` on. */
  forEach(base: number, run: (byteOffset: number, bytes: number) => void): void {
    const { starts, block, lengths, unit } = this;
    if (starts === undefined) {
      for (let i = 0; i < this.n1; i++) {
        const row = base + this.first + i * this.s1;
        for (let j = 0; j < this.n0; j++) run(row + j * this.s0, block);
      }
    } else if (lengths === undefined) {
      for (let i = 0; i < starts.length; i++) run(base + starts[i] * unit, block);
    } else {
      for (let i = 0; i < starts.length; i++) run(base + starts[i], lengths[i]);
    }
  }

  /** Whether they are the same bytes in the same order, however they are kept. */
  equals(other: Runs): boolean {
    if (this.bytes !== other.bytes || this.low !== other.low || this.high !== other.high) return false;
    if (this.starts === undefined && other.starts === undefined && this.block === other.block) {
      if (this.n0 === other.n0 && this.n1 === other.n1) return this.s0 === other.s0 && this.s1 === other.s1;
    }
    const theirs = other.#joined();
    for (const [start, bytes] of this.#joined()) {
      const { value } = theirs.next();
      if (value === undefined || value[0] !== start || value[1] !== bytes) return false;
    }
    return true;
  }

  /** The runs, those that touch as one. */
  *#joined(): Generator<readonly [start: number, bytes: number], undefined> {
    let start = 0;
    let end = 0;
    for (let i = 0; i < this.count; i++) {
      const next = this.#startOf(i);
      if (next !== end || i === 0) {
        if (i > 0) yield [start, end - start];
        start = next;
      }
      end = next + (this.lengths === undefined ? this.block : this.lengths[i]);
    }
    if (this.count > 0) yield [start, end - start];
    return undefined;
  }

  #startOf(i: number): number {
    if (this.starts !== undefined) return this.starts[i] * this.unit;
    const j = i % this.n0;
    return this.first + ((i - j) / this.n0) * this.s1 + j * this.s0;
  }

  /** Whether `alignment`, a power of two, divides every start. */
  isAligned(alignment: number): boolean {
    const { starts, unit } = this;
    let bits = 0;
    if (starts === undefined) bits = low32(this.first) | low32(this.s0) | low32(this.s1);
    else if (unit % alignment !== 0) for (let i = 0; i < starts.length; i++) bits |= low32(starts[i] * unit);
    return (bits & (alignment - 1)) === 0;
  }

  /**
   * Whether a byte is in two of the runs. Found out when first asked for: sorts irregular runs that are not in
   * ascending order. Errors: `TooLarge` if there are too many to tell.
   */
  get overlapping(): boolean {
    this.#overlapping ??= this.#overlaps();
    return this.#overlapping;
  }

  /**
   * Throws unless it can be told of so many times these, `stride` bytes apart, whether they overlap, without a list of
   * more than `MOST_RUNS`. Errors: `TooLarge`.
   */
  refuseUntellable(count: number, stride: number): void {
    if (this.count * count <= MOST_RUNS) return;
    const all = count > 1 && Math.abs(stride) < this.high - this.low ? this.repeat(count, stride) : this;
    if (all.starts === undefined && all.count > MOST_RUNS) all.#overlapOfNest();
  }

  /** Of a nest; `undefined` if its rows interleave, so that only a list tells. Errors: `TooLarge`, for a list. */
  #overlapOfNest(): boolean | undefined {
    const { block } = this;
    const inner = (this.n0 - 1) * Math.abs(this.s0) + block;
    if (this.n0 > 1 && Math.abs(this.s0) < block) return true;
    if (this.n1 === 1 || Math.abs(this.s1) >= inner) return false;
    // Rows that interleave: all runs have the same remainders in every row.
    const rows = Math.abs(this.s1);
    if (rows < block) return true;
    if (this.n0 === 1 || (this.n1 - 1) * rows + block <= Math.abs(this.s0)) return false;
    if (this.count > MOST_RUNS) throw new TooLarge(`it has ${this.count} runs that interleave; the limit is 2^24`);
    return undefined;
  }

  #overlaps(): boolean {
    if (this.count < 2) return false;
    const { starts, block, unit, lengths } = this;
    if (starts === undefined) {
      const told = this.#overlapOfNest();
      if (told !== undefined) return told;
      const places = new Float64Array(this.count);
      let at = 0;
      this.forEach(0, (start) => void (places[at++] = start));
      places.sort();
      return places.some((place, i) => i > 0 && place - places[i - 1] < block);
    }
    let ascending = true;
    for (let i = 1; i < starts.length && ascending; i++) {
      ascending = (starts[i] - starts[i - 1]) * unit >= (lengths === undefined ? block : lengths[i - 1]);
    }
    if (ascending) return false;
    if (lengths === undefined) {
      const sorted = starts.slice().sort();
      return sorted.some((start, i) => i > 0 && (start - sorted[i - 1]) * unit < block);
    }
    const order = Uint32Array.from(starts, (_, i) => i).sort((a, b) => starts[a] - starts[b]);
    return order.some((run, i) => i > 0 && starts[run] - starts[order[i - 1]] < lengths[order[i - 1]]);
  }

  #endOfLast(): number {
    const { lengths, count } = this;
    return this.#startOf(count - 1) + (lengths === undefined ? this.block : lengths[count - 1]);
  }
}

/** The bits of a whole number below 2^53 that say what it is a multiple of. */
function low32(value: number): number {
  return value | 0;
}
