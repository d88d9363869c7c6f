/**
 * Memory regions in shared memory, so that a peer's processor can find and check what a key names.
 *
 * A key is a random 32-bit number, never 0, which says its slot: a context draws until it hits a free one among those
 * in use. So the table is searched with one load. Half of the slots may be taken, about as many as a process of Linux
 * has mappings. A context begins with a quarter of the slots, and takes twice as many when half of them are taken:
 * regions that come and go are spread over all slots in use, and pages that had one take memory. Two bits of a slot are
 * parities of the key's, so that each bit of a key is random all the same.
 *
 * A slot belongs to its context; peers only read. Publishing writes the fields first and KEY last, revoking clears KEY
 * first, all sequentially consistent: a peer that finds the same key before and after it reads the fields has read
 * fields of that key. An initiator keeps what it has read and asks `holds` before each access. A key can come again,
 * once in 2^30 or so, and then names another region: so a slot counts its uses, before KEY is written, and what is kept
 * is right while key and use are the same. A request that was already under way when a key is revoked may still
 * complete, as in a device whose pipeline has passed the check; memory given back meanwhile is not given out again by
 * any fabric as long as somebody maps it.
 */
import { randomFillSync } from 'node:crypto';
import { RmaError } from '../../errors.ts';
import { loadAcquire } from '../../memory-model.ts';

const SLOTS = 1 << 17;
const FIRST_SLOTS = SLOTS / 4;
export const MAX_REGIONS = SLOTS / 2;
const SLOT_WORDS = 16;
export const REGION_TABLE_BYTES = 4 * SLOTS * SLOT_WORDS;

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

export class RegionTable {
  readonly #words: Int32Array;
  readonly #doubles: Float64Array;
  #used = 0;
  /** Those of which keys are drawn. */
  #slots = FIRST_SLOTS;

  constructor(buffer: ArrayBufferLike, byteOffset: number) {
    this.#words = new Int32Array(buffer, byteOffset, SLOTS * SLOT_WORDS);
    this.#doubles = new Float64Array(buffer, byteOffset, (SLOTS * SLOT_WORDS) / 2);
  }

  /** Owner: publishes a region. @returns its key */
  publish(region: Omit<RegionEntry, 'key' | 'use'>): number {
    if (this.#used >= MAX_REGIONS) {
      throw new RmaError(
        'ERR_VERBS',
        `register memory: the device has ${MAX_REGIONS} memory regions, and all are in use (ENOMEM)`,
      );
    }
    if (2 * this.#used >= this.#slots && this.#slots < SLOTS) this.#slots *= 2;
    const end = this.#slots * SLOT_WORDS;
    let key: number;
    do key = drawKey();
    while (key === 0 || wordOf(key) >= end || this.#words[wordOf(key) + KEY] !== 0);
    const w = wordOf(key);
    const d = w / 2;
    this.#words[w + ACCESS] = region.access;
    this.#words[w + PD] = region.pd;
    this.#words[w + USE]++;
    this.#doubles[d + ADDRESS] = region.address;
    this.#doubles[d + LENGTH] = region.length;
    this.#doubles[d + HANDLE] = region.handle;
    this.#doubles[d + MEMORY_BYTES] = region.memoryBytes;
    this.#doubles[d + OFFSET] = region.offset;
    Atomics.store(this.#words, w + KEY, key | 0);
    this.#used++;
    return key;
  }

  /** Owner: from now on `key` names nothing. */
  revoke(key: number): void {
    Atomics.store(this.#words, wordOf(key) + KEY, 0);
    this.#used--;
  }

  /**
   * Whether `key` still names the region that it named when `find` read it, which was its slot's `use`. A key that is
   * revoked at this very moment may be found valid, as said above; what makes the revocation known to an initiator (a
   * message, a barrier) also makes it seen here.
   */
  holds(key: number, use: number): boolean {
    const w = wordOf(key);
    return loadAcquire(this.#words, w + KEY) === (key | 0) && this.#words[w + USE] === use;
  }

  find(key: number): RegionEntry | undefined {
    const w = wordOf(key);
    const d = w / 2;
    if (key === 0 || Atomics.load(this.#words, w + KEY) !== (key | 0)) return undefined;
    const entry: RegionEntry = {
      key,
      use: this.#words[w + USE],
      access: this.#words[w + ACCESS],
      pd: this.#words[w + PD],
      address: this.#doubles[d + ADDRESS],
      length: this.#doubles[d + LENGTH],
      handle: this.#doubles[d + HANDLE],
      memoryBytes: this.#doubles[d + MEMORY_BYTES],
      offset: this.#doubles[d + OFFSET],
    };
    return Atomics.load(this.#words, w + KEY) === (key | 0) && this.#words[w + USE] === entry.use ? entry : undefined;
  }
}

function wordOf(key: number): number {
  const quarter = ((key >>> 15) ^ (key >>> 17)) & 3;
  return (quarter * FIRST_SLOTS + (key & (FIRST_SLOTS - 1))) * SLOT_WORDS;
}
