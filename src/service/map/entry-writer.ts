/** Writing the entry of a key, under the lock of its shard. */
import { claim, damaged, makeRoom, slotFor, unitsAt } from './entry-log.ts';
import { now } from './map-clock.ts';
import type { MapKey } from './map-key.ts';
import { ENTRY_WORDS, HEAD, KIND_SHIFT, type ShardMemory, SLOT_POSITION, TURN } from './map-layout.ts';
import { publish, store, storeBytes, storeNumber, storeWords } from './map-stores.ts';
import { ABSENT, AGAIN, addLive, emptySlot, fillSlot, find, markDead, pointTo } from './slot-index.ts';
import type { EncodedValue } from './value-codecs.ts';

/** The slot of a key, or `ABSENT`; its position is then in `shard.found`. Errors: `ERR_DAMAGED`. */
export function locate(shard: ShardMemory, key: MapKey): number {
  const slot = find(shard, key, shard.words[TURN]);
  if (slot === AGAIN) throw damaged(shard, 'the index names no entry');
  return slot;
}

/** When the entry that was found last expires; 0 for never. */
export function expiryOfFound(shard: ShardMemory): number {
  return shard.numbers[(shard.wordAt(shard.found) >>> 1) + 2];
}

/** Whether the entry that was found last has expired. */
export function isFoundExpired(shard: ShardMemory): boolean {
  const expiry = expiryOfFound(shard);
  return expiry !== 0 && expiry <= now();
}

/** Takes out the key that was found last. */
export function removeFound(shard: ShardMemory, slot: number): void {
  emptySlot(shard, slot, unitsAt(shard, shard.found));
}

/** Makes the encoded value the key's. @param units of the entry. Errors: `ERR_DAMAGED`. */
export function put(shard: ShardMemory, key: MapKey, value: EncodedValue, units: number, expiry: number): void {
  const { words } = shard;
  const { hash } = key;
  const slot = locate(shard, key);
  makeRoom(shard, units, slot);
  if (slot !== ABSENT && words[slot] !== hash) throw damaged(shard, 'a slot was emptied under the lock');
  // Making room may have copied it.
  const old = slot === ABSENT ? 0 : words[slot + SLOT_POSITION];
  const oldUnits = slot === ABSENT ? 0 : unitsAt(shard, old);
  const target = slot === ABSENT ? slotFor(shard, hash) : slot;
  const position = claim(shard, units);
  write(shard, position, key, value, expiry);
  publish(words, HEAD, (position + units) | 0);
  if (slot === ABSENT) fillSlot(shard, target, hash, position, units);
  else {
    pointTo(shard, slot, position);
    markDead(shard, old);
    addLive(shard, units - oldUnits);
  }
}

function write(shard: ShardMemory, position: number, key: MapKey, value: EncodedValue, expiry: number): void {
  const { words } = shard;
  const { wordCount } = key;
  const { length } = value;
  const entry = shard.wordAt(position);
  store(words, entry, position);
  store(words, entry + 1, key.head | (value.kind << KIND_SHIFT));
  store(words, entry + 2, key.hash);
  store(words, entry + 3, length);
  storeNumber(shard.numbers, (entry >>> 1) + 2, expiry);
  storeWords(words, entry + ENTRY_WORDS, key.words, wordCount);
  const begin = entry + ENTRY_WORDS + wordCount;
  if (value.words === undefined) storeBytes(shard.bytes, begin << 2, value.bytes);
  else storeWords(words, begin, value.words, (length + 3) >>> 2);
}
