/**
 * Whether two layouts in one buffer share a byte, and which. The one place that knows: MPI forbids overlapping bytes
 * (4.1, 12.3), not bytes that lie between each other, such as two columns of one array.
 *
 * Spans that are apart are told by two comparisons. Otherwise each layout is put in order once: levels of groups that
 * repeat at a stride, none of which reaches into the next, around a block or around a list in ascending order. Two
 * layouts that repeat at the same stride, as columns do, are compared group with group, whatever their number; others
 * are walked together, each skipping what ends before the other's next run.
 */
import { forEachRun, type Places } from './copy.ts';
import type { Runs } from './runs.ts';

/** Where bytes are, and how far they reach. */
export interface Extent extends Places {
  /** The first byte, and past the last. */
  readonly low: number;
  readonly high: number;
}

/** Bytes `low` … `high − 1` of a buffer. */
export interface Stretch {
  readonly low: number;
  readonly high: number;
}

/** Consecutive bytes from 0 on. */
export function denseExtent(bytes: number): Extent {
  return { bytes, runs: undefined, count: 1, stride: 0, low: 0, high: bytes };
}

/**
 * The first bytes that two layouts share, one of which begins at byte `aAt` of a buffer, the other at byte `bAt`.
 * Cost: nothing where their spans are apart; at most one look at each run, besides sorting for lists that are not in
 * ascending order and for groups that reach into each other.
 */
export function sharedBytes(a: Extent, aAt: number, b: Extent, bAt: number): Stretch | undefined {
  if (aAt + a.low >= bAt + b.high || bAt + b.low >= aAt + a.high || a.bytes === 0 || b.bytes === 0) return undefined;
  return shared(inOrder(a), aAt + a.low, inOrder(b), bAt + b.low);
}

/** `n` groups at a stride that is no shorter than a group. */
interface Level {
  n: number;
  readonly stride: number;
  /** Bytes of a group, from its first to past its last. */
  readonly group: number;
}

/** Runs in ascending order, none of which touches another's bytes: run i at `starts[i] * unit − first`. */
interface Ascending {
  readonly starts: Int32Array | Float64Array;
  readonly unit: number;
  readonly first: number;
  readonly block: number;
  /** Absent: all of `block` bytes. */
  readonly lengths: Float64Array | undefined;
}

/** A layout in ascending order, from its lowest byte on. */
interface Ordered {
  /** The outermost first. */
  readonly levels: readonly Level[];
  /** What is repeated: a block of bytes, or a list. */
  readonly block: number;
  readonly list: Ascending | undefined;
}

function inOrder({ bytes, runs, count, stride }: Extent): Ordered {
  if (runs === undefined) return { levels: [], block: bytes, list: undefined };
  if (runs.starts === undefined) {
    const nested = nest(runs.block, undefined, runs.block, [
      [runs.n0, runs.s0],
      [runs.n1, runs.s1],
      [count, stride],
    ]);
    if (nested !== undefined) return nested;
  }
  const span = runs.high - runs.low;
  if (count === 1 || Math.abs(stride) >= span) return nest(0, ascending(runs), span, [[count, stride]])!;
  // Groups that reach into each other. What is too much to be sorted was refused (layout.ts).
  return { levels: [], block: 0, list: sorted({ runs, count, stride, bytes }, runs.count * count) };
}

/** @returns `undefined` if groups reach into each other */
function nest(
  block: number,
  list: Ascending | undefined,
  span: number,
  repeats: readonly (readonly [n: number, stride: number])[],
): Ordered | undefined {
  const levels: Level[] = [];
  let solid = block;
  let group = span;
  const ordered = repeats
    .map(([n, stride]) => ({ n, stride: Math.abs(stride) }))
    .filter(({ n }) => n > 1)
    .sort((a, b) => a.stride - b.stride);
  for (const { n, stride } of ordered) {
    const last = levels[0];
    const reach = (n - 1) * stride + group;
    if (last === undefined && list === undefined && stride <= solid) solid = reach;
    else if (last !== undefined && stride === last.n * last.stride) last.n *= n;
    else if (stride >= group) levels.unshift({ n, stride, group });
    else return undefined;
    group = reach;
  }
  return { levels, block: solid, list };
}

/** Lists that had to be sorted, which layouts that are used again have again. */
const kept = new WeakMap<Runs, Ascending>();

function ascending(runs: Runs): Ascending {
  const { starts, unit, block, lengths, low } = runs;
  if (starts !== undefined) {
    let rises = true;
    for (let i = 1; i < starts.length && rises; i++) {
      rises = (starts[i] - starts[i - 1]) * unit >= (lengths === undefined ? block : lengths[i - 1]);
    }
    if (rises) return { starts, unit, first: low, block, lengths };
  }
  let list = kept.get(runs);
  if (list === undefined) {
    list = sorted({ runs, count: 1, stride: 0, bytes: runs.bytes }, runs.count);
    kept.set(runs, list);
  }
  return list;
}

/** The runs in the order of their places; what overlaps or touches is one. */
function sorted(places: Places, count: number): Ascending {
  const begins = new Float64Array(count);
  const ends = new Float64Array(count);
  let n = 0;
  forEachRun(places, (offset, bytes) => {
    begins[n] = offset;
    ends[n++] = offset + bytes;
  });
  // A byte is within some run where more have begun than ended: both can be sorted for themselves.
  begins.sort();
  ends.sort();
  const starts = new Float64Array(count);
  const lengths = new Float64Array(count);
  let runs = 0;
  for (let begun = 0, ended = 0; begun < count; ) {
    const start = begins[begun++];
    while (begun < count && begins[begun] <= ends[ended]) {
      begun++;
      ended++;
    }
    starts[runs] = start;
    lengths[runs++] = ends[ended++] - start;
  }
  const list = { starts: starts.subarray(0, runs), lengths: lengths.subarray(0, runs) };
  return { ...list, unit: 1, first: begins[0], block: 0 };
}

/** The first bytes that both have, which begin at bytes `aAt` and `bAt`. */
function shared(a: Ordered, aAt: number, b: Ordered, bAt: number): Stretch | undefined {
  const [outerA] = a.levels;
  const [outerB] = b.levels;
  if (outerA === undefined || outerA.stride !== outerB?.stride) return walked(a, aAt, b, bAt);
  // Group i of the one and group i + k of the other: groups are no longer than the stride, so two values of k will do.
  const { stride } = outerA;
  const [withinA, withinB] = [a, b].map(({ levels, ...inner }) => ({ ...inner, levels: levels.slice(1) }));
  let first: Stretch | undefined;
  const least = Math.max(1 - outerA.n, Math.floor((aAt - bAt - outerB.group) / stride) + 1);
  for (let k = least; k < outerB.n && bAt + k * stride < aAt + outerA.group; k++) {
    const i = Math.max(0, -k);
    const found = shared(withinA, aAt + i * stride, withinB, bAt + (i + k) * stride);
    if (found !== undefined && (first === undefined || found.low < first.low)) first = found;
  }
  return first;
}

function walked(a: Ordered, aAt: number, b: Ordered, bAt: number): Stretch | undefined {
  const [mine, theirs] = [new Cursor(a, aAt), new Cursor(b, bAt)];
  let here = mine.pass(bAt);
  while (here && theirs.pass(mine.start)) {
    if (theirs.start < mine.end)
      return { low: Math.max(mine.start, theirs.start), high: Math.min(mine.end, theirs.end) };
    here = mine.pass(theirs.start);
  }
  return undefined;
}

/** Goes through the runs of a layout in ascending order. */
class Cursor {
  start = 0;
  end = 0;
  readonly #layout: Ordered;
  readonly #at: number;
  /** Of the list, where there is one: the run that was found last. */
  #run = 0;

  constructor(layout: Ordered, at: number) {
    this.#layout = layout;
    this.#at = at;
  }

  /** Goes to the first run that ends after a byte. @returns whether there is one */
  pass(byte: number): boolean {
    const { levels, block, list } = this.#layout;
    let at = this.#at;
    for (const { n, stride, group } of levels) {
      const i = Math.max(0, Math.floor((byte - at - group) / stride) + 1);
      // Within a group that ends after the byte, some run does, so this is the outermost.
      if (i >= n) return false;
      at += i * stride;
    }
    if (list === undefined) {
      this.start = at;
      this.end = at + block;
      return this.end > byte;
    }
    const { starts, unit, first, lengths } = list;
    const endOf = (i: number): number =>
      at + starts[i] * unit - first + (lengths === undefined ? list.block : lengths[i]);
    let i = this.#run;
    // Mostly it is the same run or the next one; another group begins anew.
    if (i > 0 && endOf(i - 1) > byte) i = 0;
    if (i < starts.length && endOf(i) <= byte) i++;
    if (i < starts.length && endOf(i) <= byte) {
      let past = starts.length;
      while (i < past) {
        const middle = (i + past) >>> 1;
        if (endOf(middle) > byte) past = middle;
        else i = middle + 1;
      }
    }
    if (i === starts.length) return false;
    this.#run = i;
    this.start = at + starts[i] * unit - first;
    this.end = endOf(i);
    return true;
  }
}
