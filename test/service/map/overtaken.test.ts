/**
 * A reader that is overtaken at any of its loads: between two of them, a writer makes steps of a random program, few or
 * so many that the whole ring is written over. What the reader finds is a value that the key had meanwhile.
 */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CopySpace } from '../../../src/service/map/copy-space.ts';
import type { SharedMap } from '../../../src/service/map/index.ts';
import { randomBelow } from '../../support/random-below.ts';
import { seedOfRun } from '../../support/ranks.ts';
import { newMap, openMap } from './support.ts';

/** What happens after the load with number `at`. */
const reader = vi.hoisted(() => ({
  loads: 0,
  at: -1,
  work: (): void => {},
  hook(): void {
    if (this.loads++ !== this.at) return;
    this.at = -1;
    this.work();
  },
}));

vi.mock('../../../src/memory-model.ts', async (original) => {
  const real = await original<typeof import('../../../src/memory-model.ts')>();
  return {
    ...real,
    loadAcquire(words: Int32Array, at: number) {
      const value = real.loadAcquire(words, at);
      reader.hook();
      return value;
    },
  };
});
vi.mock('../../../src/service/map/map-stores.ts', async (original) => {
  const real = await original<typeof import('../../../src/service/map/map-stores.ts')>();
  return {
    ...real,
    // Between the copy and the question whether it is whole.
    fence: () => reader.hook(),
  };
});

/** Between the lengths of a value and its bytes. */
const reserve = CopySpace.prototype.reserve;
beforeEach(() => {
  vi.spyOn(CopySpace.prototype, 'reserve').mockImplementation(function (this: CopySpace, length) {
    reader.hook();
    reserve.call(this, length);
  });
});
afterEach(() => {
  reader.at = -1;
  vi.restoreAllMocks();
});

type Value = string | undefined;

function overtake(seed: number, rounds: number, hashMask: number, keyCount: number, near = 0): number {
  const below = randomBelow(seed);
  const options = { bytes: 64 << 10, codec: 'string' } as const;
  const { map, memory, dead } = newMap<string>(options, { hashMask });
  /** What is near must not outlive the memory that is put back. */
  const readers = (): SharedMap<string> =>
    near === 0 ? map : openMap<string>(memory, 1, dead, { ...options, near }, { hashMask }).map;
  const writer = openMap<string>(memory, 2, dead, options, { hashMask }).map;
  const bytes = new Uint8Array(memory);
  const keys = Array.from({ length: keyCount }, (_, i) => `key ${i}`);
  let overtaken = 0;
  for (let round = 0; round < rounds; round++) {
    const key = keys[below(keys.length)];
    for (let i = below(20); i > 0; i--) writer.set(keys[below(keys.length)], `${round}.${i}`.padEnd(below(120), '-'));
    if (below(2) === 0) writer.set(key, `${round}`);
    const steps = Array.from({ length: [1, 1, 2, 60][below(4)] }, (_, i): (() => void) => {
      const other = below(3) === 0 ? key : keys[below(keys.length)];
      const value = `${round}/${i}`.padEnd(below(150), '+');
      const kind = below(8);
      if (kind === 0) return () => writer.delete(other);
      if (kind === 1 && below(5) === 0) return () => writer.clear();
      return () => writer.set(other, value);
    });
    const begin = bytes.slice();
    const isNear = below(2) === 0;
    for (let at = 0; ; at++) {
      bytes.set(begin);
      const map = readers();
      if (isNear) map.get(key);
      const values = new Set<Value>([writer.get(key)]);
      let happened = false;
      const work = (): void => {
        happened = true;
        for (const step of steps) {
          step();
          values.add(writer.get(key));
        }
      };
      Object.assign(reader, { loads: 0, at, work });
      const found = below(4) === 0 ? map.has(key) : map.get(key);
      reader.at = -1;
      if (typeof found === 'boolean') {
        const could = [...values].some((value) => (value !== undefined) === found);
        expect(could, `${key} is ${found ? '' : 'not '}there`).toBe(true);
      } else {
        expect(values).toContain(found);
      }
      if (!happened) break;
      overtaken++;
    }
    // A walk over all: what did not change meanwhile is met once, the rest as it was at some time.
    bytes.set(begin);
    const before = new Map(writer);
    const step = steps[0];
    Object.assign(reader, { loads: 0, at: below(40), work: step });
    const met = [...map];
    reader.at = -1;
    const after = new Map(writer);
    expect(new Set(met.map(([name]) => name)).size).toBe(met.length);
    for (const [name, value] of met) expect([before.get(name), after.get(name)]).toContain(value);
    for (const [name, value] of before) if (after.get(name) === value) expect(new Map(met).get(name)).toBe(value);
  }
  return overtaken;
}

describe('a reader that is overtaken at any load', () => {
  const seed = seedOfRun();
  it('finds a value that the key had', () => expect(overtake(seed, 300, 0xffff, 25)).toBeGreaterThan(1000));
  it('also if it keeps values near', () => expect(overtake(seed + 2, 200, 0xffff, 25, 10)).toBeGreaterThan(500));
  it('also where hashes meet', () => expect(overtake(seed + 1, 150, 1, 14)).toBeGreaterThan(1000));
});
