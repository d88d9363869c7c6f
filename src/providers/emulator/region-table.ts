/**
 * Memory regions in shared memory, so that a peer's processor can find and check what a key names.
 *
 * A key is a random 32-bit number, never 0, which says its level and its slot there: a context draws until it hits a
 * free one of the level that it wants. So the table is searched with one load. Half of a level's slots may be taken. A
 * region goes to the first level that has room: the first is small and lies in the root, which every peer maps; the
 * others are parts that are made when they are needed (table-parts.ts), the last as large as half of the mappings that
 * a process of Linux can have. The two bits that say the level are parities of the key's, so that each bit of a key is
 * random all the same.
 *
 * A slot belongs to its context; peers only read. Publishing writes the fields first and KEY last, revoking clears KEY
 * first, all sequentially consistent: a peer that finds the same key before and after it reads the fields has read
 * fields of that key. An initiator keeps what it has read and asks `holds` before each access. A key can come again,
 * once in 2^30 or so, and then names another region: so a slot counts its uses, before KEY is written, and what is kept
 * is right while key and use are the same. A request that was already under way when a key is revoked may still
 * complete, as in a device whose pipeline has passed the check; memory given back meanwhile is not given out again by
 * any fabric as long as a member maps it.
 */
import { randomFillSync } from 'node:crypto';
import { RmaError } from '../../errors.ts';
import { loadAcquire } from '../../memory-model.ts';
import type { Allocation } from './emulator-fabric.ts';
import type { Parts } from './table-parts.ts';

/** Slots of each level: powers of two. */
const LEVELS: readonly number[] = [1 << 10, 1 << 13, 1 << 15, 1 << 17];
export const MAX_REGIONS = 1 << 16;
const SLOT_WORDS = 16;
/** Of the first level. */
export const REGION_TABLE_BYTES = bytesOf(0);

const KEY = 0;
const ACCESS = 1;
const PD = 2;
const USE = 3;
// In 64-bit words.
const ADDRESS = 2;
const LENGTH = 3;
const HANDLE = 4;
const MEMORY_BYTES = 5;
const OFFSET = 6;

/** What a region is, as its table says. */
export interface RegionEntry {
  readonly key: number;
  /** Which one of its slot's uses it is. */
  readonly use: number;
  readonly access: number;
  /** The number of its protection domain. */
  readonly pd: number;
  readonly address: number;
  readonly length: number;
  /** The memory it lies in, for `Fabric.attach`; −1 for memory of the process's own, which no peer can reach. */
  readonly handle: number;
  readonly memoryBytes: number;
  /** Where the region begins in that memory. */
  readonly offset: number;
}

/** A region, and where it stands, so that an initiator can ask whether it still does ({@link holds}). */
export interface FoundRegion extends RegionEntry {
  readonly words: Int32Array;
  /** The first word of its slot there. */
  readonly slot: number;
}

/**
 * Whether `key` still names the region that it named when `find` read it, which was its slot's `use`. A key that is
 * revoked at this very moment may be found valid, as said above; what makes the revocation known to an initiator (a
 * message, a barrier) also makes it seen here.
 */
export function holds(words: Int32Array, slot: number, key: number, use: number): boolean {
  return loadAcquire(words, slot + KEY) === (key | 0) && words[slot + USE] === use;
}

/** Random keys are drawn many at a time: a call for each would cost a microsecond. */
const drawn = new Uint32Array(64);
let left = 0;

function drawKey(): number {
  if (left === 0) {
    randomFillSync(drawn);
    left = drawn.length;
  }
  return drawn[--left];
}

class Level {
  readonly words: Int32Array;
  readonly doubles: Float64Array;
  /** Owner: how many slots are taken. */
  used = 0;

  constructor(level: number, buffer: ArrayBufferLike, byteOffset: number) {
    this.words = new Int32Array(buffer, byteOffset, bytesOf(level) / 4);
    this.doubles = new Float64Array(buffer, byteOffset, bytesOf(level) / 8);
  }
}

export class RegionTable {
  readonly #parts: Parts;
  readonly #numbers: readonly number[];
  readonly #levels: (Level | undefined)[] = new Array(LEVELS.length).fill(undefined);

  constructor(buffer: ArrayBufferLike, byteOffset: number, parts: Parts) {
    this.#parts = parts;
    this.#numbers = LEVELS.map((_, level) => (level === 0 ? -1 : parts.number()));
    this.#levels[0] = new Level(0, buffer, byteOffset);
  }

  /**
   * Owner: publishes a region.
   * @param allocate memory for the table, if there is no room for the region yet
   * @returns its key
   */
  publish(region: Omit<RegionEntry, 'key' | 'use'>, allocate: (byteLength: number) => Allocation): number {
    const level = this.#withRoom(allocate);
    const { words, doubles } = this.#levels[level]!;
    let key: number;
    do key = drawKey();
    while (key === 0 || levelOf(key) !== level || words[slotOf(key, level) + KEY] !== 0);
    const w = slotOf(key, level);
    const d = w / 2;
    words[w + ACCESS] = region.access;
    words[w + PD] = region.pd;
    words[w + USE]++;
    doubles[d + ADDRESS] = region.address;
    doubles[d + LENGTH] = region.length;
    doubles[d + HANDLE] = region.handle;
    doubles[d + MEMORY_BYTES] = region.memoryBytes;
    doubles[d + OFFSET] = region.offset;
    Atomics.store(words, w + KEY, key | 0);
    this.#levels[level]!.used++;
    return key;
  }

  /** The first level that is not full. */
  #withRoom(allocate: (byteLength: number) => Allocation): number {
    const all = this.#levels.reduce((sum, level) => sum + (level?.used ?? 0), 0);
    if (all >= MAX_REGIONS) {
      throw new RmaError(
        'ERR_VERBS',
        `register memory: the device has ${MAX_REGIONS} memory regions, and all are in use (ENOMEM)`,
      );
    }
    const level = LEVELS.findIndex((slots, i) => 2 * (this.#levels[i]?.used ?? 0) < slots);
    if (this.#levels[level] === undefined) {
      const allocation = allocate(bytesOf(level));
      this.#levels[level] = new Level(level, allocation.buffer, 0);
      this.#parts.publish(this.#numbers[level], allocation);
    }
    return level;
  }

  /** Owner: from now on `key` names nothing. */
  revoke(key: number): void {
    const level = levelOf(key);
    const { words } = this.#levels[level]!;
    Atomics.store(words, slotOf(key, level) + KEY, 0);
    this.#levels[level]!.used--;
  }

  /** Peer: what `key` names. */
  find(key: number): FoundRegion | undefined {
    const level = levelOf(key);
    const found = this.#levels[level] ?? this.#open(level);
    if (key === 0 || found === undefined) return undefined;
    const { words, doubles } = found;
    const w = slotOf(key, level);
    const d = w / 2;
    if (Atomics.load(words, w + KEY) !== (key | 0)) return undefined;
    const entry: FoundRegion = {
      key,
      use: words[w + USE],
      access: words[w + ACCESS],
      pd: words[w + PD],
      address: doubles[d + ADDRESS],
      length: doubles[d + LENGTH],
      handle: doubles[d + HANDLE],
      memoryBytes: doubles[d + MEMORY_BYTES],
      offset: doubles[d + OFFSET],
      words,
      slot: w,
    };
    return Atomics.load(words, w + KEY) === (key | 0) && words[w + USE] === entry.use ? entry : undefined;
  }

  #open(level: number): Level | undefined {
    const buffer = this.#parts.open(this.#numbers[level], bytesOf(level));
    if (buffer !== undefined) this.#levels[level] = new Level(level, buffer, 0);
    return this.#levels[level];
  }
}

function bytesOf(level: number): number {
  return 4 * LEVELS[level] * SLOT_WORDS;
}

function levelOf(key: number): number {
  return ((key >>> 15) ^ (key >>> 17)) & 3;
}

/** The first word of the key's slot in its level. */
function slotOf(key: number, level: number): number {
  return (key & (LEVELS[level] - 1)) * SLOT_WORDS;
}
