/** What is evicted: hits of a cache beside exact LRU of as many entries. */
import { expect, it } from 'vitest';
import { newMap } from './support.ts';

const KEYS = 20_000;
const ACCESSES = 80_000;

/** Numbers with the probabilities of Zipf's law, exponent 1; the same in each run. */
function zipf(): () => number {
  let state = 4711;
  const sums = new Float64Array(KEYS);
  let sum = 0;
  for (let i = 0; i < KEYS; i++) sums[i] = sum += 1 / (i + 1);
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    const at = ((state >>> 0) / 2 ** 32) * sum;
    let low = 0;
    for (let high = KEYS - 1; low < high; ) {
      const middle = (low + high) >> 1;
      if (sums[middle] < at) low = middle + 1;
      else high = middle;
    }
    return low;
  };
}

/** Hits of the second half, of our map and of exact LRU. */
function hits(trace: () => number): { ours: number; lru: number } {
  const keys = Int32Array.from({ length: ACCESSES }, trace);
  // The secret of the hashes is 0: the same entries meet in each run.
  const { map } = newMap<string>({ bytes: 512 << 10, codec: 'string' }, { hashMask: -1 });
  const value = 'x'.repeat(200);
  let ours = 0;
  let sizes = 0;
  for (const [i, key] of keys.entries()) {
    if (map.get(`${key}`) === undefined) map.set(`${key}`, value);
    else if (i >= ACCESSES / 2) ours++;
    if (i >= ACCESSES / 2) sizes += map.size;
  }
  const most = sizes / (ACCESSES / 2);
  const entries = new Set<number>();
  let lru = 0;
  for (const [i, key] of keys.entries()) {
    if (entries.delete(key) && i >= ACCESSES / 2) lru++;
    entries.add(key);
    if (entries.size > most) entries.delete(entries.values().next().value!);
  }
  return { ours: ours / (ACCESSES / 2), lru: lru / (ACCESSES / 2) };
}

it('hits are not fewer than those of exact LRU by more than a hundredth', () => {
  const { ours, lru } = hits(zipf());
  expect(lru).toBeGreaterThan(0.5);
  expect(ours).toBeGreaterThan(lru - 0.01);
});

it('also with scans over what comes once', () => {
  const draw = zipf();
  let turn = 0;
  let once = KEYS;
  const { ours, lru } = hits(() => (turn++ % 10_000 < 1500 ? once++ : draw()));
  expect(ours).toBeGreaterThan(lru - 0.01);
});
