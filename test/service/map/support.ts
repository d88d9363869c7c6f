/** Maps for tests: over memory of this process, with a lock of the test's own. */
import { type ShardLock, SharedMap, type SharedMapOptions } from '../../../src/service/map/index.ts';
import type { MapTestOptions } from '../../../src/service/map/shared-map.ts';

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

  acquire(word: number): number {
    const { words, place, dead } = this;
    for (;;) {
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

export interface TestMap<V> {
  readonly map: SharedMap<V>;
  readonly memory: ArrayBufferLike;
  readonly lock: TestLock;
  readonly dead: Int32Array;
}

/** A new map in memory of this process. */
export function newMap<V>(options: SharedMapOptions<V>, test: MapTestOptions = {}, shared = false): TestMap<V> {
  const bytes = SharedMap.memoryBytes(options);
  const memory = shared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes);
  const dead = new Int32Array(shared ? new SharedArrayBuffer(256) : new ArrayBuffer(256));
  const lock = new TestLock(memory, 1, dead);
  const map = SharedMap.create<V>('test', { buffer: memory, byteOffset: 0 }, lock, options, test);
  return { map, memory, lock, dead };
}
