/**
 * The calls that write a map. Each reads its arguments, takes the lock of the key's part, and gives it back with the
 * part in order. `call` is for messages; `patience` is that of ShardGate.
 */
import { types } from 'node:util';
import { argumentRangeError, argumentTypeError, show } from '../../errors.ts';
import { damaged } from './entry-log.ts';
import { copyValue } from './entry-reader.ts';
import { expiryOfFound, isFoundExpired, locate, put, removeFound } from './entry-writer.ts';
import { now } from './map-clock.ts';
import type { ShardMemory } from './map-layout.ts';
import type { MapState } from './map-state.ts';
import { empty } from './shard-recovery.ts';
import { ABSENT } from './slot-index.ts';

export class MapWriters<V> {
  readonly #state: MapState<V>;

  constructor(state: MapState<V>) {
    this.#state = state;
  }

  set(call: string, key: string, value: V, ttl: number, patience: number | undefined): void {
    this.#state.encode(call, key, value);
    this.#state.key.read(call, key);
    const units = this.#state.unitsOfEntry(call, key);
    const shard = this.#state.shardOfKey();
    this.#state.gate.enter(call, shard, key, patience);
    let whole = false;
    try {
      put(shard, this.#state.key, this.#state.value, units, expiryOf(ttl));
      whole = true;
    } finally {
      this.#state.gate.leave(shard, whole);
    }
  }

  /** The entry is written anew: whoever keeps its value (near-values.ts) keeps when it expires as well. */
  touch(call: string, key: string, ttl: number, patience: number | undefined): boolean {
    const { copy, value } = this.#state;
    this.#state.key.read(call, key);
    const shard = this.#state.shardOfKey();
    this.#state.gate.enter(call, shard, key, patience);
    let whole = false;
    try {
      const present = locate(shard, this.#state.key) !== ABSENT && !isFoundExpired(shard);
      if (present) {
        if (!copyValue(shard, shard.found, copy)) throw damaged(shard, 'an entry has no length');
        value.bytes = copy.bytes();
        value.words = undefined;
        value.length = copy.length;
        value.kind = copy.kind;
        put(shard, this.#state.key, value, this.#state.unitsOfEntry(call, key), expiryOf(ttl));
      }
      whole = true;
      return present;
    } finally {
      this.#state.gate.leave(shard, whole);
    }
  }

  delete(call: string, key: string, patience: number | undefined): boolean {
    this.#state.key.read(call, key);
    const shard = this.#state.shardOfKey();
    this.#state.gate.enter(call, shard, key, patience);
    let whole = false;
    try {
      const slot = locate(shard, this.#state.key);
      const present = slot !== ABSENT && !isFoundExpired(shard);
      if (slot !== ABSENT) removeFound(shard, slot);
      whole = true;
      return present;
    } finally {
      this.#state.gate.leave(shard, whole);
    }
  }

  update(
    call: string,
    key: string,
    change: (value: V | undefined) => V | undefined,
    ttl: number,
    patience: number | undefined,
  ): V | undefined {
    if (typeof change !== 'function')
      throw argumentTypeError(`${call}: change must be a function, not ${show(change)}`);
    return this.#change(call, key, change, () => expiryOf(ttl), patience);
  }

  increment(call: string, key: string, by: number, ttl: number, patience: number | undefined): number {
    if (typeof by !== 'number') throw argumentTypeError(`${call}: by must be a number, not ${show(by)}`);
    const { name } = this.#state.codec;
    if (name === 'bytes' || name === 'string') {
      const why = `values of ${this.#state.what} have the codec "${name}" and are no numbers; make the map with "json"`;
      throw argumentTypeError(`${call}: ${why}`);
    }
    const add = (value: unknown): number => {
      if (value !== undefined && typeof value !== 'number')
        throw argumentTypeError(`${call}: ${this.#state.valueOf(key)} must be a number, not ${show(value)}`);
      const sum = (value ?? 0) + by;
      if (!Number.isFinite(sum))
        throw argumentRangeError(`${call}: ${this.#state.valueOf(key)} would be ${sum}: not finite`);
      return sum;
    };
    return this.#change(call, key, add as never, (old) => old ?? expiryOf(ttl), patience) as number;
  }

  compareAndSet(
    call: string,
    key: string,
    expected: V | undefined,
    value: V | undefined,
    ttl: number,
    patience: number | undefined,
  ): boolean {
    let bytes: Buffer | undefined;
    let { kind } = this.#state.value;
    if (expected !== undefined) {
      this.#state.encode(call, key, expected);
      // Of what is longer than an entry only the length is known: it is nobody's value.
      bytes = Buffer.from(
        this.#state.value.bytes.subarray(0, Math.min(this.#state.value.length, this.#state.mostBytes + 1)),
      );
      kind = this.#state.value.kind;
    }
    if (value !== undefined) this.#state.encode(call, key, value);
    this.#state.key.read(call, key);
    const units = value === undefined ? 0 : this.#state.unitsOfEntry(call, key);
    const shard = this.#state.shardOfKey();
    this.#state.gate.enter(call, shard, key, patience);
    let whole = false;
    try {
      const slot = locate(shard, this.#state.key);
      const there = slot !== ABSENT && !isFoundExpired(shard);
      let same = there === (bytes !== undefined);
      if (there && bytes !== undefined) {
        const copy = this.#state.copy;
        if (!copyValue(shard, shard.found, copy)) throw damaged(shard, 'an entry has no length');
        same = copy.kind === kind && copy.hasBytes(bytes);
      }
      if (same && value !== undefined) put(shard, this.#state.key, this.#state.value, units, expiryOf(ttl));
      else if (same && slot !== ABSENT) removeFound(shard, slot);
      whole = true;
      return same;
    } finally {
      this.#state.gate.leave(shard, whole);
    }
  }

  /** Empties one part, whatever is in it. */
  clearPart(call: string, shard: ShardMemory, patience: number | undefined): void {
    this.#state.gate.enter(call, shard, undefined, patience, false);
    try {
      empty(shard);
    } finally {
      this.#state.gate.leave(shard, true);
    }
  }

  /** `update` and `increment`. @param expire when the new entry expires, if there was one that expires at `old` */
  #change(
    call: string,
    key: string,
    change: (value: V | undefined) => V | undefined,
    expire: (old: number | undefined) => number,
    patience: number | undefined,
  ): V | undefined {
    this.#state.key.read(call, key);
    const shard = this.#state.shardOfKey();
    this.#state.gate.enter(call, shard, key, patience);
    // What the program's function throws has changed nothing.
    let whole = true;
    try {
      const slot = locate(shard, this.#state.key);
      let old: V | undefined;
      let expiry: number | undefined;
      if (slot !== ABSENT && !isFoundExpired(shard)) {
        if (!copyValue(shard, shard.found, this.#state.copy)) throw damaged(shard, 'an entry has no length');
        expiry = expiryOfFound(shard);
        old = this.#state.decode(call, key);
      }
      const value = change(old);
      if (types.isPromise(value))
        throw argumentTypeError(`${call}: the function for the key ${show(key)} must not be asynchronous`);
      if (value !== undefined) this.#state.encode(call, key, value);
      // The function may have read other keys.
      this.#state.key.read(call, key);
      if (value === undefined) {
        const there = locate(shard, this.#state.key);
        if (there !== ABSENT) {
          whole = false;
          removeFound(shard, there);
        }
      } else {
        const units = this.#state.unitsOfEntry(call, key);
        whole = false;
        put(shard, this.#state.key, this.#state.value, units, expire(expiry));
      }
      whole = true;
      return value;
    } finally {
      this.#state.gate.leave(shard, whole);
    }
  }
}

/** When an entry expires that lives so long; 0 for never. */
function expiryOf(ttl: number): number {
  return ttl === Number.POSITIVE_INFINITY ? 0 : now() + ttl;
}
