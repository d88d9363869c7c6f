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
