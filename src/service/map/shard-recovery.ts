/**
 * What whoever gets the lock of a dead member does, before it does anything else.
 *
 * The index says which entries count, and each store to it leaves each key with its old entry or its new one, or with
 * none (slot-index.ts, entry-log.ts): so there is nothing to repair that readers see. A writer that died has left, at
 * most, counts that are off by one of its steps, and an entry that no slot names. The counts are made anew; the log is
 * walked once, which says whether it is whole, and how long its longest entry is. If the one who recovers dies too, the
 * next one begins again.
 */
import { damaged, unitsAt } from './entry-log.ts';
import {
  COUNT,
  FILLER,
  HEAD,
  LIVE,
  LONGEST_BEFORE,
  LONGEST_NOW,
  RECOVERED,
  type ShardMemory,
  TAIL,
  TURN,
} from './map-layout.ts';
import { fence, publish, store } from './map-stores.ts';
import { emptyIndex, recount } from './slot-index.ts';

/** Makes the counts of a shard anew, under its lock. Errors: `ERR_DAMAGED`. */
export function recover(shard: ShardMemory): void {
  const { words, capacity } = shard;
  const tail = words[TAIL];
  const head = words[HEAD];
  if ((head - tail) >>> 0 > capacity) throw damaged(shard, 'the log is longer than its memory');
  let longest = 0;
  for (let position = tail; position !== head; ) {
    const units = unitsAt(shard, position);
    if ((words[shard.wordAt(position) + 1] & FILLER) === 0 && units > longest) longest = units;
    position = (position + units) | 0;
  }
  recount(shard, (position, hash) => {
    const units = (position - tail) >>> 0 < (head - tail) >>> 0 ? unitsAt(shard, position) : 0;
    if (units === 0 || words[shard.wordAt(position) + 2] !== hash) throw damaged(shard, 'the index names no entry');
    return units;
  });
  // Which turn of the ring the longest is from is not known: at worst it is remembered a turn longer.
  store(words, LONGEST_NOW, longest);
  store(words, LONGEST_BEFORE, longest);
  store(words, RECOVERED, words[RECOVERED] + 1);
}

/**
 * Empties a shard, whatever is in it, under its lock. A reader that has found an entry before sees another TURN, and
 * looks again; a writer that dies in here leaves some keys in and others out.
 */
export function empty(shard: ShardMemory): void {
  const { words } = shard;
  publish(words, TURN, words[TURN] + 1);
  emptyIndex(shard);
  publish(words, TAIL, words[HEAD]);
  fence();
  store(words, COUNT, 0);
  store(words, LIVE, 0);
  store(words, LONGEST_NOW, 0);
  store(words, LONGEST_BEFORE, 0);
}
