/** Origin, result and target of one call, checked: which elements, of what types, where. */

import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { refuseUnknown } from '../options.ts';
import {
  ALIGNMENTS,
  checkBuffer,
  DATA_SIZES,
  refuseLost,
  TYPE_NAMES,
  TYPE_SIZES,
  type TypedArray,
} from './base-types.ts';
import { forEachRun } from './copy.ts';
import { Datatype } from './datatype.ts';
import { alignmentOf } from './flatten.ts';
import { findSides, keepSides, SIDE, SIDES } from './kept-sides.ts';
import { MOST_BLOCKS, Runs, TooLarge } from './runs.ts';
import type { FetchLayout, Layout, Side, TransferLayout } from './sides.ts';
import { MIXED, Signature } from './signature.ts';
import { TypeCode } from './type-codes.ts';

function plainSide(base: number, elementSize: number, elements: number): Side {
  const bytes = elements * elementSize;
  return {
    type: undefined,
    runs: undefined,
    count: 1,
    stride: 0,
    elements,
    base,
    elementSize,
    low: 0,
    high: bytes,
    bytes,
  };
}

/**
 * The side of a layout without elements, whatever its type: there is nothing that an operation could be undefined on.
 */
const EMPTY = plainSide(MIXED, 1, 0);

/**
 * A datatype, which programs written for MPI give, is refused as such: otherwise its properties would be refused for
 * their names.
 */
function refuseUnknownSides(call: string, layout: object): void {
  if (Datatype.is(layout)) {
    throw argumentTypeError(
      `${call}: the layout must be { origin, target }, not a Datatype: say whose it is, as { target: { type } }`,
    );
  }
  refuseUnknown(call, 'the layout', layout, SIDES);
}

function described(call: string, side: string, layout: Layout): Side {
  if (Datatype.is(layout)) {
    throw argumentTypeError(
      `${call}: the ${side} layout must be { type: Datatype, count }, not a Datatype alone`,
      'ERR_TYPE',
    );
  }
  if (typeof layout !== 'object' || layout === null) {
    throw argumentTypeError(
      `${call}: the ${side} layout must be { type: Datatype, count }, not ${show(layout)}`,
      'ERR_TYPE',
    );
  }
  refuseUnknown(call, `the ${side} layout`, layout, SIDE);
  const [type, count = 1] = reading(call, `the ${side} layout`, () => [layout.type, layout.count] as const);
  if (!Datatype.is(type)) {
    throw argumentTypeError(`${call}: the ${side} layout's type must be a Datatype, not ${show(type)}`, 'ERR_TYPE');
  }
  if (typeof count !== 'number')
    throw argumentTypeError(`${call}: the ${side} layout's count must be a number, not ${show(count)}`);
  if (!Number.isSafeInteger(count) || count < 0) {
    throw argumentRangeError(`${call}: the ${side} layout's count must be a non-negative integer, not ${show(count)}`);
  }
  const described = sideOf(call, type, count);
  refuseUntellable(call, described);
  return described;
}

/**
 * One limit for all calls, whichever side they write to: a side that interleaves has no more runs than a list that
 * tells whether it overlaps itself may have. Errors: `ERR_TYPE`.
 */
function refuseUntellable(call: string, { type, runs, count, stride, bytes }: Side): void {
  if (runs === undefined || bytes === 0) return;
  try {
    runs.refuseUntellable(count, stride);
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error;
    throw tooLarge(call, count, type, error);
  }
}

function tooLarge(call: string, count: number, type: Datatype | undefined, { message }: TooLarge): RmaError {
  return new RmaError('ERR_TYPE', `${call}: ${count} × ${type} is too large: ${message}`);
}

function sideOf(call: string, type: Datatype, count: number): Side {
  const { runs, base, extent } = type;
  const { bytes, low, high } = type.span(call, count);
  const elements = count * type.elements;
  const elementSize = base === MIXED ? 1 : TYPE_SIZES[base];
  // Elements one after the other, whatever they are made of; with a type if a base element has padding.
  const dense = runs.isDense && (count === 1 || extent === runs.bytes);
  if (bytes === 0) return EMPTY;
  if (dense && base !== MIXED && elementSize === DATA_SIZES[base]) return plainSide(base, elementSize, elements);
  return { type, runs: dense ? undefined : runs, count, stride: extent, elements, base, elementSize, low, high, bytes };
}

/**
 * Both sides of a call on `origin`, a view of the library's own; checks that they hold the same elements and that the
 * origin's lie within the buffer.
 */
export function checkSides(
  call: string,
  origin: TypedArray,
  layout: TransferLayout | undefined,
): { from: Side; to: Side } {
  const code = checkBuffer(call, 'origin', origin);
  if (layout === undefined) {
    const plain = plainSide(code, origin.BYTES_PER_ELEMENT, origin.length);
    return { from: plain, to: plain };
  }
  if (typeof layout !== 'object' || layout === null) {
    throw argumentTypeError(`${call}: the layout must be { origin, target }, not ${show(layout)}`);
  }
  const { length } = origin;
  const known = findSides(origin, layout);
  // Reading the layout has run code of the caller's, perhaps.
  if (known !== undefined) {
    refuseLost(call, 'origin', origin, length);
    return known;
  }
  refuseUnknownSides(call, layout);
  const [origins, targets] = reading(call, 'the layout', () => [layout.origin, layout.target] as const);
  const from = bufferSide(call, 'origin', origin, code, origins);
  const sides = { from, to: targetSide(call, from, targets, 'origin') };
  refuseLost(call, 'origin', origin, length);
  keepSides(code, length, origins, targets, sides);
  return sides;
}

/**
 * The sides of a call that fetches. Without an origin (`NO_OP`), the target's elements are the result's.
 * @param origin a view of the library's own, as `result` is; `undefined`: nothing is taken from it
 */
export function checkFetch(
  call: string,
  origin: TypedArray | undefined,
  result: TypedArray,
  layout: FetchLayout | undefined,
): { from: Side; to: Side; into: Side } {
  const lengths = [origin?.length ?? 0, result.length];
  const sides = fetchSides(call, origin, result, layout);
  if (origin !== undefined) refuseLost(call, 'origin', origin, lengths[0]);
  refuseLost(call, 'result', result, lengths[1]);
  return sides;
}

function fetchSides(
  call: string,
  origin: TypedArray | undefined,
  result: TypedArray,
  layout: FetchLayout | undefined,
): { from: Side; to: Side; into: Side } {
  const code = checkBuffer(call, 'result', result);
  if (layout !== undefined && (typeof layout !== 'object' || layout === null)) {
    throw argumentTypeError(`${call}: the layout must be { origin, result, target }, not ${show(layout)}`);
  }
  if (layout !== undefined) refuseUnknownSides(call, layout);
  const [origins, results, targets] =
    layout === undefined
      ? []
      : reading(call, 'the layout', () => [layout.origin, layout.result, layout.target] as const);
  if (origin === undefined) {
    // A target layout says of what type the elements are, a result without a layout is of bytes then.
    if (results === undefined && targets !== undefined) {
      const to = described(call, 'target', targets);
      const into = packedSide(call, result, code, to);
      return { from: into, to, into };
    }
    const into = bufferSide(call, 'result', result, code, results);
    return { from: into, to: targetSide(call, into, targets, 'result'), into };
  }
  const from = bufferSide(call, 'origin', origin, checkBuffer(call, 'origin', origin), origins);
  const to = targetSide(call, from, targets, 'origin');
  if (results === undefined) return { from, to, into: packedSide(call, result, code, to) };
  const into = bufferSide(call, 'result', result, code, results);
  if (!sameSignature(into, to)) {
    throw new RmaError(
      'ERR_TYPE',
      `${call}: the call fetches ${wordsOf(to)}, but the result layout has ${wordsOf(into)}${ofBytes(to, into)}`,
    );
  }
  return { from, to, into };
}

/** The side of a buffer: its layout if it has one, which must lie within its bytes, whatever its elements are. */
function bufferSide(call: string, name: string, buffer: TypedArray, code: number, layout: Layout | undefined): Side {
  if (layout === undefined) return plainSide(code, buffer.BYTES_PER_ELEMENT, buffer.length);
  const side = described(call, name, layout);
  if (side.low < 0 || side.high > buffer.byteLength) {
    throw argumentRangeError(
      `${call}: the ${name} layout covers bytes ${side.low} … ${side.high - 1} of ` +
        `${name === 'origin' ? 'an origin' : 'a result'} of ${buffer.byteLength} bytes`,
      'ERR_BUFFER',
    );
  }
  return side;
}

/**
 * The side of the target: its layout, or the elements of `from` one after the other. Elements of several types, and
 * pairs with padding, have no obvious order without gaps; without a layout they lie at the target as they do in `from`.
 */
function targetSide(call: string, from: Side, layout: Layout | undefined, name: string): Side {
  if (layout === undefined) {
    if (from.base === MIXED || DATA_SIZES[from.base] !== from.elementSize) return from;
    return from.type === undefined ? from : plainSide(from.base, from.elementSize, from.elements);
  }
  const to = described(call, 'target', layout);
  if (!sameSignature(from, to)) {
    throw new RmaError(
      'ERR_TYPE',
      `${call}: the ${name} has ${wordsOf(from)}, but the target layout has ${wordsOf(to)}${ofBytes(from, to)}`,
    );
  }
  return to;
}

/** A result without layout: room for just the elements of `to`, one after the other, padding included. */
function packedSide(call: string, result: TypedArray, code: number, to: Side): Side {
  if (code !== to.base && code !== TypeCode.UINT8 && to.base !== TypeCode.BYTE && to.elements > 0) {
    throw new RmaError(
      'ERR_TYPE',
      `${call}: the result has elements of ${TYPE_NAMES[code]}, but the target has elements of ${nameOf(to)}`,
    );
  }
  if (to.base === MIXED && to.elements > 0) {
    throw new RmaError(
      'ERR_TYPE',
      `${call}: all elements must have the same base type, but the target layout has several`,
    );
  }
  const bytes = to.elements * to.elementSize;
  if (result.byteLength !== bytes) {
    throw argumentRangeError(
      `${call}: the result has ${result.byteLength} bytes, but the call fetches ${wordsOf(to)} (${bytes} bytes)`,
      'ERR_BUFFER',
    );
  }
  return inOrder(call, to);
}

/** What to do where one side has bytes without meaning, which are not integers of 8 bits: `Uint8Array` is both. */
function ofBytes(a: Side, b: Side): string {
  if ((a.base === TypeCode.BYTE) === (b.base === TypeCode.BYTE) || a.elements === 0 || b.elements === 0) return '';
  return '; Datatype.BYTE matches Datatype.BYTE only: name the same type in both layouts';
}

function sameSignature(a: Side, b: Side): boolean {
  if (a.elements !== b.elements) return false;
  if (a.base !== MIXED || b.base !== MIXED || a.elements === 0) return a.elements === 0 || a.base === b.base;
  return signatureOf(a).equals(signatureOf(b));
}

function signatureOf({ type, count, base, elements }: Side): Signature {
  return type === undefined ? Signature.of(base, elements) : type.signature.times(count);
}

function nameOf({ base }: Side): string {
  return base === MIXED ? 'several base types' : TYPE_NAMES[base];
}

/** For messages: what a side has. */
export function wordsOf(side: Side): string {
  const { type, count, elements } = side;
  return side.base === MIXED && type !== undefined
    ? `${count} × ${type}`
    : elements === 0
      ? 'no elements'
      : `${elements} elements of ${TYPE_NAMES[side.base]}`;
}

/**
 * Whether a byte is written twice by a side that is written to: MPI calls it an error (4.1, 12.3.1), since it is open
 * which value remains.
 * Cost: nothing for sides that are regular or ascending. Errors: `ERR_TYPE` if it has too many runs to tell.
 */
export function isOverlapping(call: string, side: Side): boolean {
  const { runs, count, stride } = side;
  if (runs === undefined || side.bytes === 0) return false;
  try {
    if (runs.overlapping) return true;
    // Instances whose spans overlap: their runs are laid out as one datatype, which then knows.
    return count > 1 && Math.abs(stride) < runs.high - runs.low && runs.repeat(count, stride).overlapping;
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error;
    throw tooLarge(call, side.count, side.type, error);
  }
}

/** What every element's address must be a multiple of for atomic access, a power of two. */
export function alignmentNeeded({ base, type }: Side): number {
  if (base === MIXED) return type === undefined ? 1 : alignmentOf(type);
  return ALIGNMENTS[base];
}

/** Whether the offsets of all elements are multiples of it. */
export function isAligned(side: Side, alignment: number): boolean {
  const { type, count, stride, base } = side;
  if (base === MIXED || type === undefined) return true;
  // Runs begin with elements, and have whole ones; not so those of pairs with padding.
  if (DATA_SIZES[base] === TYPE_SIZES[base])
    return (count === 1 || stride % alignment === 0) && (side.runs ?? type.runs).isAligned(alignment);
  return elementOffsets(side).every((offset) => offset % alignment === 0);
}

/** As many elements as a side has, one after the other, as far apart as in an array. */
export function inOrder(call: string, { base, elements }: Pick<Side, 'base' | 'elements'>): Side {
  if (elements === 0) return EMPTY;
  return sideOf(call, Datatype.ofCode(base), elements);
}

/**
 * Elements of one base type at byte offsets, in that order: a side as another rank has described it. Without offsets,
 * one after the other.
 * @param offsets kept, not copied
 */
export function sideAt(base: number, elements: number, offsets: Int32Array | undefined): Side {
  const type = Datatype.ofCode(base);
  if (offsets === undefined) return sideOf('', type, elements);
  const runs = Runs.blocks(offsets, 1, DATA_SIZES[base]);
  const { bytes, low, high } = runs;
  return { type, runs, count: 1, stride: 0, elements, base, elementSize: TYPE_SIZES[base], low, high, bytes };
}

/**
 * Refuses a side of more elements than are carried out one by one: memory sets no limit to those that lie one upon the
 * other.
 */
export function refuseEndless(call: string, side: Side): void {
  if (side.type === undefined || side.elements <= MOST_BLOCKS) return;
  throw new RmaError('ERR_TYPE', `${call}: ${wordsOf(side)} exceed the limit of 2^26 per call with a layout`);
}

/** The byte offset of each element of a side of one base type, in order. */
export function elementOffsets(side: Side): Float64Array {
  const offsets = new Float64Array(side.elements);
  // Runs are made of whole elements or, if those have a gap within, of parts of them.
  const data = DATA_SIZES[side.base] ?? 1;
  let at = 0;
  let missing = 0;
  forEachRun(side, (byteOffset, bytes) => {
    let b = missing;
    for (; b < bytes; b += data) offsets[at++] = byteOffset + b;
    missing = b - bytes;
  });
  return offsets;
}

/** Calls `segment(fromOffset, toOffset, bytes)` for each stretch that is consecutive on both sides, in order. */
export function forEachSegment(
  from: Side,
  to: Side,
  segment: (fromOffset: number, toOffset: number, bytes: number) => void,
): void {
  let at = 0;
  if (from.runs === undefined) {
    forEachRun(to, (offset, bytes) => {
      segment(at, offset, bytes);
      at += bytes;
    });
    return;
  }
  if (to.runs === undefined) {
    forEachRun(from, (offset, bytes) => {
      segment(offset, at, bytes);
      at += bytes;
    });
    return;
  }
  const runs: { offset: number; bytes: number }[] = [];
  forEachRun(to, (offset, bytes) => void runs.push({ offset, bytes }));
  let run = 0;
  let used = 0;
  forEachRun(from, (offset, bytes) => {
    for (let done = 0; done < bytes; ) {
      const n = Math.min(bytes - done, runs[run].bytes - used);
      segment(offset + done, runs[run].offset + used, n);
      done += n;
      used += n;
      if (used === runs[run].bytes) {
        run++;
        used = 0;
      }
    }
  });
}
