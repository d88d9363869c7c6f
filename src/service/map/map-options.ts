/** Options of a map, and what its header says of them. */
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../../errors.ts';
import { refuseUnknown } from '../../options.ts';
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
import { type Codec, type CodecName, type CustomCodec, readCodec } from './value-codecs.ts';

/** Options of a map. All members give the same. */
export interface SharedMapOptions<V = unknown> {
  /** Bytes of memory, all included: from 64 KiB to 8 GiB. Entries take 65 to 85 % of it, depending on how they change. */
  readonly bytes: number;
  /** Milliseconds after which an entry is gone that was not set again, unless its own `set` says otherwise. */
  readonly ttl?: number;
  /**
   * How values become bytes: `json` (default), `string`, `bytes` (`Uint8Array`), `structured` (what `structuredClone`
   * copies), or functions of the program's own.
   */
  readonly codec?: CodecName | CustomCodec<V>;
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

/** Options of a single entry. */
export interface EntryOptions {
  /** Milliseconds after which the entry is gone; `Infinity`: never. Default: the map's. */
  readonly ttl?: number;
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

/** The options of a map, read once and checked. */
export function readMapOptions(call: string, options: SharedMapOptions<never>): ReadMapOptions {
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
export function readTtl(call: string, ttl: unknown): number {
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

/** Errors: `ERR_VERSION`, `ERR_ARG` if the header says otherwise than the options. */
export function checkHeader(call: string, words: Int32Array, numbers: Float64Array, options: ReadMapOptions): void {
  if (Atomics.load(words, MAGIC) !== MAGIC_NUMBER)
    throw new RmaError('ERR_DAMAGED', `${call}: the memory has no map: whoever made it has not finished`);
  if (words[VERSION] !== LAYOUT_VERSION) {
    throw new RmaError(
      'ERR_VERSION',
      `${call}: the map has layout ${words[VERSION]}, this version of onesided has ${LAYOUT_VERSION}: all members ` +
        'must run the same version',
    );
  }
  const { geometry, codec, ttl, longest } = options;
  const facts: readonly (readonly [string, number, number])[] = [
    ['shards', words[SHARDS], geometry.shards],
    ['bytes of a shard', words[RING_BYTES], geometry.ringBytes],
    ['codec number', words[CODEC], codec.number],
    ['longest', words[LONGEST], longest ?? 0],
    ['ttl', numbers[TTL >>> 1], ttl],
  ];
  for (const [what, there, asked] of facts) {
    if (there !== asked)
      throw argumentTypeError(`${call}: the map exists with ${what} ${there}, and not ${asked}: give the same options`);
  }
}
