/** Random programs beside a plain `Map` that knows what must be there. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { SharedMapOptions } from '../../../src/service/map/index.ts';
import { divide, HEAD, HEADER_BYTES, TAIL, TURN } from '../../../src/service/map/map-layout.ts';
import { randomBelow } from '../../support/random-below.ts';
import { seedOfRun } from '../../support/ranks.ts';
import { newMap } from './support.ts';

interface Expected {
  readonly value: string;
  readonly expires: number;
}

/** Keys of all kinds: empty, short, of one and two bytes a character, halves of pairs. */
const LETTERS = ['a', 'b', '\0', 'ÿ', 'Ā', '漢', '\ud83d', '\ude00', '\u0001'];
const MOST_KEYS = 300;

afterEach(() => vi.restoreAllMocks());

function keysFor(below: (n: number) => number): string[] {
  const keys = new Set(['', 'a', '\0', '\0\0']);
  while (keys.size < MOST_KEYS) {
    const plain = below(2) === 0;
    const length = below(40);
    let key = '';
    for (let i = 0; i < length; i++)
      key += plain ? String.fromCharCode(33 + below(90)) : LETTERS[below(LETTERS.length)];
    keys.add(key);
  }
  return [...keys];
}

/** One random program. @returns how much was evicted */
function run(seed: number, bytes: number, steps: number, hashMask: number, near = 0): number {
  const below = randomBelow(seed);
  const options: SharedMapOptions<string> = { bytes, codec: 'string', near };
  const { map, memory } = newMap<string>(options, { hashMask });
  const { longest } = map.statistics();
  const keys = keysFor(below);
  const model = new Map<string, Expected>();
  let time = 1000;
  vi.spyOn(performance, 'now').mockImplementation(() => time);
  let evicted = 0;
  let next = 0;

  /** What was evicted by the last step is not expected any more: exactly as many keys as the map says. */
  const forgetEvicted = (): void => {
    const now = map.statistics().evicted;
    if (now === evicted) return;
    let gone = 0;
    for (const key of model.keys()) {
      if (map.has(key)) continue;
      // What has expired counts as evicted only if it was evicted before.
      if (model.get(key)!.expires > time) gone++;
      model.delete(key);
    }
    expect(gone).toBe(now - evicted);
    evicted = now;
  };
  const expectedOf = (key: string): string | undefined => {
    const found = model.get(key);
    return found === undefined || found.expires <= time ? undefined : found.value;
  };
  const newValue = (key: string): string => {
    const most = longest - 2 * key.length - 4;
    const sizes = [0, 1, below(20), below(300), below(300), below(most >> 2), below(300), most];
    const size = sizes[below(below(20) === 0 ? 8 : 5)];
    const text = `${next++}:`.padEnd(size, below(2) === 0 ? 'x' : 'yz').slice(0, size);
    if (size < 8 || size > most / 3 || below(4) > 0) return text;
    return `${text.slice(3)}${LETTERS[below(LETTERS.length)]}`;
  };
  const put = (key: string, value: string, ttl: number | undefined): void => {
    model.set(key, { value, expires: ttl === undefined ? Number.POSITIVE_INFINITY : time + ttl });
  };

  for (let step = 0; step < steps; step++) {
    const key = keys[below(keys.length)];
    const ttl = below(5) === 0 ? 1 + below(50) : undefined;
    const entry = ttl === undefined ? undefined : { ttl };
    switch (below(13)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const value = newValue(key);
        map.set(key, value, entry);
        put(key, value, ttl);
        break;
      }
      case 4:
      case 5:
      case 6:
        expect(map.get(key)).toBe(expectedOf(key));
        break;
      case 12: {
        const value = expectedOf(key);
        expect(map.touch(key, entry)).toBe(value !== undefined);
        if (value !== undefined) put(key, value, ttl);
        const left = value === undefined ? undefined : (ttl ?? Number.POSITIVE_INFINITY);
        expect(map.remainingTtl(key)).toBe(left);
        break;
      }
      case 7:
        expect(map.delete(key)).toBe(expectedOf(key) !== undefined);
        model.delete(key);
        break;
      case 8: {
        const other = keys[below(keys.length)];
        const value = below(4) === 0 ? undefined : newValue(key);
        const seen: unknown[] = [];
        map.update(
          key,
          (old) => {
            seen.push(old, map.get(other));
            return value;
          },
          entry,
        );
        expect(seen).toEqual([expectedOf(key), expectedOf(other)]);
        if (value === undefined) model.delete(key);
        else put(key, value, ttl);
        break;
      }
      case 9: {
        const right = below(2) === 0;
        const expected = right ? expectedOf(key) : below(3) === 0 ? undefined : 'another';
        const value = below(4) === 0 ? undefined : newValue(key);
        const same = expected === expectedOf(key);
        expect(map.compareAndSet(key, expected, value, entry)).toBe(same);
        if (same && value === undefined) model.delete(key);
        else if (same) put(key, value!, ttl);
        break;
      }
      case 10:
        expect(map.has(key)).toBe(expectedOf(key) !== undefined);
        break;
      case 11:
        time += below(10);
        if (below(40) === 0) {
          map.clear();
          model.clear();
        }
    }
    forgetEvicted();
    if (step % 997 === 0) checkAll(map, model, time);
  }
  checkAll(map, model, time);
  checkMemory(memory, bytes);
  return evicted;
}

/** Iteration meets exactly what is there, and the counts are at least that. */
function checkAll(map: ReturnType<typeof newMap<string>>['map'], model: Map<string, Expected>, time: number): void {
  const there = [...model].filter(([, { expires }]) => expires > time);
  const met = [...map];
  expect(new Map(met)).toEqual(new Map(there.map(([key, { value }]) => [key, value])));
  expect(met.length).toBe(there.length);
  expect([...map.keys()].length).toBe(there.length);
  expect(map.size).toBeGreaterThanOrEqual(there.length);
}

function checkMemory(memory: ArrayBufferLike, bytes: number): void {
  const { shards, shardBytes, ringBytes } = divide(bytes, undefined)!;
  for (let i = 0; i < shards; i++) {
    const words = new Int32Array(memory, HEADER_BYTES + i * shardBytes, 64);
    expect((words[HEAD] - words[TAIL]) >>> 0).toBeLessThanOrEqual(ringBytes / 8);
    // Positions have wrapped at 2^32.
    expect(words[TURN]).toBeGreaterThan(0);
  }
}

describe('random programs', () => {
  const seed = seedOfRun();
  it('in a small map, which evicts', () => {
    let evicted = 0;
    for (let i = 0; i < 4; i++) evicted += run(seed + i, 64 << 10, 8000, -1);
    expect(evicted).toBeGreaterThan(0);
  });
  it('in a map with room for all', () => {
    expect(run(seed + 10, 1 << 20, 30_000, -1)).toBeLessThan(3000);
  });
  it('with values that are kept near', () => {
    for (const near of [1, 20, 1000]) run(seed + near, 64 << 10, 8000, -1, near);
  });
  it('with keys of which the hashes meet', () => {
    // All in the first shard.
    for (const hashMask of [0, 1, 3, 0x1f]) runInOneShard(seed + hashMask, hashMask);
  });
});

function runInOneShard(seed: number, hashMask: number): void {
  const { map } = newMap<string>({ bytes: 1 << 20, codec: 'string' }, { hashMask });
  const below = randomBelow(seed);
  const keys = keysFor(below).slice(0, 100);
  const model = new Map<string, string>();
  for (let step = 0; step < 6000; step++) {
    const key = keys[below(keys.length)];
    if (below(3) > 0) {
      map.set(key, `${step}`);
      model.set(key, `${step}`);
    } else {
      expect(map.delete(key)).toBe(model.delete(key));
    }
    const other = keys[below(keys.length)];
    expect(map.get(other)).toBe(model.get(other));
  }
  expect(map.statistics().evicted).toBe(0);
  expect(new Map(map)).toEqual(model);
}
