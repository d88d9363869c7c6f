/**
 * A writer that dies after any of its stores. Each step of a random program is made once; then the memory is put back
 * and the step is made again and cut off after its first store, its second, and so on. After each cut, readers without
 * a lock find each key as it was before the step or as it is after it; then another member takes the lock over and goes
 * on.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { SharedMap, SharedMapOptions } from '../../../src/service/map/index.ts';
import { HEADER_BYTES } from '../../../src/service/map/map-layout.ts';
import type { MapTestOptions } from '../../../src/service/map/map-state.ts';
import { randomBelow } from '../../support/random-below.ts';
import { seedOfRun } from '../../support/ranks.ts';
import { newMap, optionsOf, TestLock } from './support.ts';

/** What the stores do: they count, and after `last` of them the writer is dead, and nothing it does is stored. */
const writer = vi.hoisted(() => ({ stores: 0, last: Number.POSITIVE_INFINITY, dead: false }));

class Killed extends Error {}

vi.mock('../../../src/service/map/map-stores.ts', async (original) => {
  const real = await original<typeof import('../../../src/service/map/map-stores.ts')>();
  /** Makes one store, unless the writer is dead. */
  const step = (one: () => void): void => {
    if (writer.dead) return;
    if (writer.stores === writer.last) {
      writer.dead = true;
      throw new Killed('killed');
    }
    writer.stores++;
    one();
  };
  type Real = typeof real;
  const double: Real = {
    fence: () => {},
    store: (words, at, value) => step(() => real.store(words, at, value)),
    publish: (words, at, value) => step(() => real.publish(words, at, value)),
    storeByte: (bytes, at, value) => step(() => real.storeByte(bytes, at, value)),
    storeNumber: (numbers, at, value) => step(() => real.storeNumber(numbers, at, value)),
    storeWords(words, at, from, count) {
      for (let i = 0; i < count; i++) step(() => real.store(words, at + i, from[i]));
    },
    storeBytes(bytes, at, from) {
      for (let i = 0; i < from.length; i++) step(() => real.storeByte(bytes, at + i, from[i]));
    },
    moveWords(words, to, from, count) {
      for (let i = 0; i < count; i++) step(() => real.store(words, to + i, words[from + i]));
    },
  };
  return double;
});

/** A lock that a dead writer does not give back. */
class MortalLock extends TestLock {
  override release(word: number): void {
    if (!writer.dead) super.release(word);
  }
}

const OPTIONS: SharedMapOptions<string> = { bytes: 64 << 10, codec: 'string' };
/** All keys in the first shard, which has a ring of 4 KiB. */
const ONE_SHARD = 0xffff;
/** All keys in one of its buckets, and in those behind it. */
const ONE_BUCKET = 0;
const DEAD_PLACE = 1;

type Step = (map: SharedMap<string>) => void;
type Contents = Map<string, string>;

beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => 1000);
});
afterEach(() => vi.restoreAllMocks());

class Scene {
  readonly #bytes: Uint8Array;
  readonly #dead = new Int32Array(64);
  readonly #maps: readonly SharedMap<string>[];
  readonly below: (n: number) => number;
  readonly keys: readonly string[];
  cuts = 0;

  readonly #test: MapTestOptions;

  constructor(seed: number, keys: number, hashMask: number) {
    this.#test = { hashMask };
    this.below = randomBelow(seed);
    this.keys = Array.from({ length: keys }, (_, i) => (i % 5 === 0 ? `ключ ${i}` : `key ${i}`));
    const { memory } = newMap<string>(OPTIONS, this.#test);
    this.#bytes = new Uint8Array(memory);
    this.#maps = [1, 2, 3, 4].map((place) => this.open(place));
  }

  open(place: number): SharedMap<string> {
    const { buffer } = this.#bytes;
    return SharedMapClass.open<string>(
      'the map "test"',
      { buffer, byteOffset: 0 },
      new MortalLock(buffer, place, this.#dead),
      optionsOf(OPTIONS),
      this.#test,
    );
  }

  map(place: number): SharedMap<string> {
    return this.#maps[place - 1];
  }

  contents(place: number): Contents {
    return new Map(
      this.keys.flatMap((key) => {
        const value = this.map(place).get(key);
        return value === undefined ? [] : [[key, value] as const];
      }),
    );
  }

  /** Makes a step that dies after so many stores. @returns whether it died */
  killed(place: number, step: Step, stores: number): boolean {
    Object.assign(writer, { stores: 0, last: stores, dead: false });
    try {
      step(this.map(place));
      return false;
    } catch (error) {
      if (!writer.dead) throw error;
      this.#dead[place] = 1;
      return true;
    } finally {
      Object.assign(writer, { last: Number.POSITIVE_INFINITY, dead: false });
    }
  }

  isHeld(): boolean {
    return new Int32Array(this.#bytes.buffer)[HEADER_BYTES >>> 2] !== 0;
  }

  markDead(place: number): void {
    this.#dead[place] = 1;
  }

  save(): Uint8Array {
    return this.#bytes.slice();
  }

  restore(bytes: Uint8Array): void {
    this.#bytes.set(bytes);
    this.#dead.fill(0);
  }

  /** Each key is old or new; nothing else is there. */
  check(place: number, before: Contents, after: Contents): void {
    const there = this.contents(place);
    for (const key of this.keys) {
      const value = there.get(key);
      const isOldOrNew = value === before.get(key) || value === after.get(key);
      if (!isOldOrNew) expect(value, key).toBe(before.get(key));
    }
    let met = 0;
    for (const [key, value] of this.map(place)) {
      met++;
      if (there.get(key) !== value) expect(value, `${key}, by iteration`).toBe(there.get(key));
    }
    if (met !== there.size) expect(new Map(this.map(place))).toEqual(there);
  }

  /** Counts are what they would be without the death. */
  checkCounts(place: number): void {
    const map = this.map(place);
    const { entries, bytes } = map.statistics();
    let count = 0;
    let units = 0;
    for (const [key, value] of map) {
      count++;
      const wide = [...key].some((letter) => letter > 'ÿ');
      units += Math.ceil((24 + 4 * Math.ceil(((wide ? 2 : 1) * key.length) / 4) + Buffer.byteLength(value)) / 8);
    }
    expect({ entries, bytes }).toEqual({ entries: count, bytes: 8 * units });
  }

  randomStep(number: number): Step {
    const { below, keys } = this;
    const key = keys[below(keys.length)];
    const size = [0, 5, below(100), below(100), 400][below(5)];
    const value = `${number}`.padEnd(size, '.');
    switch (below(10)) {
      case 0:
      case 1:
        return (map) => map.delete(key);
      case 2:
        return (map) => map.update(key, (old) => (old === undefined ? value : undefined));
      case 3:
        return (map) => map.compareAndSet(key, map.get(key), value);
      case 4:
        if (number % 20 === 4) return (map) => map.clear();
    }
    return (map) => map.set(key, value);
  }
}

const { SharedMap: SharedMapClass } = await import('../../../src/service/map/index.ts');

/** @param again in how many of the cuts the one who recovers is killed, too, after any of its stores */
function cutEverywhere(scene: Scene, steps: number, again: number): void {
  for (let number = 0; number < steps; number++) {
    const step = scene.randomStep(number);
    const old = scene.save();
    const before = scene.contents(2);
    step(scene.map(1));
    const after = scene.contents(2);
    const new_ = scene.save();
    for (let stores = 0; ; stores++) {
      scene.restore(old);
      if (!scene.killed(DEAD_PLACE, step, stores)) break;
      scene.cuts++;
      scene.check(2, before, after);
      if (scene.below(again) === 0) killRecovery(scene, before, after);
      // Whoever comes next takes the lock over, and finds a map in order. A reader's mark is stored without a lock.
      const recovered = scene.map(2).statistics().recovered + (scene.isHeld() ? 1 : 0);
      scene.map(2).set('', 'here');
      expect(scene.map(2).statistics().recovered).toBe(recovered);
      scene.checkCounts(2);
      scene.map(2).delete('');
    }
    scene.restore(new_);
    scene.checkCounts(2);
  }
}

function killRecovery(scene: Scene, before: Contents, after: Contents): void {
  const broken = scene.save();
  for (let stores = 0; ; stores++) {
    scene.restore(broken);
    // Still dead.
    scene.markDead(DEAD_PLACE);
    if (!scene.killed(2, (map) => map.delete('nothing'), stores)) break;
    scene.cuts++;
    scene.check(3, before, after);
    scene.map(3).delete('nothing');
    scene.checkCounts(3);
  }
  scene.restore(broken);
  scene.markDead(DEAD_PLACE);
}

describe('a writer that dies after any of its stores', () => {
  const seed = seedOfRun();
  it('leaves each entry old or new, with room', () => {
    const scene = new Scene(seed, 12, ONE_SHARD);
    cutEverywhere(scene, 100, 50);
    expect(scene.cuts).toBeGreaterThan(1000);
  });
  it('leaves each entry old or new, where others must go', () => {
    const scene = new Scene(seed + 1, 40, ONE_SHARD);
    cutEverywhere(scene, 100, 50);
    expect(scene.cuts).toBeGreaterThan(2000);
  });
  it('leaves each entry old or new, where many have the same bucket', () => {
    const scene = new Scene(seed + 2, 11, ONE_BUCKET);
    cutEverywhere(scene, 150, 50);
    expect(scene.cuts).toBeGreaterThan(1000);
  });
});
