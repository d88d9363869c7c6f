/** Options of a map, and what its header says of them. */
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../../errors.ts';
import { refuseUnknown } from '../../options.ts';
import { checkTimeout } from '../../wait/operation.ts';
import {
  CODEC,
  divide,
  ENTRY_BYTES,
  type Geometry,
  HEADER_BYTES,
  LAYOUT_VERSION,
  LONGEST,
  MAGIC,
  MAGIC_NUMBER,
  mostOf,
  RING_BYTES,
  SHARDS,
  TTL,
  VERSION,
} from './map-layout.ts';
import { publish, store, storeNumber } from './map-stores.ts';
import { type Codec, type CodecName, type CustomCodec, readCodec, sayCodec } from './value-codecs.ts';

/** The codecs for values of a type; of values that are not known, all. */
export type CodecOf<V> =
  | 'json'
  | 'structured'
  | CustomCodec<V>
  | (unknown extends V ? CodecName : [V] extends [string] ? 'string' : [V] extends [Uint8Array] ? 'bytes' : never);

/** Options of a map. All members give the same. */
export interface SharedMapOptions<V = unknown> {
  /** Bytes of memory, all included: from 64 KiB to 8 GiB. Entries take 65 to 85 % of it, as they change. */
  readonly bytes: number;
  /** Milliseconds after which an entry is gone that was not set again, unless its own `set` says otherwise. */
  readonly ttl?: number;
  /**
   * How values become bytes: `json` (default), `string`, `bytes` (`Uint8Array`), `structured` (what `structuredClone`
   * copies), or functions of the program's own.
   */
  readonly codec?: CodecOf<V>;
  /**
   * Bytes of the longest value with its key. Default: about a hundredth of `bytes`. At most a sixteenth to an eighth,
   * and 64 MiB; the larger it is, the fewer parts has the map that members can write at the same time.
   */
  readonly longest?: number;
  /**
   * How many values this member keeps as it has decoded them, so that `get` gives them again, without a copy, until
   * another value is set. What `get` gives must not be changed then: it is the same object each time. Each member may
   * give another number. Default: 0.
   */
  readonly near?: number;
}

/** Options of a call that writes. */
export interface MapWriteOptions {
  /**
   * Milliseconds, more than 0, to wait for another member that writes the same part of the map, with the thread
   * blocked. Default: 10 s, but not for a member whose process is stopped.
   */
  readonly timeout?: number;
}

/** Options of a single entry. */
export interface EntryOptions extends MapWriteOptions {
  /** Milliseconds after which the entry is gone; `Infinity`: never. Default: the map's. */
  readonly ttl?: number;
}

/** Options of a call that writes, read: `ttl` is the map's own if none was given. */
export interface ReadEntryOptions {
  readonly ttl: number;
  readonly timeout: number | undefined;
}

const ENTRY = ['ttl', 'timeout'];
const WRITE = ['timeout'];

/** @param ttl the map's own; `undefined` for calls without one */
export function readEntryOptions(call: string, options: EntryOptions, ttl: number | undefined): ReadEntryOptions {
  const rule = ttl === undefined ? '{ timeout }' : '{ ttl, timeout }';
  if (typeof options !== 'object' || options === null)
    throw argumentTypeError(`${call}: the options must be ${rule}, not ${show(options)}`);
  refuseUnknown(call, 'the options', options, ttl === undefined ? WRITE : ENTRY);
  const read = reading(call, 'the options', () => ({ ttl: options.ttl, timeout: options.timeout }));
  checkTimeout(call, read.timeout);
  return {
    ttl: ttl === undefined || read.ttl === undefined ? (ttl ?? Number.POSITIVE_INFINITY) : readTtl(call, read.ttl),
    timeout: read.timeout,
  };
}

export interface ReadMapOptions {
  readonly bytes: number;
  readonly ttl: number;
  readonly longest: number | undefined;
  readonly codec: Codec<unknown>;
  readonly geometry: Geometry;
  readonly near: number;
}

const LEAST_BYTES = 64 << 10;
const MOST_BYTES = 8 * 2 ** 30;
const MOST_NEAR = 1 << 20;

/** The options of a map of any values. */
type Given = Omit<SharedMapOptions, 'codec'> & { readonly codec?: unknown };

/** The options of a map, read once and checked. @param call for messages */
export function readMapOptions(call: string, options: Given): ReadMapOptions {
  if (typeof options !== 'object' || options === null)
    throw argumentTypeError(`${call}: the options must be an object, not ${show(options)}`);
  refuseUnknown(call, 'the options', options, ['bytes', 'ttl', 'codec', 'longest', 'near']);
  const read = reading(call, 'the options', () => {
    const { bytes, ttl, codec, longest, near } = options;
    return { bytes, ttl, codec, longest, near };
  });
  const bytes = numberBetween(call, 'bytes', read.bytes, LEAST_BYTES, MOST_BYTES);
  const longest = read.longest === undefined ? undefined : numberBetween(call, 'longest', read.longest, 1, bytes);
  const geometry = divide(bytes, longest === undefined ? undefined : longest + ENTRY_BYTES + 4);
  if (geometry === undefined)
    throw argumentRangeError(
      `${call}: longest may be at most ${mostOf(bytes) - ENTRY_BYTES - 4} with ${bytes} bytes, not ${longest}`,
      'ERR_SIZE',
    );
  return {
    bytes,
    ttl: read.ttl === undefined ? Number.POSITIVE_INFINITY : readTtl(call, read.ttl),
    longest,
    codec: readCodec(call, read.codec),
    geometry,
    near: read.near === undefined ? 0 : numberBetween(call, 'near', read.near, 0, MOST_NEAR),
  };
}

function numberBetween(call: string, what: string, value: unknown, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value))
    throw argumentTypeError(`${call}: ${what} must be an integer, not ${show(value)}`);
  if (value < least || value > most)
    throw argumentRangeError(`${call}: ${what} must be from ${least} to ${most}, not ${value}`, 'ERR_SIZE');
  return value;
}

/** Milliseconds; `Infinity` for never. */
function readTtl(call: string, ttl: unknown): number {
  if (typeof ttl !== 'number') throw argumentTypeError(`${call}: ttl must be milliseconds, not ${show(ttl)}`);
  if (!(ttl > 0)) throw argumentRangeError(`${call}: ttl must be more than 0 milliseconds, not ${ttl}`);
  return ttl;
}

/** Bytes of a map's memory. */
export function memoryOf({ shards, shardBytes }: Geometry): number {
  return HEADER_BYTES + shards * shardBytes;
}

/** Writes the header of a new map; the magic number comes last. */
export function writeHeader(
  words: Int32Array,
  numbers: Float64Array,
  { geometry, codec, ttl, longest }: ReadMapOptions,
) {
  store(words, VERSION, LAYOUT_VERSION);
  store(words, SHARDS, geometry.shards);
  store(words, RING_BYTES, geometry.ringBytes);
  store(words, CODEC, codec.number);
  store(words, LONGEST, longest ?? 0);
  storeNumber(numbers, TTL >>> 1, ttl);
  publish(words, MAGIC, MAGIC_NUMBER);
}

/** What all members give alike: numbers, and what they say. */
export function factsOf({
  bytes,
  ttl,
  longest,
  codec,
}: ReadMapOptions): { value: number; say(value: number): string }[] {
  return [
    { value: bytes, say: (value) => `${value} bytes` },
    { value: ttl, say: (value) => (value === Number.POSITIVE_INFINITY ? 'no ttl' : `ttl ${value} ms`) },
    { value: codec.number, say: sayCodec },
    { value: longest ?? 0, say: (value) => (value === 0 ? 'no `longest`' : `longest ${value}`) },
  ];
}

/** Errors: `ERR_VERSION`; `ERR_DAMAGED` if the header says otherwise than the options, which others have compared. */
export function checkHeader(call: string, words: Int32Array, numbers: Float64Array, options: ReadMapOptions): void {
  if (Atomics.load(words, MAGIC) !== MAGIC_NUMBER)
    throw new RmaError('ERR_DAMAGED', `${call}: the memory has no map: a member has written over it`);
  if (words[VERSION] !== LAYOUT_VERSION) {
    throw new RmaError(
      'ERR_VERSION',
      `${call}: the map has layout ${words[VERSION]}, this version of onesided has ${LAYOUT_VERSION}: all members ` +
        'must run the same version',
    );
  }
  const { geometry, codec, ttl, longest } = options;
  const agrees =
    words[SHARDS] === geometry.shards &&
    words[RING_BYTES] === geometry.ringBytes &&
    words[CODEC] === codec.number &&
    words[LONGEST] === (longest ?? 0) &&
    numbers[TTL >>> 1] === ttl;
  if (!agrees)
    throw new RmaError('ERR_DAMAGED', `${call}: the map's header is another map's: a member has written over it`);
}
