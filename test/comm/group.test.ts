import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Group, Rank } from '../../src/collective/group.ts';
import { assertRefused, noGroups, noLists } from '../ranks/support/hostile.ts';
import { seedOfRun } from '../support/ranks.ts';

const worldRanks = fc.uniqueArray(fc.nat({ max: 12 }), { maxLength: 10 });
const self = fc.nat({ max: 12 });

describe('groups are ordered sets', () => {
  test('of which one makes others, as MPI 4.1, 7.3.2 says', () => {
    const property = fc.property(worldRanks, worldRanks, self, (first, second, me) => {
      const [a, b] = [new Group(first, me), new Group(second, me)];
      expect([a.size, a.rank]).toEqual([first.length, first.includes(me) ? first.indexOf(me) : Rank.UNDEFINED]);
      expect(a.union(b).worldRanks).toEqual([...first, ...second.filter((rank) => !first.includes(rank))]);
      expect(a.intersection(b).worldRanks).toEqual(first.filter((rank) => second.includes(rank)));
      expect(a.difference(b).worldRanks).toEqual(first.filter((rank) => !second.includes(rank)));
      expect(a.equals(b)).toBe(JSON.stringify(first) === JSON.stringify(second));
      expect(a.equals(new Group([...first], me + 1))).toBe(true);
      const all = first.map((_, rank) => rank);
      expect(a.translate(all, b)).toEqual(
        first.map((rank) => (second.includes(rank) ? second.indexOf(rank) : Rank.UNDEFINED)),
      );
      expect(a.include(all).equals(a)).toBe(true);
      expect(a.exclude(all).size).toBe(0);
    });
    fc.assert(property, { numRuns: 300, seed: seedOfRun() });
  });

  test('include keeps the order asked for, exclude the order there was', () => {
    const group = new Group([7, 3, 9, 1], 9);
    expect(group.include([2, 0]).worldRanks).toEqual([9, 7]);
    expect(group.include([2, 0]).rank).toBe(0);
    expect(group.include([]).rank).toBe(Rank.UNDEFINED);
    expect(group.exclude([1, 2]).worldRanks).toEqual([7, 1]);
    expect(group.exclude([2]).rank).toBe(Rank.UNDEFINED);
  });

  test('wrong arguments are refused', () => {
    const group = new Group([4, 5, 6], 5);
    for (const call of ['include', 'exclude'] as const) {
      const wrong = [
        ...noLists(0),
        ['too high', [3]],
        ['negative', [-1]],
        ['twice', [1, 1]],
        ['a fraction', [0.5]],
      ] as const;
      for (const [name, value] of wrong) assertRefused(`group.${call}`, name, () => group[call](value as number[]));
    }
    for (const [name, value] of noLists(0))
      assertRefused('group.translate', name, () => group.translate(value as number[], group));
    for (const call of ['union', 'intersection', 'difference', 'equals'] as const) {
      for (const [name, value] of noGroups(group))
        assertRefused(`group.${call}`, name, () => group[call](value as Group));
    }
    expect(() => (group.worldRanks as number[]).push(1)).toThrow(TypeError);
  });
});
