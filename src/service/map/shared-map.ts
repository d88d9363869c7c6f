/** A map in memory that several members share: its calls. */
import { argumentTypeError, show } from '../../errors.ts';
import { readPresence, readSlot, readValue } from './entry-reader.ts';
import { now } from './map-clock.ts';
import { keyFrom } from './map-key.ts';
import { BUCKET_SLOTS, BUCKET_WORDS, COUNT, HEAD, SECRET, ShardMemory, TAIL } from './map-layout.ts';
import {
  checkHeader,
  type EntryOptions,
  type MapWriteOptions,
  type ReadMapOptions,
  readEntryOptions,
  writeHeader,
} from './map-options.ts';
import { MapPromises } from './map-promises.ts';
import { headerOf, type MapMemory, MapState, type MapTestOptions } from './map-state.ts';
import { type SharedMapStatistics, statisticsOf } from './map-statistics.ts';
import { store } from './map-stores.ts';
import { MapWriters } from './map-writers.ts';
import { NearValues } from './near-values.ts';
import type { ShardLock } from './shard-lock.ts';
import { ABSENT, AGAIN } from './slot-index.ts';
import type { CodecName } from './value-codecs.ts';

/**
 * A map with string keys, bounded in bytes. Reading takes no lock and waits for nobody. Writing takes the lock of one
 * part of the map for less than a microsecond, in general. What was used least lately goes when there is no room,
 * approximately.
 */
export class SharedMap<V = unknown> {
  /** The calls that write, as promises: the event loop goes on while another member is in the middle of a change. */
  readonly promises: MapPromises<V>;
  readonly #state: MapState<V>;
  readonly #writers: MapWriters<V>;
  readonly #ttl: number;
  #near: NearValues<V> | undefined;

  /**
   * Makes a map in memory that is all zeros, of `memoryOf(geometry)` bytes, before any other member opens it.
   * @param what the map, for messages: `the map "sessions"`
   */
  static create<V>(
    what: string,
    memory: MapMemory,
    lock: ShardLock,
    options: ReadMapOptions,
    test: MapTestOptions = {},
  ): SharedMap<V> {
    const { words, numbers } = headerOf(memory);
    const secret = crypto.getRandomValues(new Int32Array(2));
    for (let i = 0; i < 2; i++) store(words, SECRET + i, test.hashMask === undefined ? secret[i] : 0);
    // Positions wrap after one turn of the ring: what depends on it fails soon, if it does.
    for (let i = 0; i < options.geometry.shards; i++) {
      const shard = new ShardMemory(what, memory.buffer, memory.byteOffset, options.geometry, i);
      const first = test.firstPosition ?? -shard.capacity;
      store(shard.words, HEAD, first);
      store(shard.words, TAIL, first);
    }
    writeHeader(words, numbers, options);
    return new SharedMap<V>(what, memory, lock, options, test);
  }

  /** Opens a map that another member has made. Errors: `ERR_VERSION`, `ERR_DAMAGED` (no map, or another one). */
  static open<V>(
    what: string,
    memory: MapMemory,
    lock: ShardLock,
    options: ReadMapOptions,
    test: MapTestOptions = {},
  ): SharedMap<V> {
    const { words, numbers } = headerOf(memory);
    checkHeader(`Service: opening ${what}`, words, numbers, options);
    return new SharedMap<V>(what, memory, lock, options, test);
  }

  private constructor(what: string, memory: MapMemory, lock: ShardLock, options: ReadMapOptions, test: MapTestOptions) {
    this.#state = new MapState<V>(what, memory, lock, options, test);
    this.#writers = new MapWriters(this.#state);
    this.#ttl = options.ttl;
    this.#near = options.near > 0 ? new NearValues<V>(options.near) : undefined;
    this.promises = new MapPromises(this.#state, this.#writers, options.ttl);
  }

  /** The name of the codec; `custom` if it is functions of the program's own. */
  get codec(): CodecName | 'custom' {
    return this.#state.codec.name as CodecName | 'custom';
  }

  /**
   * The value of a key; `undefined` if the map does not have it. Takes no lock. Cost: a copy of the value, which is
   * decoded; or three loads, if it is one of those that `near` keeps. Errors: `TypeError`, `ERR_DAMAGED`,
   * `ERR_SERVICE_LEFT`.
   */
  get(key: string): V | undefined {
    const near = this.#near?.find(key);
    if (near !== undefined) return near;
    this.#state.key.read('SharedMap.get', key);
    const shard = this.#state.shardOfKey();
    let slot = readValue(shard, this.#state.key, this.#state.copy);
    if (slot === AGAIN)
      slot = this.#state.gate.readAgain('SharedMap.get', shard, () =>
        readValue(shard, this.#state.key, this.#state.copy),
      );
    if (slot === ABSENT) return undefined;
    return this.#near === undefined ? this.#state.decode('SharedMap.get', key) : this.#decodeNear(key, shard, slot);
  }

  /** Whether the map has a key. Takes no lock. Errors: as `get`. */
  has(key: string): boolean {
    return this.#isThere('SharedMap.has', key);
  }

  /**
   * Milliseconds for which a key is still there, if it is not set again; `Infinity` if it does not expire; `undefined`
   * if the map does not have it. (It may be evicted before.) Takes no lock. Errors: as `get`.
   */
  remainingTtl(key: string): number | undefined {
    if (!this.#isThere('SharedMap.remainingTtl', key)) return undefined;
    const { expiry } = this.#state.copy;
    return expiry === 0 ? Number.POSITIVE_INFINITY : Math.max(0, expiry - now());
  }

  #isThere(call: string, key: string): boolean {
    const { copy, gate } = this.#state;
    this.#state.key.read(call, key);
    const shard = this.#state.shardOfKey();
    let slot = readPresence(shard, this.#state.key, copy);
    if (slot === AGAIN) slot = gate.readAgain(call, shard, () => readPresence(shard, this.#state.key, copy));
    return slot !== ABSENT;
  }

  /**
   * Gives a key a value. Other members see it when the call returns. Errors: `TypeError`, `RangeError` (longer than an
   * entry may be; ttl), `ERR_RMA_WOULD_DEADLOCK` (inside `update`), `ERR_DAMAGED`, `ERR_SERVICE_LEFT`,
   * `ERR_RMA_TIMEOUT` (another member is in the middle of a change of the same part: its process is stopped, or has no
   * core).
   */
  set(key: string, value: V, options?: EntryOptions): this {
    const call = 'SharedMap.set';
    const read = options === undefined ? undefined : readEntryOptions(call, options, this.#ttl);
    this.#writers.set(call, key, value, read?.ttl ?? this.#ttl, read?.timeout);
    return this;
  }

  /**
   * Has a key expire `ttl` milliseconds from now, the map's `ttl` if none is given, with the value that it has.
   * @returns whether the map had it. Cost: as `set`. Errors: as `set`.
   */
  touch(key: string, options?: EntryOptions): boolean {
    const call = 'SharedMap.touch';
    const read = options === undefined ? undefined : readEntryOptions(call, options, this.#ttl);
    return this.#writers.touch(call, key, read?.ttl ?? this.#ttl, read?.timeout);
  }

  /** Takes a key out. @returns whether the map had it. Errors: as `set`. */
  delete(key: string, options?: MapWriteOptions): boolean {
    const call = 'SharedMap.delete';
    const read = options === undefined ? undefined : readEntryOptions(call, options, undefined);
    return this.#writers.delete(call, key, read?.timeout);
  }

  /**
   * Gives a key the value that `change` makes of the present one, which is `undefined` if there is none; `undefined`
   * takes the key out. No other member writes this key meanwhile. `change` runs under a lock of the map: it must be
   * short, cannot be asynchronous, and may read the map, but not write it. If it throws, nothing has changed.
   * @returns the new value. Errors: as `set`, and what `change` throws.
   */
  update(key: string, change: (value: V | undefined) => V | undefined, options?: EntryOptions): V | undefined {
    const call = 'SharedMap.update';
    const read = options === undefined ? undefined : readEntryOptions(call, options, this.#ttl);
    return this.#writers.update(call, key, change, read?.ttl ?? this.#ttl, read?.timeout);
  }

  /**
   * Adds to the number that a key has, 0 if the map does not have it, and returns the sum. An entry that is there
   * expires when it would have; `ttl` is for a new one. The map's codec must be one for numbers. Errors: as `set`;
   * `TypeError` if the value is not a number.
   */
  increment(key: string, by = 1, options?: EntryOptions): number {
    const call = 'SharedMap.increment';
    const read = options === undefined ? undefined : readEntryOptions(call, options, this.#ttl);
    return this.#writers.increment(call, key, by, read?.ttl ?? this.#ttl, read?.timeout);
  }

  /**
   * Gives a key a value if its present one, as bytes of the codec, is `expected`; `undefined` stands for a key that the
   * map does not have, in both places. Objects are the same if their properties come in the same order.
   * @returns whether it was. Errors: as `set`.
   */
  compareAndSet(key: string, expected: V | undefined, value: V | undefined, options?: EntryOptions): boolean {
    const call = 'SharedMap.compareAndSet';
    const read = options === undefined ? undefined : readEntryOptions(call, options, this.#ttl);
    return this.#writers.compareAndSet(call, key, expected, value, read?.ttl ?? this.#ttl, read?.timeout);
  }

  /** Entries, those included that have expired and not been met since. Takes no lock. */
  get size(): number {
    this.#state.checkIn('SharedMap.size');
    let size = 0;
    for (const { words } of this.#state.shards) size += words[COUNT];
    return size;
  }

  /**
   * Takes all keys out, part by part. What other members set meanwhile may stay. Empties a damaged map, too. Errors:
   * `ERR_RMA_WOULD_DEADLOCK`, `ERR_RMA_TIMEOUT`: then all parts are empty that nobody held.
   */
  clear(options?: MapWriteOptions): void {
    const call = 'SharedMap.clear';
    this.#state.checkIn(call);
    const timeout = options === undefined ? undefined : readEntryOptions(call, options, undefined).timeout;
    let failed: { error: unknown } | undefined;
    for (const shard of this.#state.shards) {
      try {
        this.#writers.clearPart(call, shard, timeout);
      } catch (error) {
        failed ??= { error };
      }
    }
    if (failed !== undefined) throw failed.error;
  }

  /**
   * Keys and values, in no order, without a lock. What is in the map all the time is met once; what comes or goes
   * meanwhile may be met or not. Errors: `ERR_DAMAGED`.
   */
  *entries(): IterableIterator<[string, V]> {
    for (const [key] of this.#walk('SharedMap.entries')) yield [key, this.#state.decode('SharedMap.entries', key)];
  }

  /** The keys, as `entries`. */
  *keys(): IterableIterator<string> {
    for (const [key] of this.#walk('SharedMap.keys')) yield key;
  }

  /** The values, as `entries`. */
  *values(): IterableIterator<V> {
    for (const [key] of this.#walk('SharedMap.values')) yield this.#state.decode('SharedMap.values', key);
  }

  /** Calls `body` for each entry, as those of `entries`. Errors: `TypeError`, as `entries`, and what `body` throws. */
  forEach(body: (value: V, key: string, map: this) => void, thisArg?: unknown): void {
    if (typeof body !== 'function')
      throw argumentTypeError(`SharedMap.forEach: the callback must be a function, not ${show(body)}`);
    for (const [key, value] of this.entries()) body.call(thisArg, value, key, this);
  }

  [Symbol.iterator](): IterableIterator<[string, V]> {
    return this.entries();
  }

  /** What the map counts, all members together. Takes no lock. */
  statistics(): SharedMapStatistics {
    this.#state.checkIn('SharedMap.statistics');
    return statisticsOf(this.#state.shards, this.#state.mostBytes);
  }

  /** @internal The member leaves the service: all later calls are refused. @param refuse throws */
  left(refuse: (call: string) => void): void {
    this.#near = undefined;
    this.#state.leave(refuse);
  }

  /** Decodes the value that was read last, and keeps it. */
  #decodeNear(key: string, shard: ShardMemory, slot: number): V {
    const { found: position } = shard;
    const { expiry, turn } = this.#state.copy;
    const { hash } = this.#state.key;
    const value = this.#state.decode('SharedMap.get', key);
    this.#near?.keep(key, { shard, slot, hash, position, turn, expiry, value });
    return value;
  }

  /** Each key, while its value is in `#copy`. */
  *#walk(call: string): Generator<[string]> {
    this.#state.checkIn(call);
    for (const shard of this.#state.shards) {
      const end = shard.index + BUCKET_WORDS * (shard.bucketMask + 1);
      for (let bucket = shard.index; bucket < end; bucket += BUCKET_WORDS) {
        for (let slot = bucket; slot < bucket + BUCKET_SLOTS; slot++) {
          if (shard.words[slot] === 0) continue;
          if (this.#readSlot(call, shard, slot) === ABSENT) continue;
          const { words, kind } = this.#state.keyCopy;
          yield [keyFrom(words, kind)];
          this.#state.checkIn(call);
        }
      }
    }
  }

  #readSlot(call: string, shard: ShardMemory, slot: number): number {
    const found = readSlot(shard, slot, this.#state.keyCopy, this.#state.copy);
    if (found !== AGAIN) return found;
    return this.#state.gate.readAgain(call, shard, () => readSlot(shard, slot, this.#state.keyCopy, this.#state.copy));
  }
}
