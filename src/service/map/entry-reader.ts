/**
 * Reading without a lock.
 *
 * A reader loads TURN, finds the slot of its key and so the position of an entry, copies what it needs of the entry to
 * private memory, and then loads TAIL, and TURN once more. Writers write over an entry only after TAIL has passed it,
 * and what a slot named was whole before. So if TAIL has not passed the position by then, all that was copied is the
 * entry's, and the key had this value when the slot was loaded. If TAIL has passed it, the slot has named another
 * entry, or none, before: the reader looks again, and sees that.
 *
 * TURN tells apart that TAIL has not passed, and that it has passed 2^32 units, a whole round of its 32 bits, while the
 * reader was stopped: it changes twice a round, so between two loads of the same TURN there is less than half a round.
 *
 * All numbers that come from the memory are checked before they are used: a member that writes garbage makes a reader
 * find nothing, or garbage in a value, but not read elsewhere or for ever.
 */
import { loadAcquire } from '../../memory-model.ts';
import type { CopySpace } from './copy-space.ts';
import { now } from './map-clock.ts';
import type { MapKey } from './map-key.ts';
import { ENTRY_WORDS, KEY_BYTES, KIND_SHIFT, type ShardMemory, SLOT_POSITION, TURN, unitsOf } from './map-layout.ts';
import { ABSENT, AGAIN, find, markRead } from './slot-index.ts';
import { copyWords } from './word-copy.ts';

/** Copies the value of a key. @returns its slot, `ABSENT`, or `AGAIN` if the entry was written over meanwhile */
export function readValue(shard: ShardMemory, key: MapKey, copy: CopySpace): number {
  const turn = loadAcquire(shard.words, TURN);
  const slot = find(shard, key, turn);
  if (slot < 0) return slot;
  const position = shard.found;
  if (!copyValue(shard, position, copy)) return AGAIN;
  const expiry = shard.numbers[(shard.wordAt(position) >>> 1) + 2];
  if (!shard.stands(position, turn)) return AGAIN;
  if (expiry !== 0 && expiry <= now()) return ABSENT;
  copy.expiry = expiry;
  copy.turn = turn;
  markRead(shard, slot);
  return slot;
}

/** Whether a key is there, and when it expires: as `readValue`, without the value. */
export function readPresence(shard: ShardMemory, key: MapKey, copy: CopySpace): number {
  const turn = loadAcquire(shard.words, TURN);
  const slot = find(shard, key, turn);
  if (slot < 0) return slot;
  const expiry = shard.numbers[(shard.wordAt(shard.found) >>> 1) + 2];
  if (!shard.stands(shard.found, turn)) return AGAIN;
  if (expiry !== 0 && expiry <= now()) return ABSENT;
  copy.expiry = expiry;
  markRead(shard, slot);
  return slot;
}

/** Copies key and value of whatever a slot names. @returns `ABSENT` for a free slot */
export function readSlot(shard: ShardMemory, slot: number, keyCopy: CopySpace, copy: CopySpace): number {
  const { words } = shard;
  const turn = loadAcquire(words, TURN);
  const hash = loadAcquire(words, slot);
  if (hash === 0) return ABSENT;
  const position = loadAcquire(words, slot + SLOT_POSITION);
  const entry = shard.wordAt(position);
  if (words[entry] !== position || words[entry + 2] !== hash) return loadAcquire(words, slot) === 0 ? ABSENT : AGAIN;
  const head = words[entry + 1];
  const keyBytes = head & KEY_BYTES;
  if (!copyValue(shard, position, copy)) return AGAIN;
  keyCopy.reserve(keyBytes);
  keyCopy.kind = head;
  const keyWords = (keyBytes + 3) >>> 2;
  for (let i = 0; i < keyWords; i++) keyCopy.words[i] = words[entry + ENTRY_WORDS + i];
  const expiry = shard.numbers[(entry >>> 1) + 2];
  if (!shard.stands(position, turn)) return AGAIN;
  if (expiry !== 0 && expiry <= now()) return ABSENT;
  return slot;
}

/** @returns false if the entry has impossible lengths */
export function copyValue(shard: ShardMemory, position: number, copy: CopySpace): boolean {
  const { words } = shard;
  const entry = shard.wordAt(position);
  const head = words[entry + 1];
  const keyBytes = head & KEY_BYTES;
  const length = words[entry + 3];
  const units = unitsOf(keyBytes, length);
  if (!(length >= 0) || units > shard.mostUnits || (position & shard.positionMask) + units > shard.capacity)
    return false;
  copy.reserve(length);
  copy.kind = (head >>> KIND_SHIFT) & 3;
  const from = entry + ENTRY_WORDS + ((keyBytes + 3) >>> 2);
  const to = copy.begin >>> 2;
  const count = (length + 3) >>> 2;
  copyWords(copy.words, to, words, from, count);
  return true;
}
