/** What a queue is made with, and where everything of it lies in its memory. */
import {
  arrayOf,
  isTypedArrayConstructor,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, reading, show } from '../errors.ts';
import { refuseUnknown } from '../options.ts';
import { fact, type Shape } from './catalogue.ts';

/** The first word of the hands; those before it are the queue's (service-queue.ts). */
export const HANDS = 64;
/** Entries that one member can have taken and not done. */
export const HANDS_EACH = 16;
/** Words of a hand: who has it, and which entry. */
export const NAME = 0;
export const POSITION = 1;
export const HAND_WORDS = 2;

const MOST_ENTRIES = 2 ** 24;

export interface ServiceQueueOptions {
  /** The number of elements of an entry (default: 1). */
  readonly length?: number;
}

export interface QueueShape<T extends TypedArray> {
  readonly shape: Shape;
  readonly type: TypedArrayConstructor<T>;
  readonly typeCode: number;
  readonly capacity: number;
  readonly length: number;
}

/** What a queue is made with, checked. */
export function queueShape<T extends TypedArray>(
  places: number,
  type: TypedArrayConstructor<T>,
  capacity: number,
  options: ServiceQueueOptions | undefined,
): QueueShape<T> {
  const call = 'Service.queue';
  if (!isTypedArrayConstructor(type))
    throw argumentTypeError(`${call}: type must be the constructor of a typed array, not ${show(type)}`, 'ERR_TYPE');
  if (options !== undefined && (typeof options !== 'object' || options === null))
    throw argumentTypeError(`${call}: options must be { length }, not ${show(options)}`);
  if (options !== undefined) refuseUnknown(call, 'the options', options, ['length']);
  const length = reading(call, 'length of the options', () => options?.length ?? 1);
  const entry = checked(call, 'the length of an entry', length, 2 ** 30);
  const entries = checked(call, 'capacity', capacity, MOST_ENTRIES);
  const typeCode = typeCodeOf(new type(new ArrayBuffer(0)));
  const bytes = layoutOf(places, entries, entry * type.BYTES_PER_ELEMENT).bytes;
  if (bytes > 2 ** 40) throw argumentRangeError(`${call}: ${entries} entries of ${entry} elements are too many bytes`);
  const typeOf = { value: typeCode, say: (code: number) => `entries of ${arrayOf(code)?.name ?? 'another type'}` };
  const facts = [fact('capacity', entries), fact('length', entry), typeOf];
  return { shape: { kind: 'queue', bytes, facts }, type, typeCode, capacity: entries, length: entry };
}

function checked(call: string, what: string, value: unknown, most: number): number {
  if (typeof value !== 'number') throw argumentTypeError(`${call}: ${what} must be a number, not ${show(value)}`);
  if (Number.isInteger(value) && value >= 1 && value <= most) return value;
  throw argumentRangeError(`${call}: ${what} must be an integer from 1 to ${most}, not ${value}`);
}

export interface QueueLayout {
  /** Bytes from one entry to the next. */
  readonly stride: number;
  readonly hands: number;
  readonly slots: number;
  /** Slots: a power of two. */
  readonly ring: number;
  readonly bytes: number;
}

export function layoutOf(places: number, capacity: number, entryBytes: number): QueueLayout {
  const stride = Math.ceil(entryBytes / 8) * 8;
  const hands = Math.ceil((4 * (HANDS + places * HANDS_EACH * HAND_WORDS)) / 64) * 64;
  const slots = hands + places * HANDS_EACH * stride;
  // Positions wrap around at 2^32, and go on at the next slot then.
  const ring = 2 ** Math.ceil(Math.log2(capacity));
  return { stride, hands, slots, ring, bytes: slots + ring * stride };
}
