/**
 * Where everything of a map lies in its memory.
 *
 *   header | shard 0 | shard 1 | …            shard: lock | what readers look at | what writers keep | index | log
 *
 * A key belongs to one shard, by its hash. The log of a shard is a ring of entries from TAIL to HEAD; the index says
 * which of them count. Positions in the log are counted in units of 8 bytes and never begin anew: they are 32 bits,
 * wrap at 2^32, and their place in the ring is the position modulo its size, a power of two.
 *
 * The index is a table of buckets of a cache line: seven slots and eight bytes.
 *
 *   words 0 … 6    the hash of the key in the slot, 0 if the slot is free
 *   words 7 … 13   the position of its entry
 *   bytes 56 … 62  whether the entry was read since it was written, of each slot
 *   byte 63        how many keys lie in later buckets because this one was full: 0 ends a search (as in F14)
 *
 * An entry:
 *
 *   word 0     its position: a slot that names another place is not followed
 *   word 1     bytes of the key, and flags; of a filler at the end of the ring, its units
 *   word 2     the hash of the key
 *   word 3     bytes of the value
 *   words 4, 5 when it expires, a double; 0 for never
 *   the key, padded with zeros to whole words; the value
 */
import { loadAcquire } from '../../memory-model.ts';
import { fence } from './map-stores.ts';

export const HEADER_BYTES = 256;
/** Words of the header. The magic number is stored last. */
export const MAGIC = 0;
export const VERSION = 1;
export const SHARDS = 2;
export const RING_BYTES = 3;
export const CODEC = 4;
export const LONGEST = 5;
/** A double, in two words. */
export const TTL = 6;
/** The secret of the hashes, two words: whoever chooses the keys cannot choose their hashes. */
export const SECRET = 8;
export const MAGIC_NUMBER = 0x70614d53;
export const LAYOUT_VERSION = 1;

/** Words of a shard. The lock has a cache line of its own; what readers look at is apart from what changes often. */
export const TAIL = 16;
/** Counts half turns of TAIL through its 32 bits, and `clear`s: a reader who sees the same twice was not overtaken. */
export const TURN = 17;
export const HEAD = 32;
/** Units of the entries that the index names. */
export const LIVE = 33;
/** How many entries the index names. */
export const COUNT = 34;
/** Units of the longest entry that was written since HEAD passed the ring's beginning, and in the turn before. */
export const LONGEST_NOW = 35;
export const LONGEST_BEFORE = 36;
export const EVICTED = 37;
export const EXPIRED = 38;
export const MOVED = 39;
export const RECOVERED = 40;
const SHARD_WORDS = 48;

export const BUCKET_WORDS = 16;
export const BUCKET_SLOTS = 7;
/** From the hash in a slot to its position. */
export const SLOT_POSITION = 7;
export const BUCKET_READ_BYTES = 56;
export const BUCKET_PASSED_BYTE = 63;
/** Buckets that a search looks at, at most. More than 255 keys never pass a bucket. */
const MOST_LOOKS = 16;

export const ENTRY_WORDS = 6;
export const ENTRY_BYTES = 4 * ENTRY_WORDS;
export const KEY_BYTES = 0x00ff_ffff;
/** The entry is a filler: nothing up to the end of the ring. */
export const FILLER = 0x0100_0000;
/** No slot names the entry any more. It spares a look at the index; without it the index says the same. */
export const DEAD = 0x0200_0000;
/** The key has two bytes a character. */
export const WIDE = 0x0400_0000;
/** Two bits of the codec's own. */
export const KIND_SHIFT = 28;
export const KEY_BITS = KEY_BYTES | WIDE | FILLER;

export interface Geometry {
  readonly shards: number;
  readonly ringBytes: number;
  readonly shardBytes: number;
}

const LEAST_RING = 4096;
/** The units of its longest entry have 24 bits. */
const MOST_RING = 512 << 20;
const MOST_SHARDS = 64;
/** An entry takes at most this part of a ring. */
const LONGEST_PART = 8;
/** From here on there are more shards for writers that come at the same time, and not longer rings. */
const LARGE = 32 << 20;

/** Bytes of a shard: its index takes an eighth of its log. */
function shardBytesOf(ringBytes: number): number {
  return 4 * SHARD_WORDS + (ringBytes >>> 3) + ringBytes;
}

function geometryOf(bytes: number, ringBytes: number): Geometry {
  const shardBytes = shardBytesOf(ringBytes);
  return {
    shards: Math.min(MOST_SHARDS, Math.floor((bytes - HEADER_BYTES) / shardBytes)),
    ringBytes,
    shardBytes,
  };
}

/**
 * How a map of at most so many bytes is divided.
 * @param longest bytes of the longest entry, its 24 bytes of header included; `undefined`: as the size suggests
 * @returns `undefined` if there is no room for such an entry
 */
export function divide(bytes: number, longest: number | undefined): Geometry | undefined {
  let ring = LEAST_RING;
  while (longest !== undefined && ring < LONGEST_PART * longest) ring *= 2;
  if (ring > MOST_RING) return undefined;
  // As long as the least number of shards has room.
  const least = bytes >= LARGE ? 16 : 8;
  while (ring < MOST_RING && geometryOf(bytes, 2 * ring).shards >= least) ring *= 2;
  const found = geometryOf(bytes, ring);
  return found.shards > 0 ? found : undefined;
}

/** Bytes of the longest entry that a map of so many bytes can have. */
export function mostOf(bytes: number): number {
  let ring = LEAST_RING;
  while (ring < MOST_RING && geometryOf(bytes, 2 * ring).shards > 0) ring *= 2;
  return ring / LONGEST_PART;
}

/** The numbers of one shard, and its memory. */
export class ShardMemory {
  /** The map, for messages. */
  readonly what: string;
  readonly number: number;
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
  readonly numbers: Float64Array;
  /** Where the lock is, in words of the whole memory. */
  readonly lockWord: number;
  /** Where the index begins, in words of the shard. */
  readonly index: number;
  readonly bucketMask: number;
  /** Buckets that a search looks at, at most. */
  readonly window: number;
  /** Most entries: some slots stay free, so that searches are short. */
  readonly mostEntries: number;
  /** Where the log begins, in words of the shard. */
  readonly log: number;
  /** Units of the log. */
  readonly capacity: number;
  readonly positionMask: number;
  readonly mostUnits: number;
  /** The position that the last search has found. */
  found = 0;

  constructor(
    what: string,
    buffer: ArrayBufferLike,
    byteOffset: number,
    { ringBytes, shardBytes }: Geometry,
    number: number,
  ) {
    this.what = what;
    const begin = HEADER_BYTES + number * shardBytes;
    this.number = number;
    this.words = new Int32Array(buffer, byteOffset + begin, shardBytes >>> 2);
    this.bytes = new Uint8Array(buffer, byteOffset + begin, shardBytes);
    this.numbers = new Float64Array(buffer, byteOffset + begin, shardBytes >>> 3);
    this.lockWord = begin / 4;
    this.index = SHARD_WORDS;
    const buckets = ringBytes >>> 9;
    this.bucketMask = buckets - 1;
    this.window = Math.min(MOST_LOOKS, buckets);
    this.mostEntries = Math.floor((buckets * BUCKET_SLOTS * 7) / 8);
    this.log = SHARD_WORDS + buckets * BUCKET_WORDS;
    this.capacity = ringBytes >>> 3;
    this.positionMask = this.capacity - 1;
    this.mostUnits = this.capacity / LONGEST_PART;
  }

  /** The first word of the entry at a position, whatever number that is. */
  wordAt(position: number): number {
    return this.log + ((position & this.positionMask) << 1);
  }

  /** Whether an entry was not overwritten since a reader saw `turn`: what it copied before this call is whole. */
  stands(position: number, turn: number): boolean {
    const { words } = this;
    fence();
    const tail = loadAcquire(words, TAIL);
    return (position - tail) >>> 0 < this.capacity && words[TURN] === turn;
  }
}

/** Units of an entry. */
export function unitsOf(keyBytes: number, valueBytes: number): number {
  return (ENTRY_BYTES + ((keyBytes + 3) & ~3) + valueBytes + 7) >>> 3;
}
