/** Maps for tests: over memory of this process, with a lock of the test's own. */
import {
  memoryOf,
  readMapOptions,
  type ShardLock,
  SharedMap,
  type SharedMapOptions,
} from '../../../src/service/map/index.ts';
import type { MapTestOptions } from '../../../src/service/map/map-state.ts';

/** A lock that names its holder, a place from 1 on; a place that `dead` has is taken over from. */
export class TestLock implements ShardLock {
  readonly words: Int32Array;
  readonly place: number;
  /** One word a place: 1 if it is dead. */
  readonly dead: Int32Array;
  /** How often the lock of a dead place was taken over. */
  taken = 0;

  constructor(memory: ArrayBufferLike, place: number, dead: Int32Array) {
    this.words = new Int32Array(memory);
    this.place = place;
    this.dead = dead;
  }

  tryAcquire(word: number): number | undefined {
    return Atomics.compareExchange(this.words, word, 0, this.place) === 0 ? -1 : undefined;
  }

  tryBriefly(word: number): number | undefined {
    return this.tryAcquire(word);
  }

  describe(word: number, what: string): string {
    return `${what}: place ${this.words[word]} holds it`;
  }

  acquire(word: number): number {
    const { words, place, dead } = this;
    for (let look = 1; ; look++) {
      // The holder may have no core.
      if (look % 100 === 0) Atomics.wait(sleeper, 0, 0, 0.2);
      const holder = Atomics.compareExchange(words, word, 0, place);
      if (holder === 0) return -1;
      if (holder === place) throw new Error('the lock is held by this very place');
      if (Atomics.load(dead, holder) === 1 && Atomics.compareExchange(words, word, holder, place) === holder) {
        this.taken++;
        return holder;
      }
    }
  }

  release(word: number): void {
    if (Atomics.compareExchange(this.words, word, this.place, 0) !== this.place) throw new Error('not the holder');
  }
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

export interface TestMap<V> {
  readonly map: SharedMap<V>;
  readonly memory: ArrayBufferLike;
  readonly lock: TestLock;
  readonly dead: Int32Array;
}

export function optionsOf<V>(options: SharedMapOptions<V>) {
  return readMapOptions('test', options);
}

/** Bytes of memory for a map. */
export function memoryBytes<V>(options: SharedMapOptions<V>): number {
  return memoryOf(optionsOf(options).geometry);
}

/** A new map in memory of this process. */
export function newMap<V>(options: SharedMapOptions<V>, test: MapTestOptions = {}, shared = false): TestMap<V> {
  const bytes = memoryBytes(options);
  const memory = shared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes);
  const dead = new Int32Array(shared ? new SharedArrayBuffer(256) : new ArrayBuffer(256));
  const lock = new TestLock(memory, 1, dead);
  const map = SharedMap.create<V>('the map "test"', { buffer: memory, byteOffset: 0 }, lock, optionsOf(options), test);
  return { map, memory, lock, dead };
}

/** Opens a map as another place. */
export function openMap<V>(
  memory: ArrayBufferLike,
  place: number,
  dead: Int32Array,
  options: SharedMapOptions<V>,
  test: MapTestOptions = {},
): TestMap<V> {
  const lock = new TestLock(memory, place, dead);
  const at = { buffer: memory, byteOffset: 0 };
  return { map: SharedMap.open<V>('the map "test"', at, lock, optionsOf(options), test), memory, lock, dead };
}

/** Bytes of a value before its pattern: number of the key, sequence, length. */
const VALUE_HEAD = 12;

/** A value of which every byte is known from the number of its key and a sequence number. */
export function checkedValue(key: number, sequence: number, length: number): Uint8Array {
  const value = new Uint8Array(VALUE_HEAD + length);
  const view = new DataView(value.buffer);
  view.setUint32(0, key);
  view.setUint32(4, sequence);
  view.setUint32(8, length);
  let state = (key * 0x9e3779b1 + sequence) | 1;
  for (let i = VALUE_HEAD; i < value.length; i++) {
    state = Math.imul(state, 0x2c1b3c6d) ^ (state >>> 15);
    value[i] = state >>> 24;
  }
  return value;
}

/** The sequence number of a value; throws if it is not, byte for byte, one that `checkedValue` gives for the key. */
export function sequenceOf(key: number, value: Uint8Array): number {
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength);
  const sequence = view.getUint32(4);
  const expected = checkedValue(key, sequence, view.getUint32(8) % (1 << 20));
  if (Buffer.compare(expected, value) !== 0) throw new Error(`the value of key ${key} is torn`);
  return sequence;
}

/** Sees that what a reader finds is whole, and never older than what it has found before. */
export class Watch {
  readonly #map: SharedMap<Uint8Array>;
  readonly #last: Uint32Array;
  found = 0;

  constructor(map: SharedMap<Uint8Array>, keys: number) {
    this.#map = map;
    this.#last = new Uint32Array(keys);
  }

  read(key: number): void {
    const value = this.#map.get(`key ${key}`);
    if (value !== undefined) this.#see(key, value);
  }

  /** All entries, by iteration; each key at most once, unless it has come again meanwhile. */
  walk(): void {
    for (const [name, value] of this.#map) this.#see(Number(name.slice(4)), value);
  }

  #see(key: number, value: Uint8Array): void {
    const sequence = sequenceOf(key, value);
    if (sequence < this.#last[key]) throw new Error(`key ${key} was ${this.#last[key]}, and is ${sequence}`);
    this.#last[key] = sequence;
    this.found++;
  }
}
