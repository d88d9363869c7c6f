import { describe, expect, test } from 'vitest';
import { ByRank } from '../../src/transfer/requests/by-rank.ts';

/** Each of so many ranks once, a prime number but 7919, in no order. */
const shuffled = (length: number): number[] => Array.from({ length }, (_, i) => (i * 7919 + 13) % length);

describe('something for each rank', () => {
  test('is made once, and when it is first asked for', () => {
    const made: number[] = [];
    const byRank = new ByRank((rank) => {
      made.push(rank);
      return { rank };
    });
    expect(byRank.find(3)).toBeUndefined();
    const three = byRank.of(3);
    expect(byRank.of(3)).toBe(three);
    expect(byRank.find(3)).toBe(three);
    expect(made).toEqual([3]);
  });

  test('all are in the order of ranks, whenever they are asked for', () => {
    for (const every of [1, 2, 7, 101]) {
      const byRank = new ByRank((rank) => rank);
      const ranks = shuffled(101);
      for (const [i, rank] of ranks.entries()) {
        byRank.of(rank);
        const sorted = ranks.slice(0, i + 1).sort((a, b) => a - b);
        if (i % every === 0) expect(byRank.all).toEqual(sorted);
      }
      expect(byRank.all).toEqual(Array.from({ length: 101 }, (_, rank) => rank));
    }
  });

  test('who walks through them meets each that was there, while others come and are put in order', () => {
    const byRank = new ByRank((rank) => rank);
    for (const rank of [10, 20, 30, 40]) byRank.of(rank);
    const met = new Set<number>();
    let next = 35;
    for (const rank of byRank.all) {
      met.add(rank);
      if (next > 0) byRank.of(next);
      next -= 10;
      expect(byRank.all).toEqual([...byRank.all].sort((a, b) => a - b));
    }
    for (const rank of [10, 20, 30, 40]) expect(met).toContain(rank);
  });

  test('what cannot be made leaves nothing', () => {
    let fails = true;
    const byRank = new ByRank((rank) => {
      if (fails) throw new RangeError('no room');
      return rank;
    });
    expect(() => byRank.of(1)).toThrow('no room');
    expect(byRank.all).toEqual([]);
    fails = false;
    expect(byRank.of(1)).toBe(1);
  });
});
