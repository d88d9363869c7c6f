/** The figures of the papers' claims: every row is there, and what is drawn can be read. */
import { runTasks } from 'onesided/fabrics';
import { describe, expect, it } from 'vitest';
import { chapter4 } from '../../bench/figures/chapter-4.ts';
import { chapter5 } from '../../bench/figures/chapter-5.ts';
import { chapter6 } from '../../bench/figures/chapter-6.ts';
import { chapter9 } from '../../bench/figures/chapter-9.ts';
import { chapter10 } from '../../bench/figures/chapter-10.ts';
import { svgOf } from '../../bench/figures/plot.ts';
import { flooded } from '../../bench/figures/programs.ts';
import { onRealRanks } from '../../bench/figures/real.ts';
import { loadNative } from '../../src/native.ts';

const FIGURES = [...chapter4, ...chapter5, ...chapter6, ...chapter9, ...chapter10];

describe('the list of figures', () => {
  it('has every claim of chapters 4 to 6, 9 and 10 once, and our own', () => {
    const ids = FIGURES.map(({ id }) => id).sort();
    expect(ids.pop()).toBe('O.1');
    const rows = ([chapter, count]: readonly [number, number]): string[] =>
      Array.from({ length: count }, (_, i) => `D${chapter}.${i + 1}`);
    expect(ids).toEqual(
      (
        [
          [4, 9],
          [5, 10],
          [6, 9],
          [9, 3],
          [10, 3],
        ] as const
      )
        .flatMap(rows)
        .sort(),
    );
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
    ['find none, where it computes for long: each connection that is refused is counted', 5000, 3],
  ])('%s', async (_, compute, refused) => {
    const [found] = await runTasks(4, (world) => flooded(world, { puts: 1000, compute }), { fabric: 'infinihost-64' });
    expect(found).toMatchObject({ right: true, refused });
  });
});

describe('a figure', () => {
  it.each(['D4.1', 'D5.2', 'D6.8', 'D9.2', 'D10.2'])(
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

  it('is drawn with its title, caption, axes with units, and legend', () => {
    const svg = svgOf('D0.0', 'What it shows.', {
      kind: 'lines',
      x: { name: 'processes', places: [2, 4, 8] },
      y: { name: 'time (µs)' },
      series: [
        { name: 'this', values: [1, 2, 3] },
        { name: 'that', values: [3, 2, 1] },
      ],
    });
    for (const text of ['D0.0', 'What it shows.', 'processes', 'time (µs)', 'this', 'that', '>8<'])
      expect(svg).toContain(text);
    expect(svg).toMatch(/^<svg[^>]*xmlns=/);
    expect(svg).not.toContain('NaN');
  });
});
