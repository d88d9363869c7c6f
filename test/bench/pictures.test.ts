/** Pictures of the figures: each says its claim and verdict, has true scales, and shows a scheme as all others do. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FIGURES } from '../../bench/figures/all.ts';
import type { Chart } from '../../bench/figures/figure.ts';
import { type Panel, panelsOf } from '../../bench/figures/panels.ts';
import { svgOf } from '../../bench/figures/plot.ts';
import { scaleOfPlaces, scaleOfValues } from '../../bench/figures/scale.ts';
import { named, styleOf } from '../../bench/figures/styles.ts';

const FOLDER = new URL('../../docs/figures/', import.meta.url);
const WORDS = { id: 'D0.0', claim: 'this is < that', holds: true, caption: 'What it shows.' };
const chartOf = (id: string): Chart => JSON.parse(readFileSync(new URL(`${id}.json`, FOLDER), 'utf8')) as Chart;
/** Measured once: pictures need no more. */
const IDS = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.json'))
  .map((file) => file.slice(0, -'.json'.length))
  // Other measurements are there, too.
  .filter((name) => FIGURES.some(({ id }) => id === name));
const PANELS = IDS.flatMap((id) => panelsOf(id, chartOf(id)).map((panel) => [`${id} ${panel.title}`, panel] as const));

const line = (places: readonly (string | number)[], values: readonly number[], logarithmic = false): Chart => ({
  kind: 'lines',
  x: { name: 'processes', places },
  y: { name: 'time (µs)', logarithmic },
  series: [
    { name: 'two-sided', values },
    { name: 'two-sided, get', values: values.map((value) => 2 * value) },
  ],
});

/** The texts of a picture: what they say, and where. */
function textsOf(svg: string): { readonly text: string; readonly x: number; readonly y: number }[] {
  return [...svg.matchAll(/<text[^>]*transform="(?:translate|matrix)\(([^)]*)\)"[^>]*>([^<]*)<\/text>/g)].map(
    ([, at, text]) => {
      const numbers = at.split(/[ ,]+/).map(Number);
      return { text, x: numbers.at(-2)!, y: numbers.at(-1)! };
    },
  );
}

/** All that a picture says, in one line. */
function saidIn(svg: string): string {
  const texts = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
  return texts
    .join(' ')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');
}

/** How far labels of an axis are from the first of them. */
function distances(svg: string, labels: readonly string[], axis: 'x' | 'y'): number[] {
  const texts = textsOf(svg);
  // Labels of the x axis are below those of the y axis, which are left of them.
  const at = labels.map((label) => {
    const found = texts.filter(({ text }) => text === label).sort((a, b) => (axis === 'x' ? b.y - a.y : a.x - b.x));
    return found[0][axis];
  });
  return at.map((place) => Math.abs(place - at[0]));
}

/** CIE lightness, 0 to 100: what is left of a colour in grey. */
function lightness(color: string): number {
  const [red, green, blue] = [1, 3, 5].map((i) => {
    const part = Number.parseInt(color.slice(i, i + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 116 * Math.cbrt(0.2126 * red + 0.7152 * green + 0.0722 * blue) - 16;
}

describe('a picture', () => {
  it('says where only the shape holds', () => {
    const svg = svgOf({ ...WORDS, factor: false }, line([1, 2], [3, 4]));
    expect(saidIn(svg)).toContain('D0.0: the claim holds in its shape, not in its factor');
  });

  it.each(IDS)('of %s says its claim, its verdict and all its lines', (id) => {
    const figure = FIGURES.find((one) => one.id === id)!;
    const chart = chartOf(id);
    for (const holds of [true, false]) {
      const svg = svgOf({ id, claim: figure.claim, caption: figure.caption, holds }, chart);
      const said = saidIn(svg);
      expect(said).toContain(figure.claim);
      expect(said).toContain(`${id}: the claim ${holds ? 'holds' : 'does not hold'}`);
      expect(said).toContain(figure.caption);
      for (const { chart: part, title } of panelsOf(id, chart)) {
        for (const { name } of part.series) expect(said).toContain(name);
        for (const text of [title, part.x.name, part.y.name]) expect(said).toContain(text);
      }
      expect(svg).toMatch(/^<svg[^>]*xmlns=/);
      expect(svg).not.toMatch(/NaN|undefined/);
    }
  });

  it.each(IDS)('of %s has no name of a place on another one', (id) => {
    const svg = svgOf({ ...WORDS, id }, chartOf(id));
    const names = textsOf(svg.match(/<text[^>]*text-anchor="middle"[^>]*translate\([^>]*>[^<]*<\/text>/g)!.join(''));
    for (const { text, x, y } of names) {
      const next = names.filter((other) => other.y === y && other.x > x).sort((a, b) => a.x - b.x)[0];
      // They are in the middle of what they name; a letter has some 6.6 pixels.
      if (next) expect(next.x - x, `${text} | ${next.text}`).toBeGreaterThan(3.3 * (text.length + next.text.length));
    }
  });

  it('is the same whatever was drawn before', () => {
    const chart = line([1, 2, 4], [1, 2, 3]);
    const first = svgOf(WORDS, chart);
    svgOf({ ...WORDS, id: 'D8.3' }, chartOf('D8.3'));
    expect(svgOf(WORDS, chart)).toBe(first);
  });

  it.each([
    ['D4.7', ['25 to 81 %', '58 to 87 %']],
    ['D4.8', ['832', '421']],
    ['D4.6', ['4.5']],
    ['D5.9', ['9346', '10180', '16400']],
    ['D8.3', ['61 %', '69 %']],
    ['D8.4', ['1.12 to 4.0', '7.2']],
    ['D10.1', ['1,788', '76 %', '8 %']],
    ['D10.2', ['40 %', '20 %']],
    ['D10.3', ['44 %', '42 %', '38 %']],
  ])('of %s has the numbers that the dissertation prints', (id, numbers) => {
    const said = saidIn(svgOf(WORDS_OF(id), chartOf(id)));
    expect(said).toMatch(/paper:|, dissertation|, table/);
    for (const number of numbers) expect(said).toContain(number);
  });

  it('has a bar for each deviation, and an axis with room for it', () => {
    const plain = line([1, 2, 4], [10, 20, 30]);
    const [first, second] = plain.series;
    const svg = svgOf(WORDS, { ...plain, series: [{ ...first, deviations: [null, 5, 60] }, second] });
    expect(saidIn(svg)).toMatch(/ 100 /);
    expect(saidIn(svgOf(WORDS, plain))).not.toMatch(/ 100 /);
    const bars = [...svg.matchAll(/<path d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"[^>]*stroke-opacity="0.8"/g)];
    const heights = bars.map(([, x1, y1, x2, y2]) => {
      expect(x2).toBe(x1);
      return Number(y1) - Number(y2);
    });
    expect(heights).toHaveLength(2);
    expect(heights[1] / heights[0]).toBeCloseTo(60 / 5, 1);
  });

  it('of lines has no more than eight in a panel', () => {
    for (const [name, { chart }] of PANELS) expect(chart.series.length, name).toBeLessThanOrEqual(8);
  });

  it('shows another kind of a scheme dashed, in the legend too', () => {
    const dashed = (chart: Chart): number => svgOf(WORDS, chart).match(/stroke-dasharray="7,4"/g)?.length ?? 0;
    const both = line([1, 2, 4], [1, 2, 3]);
    expect(dashed(both)).toBe(2);
    expect(dashed({ ...both, series: both.series.slice(0, 1) })).toBe(0);
  });
});

const WORDS_OF = (id: string): typeof WORDS => ({ ...WORDS, id, claim: '', caption: '' });

describe('a scheme', () => {
  it('has its colour and its marker, in every figure', () => {
    const marker = (chart: Chart, id: string): readonly string[] => {
      const svg = svgOf({ ...WORDS, id }, chart);
      return [
        ...svg.matchAll(/<path d="([^"]*)" transform="matrix\([^"]*\)" fill="(#[0-9a-f]{6})" stroke="#ffffff"/g),
      ].map(([, path, color]) => `${color} ${path}`);
    };
    const seen = new Map<string, string>();
    for (const id of IDS) {
      const chart = chartOf(id);
      if (chart.kind !== 'lines') continue;
      const found = new Set(marker(chart, id));
      const schemes = panelsOf(id, chart).flatMap((panel) =>
        panel.chart.series.filter(({ printed }) => printed !== true).map(({ name }) => named(name).scheme),
      );
      for (const scheme of new Set(schemes)) {
        const own = [...found].filter((one) => one.startsWith(styleOf(scheme).color));
        expect(own, `${id}: ${scheme}`).toHaveLength(1);
        expect(seen.get(scheme) ?? own[0], `${id}: ${scheme}`).toBe(own[0]);
        seen.set(scheme, own[0]);
      }
    }
    expect(seen.size).toBeGreaterThan(20);
  });

  it.each(PANELS)(
    'can be told from the others in grey, by its lightness and its marker or pattern: %s',
    (_, panel: Panel) => {
      const schemes = [...new Set(panel.chart.series.map(({ name }) => named(name).scheme))];
      for (const [i, one] of schemes.entries()) {
        for (const other of schemes.slice(0, i)) {
          const [a, b] = [styleOf(one), styleOf(other)];
          const both = `${one} and ${other}`;
          expect(Math.abs(lightness(a.color) - lightness(b.color)), both).toBeGreaterThan(8);
          if (panel.chart.kind === 'bars') expect(a.stripes, both).not.toBe(b.stripes);
          else expect(a.symbol, both).not.toBe(b.symbol);
        }
      }
    },
  );

  it('is found in a name that says more', () => {
    expect(named('two-sided, n = 3000')).toEqual({ scheme: 'two-sided', variant: 'n = 3000' });
    expect(named('put, aggregate')).toEqual({ scheme: 'aggregate', variant: 'put' });
    expect(named('start, post, complete, wait')).toEqual({ scheme: 'start, post, complete, wait', variant: '' });
    expect(named('nobody knows')).toEqual({ scheme: 'nobody knows', variant: '' });
  });
});

describe('an axis', () => {
  it('of places that grow by factors has equal distances for equal factors', () => {
    const svg = svgOf(WORDS, line(['4', '16', '64', '1K', '4K', '64K'], [1, 2, 3, 4, 5, 6]));
    const found = distances(svg, ['4', '16', '64', '1K', '4K', '64K'], 'x');
    for (const [k, doublings] of [0, 2, 4, 8, 10, 14].entries()) {
      expect(found[k] / found[1]).toBeCloseTo(doublings / 2, 2);
    }
  });

  it('of other places has equal distances for equal differences', () => {
    const places = ['0', '50', '100', '200', '400'];
    const found = distances(svgOf(WORDS, line(places.map(Number), [1, 2, 3, 4, 5])), places, 'x');
    for (const [k, place] of places.entries()) expect(found[k] / found[1]).toBeCloseTo(Number(place) / 50, 2);
  });

  it('of logarithmic values has equal distances for equal factors, and no empty decade', () => {
    const svg = svgOf(WORDS, line([1, 2, 4], [7, 30, 300], true));
    const labels = ['10', '20', '50', '100', '200', '500'];
    const found = distances(svg, labels, 'y');
    const decade = found[labels.indexOf('100')];
    for (const [k, label] of labels.entries()) expect(found[k] / decade).toBeCloseTo(Math.log10(Number(label) / 10), 2);
    expect(saidIn(svg)).not.toMatch(/ 1 .* 10 | 1,000 /);
    const { min, max, minor } = scaleOfValues([7, 300], true);
    expect([10 ** min, 10 ** max].map(Math.round)).toEqual([7, 300]);
    // 7, 8, 9, tens, hundreds.
    expect(minor).toHaveLength(3 + 9 + 3);
  });

  it('of values begins at 0, and ends at a round number', () => {
    expect(scaleOfValues([3, 41], false)).toMatchObject({ min: 0, max: 50 });
    expect(scaleOfValues([-2, 41], false)).toMatchObject({ min: -10, max: 50 });
    expect(scaleOfValues([], false)).toMatchObject({ min: 0 });
    expect(scaleOfValues([5], true).max).toBeGreaterThan(scaleOfValues([5], true).min);
  });

  it('of names has none', () => {
    expect(scaleOfPlaces(['lock', 'get'], 10)).toBeUndefined();
    expect(scaleOfPlaces([1, 3, 7, 15, 31, 63], 10)!.minor).toContain(Math.log2(32));
  });
});
