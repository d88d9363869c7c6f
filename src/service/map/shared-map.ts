/** A map in memory that several members share: its calls. */
import { types } from 'node:util';
import { argumentRangeError, argumentTypeError, reading, show } from '../../errors.ts';
import { refuseUnknown } from '../../options.ts';
import { CopySpace } from './copy-space.ts';
import { damaged } from './entry-log.ts';
import { copyValue, readPresence, readSlot, readValue } from './entry-reader.ts';
import { expiryOfFound, isFoundExpired, locate, put, removeFound } from './entry-writer.ts';
import { now } from './map-clock.ts';
import { keyFrom, MapKey } from './map-key.ts';
import {
  BUCKET_SLOTS,
  BUCKET_WORDS,
  COUNT,
  ENTRY_BYTES,
  HEAD,
  SECRET,
  ShardMemory,
  TAIL,
  unitsOf,
} from './map-layout.ts';
import {
  checkHeader,
  type EntryOptions,
  memoryOf,
  type ReadMapOptions,
  readMapOptions,
  readTtl,
  type SharedMapOptions,
  writeHeader,
} from './map-options.ts';
import { type SharedMapStatistics, statisticsOf } from './map-statistics.ts';
import { store } from './map-stores.ts';
import { NearValues } from './near-values.ts';
import { ShardGate } from './shard-gate.ts';
import type { ShardLock } from './shard-lock.ts';
import { empty } from './shard-recovery.ts';
import { ABSENT, AGAIN } from './slot-index.ts';
import type { Codec, EncodedValue } from './value-codecs.ts';

/** Where a map lies: memory that all members map, at a multiple of 64 bytes. */
export interface MapMemory {
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
}

/** Of tests: hashes that meet, and where positions begin. */
export interface MapTestOptions {
  readonly hashMask?: number;
  readonly firstPosition?: number;
}

/**
 * A map with string keys, bounded in bytes. Reading takes no lock and waits for nobody. Writing takes the lock of one
 * part of the map for less than a microsecond, in general. What was used least lately goes when there is no room,
 * approximately.
 */
export class SharedMap<V = unknown> {
  readonly #name: string;
  readonly #gate: ShardGate;
  readonly #shards: readonly ShardMemory[];
  readonly #key: MapKey;
  readonly #codec: Codec<V>;
  readonly #ttl: number;
  readonly #mostBytes: number;
  readonly #copy = new CopySpace();
  readonly #keyCopy = new CopySpace();
  readonly #value: EncodedValue = { bytes: new Uint8Array(0), words: undefined, length: 0, kind: 0 };
  readonly #near: NearValues<V> | undefined;

  /** Bytes of memory for a map, zeros, at a multiple of 64 bytes. Errors: `TypeError`, `RangeError` (options). */
  static memoryBytes<V>(options: SharedMapOptions<V>): number {
    return memoryOf(readMapOptions('SharedMap.memoryBytes', options as SharedMapOptions<never>).geometry);
  }

  /**
   * Makes a map in memory that is all zeros, before any other member opens it.
   * @param name in error messages
   */
  static create<V>(
    name: string,
    memory: MapMemory,
    lock: ShardLock,
    options: SharedMapOptions<V>,
    test: MapTestOptions = {},
  ): SharedMap<V> {
    const call = `SharedMap.create("${name}")`;
    const read = readMapOptions(call, options as SharedMapOptions<never>);
    const { words, numbers } = headerOf(memory);
    const secret = crypto.getRandomValues(new Int32Array(2));
    for (let i = 0; i < 2; i++) store(words, SECRET + i, test.hashMask === undefined ? secret[i] : 0);
    // Positions wrap after one turn of the ring: what depends on it fails soon, if it does.
    for (let i = 0; i < read.geometry.shards; i++) {
      const shard = new ShardMemory(memory.buffer, memory.byteOffset, read.geometry, i);
      const first = test.firstPosition ?? -shard.capacity;
      store(shard.words, HEAD, first);
      store(shard.words, TAIL, first);
    }
    writeHeader(words, numbers, read);
    return new SharedMap<V>(name, memory, lock, read, test);
  }

  /** Opens a map that another member has made. Errors: also `ERR_VERSION`, `ERR_DAMAGED` (no map). */
  static open<V>(
    name: string,
    memory: MapMemory,
    lock: ShardLock,
    options: SharedMapOptions<V>,
    test: MapTestOptions = {},
  ): SharedMap<V> {
    const call = `SharedMap.open("${name}")`;
    const read = readMapOptions(call, options as SharedMapOptions<never>);
    const { words, numbers } = headerOf(memory);
    checkHeader(call, words, numbers, read);
    return new SharedMap<V>(name, memory, lock, read, test);
  }

  private constructor(name: string, memory: MapMemory, lock: ShardLock, options: ReadMapOptions, test: MapTestOptions) {
    const { geometry } = options;
    this.#name = name;
    this.#gate = new ShardGate(name, lock);
    this.#codec = options.codec as Codec<V>;
    this.#ttl = options.ttl;
    this.#near = options.near > 0 ? new NearValues<V>(options.near) : undefined;
    this.#shards = Array.from(
      { length: geometry.shards },
      (_, i) => new ShardMemory(memory.buffer, memory.byteOffset, geometry, i),
    );
    this.#mostBytes = 8 * this.#shards[0].mostUnits - ENTRY_BYTES;
    const { words } = headerOf(memory);
    this.#key = new MapKey(words[SECRET], words[SECRET + 1], this.#mostBytes, test.hashMask);
  }

  /**
   * The value of a key; `undefined` if the map does not have it. Takes no lock. Cost: a copy of the value, which is
   * decoded; or three loads, if it is one of those that `near` keeps. Errors: `TypeError`, `ERR_DAMAGED`.
   */
  get(key: string): V | undefined {
    const near = this.#near?.find(key);
    if (near !== undefined) return near;
    this.#key.read('get', key);
    const shard = this.#shardOfKey();
    let slot = readValue(shard, this.#key, this.#copy);
    if (slot === AGAIN) slot = this.#gate.readAgain('get', shard, () => readValue(shard, this.#key, this.#copy));
    if (slot === ABSENT) return undefined;
    return this.#near === undefined ? this.#codec.decode(this.#copy) : this.#decodeNear(key, shard, slot);
  }

  /** Whether the map has a key. Takes no lock. Errors: `TypeError`, `ERR_DAMAGED`. */
  has(key: string): boolean {
    this.#key.read('has', key);
    const shard = this.#shardOfKey();
    let slot = readPresence(shard, this.#key);
    if (slot === AGAIN) slot = this.#gate.readAgain('has', shard, () => readPresence(shard, this.#key));
    return slot !== ABSENT;
  }

  /**
   * Gives a key a value. Other members see it when the call returns. Errors: `TypeError`, `RangeError` (longer than an
   * entry may be; ttl), `ERR_RMA_WOULD_DEADLOCK` (inside `update`), `ERR_DAMAGED`.
   */
  set(key: string, value: V, options?: EntryOptions): this {
    const ttl = options === undefined ? this.#ttl : this.#readEntry('set', options);
    this.#encode('set', value);
    this.#key.read('set', key);
    const units = this.#unitsOfEntry('set');
    const shard = this.#shardOfKey();
    this.#gate.enter('set', shard);
    let whole = false;
    try {
      put(shard, this.#key, this.#value, units, expiryOf(ttl));
      whole = true;
    } finally {
      this.#gate.leave(shard, whole);
    }
    return this;
  }

  /** Takes a key out. @returns whether the map had it. Errors: as `set`. */
  delete(key: string): boolean {
    this.#key.read('delete', key);
    const shard = this.#shardOfKey();
    this.#gate.enter('delete', shard);
    let whole = false;
    try {
      const slot = locate(shard, this.#key);
      const present = slot !== ABSENT && !isFoundExpired(shard);
      if (slot !== ABSENT) removeFound(shard, slot);
      whole = true;
      return present;
    } finally {
      this.#gate.leave(shard, whole);
    }
  }

  /**
   * Gives a key the value that `change` makes of the present one, which is `undefined` if there is none; `undefined`
   * takes the key out. No other member writes this key meanwhile. `change` runs under a lock of the map: it must be
   * short, cannot be asynchronous, and may read the map, but not write it. If it throws, nothing has changed.
   * @returns the new value. Errors: as `set`, and what `change` throws.
   */
  update(key: string, change: (value: V | undefined) => V | undefined, options?: EntryOptions): V | undefined {
    if (typeof change !== 'function') throw argumentTypeError(`update: change must be a function, not ${show(change)}`);
    const ttl = options === undefined ? this.#ttl : this.#readEntry('update', options);
    return this.#change('update', key, change, () => expiryOf(ttl));
  }

  /**
   * Adds to the number that a key has, 0 if the map does not have it, and returns the sum. An entry that is there
   * expires when it would have; `ttl` is for a new one. The map's codec must be one for numbers. Errors: as `set`;
   * `TypeError` if the value is not a number.
   */
  increment(key: string, by = 1, options?: EntryOptions): number {
    if (typeof by !== 'number') throw argumentTypeError(`increment: by must be a number, not ${show(by)}`);
    const { name } = this.#codec;
    if (name === 'bytes' || name === 'string')
      throw argumentTypeError(`increment: values of the codec "${name}" are no numbers; make the map with "json"`);
    const ttl = options === undefined ? this.#ttl : this.#readEntry('increment', options);
    const add = (value: unknown): number => {
      if (value !== undefined && typeof value !== 'number')
        throw argumentTypeError(`increment: the value must be a number, not ${show(value)}`);
      const sum = (value ?? 0) + by;
      if (!Number.isFinite(sum)) throw argumentRangeError(`increment: the sum ${sum} is not finite`);
      return sum;
    };
    return this.#change('increment', key, add as never, (old) => old ?? expiryOf(ttl)) as number;
  }

  /**
   * Gives a key a value if its present one, as bytes of the codec, is `expected`; `undefined` stands for a key that the
   * map does not have, in both places. Objects are the same if their properties come in the same order.
   * @returns whether it was. Errors: as `set`.
   */
  compareAndSet(key: string, expected: V | undefined, value: V | undefined, options?: EntryOptions): boolean {
    const ttl = options === undefined ? this.#ttl : this.#readEntry('compareAndSet', options);
    let bytes: Buffer | undefined;
    let { kind } = this.#value;
    if (expected !== undefined) {
      this.#encode('compareAndSet', expected);
      // Of what is longer than an entry only the length is known: it is nobody's value.
      bytes = Buffer.from(this.#value.bytes.subarray(0, Math.min(this.#value.length, this.#mostBytes + 1)));
      kind = this.#value.kind;
    }
    if (value !== undefined) this.#encode('compareAndSet', value);
    this.#key.read('compareAndSet', key);
    const units = value === undefined ? 0 : this.#unitsOfEntry('compareAndSet');
    const shard = this.#shardOfKey();
    this.#gate.enter('compareAndSet', shard);
    let whole = false;
    try {
      const slot = locate(shard, this.#key);
      const there = slot !== ABSENT && !isFoundExpired(shard);
      let same = there === (bytes !== undefined);
      if (there && bytes !== undefined) {
        const copy = this.#copy;
        if (!copyValue(shard, shard.found, copy)) throw damaged(shard, 'an entry has no length');
        same = copy.kind === kind && copy.hasBytes(bytes);
      }
      if (same && value !== undefined) put(shard, this.#key, this.#value, units, expiryOf(ttl));
      else if (same && slot !== ABSENT) removeFound(shard, slot);
      whole = true;
      return same;
    } finally {
      this.#gate.leave(shard, whole);
    }
  }

  /** Entries, those included that have expired and not been met since. Takes no lock. */
  get size(): number {
    let size = 0;
    for (const { words } of this.#shards) size += words[COUNT];
    return size;
  }

  /**
   * Takes all keys out, part by part. What other members set meanwhile may stay. Empties a damaged map, too. Errors:
   * `ERR_RMA_WOULD_DEADLOCK`.
   */
  clear(): void {
    for (const shard of this.#shards) {
      this.#gate.enter('clear', shard, false);
      try {
        empty(shard);
      } finally {
        this.#gate.leave(shard, true);
      }
    }
  }

  /**
   * Keys and values, in no order, without a lock. What is in the map all the time is met once; what comes or goes
   * meanwhile may be met or not. Errors: `ERR_DAMAGED`.
   */
  *entries(): IterableIterator<[string, V]> {
    for (const [key] of this.#walk()) yield [key, this.#codec.decode(this.#copy)];
  }

  /** The keys, as `entries`. */
  *keys(): IterableIterator<string> {
    for (const [key] of this.#walk()) yield key;
  }

  [Symbol.iterator](): IterableIterator<[string, V]> {
    return this.entries();
  }

  /** What the map counts, all members together. Takes no lock. */
  statistics(): SharedMapStatistics {
    return statisticsOf(this.#shards, this.#mostBytes);
  }

  /** Decodes the value that was read last, and keeps it. */
  #decodeNear(key: string, shard: ShardMemory, slot: number): V {
    const { found: position } = shard;
    const { expiry, turn } = this.#copy;
    const { hash } = this.#key;
    const value = this.#codec.decode(this.#copy);
    this.#near?.keep(key, { shard, slot, hash, position, turn, expiry, value });
    return value;
  }

  /** Each key, while its value is in `#copy`. */
  *#walk(): Generator<[string]> {
    for (const shard of this.#shards) {
      const end = shard.index + BUCKET_WORDS * (shard.bucketMask + 1);
      for (let bucket = shard.index; bucket < end; bucket += BUCKET_WORDS) {
        for (let slot = bucket; slot < bucket + BUCKET_SLOTS; slot++) {
          if (shard.words[slot] === 0) continue;
          if (this.#readSlot(shard, slot) === ABSENT) continue;
          const { words, kind } = this.#keyCopy;
          yield [keyFrom(words, kind)];
        }
      }
    }
  }

  #readSlot(shard: ShardMemory, slot: number): number {
    const found = readSlot(shard, slot, this.#keyCopy, this.#copy);
    if (found !== AGAIN) return found;
    return this.#gate.readAgain('entries', shard, () => readSlot(shard, slot, this.#keyCopy, this.#copy));
  }

  /** `update` and `increment`. @param expire when the new entry expires, if there was one that expires at `old` */
  #change(
    call: string,
    key: string,
    change: (value: V | undefined) => V | undefined,
    expire: (old: number | undefined) => number,
  ): V | undefined {
    this.#key.read(call, key);
    const shard = this.#shardOfKey();
    this.#gate.enter(call, shard);
    // What the program's function throws has changed nothing.
    let whole = true;
    try {
      const slot = locate(shard, this.#key);
      let old: V | undefined;
      let expiry: number | undefined;
      if (slot !== ABSENT && !isFoundExpired(shard)) {
        if (!copyValue(shard, shard.found, this.#copy)) throw damaged(shard, 'an entry has no length');
        expiry = expiryOfFound(shard);
        old = this.#codec.decode(this.#copy);
      }
      const value = change(old);
      if (types.isPromise(value)) throw argumentTypeError(`${call}: the function must not be asynchronous`);
      if (value !== undefined) this.#encode(call, value);
      // The function may have read other keys.
      this.#key.read(call, key);
      if (value === undefined) {
        const there = locate(shard, this.#key);
        if (there !== ABSENT) {
          whole = false;
          removeFound(shard, there);
        }
      } else {
        const units = this.#unitsOfEntry(call);
        whole = false;
        put(shard, this.#key, this.#value, units, expire(expiry));
      }
      whole = true;
      return value;
    } finally {
      this.#gate.leave(shard, whole);
    }
  }

  #shardOfKey(): ShardMemory {
    const shards = this.#shards;
    return shards[((this.#key.hash >>> 16) * shards.length) >>> 16];
  }

  #encode(call: string, value: V): void {
    this.#codec.encode(call, value, this.#value, this.#mostBytes);
  }

  /** Units of an entry of the key and the encoded value. Errors: `RangeError`. */
  #unitsOfEntry(call: string): number {
    const { byteLength } = this.#key;
    const { length } = this.#value;
    const units = unitsOf(byteLength, length);
    if (units > this.#shards[0].mostUnits) {
      throw argumentRangeError(
        `${call}: the value has ${length} bytes and its key ${byteLength}, an entry of the map "${this.#name}" at ` +
          `most ${this.#mostBytes}: make the map with a larger \`longest\``,
        'ERR_SIZE',
      );
    }
    return units;
  }

  #readEntry(call: string, options: EntryOptions): number {
    if (typeof options !== 'object' || options === null)
      throw argumentTypeError(`${call}: the options must be an object, not ${show(options)}`);
    refuseUnknown(call, 'the options', options, ['ttl']);
    const ttl = reading(call, 'ttl', () => options.ttl);
    return ttl === undefined ? this.#ttl : readTtl(call, ttl);
  }
}

/** When an entry expires that lives so long; 0 for never. */
function expiryOf(ttl: number): number {
  return ttl === Number.POSITIVE_INFINITY ? 0 : now() + ttl;
}

function headerOf({ buffer, byteOffset }: MapMemory): { words: Int32Array; numbers: Float64Array } {
  return { words: new Int32Array(buffer, byteOffset, 16), numbers: new Float64Array(buffer, byteOffset, 8) };
}
