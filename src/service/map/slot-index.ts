/**
 * The index of a shard: which entries of the log count.
 *
 * A key lies in the first bucket from its own on that had a free slot when it came, and stays in that slot as long as
 * it is in the map: a new value, or a copy of its entry, changes the slot's position, which is one store. So a reader
 * that looks at the buckets in order never misses a key that is there all the time, whatever the writer does or however
 * it dies; and a walk over all slots meets such a key once.
 *
 *   a key comes:  counts of the full buckets before it + 1, position, not read; then the hash is published
 *   new value:    the position is published
 *   a key goes:   0 is published as the hash; then the counts - 1
 *
 * A writer that dies in between leaves counts that are too high, never too low: searches are longer than they need to
 * be, until the shard is recovered.
 *
 * A reader may meet a slot of which hash and position are of different keys. The entry there has another key: the
 * reader's own was not in that slot at some moment of its search.
 */
import { loadAcquire } from '../../memory-model.ts';
import type { MapKey } from './map-key.ts';
import {
  BUCKET_PASSED_BYTE,
  BUCKET_READ_BYTES,
  BUCKET_SLOTS,
  BUCKET_WORDS,
  COUNT,
  DEAD,
  ENTRY_WORDS,
  KEY_BITS,
  LIVE,
  type ShardMemory,
  SLOT_POSITION,
} from './map-layout.ts';
import { fence, publish, store, storeByte } from './map-stores.ts';

/** No slot has the key. */
export const ABSENT = -1;
/** A slot with the key's hash names what is not, or no longer, an entry. */
export const AGAIN = -2;

/**
 * The slot of a key; its position is then in `shard.found`.
 * @param turn of the shard, loaded before
 */
export function find(shard: ShardMemory, key: MapKey, turn: number): number {
  const { words, bytes, index, bucketMask, window } = shard;
  const { hash } = key;
  for (let look = 0; look < window; look++) {
    const bucket = index + (((hash + look) & bucketMask) << 4);
    for (let slot = bucket; slot < bucket + BUCKET_SLOTS; slot++) {
      if (loadAcquire(words, slot) !== hash) continue;
      const position = loadAcquire(words, slot + SLOT_POSITION);
      if (hasKey(shard, position, key)) {
        shard.found = position;
        return slot;
      }
      // Another key of the same hash, or one that was overwritten while it was compared.
      if (words[shard.wordAt(position)] !== position || !shard.stands(position, turn)) return AGAIN;
    }
    if (bytes[(bucket << 2) + BUCKET_PASSED_BYTE] === 0) return ABSENT;
  }
  return ABSENT;
}

function hasKey(shard: ShardMemory, position: number, { words: key, wordCount, head, hash }: MapKey): boolean {
  const { words } = shard;
  const entry = shard.wordAt(position);
  if (words[entry] !== position || (words[entry + 1] & KEY_BITS) !== head || words[entry + 2] !== hash) return false;
  for (let i = 0; i < wordCount; i++) if (words[entry + ENTRY_WORDS + i] !== key[i]) return false;
  return true;
}

/** The slot that names a position, of an entry with that hash; `ABSENT` if there is none, and so the entry is dead. */
export function slotNaming(shard: ShardMemory, position: number, hash: number): number {
  const { words, bytes, index, bucketMask, window } = shard;
  for (let look = 0; look < window; look++) {
    const bucket = index + (((hash + look) & bucketMask) << 4);
    for (let slot = bucket; slot < bucket + BUCKET_SLOTS; slot++)
      if (words[slot] === hash && words[slot + SLOT_POSITION] === position) return slot;
    if (bytes[(bucket << 2) + BUCKET_PASSED_BYTE] === 0) return ABSENT;
  }
  return ABSENT;
}

/**
 * A free slot for a hash that no slot has.
 * @returns `ABSENT` if all that a search would look at are taken
 */
export function freeSlot({ words, index, bucketMask, window }: ShardMemory, hash: number): number {
  for (let look = 0; look < window; look++) {
    const bucket = index + (((hash + look) & bucketMask) << 4);
    for (let slot = bucket; slot < bucket + BUCKET_SLOTS; slot++) if (words[slot] === 0) return slot;
  }
  return ABSENT;
}

/** The slot of which a hash takes the place if none is free: one that was not read, else the first of its bucket. */
export function slotToTake(shard: ShardMemory, hash: number): number {
  const { index, bucketMask, window } = shard;
  for (let look = 0; look < window; look++) {
    const bucket = index + (((hash + look) & bucketMask) << 4);
    for (let slot = bucket; slot < bucket + BUCKET_SLOTS; slot++) if (!wasRead(shard, slot)) return slot;
  }
  return index + ((hash & bucketMask) << 4);
}

/** Puts a key into a free slot. */
export function fillSlot(shard: ShardMemory, slot: number, hash: number, position: number, units: number): void {
  const { words } = shard;
  countPassed(shard, slot, hash, 1);
  store(words, slot + SLOT_POSITION, position);
  clearRead(shard, slot);
  publish(words, slot, hash);
  store(words, COUNT, words[COUNT] + 1);
  addLive(shard, units);
}

/** Takes a key out of the map. @param units of its entry */
export function emptySlot(shard: ShardMemory, slot: number, units: number): void {
  const { words } = shard;
  const hash = words[slot];
  publish(words, slot, 0);
  fence();
  markDead(shard, words[slot + SLOT_POSITION]);
  countPassed(shard, slot, hash, -1);
  store(words, COUNT, words[COUNT] - 1);
  addLive(shard, -units);
}

/** Readers see the other entry from here on. */
export function pointTo(shard: ShardMemory, slot: number, position: number): void {
  publish(shard.words, slot + SLOT_POSITION, position);
  clearRead(shard, slot);
}

/** What was said of an entry to readers until now no longer holds: no slot names it. Only ever after that is so. */
export function markDead(shard: ShardMemory, position: number): void {
  const { words } = shard;
  const entry = shard.wordAt(position);
  store(words, entry + 1, words[entry + 1] | DEAD);
}

export function addLive({ words }: ShardMemory, units: number): void {
  store(words, LIVE, words[LIVE] + units);
}

/** The byte that says whether the entry of a slot was read. */
function readByteOf(slot: number): number {
  return ((slot & -BUCKET_WORDS) << 2) + BUCKET_READ_BYTES + (slot & (BUCKET_WORDS - 1));
}

export function wasRead({ bytes }: ShardMemory, slot: number): boolean {
  return bytes[readByteOf(slot)] !== 0;
}

/**
 * A reader says that it has read the entry of a slot. The byte lies in the index and not in the entry: a reader may be
 * stopped just before it stores, for hours, and what it hits then is at worst the mark of another key.
 */
export function markRead({ bytes }: ShardMemory, slot: number): void {
  const at = readByteOf(slot);
  if (bytes[at] === 0) storeByte(bytes, at, 1);
}

function clearRead({ bytes }: ShardMemory, slot: number): void {
  storeByte(bytes, readByteOf(slot), 0);
}

/** Counts a key in all buckets before its slot. */
function countPassed({ bytes, index, bucketMask, window }: ShardMemory, slot: number, hash: number, by: number): void {
  const last = (slot - index) >>> 4;
  for (let look = 0; look < window; look++) {
    const number = (hash + look) & bucketMask;
    if (number === last) return;
    const at = ((index + (number << 4)) << 2) + BUCKET_PASSED_BYTE;
    storeByte(bytes, at, bytes[at] + by);
  }
}

/**
 * Counts the buckets' passed keys, the entries and the live units anew, after a writer died. Counts in private memory
 * first: what is stored is never lower than what readers need.
 * @param units of the entry at a position
 */
export function recount(shard: ShardMemory, unitsAt: (position: number, hash: number) => number): void {
  const { words, bytes, index, bucketMask, window } = shard;
  const passed = new Uint8Array(bucketMask + 1);
  let count = 0;
  let live = 0;
  for (let number = 0; number <= bucketMask; number++) {
    const bucket = index + (number << 4);
    for (let slot = bucket; slot < bucket + BUCKET_SLOTS; slot++) {
      const hash = words[slot];
      if (hash === 0) continue;
      count++;
      live += unitsAt(words[slot + SLOT_POSITION], hash);
      for (let look = 0; look < window && ((hash + look) & bucketMask) !== number; look++)
        passed[(hash + look) & bucketMask]++;
    }
  }
  for (let number = 0; number <= bucketMask; number++) {
    const at = ((index + (number << 4)) << 2) + BUCKET_PASSED_BYTE;
    if (bytes[at] !== passed[number]) storeByte(bytes, at, passed[number]);
  }
  store(words, COUNT, count);
  store(words, LIVE, live);
}

/** Takes all keys out. The counts go last: a key that is still there can be found. */
export function emptyIndex({ words, index, bucketMask, bytes }: ShardMemory): void {
  const end = index + BUCKET_WORDS * (bucketMask + 1);
  for (let bucket = index; bucket < end; bucket += BUCKET_WORDS)
    for (let slot = bucket; slot < bucket + BUCKET_SLOTS; slot++) if (words[slot] !== 0) publish(words, slot, 0);
  for (let bucket = index; bucket < end; bucket += BUCKET_WORDS) {
    const at = (bucket << 2) + BUCKET_PASSED_BYTE;
    if (bytes[at] !== 0) storeByte(bytes, at, 0);
  }
}
