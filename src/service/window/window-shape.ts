/**
 * Where everything of a service's window lies in its memory.
 *
 *   a line for each place     the lock of its part, and who waits for it
 *   a line for each place     its notifications
 *   shared locks              a word for each part and each place that can hold it
 *   stripes                   of each part, and who was cut off in one
 *   parts                     one for each place, on pages of their own, mapped when first asked for
 */
import {
  arrayOf,
  isTypedArrayConstructor,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, show } from '../../errors.ts';
import type { Native } from '../../native.ts';
import { STRIPE_WORDS, STRIPES } from '../../transfer/loads/stripes.ts';
import { fact, type Shape } from '../catalogue.ts';

/** Words of a cache line. */
const LINE = 16;

/** Words of the line of a part's lock. */
export const LOCK = 0;
/** Rises when a shared lock is given back while somebody waits for that. */
export const DRAINED = 1;
/** Whether the holder of the lock waits for shared ones. */
export const DRAINS = 2;
/** The place of a dead holder that nobody was told of yet, and 1. */
export const UNTOLD = 3;
/** Words of the line of a place's notifications: how many have arrived, were taken, and whether it may sleep. */
export const ARRIVED = 0;
export const TAKEN = 1;
export const SLEEPS = 2;

/** Where words and parts are. */
export interface WindowPlan {
  readonly places: number;
  /** Words from the beginning to the shared locks, the stripes, and the names of those that were cut off. */
  readonly shared: number;
  readonly stripes: number;
  readonly cuts: number;
  /** Bytes of a part, and from one part to the next. */
  readonly partBytes: number;
  readonly stride: number;
  /** Where the parts begin. */
  readonly parts: number;
}

export interface WindowShape<T extends TypedArray> extends WindowPlan {
  readonly shape: Shape;
  readonly type: TypedArrayConstructor<T>;
  readonly typeCode: number;
  readonly length: number;
}

const MOST_BYTES = 2 ** 44;

/** @param call for messages */
export function windowShape<T extends TypedArray>(
  call: string,
  { pageBytes }: Pick<Native, 'pageBytes'>,
  places: number,
  type: TypedArrayConstructor<T>,
  length: number,
): WindowShape<T> {
  if (!isTypedArrayConstructor(type) || (type as unknown) === Uint8ClampedArray) {
    const rule = 'type must be the constructor of a typed array, and not Uint8ClampedArray';
    throw argumentTypeError(`${call}: ${rule}; it is ${show(type)}`, 'ERR_TYPE');
  }
  if (typeof length !== 'number') throw argumentTypeError(`${call}: length must be a number, not ${show(length)}`);
  const partBytes = length * type.BYTES_PER_ELEMENT;
  const fits = Number.isInteger(length) && length >= 1 && partBytes <= 2 ** 32 - pageBytes;
  const stride = Math.ceil(partBytes / pageBytes) * pageBytes;
  if (!fits || stride * places > MOST_BYTES) {
    const most = Math.min(2 ** 32 - pageBytes, Math.floor(MOST_BYTES / places)) / type.BYTES_PER_ELEMENT;
    const rule = `length must be a whole number of elements from 1 to ${Math.floor(most)} for ${places} places`;
    throw argumentRangeError(`${call}: ${rule}, not ${length}`, 'ERR_SIZE');
  }
  const typeCode = typeCodeOf(new type(new ArrayBuffer(0)));
  const shared = 2 * LINE * places;
  const stripes = Math.ceil((shared + places * places) / LINE) * LINE;
  const cuts = stripes + places * STRIPE_WORDS;
  const parts = Math.ceil((4 * (cuts + places * STRIPES)) / pageBytes) * pageBytes;
  const typeOf = { value: typeCode, say: (code: number) => `elements of ${arrayOf(code)?.name ?? 'another type'}` };
  return {
    shape: {
      kind: 'window',
      bytes: parts + places * stride,
      mapped: parts,
      facts: [typeOf, fact('length', length)],
    },
    type,
    typeCode,
    length,
    places,
    shared,
    stripes,
    cuts,
    partBytes,
    stride,
    parts,
  };
}

/** Where the line of a part's lock begins, in words. */
export function lockLine(target: number): number {
  return target * LINE;
}

/** Where the line of a place's notifications begins, in words. */
export function signalLine({ places }: WindowPlan, place: number): number {
  return (places + place) * LINE;
}
