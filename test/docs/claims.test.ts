/** What pages of the guide claim, beside what the library does. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Communicator, init, Window } from '../../src/index.ts';

const page = (name: string): string => readFileSync(new URL(`../../docs/guide/${name}.md`, import.meta.url), 'utf8');
const section = (text: string, heading: string): string => text.split(`\n${heading}\n`)[1].split(/\n##/)[0];

let world: Communicator;
beforeAll(async () => {
  world = await init();
});
afterAll(() => world.finalize());

it('errors.md says which displacement units are refused', async () => {
  expect(section(page('errors'), '### `ERR_DISP`')).toMatch(/`dispUnit` is not a whole number of 0 … 2\^31 − 1 bytes/);
  const win = await Window.allocate(world, Float64Array, 1, { dispUnit: 0 });
  expect(win.dispUnit).toBe(0);
  await win.free();
  await expect(Window.allocate(world, Float64Array, 1, { dispUnit: -1 })).rejects.toMatchObject({ code: 'ERR_DISP' });
});

it('mpi-names.md says that hints which nobody knows are ignored', async () => {
  const claim = section(page('mpi-names'), '## Info');
  expect(claim).not.toMatch(/is an error/);
  expect(claim).toMatch(/ignored, as in MPI/);
  const win = await Window.allocate(world, Float64Array, 1, { info: { nobody_knows: '1' } as never });
  expect(win.getInfo()).not.toHaveProperty('nobody_knows');
  await win.free();
});

it('performance.md keeps what its beginning promises about figures', () => {
  const text = page('performance');
  const [beginning, ...rest] = text.split('\n## ');
  const figures = /\d[\d.,]* (ns|µs|ms|MB)\b|(a|of a|some|tens of|two) (hundred |tenth of a )?(nano|micro)seconds?/;
  expect(rest.join()).toMatch(figures);
  expect(beginning).not.toMatch(/no figures/);
  expect(beginning).toMatch(/orders of\s+magnitude/);
});

it('security.md names a test for each promise, and it is there', () => {
  const rows = [...page('security').matchAll(/^\| .*[^-] \|$/gm)]
    .map(([row]) => row)
    .filter((row) => !/promise/.test(row));
  const named = rows.map((row) => /\| `(test\/[^`]*)`: (.*) \|$/.exec(row)).filter((found) => found !== null);
  expect(named.length).toBe(rows.length);
  expect(named.length).toBeGreaterThan(10);
  for (const [, file, title] of named) {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
    expect(text.replaceAll("\\'", "'"), file).toContain(title);
  }
});

it('bsp.md has the numbers of the figures of ordinary networks', () => {
  const text = section(page('bsp'), '## On ordinary networks').replace(/\s+/g, ' ');
  const t3 = linesOf(figure('T3'));
  for (const p of [2, 4, 6, 8]) {
    const slots = t3(`p = ${p}, packets in slots`);
    const best = slots.places[slots.values.findLastIndex((value, i) => slots.deviations![i] >= 0.02 * value) + 1];
    const write = t3(`p = ${p}, one write`).at(1500);
    expect(text).toContain(`| ${p} | ${slots.at(0)} ms | ${best} µs | ${slots.at(best)} ms | ${write} ms |`);
  }
  const t4 = linesOf(figure('T4'));
  expect(text).toContain(`${t4('p = 8, one write').at(1500)} ms, with slots ${t4('p = 8, packets in slots').at(1500)}`);

  const t5 = linesOf(figure('T5'));
  const [sent, tcp] = ['datagrams', 'TCP'].map((way) => [4, 6, 8].map((p) => t5(`p = ${p}, ${way}`).at(0)));
  const listed = ([a, b, c]: string[]): string => `${a}, ${b} and ${c}`;
  expect(text).toContain(`takes ${listed(sent)} ms on 4, 6 and 8 processes, and ${listed(tcp)} by TCP`);
  const lost = linesOf(figure('T5').beside!)('p = 4');
  expect(text).toContain(`took ${lost.at(1)} ms on 4 processes, and ${lost.at(0.1)} where 0.1 % were`);

  const t6 = figure('T6');
  const row = (chart: Chart, name: string): string => {
    const { values } = linesOf(chart)(name);
    return [values[4], values[0], values[1], values[3]].map((value) => value.toFixed(2)).join(' | ');
  };
  expect(text).toContain(`| the next process | ${row(t6, 'shift, p = 8')} |`);
  expect(text).toContain(`| all others, all begin at the same time | ${row(t6, 'total exchange, p = 8')} |`);
  const apart = row(t6.beside!.beside!, 'total exchange, p = 8');
  expect(text).toContain(`| all others, up to 100 µs apart | ${apart} |`);

  const o5 = linesOf(figure('O.5'));
  const [bus, unpaced, onSwitch] = ['bus, packets in slots', 'bus, unpaced', 'switch, chunks'].map(o5);
  expect(text).toContain(`measured were ${onSwitch.values[6].toFixed(1)} ms and ${bus.at(80)}.`);
  expect(text).toContain(`has no *g* to calculate with: ${unpaced.at(80)}.`);
  const claims = JSON.parse(readFileSync(new URL('../../docs/claims.json', import.meta.url), 'utf8')) as Claim[];
  const parameters = claims.find(({ id }) => id === 'O.5')!.measured.matchAll(/g ([\d.]+) µs a word, l ([\d.]+) ms/g);
  const given = [...text.matchAll(/\| ([\d.]+) µs \| ([\d.]+) ms \| (?:all|\d+ %) \|/g)];
  const numbers = (found: Iterable<RegExpMatchArray>): string[] => [...found].map(([, g, l]) => `${g} µs, ${l} ms`);
  expect(numbers(given)).toEqual(numbers(parameters));
});

interface Claim {
  readonly id: string;
  readonly measured: string;
}

/** A picture's numbers. */
interface Chart {
  readonly x: { readonly places: readonly number[] };
  readonly series: readonly { readonly name: string; readonly values: number[]; readonly deviations?: number[] }[];
  readonly beside?: Chart;
}

const figure = (id: string): Chart =>
  JSON.parse(readFileSync(new URL(`../../docs/figures/${id}.json`, import.meta.url), 'utf8')) as Chart;

/** The line of a name: its numbers, and mean and deviation at a place, as a text gives them. */
const linesOf =
  ({ x: { places }, series }: Chart) =>
  (name: string) => {
    const line = series.find((one) => one.name === name)!;
    const at = (place: number): string => {
      const i = places.indexOf(place);
      return `${line.values[i].toFixed(0)} ± ${line.deviations![i].toFixed(0)}`;
    };
    return { ...line, places, at };
  };
