/**
 * A transfer whose target lies in several regions of memory, cut at their borders: one piece for all elements, one
 * after the other in the order of the transfer, that lie in the same region.
 */
import { RmaError } from '../errors.ts';
import { TYPE_SIZES } from './base-types.ts';
import { forEachRun } from './copy.ts';
import { Datatype } from './datatype.ts';
import { elementOffsets, inOrder, wordsOf } from './layout.ts';
import { MOST_RUNS, Runs } from './runs.ts';
import type { Side } from './sides.ts';
import { MIXED } from './signature.ts';
import { TypeCode } from './type-codes.ts';

/** Some elements of one side, from byte `at` of that side on. */
interface Part {
  readonly at: number;
  readonly side: Side;
}

export interface Piece {
  readonly from: Part;
  readonly to: Part;
  /** Where there is a third side. */
  readonly into: Part | undefined;
}

/** A side as elements of one base type: where each begins, and parts of it. */
interface Elements {
  readonly dense: boolean;
  offset(element: number): number;
  /** Elements `first` … `first + count − 1`. */
  part(first: number, count: number): Part;
}

/**
 * Cuts a transfer. Elements are those of the base type, or single bytes if there are several.
 * @param endOf the offset where the region ends that holds bytes `low` … `high − 1` from the target's starting point;
 * throws if there is none
 * Errors: `ERR_TYPE` (more than 2^24 elements in a layout), and those of `endOf`. Cost: proportional to the elements of
 * layouts; of the pieces without.
 */
export function piecesOf(
  call: string,
  from: Side,
  to: Side,
  into: Side | undefined,
  endOf: (low: number, high: number) => number,
): readonly Piece[] {
  const whole = to.base !== MIXED && from.base !== MIXED;
  const base = whole ? to.base : TypeCode.BYTE;
  const size = TYPE_SIZES[base];
  const count = whole ? to.elements : to.bytes;
  const [sources, targets, sinks] = [from, to, into].map((side) => side && elementsOf(call, side, base, whole));
  const pieces: Piece[] = [];
  for (let first = 0; first < count; ) {
    const low = targets!.offset(first);
    const end = endOf(low, low + size);
    let next = first + 1;
    if (targets!.dense) next = Math.min(count, first + Math.floor((end - low) / size));
    // Those before the first one may be in the region as well, but that was not said.
    else while (next < count && targets!.offset(next) >= low && targets!.offset(next) + size <= end) next++;
    const part = (elements: Elements): Part => elements.part(first, next - first);
    pieces.push({ from: part(sources!), to: part(targets!), into: sinks && part(sinks) });
    first = next;
  }
  return pieces;
}

function elementsOf(call: string, side: Side, base: number, whole: boolean): Elements {
  const size = TYPE_SIZES[base];
  const dense = (count: number, at: number): Part => ({ at, side: inOrder(call, { base, elements: count }) });
  if (side.runs === undefined)
    return {
      dense: true,
      offset: (element) => element * size,
      part: (first, count) => dense(count, first * size),
    };
  const elements = whole ? side.elements : side.bytes;
  if (elements > MOST_RUNS) {
    throw new RmaError(
      'ERR_TYPE',
      `${call}: ${wordsOf(side)} span several attached regions and exceed the limit of 2^24 per call for such accesses`,
    );
  }
  const offsets = whole ? elementOffsets(side) : byteOffsets(side);
  const type = Datatype.ofCode(base);
  return {
    dense: false,
    offset: (element) => offsets[element],
    part(first, count) {
      const own = offsets.subarray(first, first + count);
      if (own.every((offset, i) => offset === own[0] + i * size)) return dense(count, own[0]);
      const runs = Runs.joined(Array.from(own, (offset) => [type.runs, offset] as const));
      const { low, high, bytes } = runs;
      const scattered = { type, runs, count: 1, stride: 0, elements: count, base, elementSize: size, low, high, bytes };
      return { at: 0, side: scattered };
    },
  };
}

function byteOffsets(side: Side): Float64Array {
  const offsets = new Float64Array(side.bytes);
  let at = 0;
  forEachRun(side, (byteOffset, bytes) => {
    for (let b = 0; b < bytes; b++) offsets[at++] = byteOffset + b;
  });
  return offsets;
}
