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
import { type CodecOf, readCodec, sayCodec } from './map/index.ts';
import { type EntryForm, TypedEntries, ValueEntries } from './queue-entries.ts';

/** The first word of the hands; those before it are the queue's (service-queue.ts). */
export const HANDS = 64;
/** Entries that one member can have taken and not done. */
export const HANDS_EACH = 16;
/** Words of a hand: who has it, and which entry. */
export const NAME = 0;
export const POSITION = 1;
export const HAND_WORDS = 2;

const MOST_ENTRIES = 2 ** 24;
const MOST_BYTES = 2 ** 40;
const DEFAULT_LONGEST = 1000;
const MOST_LONGEST = 2 ** 26;
/** In the catalogue, codes of codecs begin behind those of elements' types. */
const CODECS = 100;

/** Options of a queue of typed arrays. */
export interface ServiceQueueOptions {
  /** The number of elements of an entry (default: 1). */
  readonly length?: number;
}

/** Options of a queue of values. All members give the same. */
export interface ValueQueueOptions<V = unknown> {
  /** The number of entries that fit, 1 … 2^24. */
  readonly capacity: number;
  /**
   * How entries become bytes: `json` (default), `string`, `bytes` (`Uint8Array`), `structured` (what `structuredClone`
   * copies), or functions of the program's own.
   */
  readonly codec?: CodecOf<V>;
  /**
   * Bytes of the longest entry, up to 64 MiB (default: 1,000). The queue has room for `capacity` of them, and for 16 of
   * each place.
   */
  readonly longest?: number;
}

export interface QueueShape<T> {
  readonly shape: Shape;
  readonly capacity: number;
  /** Elements of an entry; of values, bytes of the longest. */
  readonly length: number;
  readonly layout: QueueLayout;
  readonly entries: EntryForm<T>;
}

/** What a queue of typed arrays is made with, checked. */
export function queueShape<T extends TypedArray>(
  places: number,
  type: TypedArrayConstructor<T>,
  capacity: number,
  options: ServiceQueueOptions | undefined,
): QueueShape<T> {
  const call = 'Service.queue';
  if (!isTypedArrayConstructor(type)) {
    const rule = 'give the constructor of a typed array and a capacity, or { capacity, codec } for values';
    throw argumentTypeError(`${call}: ${rule}, not ${show(type)}`, 'ERR_TYPE');
  }
  if (options !== undefined && (typeof options !== 'object' || options === null))
    throw argumentTypeError(`${call}: options must be { length }, not ${show(options)}`);
  if (options !== undefined) refuseUnknown(call, 'the options', options, ['length']);
  const length = reading(call, 'length of the options', () => options?.length ?? 1);
  const elements = checked(call, 'the length of an entry', length, 2 ** 30);
  const code = typeCodeOf(new type(new ArrayBuffer(0)));
  const entries = new TypedEntries(type, code, elements);
  return shapeOf(call, places, capacity, fact('length', elements), elements, code, entries);
}

/** What a queue of values is made with, checked. */
export function valueQueueShape<V>(places: number, options: ValueQueueOptions<V>): QueueShape<V> {
  const call = 'Service.queue';
  refuseUnknown(call, 'the options', options, ['capacity', 'codec', 'longest']);
  const read = reading(call, 'the options', () => {
    const { capacity, codec, longest = DEFAULT_LONGEST } = options;
    return { capacity, codec, longest };
  });
  const longest = checked(call, 'longest', read.longest, MOST_LONGEST);
  const codec = readCodec(call, read.codec);
  const entries = new ValueEntries<V>(codec, longest);
  const code = CODECS + codec.number;
  return shapeOf(call, places, read.capacity, fact('longest', longest), longest, code, entries);
}

function shapeOf<T>(
  call: string,
  places: number,
  capacity: unknown,
  lengthFact: { value: number; say(value: number): string },
  length: number,
  code: number,
  entries: EntryForm<T>,
): QueueShape<T> {
  const count = checked(call, 'capacity', capacity, MOST_ENTRIES);
  const layout = layoutOf(places, count, entries.bytes);
  if (layout.bytes > MOST_BYTES) {
    const rule = `a queue has ${MOST_BYTES} bytes at most`;
    throw argumentRangeError(`${call}: ${count} entries of ${entries.bytes} bytes are too many: ${rule}`, 'ERR_SIZE');
  }
  const facts = [{ value: code, say: sayEntries }, fact('capacity', count), lengthFact];
  return { shape: { kind: 'queue', bytes: layout.bytes, facts }, capacity: count, length, layout, entries };
}

function sayEntries(code: number): string {
  return code >= CODECS
    ? `values of ${sayCodec(code - CODECS)}`
    : `entries of ${arrayOf(code)?.name ?? 'another type'}`;
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

function layoutOf(places: number, capacity: number, entryBytes: number): QueueLayout {
  const stride = Math.ceil(entryBytes / 8) * 8;
  const hands = Math.ceil((4 * (HANDS + places * HANDS_EACH * HAND_WORDS)) / 64) * 64;
  const slots = hands + places * HANDS_EACH * stride;
  // Positions wrap around at 2^32, and go on at the next slot then.
  const ring = 2 ** Math.ceil(Math.log2(capacity));
  return { stride, hands, slots, ring, bytes: slots + ring * stride };
}
