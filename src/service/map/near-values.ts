/**
 * Values that this thread has decoded, for `near` of a map's options: as long as the slot of a key names the entry that
 * a value was decoded from, it is the key's value, and is given again without a copy.
 *
 * An entry's position is its own: none has the same one within a TURN. So the hash in the slot, the position beside it
 * and TURN say it, in three loads. A key that was deleted has another hash in its slot, 0 or another key's; a new value
 * or a copy has another position; `clear` changes TURN.
 */
import { loadAcquire } from '../../memory-model.ts';
import { now } from './map-clock.ts';
import { type ShardMemory, SLOT_POSITION, TURN } from './map-layout.ts';
import { markRead } from './slot-index.ts';

interface NearValue<V> {
  readonly shard: ShardMemory;
  readonly slot: number;
  readonly hash: number;
  readonly position: number;
  readonly turn: number;
  readonly expiry: number;
  readonly value: V;
}

/** Two halves: when the younger one is full, the older one goes. What is found in the older one moves. */
export class NearValues<V> {
  readonly #most: number;
  #young = new Map<string, NearValue<V>>();
  #old = new Map<string, NearValue<V>>();

  /** @param most values that are kept */
  constructor(most: number) {
    this.#most = (most + 1) >>> 1;
  }

  /** The value of a key, if it is known; `undefined` else. */
  find(key: string): V | undefined {
    let found = this.#young.get(key);
    const isYoung = found !== undefined;
    if (found === undefined) {
      found = this.#old.get(key);
      if (found === undefined) return undefined;
    }
    const { shard, slot, expiry } = found;
    const { words } = shard;
    if (
      loadAcquire(words, slot) !== found.hash ||
      loadAcquire(words, slot + SLOT_POSITION) !== found.position ||
      words[TURN] !== found.turn ||
      (expiry !== 0 && expiry <= now())
    )
      return undefined;
    if (!isYoung) this.keep(key, found);
    markRead(shard, slot);
    return found.value;
  }

  keep(key: string, value: NearValue<V>): void {
    if (this.#young.size >= this.#most) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }
}
