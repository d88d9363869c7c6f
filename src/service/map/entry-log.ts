/**
 * The log of a shard: entries are written at HEAD and given up at TAIL, under the shard's lock.
 *
 * An entry does not change once a slot names it, but for the hint that it is dead. A new one is written whole, then
 * HEAD is published behind it, then a slot names it: a writer that dies before the slot leaves an entry that no slot
 * names, which TAIL passes in its turn. One that dies before HEAD leaves nothing.
 *
 * Room is made at TAIL. What no slot names is passed. What is still named is copied to HEAD, and its slot told, before
 * TAIL passes it; or it is evicted, and its slot emptied, before TAIL passes it. TAIL is published before its memory is
 * written again, so a reader who finds TAIL not beyond an entry after copying it has copied that entry.
 *
 * Copied is what was read since it was written or copied last (the clock, with the ring as its face), and everything as
 * long as little of the ring is in use. Between two calls there is always room for two entries of the longest length
 * that the ring has: so the entry at TAIL can be copied, also where the ring's end must be filled first. The entry that
 * is about to be replaced is always copied, once: when all others have gone, half of the ring is free.
 */
import { RmaError } from '../../errors.ts';
import { now } from './map-clock.ts';
import {
  COUNT,
  DEAD,
  EVICTED,
  EXPIRED,
  FILLER,
  HEAD,
  KEY_BYTES,
  LIVE,
  LONGEST_BEFORE,
  LONGEST_NOW,
  MOVED,
  type ShardMemory,
  SLOT_POSITION,
  TAIL,
  TURN,
  unitsOf,
} from './map-layout.ts';
import { fence, moveWords, publish, store } from './map-stores.ts';
import { ABSENT, emptySlot, freeSlot, pointTo, slotNaming, slotToTake, wasRead } from './slot-index.ts';

/** A ring in use up to here keeps everything: of what TAIL comes to, at least a fifth is dead. */
const KEPT_PART = 0.8;
/** Of what was read, at most this part of the ring is copied in one call: a call has a bound. */
const MOST_COPIED_SHIFT = 4;

/** The error of a shard whose numbers contradict each other. */
export function damaged(shard: ShardMemory, what: string): RmaError {
  return new RmaError(
    'ERR_DAMAGED',
    `${shard.what} is damaged: ${what} in part ${shard.number}: a member has written over its memory; ` +
      'clear() empties it',
  );
}

/** Units of the entry or filler at a position between TAIL and HEAD. Errors: `ERR_DAMAGED`. */
export function unitsAt(shard: ShardMemory, position: number): number {
  const { words, capacity, positionMask, mostUnits } = shard;
  const entry = shard.wordAt(position);
  const head = words[entry + 1];
  const toEnd = capacity - (position & positionMask);
  const filler = (head & FILLER) !== 0;
  // Not below 0, whatever the word says.
  const value = words[entry + 3] >>> 0;
  const units = filler ? head & KEY_BYTES : unitsOf(head & KEY_BYTES, value);
  const ahead = (words[HEAD] - position) >>> 0;
  const most = filler ? toEnd : Math.min(toEnd, mostUnits);
  if (words[entry] !== position || units < 1 || units > most || units > ahead || ahead > capacity)
    throw damaged(shard, 'an entry of the log has no length');
  return units;
}

/** Units of the longest entry in the log, at most the longest there can be. */
function longestIn({ words, mostUnits }: ShardMemory): number {
  const longest = Math.max(words[LONGEST_NOW], words[LONGEST_BEFORE], 0);
  return Math.min(longest, mostUnits);
}

/** Units that stay empty before an entry: up to the end of the ring, if it does not fit there. */
function fillerBefore(shard: ShardMemory, position: number, units: number): number {
  const toEnd = shard.capacity - (position & shard.positionMask);
  return toEnd < units ? toEnd : 0;
}

/**
 * Makes room for an entry.
 * @param own the slot of its key, which is not evicted: a writer that dies leaves the old entry, or the new one;
 * `ABSENT` if the key is new, then there is room for one more key, too. Errors: `ERR_DAMAGED`.
 */
export function makeRoom(shard: ShardMemory, units: number, own: number): void {
  const { words, capacity } = shard;
  const mostEntries = own === ABSENT ? shard.mostEntries : Number.POSITIVE_INFINITY;
  const longest = Math.max(units, longestIn(shard));
  const mostLive = Math.min(Math.floor(capacity * KEPT_PART), capacity - 2 * units - 3 * longest);
  const begun = words[TAIL];
  const turn = (words[HEAD] - begun) >>> 0;
  let copied = 0;
  for (;;) {
    const tail = words[TAIL];
    const head = words[HEAD];
    const used = (head - tail) >>> 0;
    if (used > capacity) throw damaged(shard, 'the log is longer than its memory');
    const needed = units + fillerBefore(shard, head, units) + 2 * longest;
    if (capacity - used >= needed && words[COUNT] < mostEntries) return;
    if (used === 0) throw damaged(shard, 'entries are counted that are not there');
    const length = unitsAt(shard, tail);
    const entry = shard.wordAt(tail);
    const slot = (words[entry + 1] & (FILLER | DEAD)) !== 0 ? ABSENT : slotNaming(shard, tail, words[entry + 2]);
    if (slot !== ABSENT) {
      if (slot !== own && isExpired(shard, entry)) {
        store(words, EXPIRED, words[EXPIRED] + 1);
        emptySlot(shard, slot, length);
      } else {
        const fits = words[LIVE] + units <= mostLive && words[COUNT] < mostEntries;
        const again = slot === own || (wasRead(shard, slot) && copied < capacity >> MOST_COPIED_SHIFT);
        // What was copied in this call is not copied once more.
        const first = (tail - begun) >>> 0 < turn;
        if (first && (fits || again) && capacity - used >= length + fillerBefore(shard, head, length)) {
          copyToHead(shard, entry, slot, length);
          copied += length;
        } else {
          store(words, EVICTED, words[EVICTED] + 1);
          emptySlot(shard, slot, length);
        }
      }
    }
    passTail(shard, tail, length);
  }
}

/** TAIL moves on: what lies before it may be written over after this call. */
function passTail({ words }: ShardMemory, tail: number, units: number): void {
  const next = (tail + units) | 0;
  if ((tail ^ next) < 0) publish(words, TURN, words[TURN] + 1);
  publish(words, TAIL, next);
  fence();
}

/** Whether an entry has expired, by now. @param entry its first word */
function isExpired({ numbers }: ShardMemory, entry: number): boolean {
  const expiry = numbers[(entry >>> 1) + 2];
  return expiry !== 0 && expiry <= now();
}

function copyToHead(shard: ShardMemory, entry: number, slot: number, units: number): void {
  const { words } = shard;
  const position = claim(shard, units);
  const to = shard.wordAt(position);
  store(words, to, position);
  moveWords(words, to + 1, entry + 1, 2 * units - 1);
  publish(words, HEAD, (position + units) | 0);
  pointTo(shard, slot, position);
  store(words, MOVED, words[MOVED] + 1);
}

/**
 * Where the next entry goes. The end of the ring is filled if it does not fit there.
 * @returns its position, which HEAD then is
 */
export function claim(shard: ShardMemory, units: number): number {
  const { words, positionMask } = shard;
  let head = words[HEAD];
  const filler = fillerBefore(shard, head, units);
  if (filler > 0) {
    const entry = shard.wordAt(head);
    store(words, entry, head);
    store(words, entry + 1, FILLER | filler);
    head = (head + filler) | 0;
    publish(words, HEAD, head);
  }
  if ((head & positionMask) === 0) {
    store(words, LONGEST_BEFORE, words[LONGEST_NOW]);
    store(words, LONGEST_NOW, 0);
  }
  if (units > words[LONGEST_NOW]) store(words, LONGEST_NOW, units);
  return head;
}

/** A free slot for a new key, if need be another key's, which is evicted. Errors: `ERR_DAMAGED`. */
export function slotFor(shard: ShardMemory, hash: number): number {
  const { words } = shard;
  const free = freeSlot(shard, hash);
  if (free !== ABSENT) return free;
  const taken = slotToTake(shard, hash);
  const position = words[taken + SLOT_POSITION];
  const units = unitsAt(shard, position);
  const reason = isExpired(shard, shard.wordAt(position)) ? EXPIRED : EVICTED;
  store(words, reason, words[reason] + 1);
  emptySlot(shard, taken, units);
  return taken;
}
