/** The figures of the papers' claims: every row is there, and what is drawn can be read. */
import { existsSync, readFileSync } from 'node:fs';
import { loadFabric, runTasks } from 'onesided/fabrics';
import { describe, expect, it } from 'vitest';
import { FIGURES } from '../../bench/figures/all.ts';
import { flooded } from '../../bench/figures/programs.ts';
import { onRealRanks } from '../../bench/figures/real.ts';
import { calmFrom } from '../../bench/figures/shifts.ts';
import { NAMED, whyNotOf } from '../../bench/figures/verdicts.ts';
import { loadNative } from '../../src/native.ts';

describe('the list of figures', () => {
  it('has the claims of chapters 4 to 10 and those of BSP once each, and our own', () => {
    const ids = FIGURES.map(({ id }) => id).sort();
    const own = ids.filter((id) => id.startsWith('O'));
    expect(own).toEqual(['O.1', 'O.2', 'O.3', 'O.4', 'O.5']);
    const ofOthers = ids.filter((id) => /^[BMNT]/.test(id));
    const numbered = (letter: string, most: number): string[] =>
      Array.from({ length: most }, (_, i) => `${letter}${i + 1}`);
    expect(ofOthers).toEqual([...numbered('B', 8), ...numbered('M', 3), ...numbered('N', 6), ...numbered('T', 6)]);
    ids.splice(0, ids.length, ...ids.filter((id) => ![...own, ...ofOthers].includes(id)));
    const drawn: readonly [chapter: number, claims: readonly number[]][] = [
      [4, [1, 2, 3, 4, 5, 6, 7, 8, 9]],
      [5, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
      [6, [1, 2, 3, 4, 5, 6, 7, 8, 9]],
      [7, [1, 2, 3, 4, 5]],
      [8, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]],
      [9, [1, 2, 3, 4]],
      [10, [1, 2, 3]],
    ];
    expect(ids).toEqual(drawn.flatMap(([chapter, claims]) => claims.map((claim) => `D${chapter}.${claim}`)).sort());
  });
});

/** As committed. */
const claims = JSON.parse(readFileSync(new URL('../../docs/claims.json', import.meta.url), 'utf8')) as {
  readonly id: string;
  readonly holds: boolean;
  readonly factor?: boolean;
}[];

describe('verdicts', () => {
  it('say why, where a claim does not hold', () => {
    const failing = claims.filter(({ holds, factor }) => !holds || factor === false).map(({ id }) => id);
    expect(failing.filter((id) => whyNotOf(id) === undefined)).toEqual([]);
  });

  it('are in doubt by a part that fails only where the claim does not hold', async () => {
    const doubted = FIGURES.filter(({ necessary }) => necessary !== undefined);
    expect(doubted.map(({ id }) => id).sort()).toEqual(['B4', 'B5', 'B7', 'D6.7', 'M3', 'O.2']);
    for (const { id, necessary } of doubted) {
      expect([id, await necessary!()]).toEqual([id, claims.find((claim) => claim.id === id)!.holds]);
    }
  });

  it.each(['D5.8', 'D7.4'])('come out the same in the shorter way: %s', async (id) => {
    const { verdict } = FIGURES.find((figure) => figure.id === id)!;
    expect(await verdict!()).toBe(claims.find((claim) => claim.id === id)!.holds);
  });

  it('are of figures that are there', () => {
    const ids = FIGURES.map(({ id }) => id);
    expect(NAMED.filter((id) => !ids.includes(id))).toEqual([]);
  });
});

describe('the schemes of figures', () => {
  it('are files that are there', () => {
    const files = new Set(FIGURES.flatMap(({ schemes }) => schemes));
    expect([...files].filter((file) => !existsSync(new URL(`../../${file}`, import.meta.url)))).toEqual([]);
  });
});

describe.skipIf(loadNative() === undefined)('a row on real ranks', () => {
  it('keeps what the figure says of all schedules', async () => {
    const row = await onRealRanks('D4.2');
    expect(row?.measured).toMatch(/: 0 violations, at most [23] shared/);
    expect(row?.holds).toBe(true);
  });

  it('is not there for what needs a fabric', async () => {
    expect(await onRealRanks('D5.4')).toBeUndefined();
  });
});

describe('notified puts to one rank', () => {
  it.each([
    ['find a receive each, where it waits', 0, 0],
    ['find none, where it computes for long and has no helper: each connection that is refused is counted', 5000, 3],
  ])('%s', async (_, compute, refused) => {
    const described = loadFabric('infinihost-64');
    const fabric = { ...described, host: { ...described.host, helper: 0 } };
    const [found] = await runTasks(4, (world) => flooded(world, { puts: 1000, compute }), { fabric });
    expect(found).toMatchObject({ right: true, refused });
  });
});

describe('a figure', () => {
  it.each(['D4.1', 'D5.2', 'D6.8', 'D8.2', 'D9.2', 'D10.2', 'N3'])(
    'is measured, and says whether its claim holds: %s',
    async (id) => {
      const { chart, measured, holds } = await FIGURES.find((figure) => figure.id === id)!.measure();
      expect(chart.series.length).toBeGreaterThan(1);
      for (const { values } of chart.series) {
        expect(values).toHaveLength(chart.x.places.length);
        for (const value of values) expect(value).toBeGreaterThan(0);
      }
      expect(measured).toMatch(/\d/);
      expect(holds).toBe(true);
    },
  );
});

describe('the smallest slot with little scatter', () => {
  const of = (...deviations: readonly number[]) => deviations.map((deviation) => ({ mean: 100, deviation }));

  it('is the first from which on all are calm, not the first that is', () => {
    expect(calmFrom([1, 2, 3, 4], of(9, 1, 3, 1))).toBe(4);
    expect(calmFrom([1, 2, 3, 4], of(1, 1, 1, 1))).toBe(1);
    expect(calmFrom([1, 2, 3, 4], of(1, 1, 1, 2))).toBeUndefined();
  });
});

describe('packets in slots', () => {
  it('leave as figure T2 says', async () => {
    const { holds, measured } = await FIGURES.find(({ id }) => id === 'T2')!.measure();
    expect(holds, measured).toBe(true);
  });
});
