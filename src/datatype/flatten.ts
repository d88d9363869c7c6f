/**
 * Flattening: the runs, the signature and the bounds of a datatype that is made of others (MPI 4.1, 5.1). What is too
 * large for exact numbers is refused.
 */
import { RmaError } from '../errors.ts';
import { ALIGNMENTS } from './base-types.ts';
import { Runs, TooLarge } from './runs.ts';
import { Signature } from './signature.ts';

/** Longest description: one of a type nested a thousand times stays readable. */
const MOST_WORDS = 160;

/** The storage order of an array: the last index varies fastest (`C`), or the first (`F`, Fortran). */
export type Order = 'C' | 'F';

/** Bytes from the starting point to where an instance begins and ends, as the next one sees it. */
export type Bounds = readonly [lower: number, upper: number];

/** What a datatype is when it has been flattened. */
export interface Flat {
  readonly runs: Runs;
  readonly signature: Signature;
  readonly bounds: Bounds;
  /** See `Datatype.marked`. */
  readonly marked: boolean;
}

/** What a datatype is made of. */
interface Part extends Flat {
  readonly extent: number;
}

/** `count` blocks of `blockLength` instances, `stride` bytes apart. */
export function regular(type: Part, count: number, stride: number, blockLength: number): Flat {
  const runs = type.runs.repeat(blockLength, type.extent).repeat(count, stride);
  const bounds = spread(spread(type.bounds, blockLength, type.extent), blockLength === 0 ? 0 : count, stride);
  const instances = count * blockLength;
  return { runs, signature: type.signature.times(instances), bounds, marked: type.marked && instances > 0 };
}

/** Blocks of `lengthOf(i)` instances at `places[i]`, in units of `unit` bytes. */
export function placed(type: Part, lengthOf: (block: number) => number, places: readonly number[], unit: number): Flat {
  const pieces: [Runs, number][] = [];
  let bounds: Bounds | undefined;
  let instances = 0;
  let block: Runs = Runs.none;
  let blockLength = 0;
  for (const [i, place] of places.entries()) {
    const length = lengthOf(i);
    if (length === 0) continue;
    if (length !== blockLength) block = type.runs.repeat(length, type.extent);
    blockLength = length;
    const offset = place * unit;
    if (!Number.isSafeInteger(offset)) throw new TooLarge('a displacement exceeds 2^53 − 1 bytes');
    pieces.push([block, offset]);
    bounds = united(bounds, spread(type.bounds, length, type.extent), offset);
    instances += length;
  }
  const signature = type.signature.times(instances);
  return { runs: Runs.joined(pieces), signature, bounds: bounds ?? [0, 0], marked: type.marked && instances > 0 };
}

/**
 * `lengths[i]` instances of `types[i]` at byte `places[i]`.
 * @param isRecord as a C compiler makes it: there, all fields are within
 */
export function structure(
  lengths: readonly number[],
  places: readonly number[],
  types: readonly Part[],
  isRecord: boolean,
): Flat {
  const pieces: [Runs, number][] = [];
  const signatures: Signature[] = [];
  let bounds: Bounds | undefined;
  let alignment = 1;
  const marked = !isRecord && types.some((type, i) => type.marked && lengths[i] > 0);
  for (const [i, type] of types.entries()) {
    if (lengths[i] === 0) continue;
    pieces.push([type.runs.repeat(lengths[i], type.extent), places[i]]);
    signatures.push(type.signature.times(lengths[i]));
    if (type.marked || !marked) bounds = united(bounds, spread(type.bounds, lengths[i], type.extent), places[i]);
    alignment = Math.max(alignment, alignmentOf(type));
  }
  const [lower, upper] = bounds ?? [0, 0];
  const extent = marked ? upper - lower : Math.ceil((upper - lower) / alignment) * alignment;
  const signature = Signature.joined(signatures);
  if (signature === undefined) throw new TooLarge('its base types alternate more than 2^20 times');
  return { runs: Runs.joined(pieces), signature, bounds: [lower, lower + extent], marked };
}

/** The blocks `[start, length]` of each dimension, out of arrays of `sizes` instances. */
export function arrayPart(
  type: Part,
  sizes: readonly number[],
  blocks: readonly (readonly (readonly [start: number, length: number])[])[],
  order: Order,
): Flat {
  let { runs } = type;
  let stride = type.extent;
  let instances = 1;
  for (let i = 0; i < sizes.length; i++) {
    const d = order === 'C' ? sizes.length - 1 - i : i;
    const pieces = blocks[d].map(([start, length]) => [runs.repeat(length, stride), start * stride] as const);
    instances *= blocks[d].reduce((sum, [, length]) => sum + length, 0);
    runs = Runs.joined(pieces);
    stride *= sizes[d];
    if (!Number.isSafeInteger(stride)) throw new TooLarge('the whole array exceeds 2^53 − 1 bytes');
  }
  return { runs, signature: type.signature.times(instances), bounds: [0, stride], marked: true };
}

/** What the address of an instance must be a multiple of, as in C: that of its strictest base type. */
export function alignmentOf(type: { readonly signature: Signature }): number {
  return type.signature.codes.reduce((most, code) => Math.max(most, ALIGNMENTS[code]), 1);
}

/** Bounds of `count` instances, `stride` bytes apart. */
function spread(bounds: Bounds, count: number, stride: number): Bounds {
  if (count === 0) return [0, 0];
  const shift = (count - 1) * stride;
  return [bounds[0] + Math.min(0, shift), bounds[1] + Math.max(0, shift)];
}

/** Bounds of what has `bounds` and of what lies at `offset` and has `more`. */
function united(bounds: Bounds | undefined, more: Bounds, offset: number): Bounds {
  const [lower, upper] = [more[0] + offset, more[1] + offset];
  return bounds === undefined ? [lower, upper] : [Math.min(bounds[0], lower), Math.max(bounds[1], upper)];
}

/** A datatype whose numbers are all exact. */
export function exact(flat: Flat): Flat {
  const [lower, upper] = flat.bounds;
  if ([lower, upper, upper - lower, flat.signature.elements].every(Number.isSafeInteger)) return flat;
  throw new TooLarge('its bounds or its number of elements exceed 2^53 − 1');
}

/** What `make` gives for the description, which is cut if it is long; too large a datatype is an error in words. */
export function sized<T>(call: string, description: string, make: (words: string) => T): T {
  const words = description.length > MOST_WORDS ? `${description.slice(0, MOST_WORDS)}…` : description;
  try {
    return make(words);
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error;
    throw new RmaError('ERR_TYPE', `Datatype.${call}: ${words} is too large: ${error.message}`);
  }
}
