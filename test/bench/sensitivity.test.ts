/** What `npm run figures -- --sensitivity` changes: numbers that no source gives, and the fabric stays one. */
import { loadFabric, runTasks } from 'onesided/fabrics';
import { describe, expect, it } from 'vitest';
import { CHAPTERS } from '../../bench/figures/all.ts';
import { changed } from '../../bench/figures/fabrics.ts';
import { describeSensitivity, unsourced } from '../../bench/figures/sensitivity.ts';

const FABRICS = [...new Set(CHAPTERS.flatMap(({ fabrics }) => fabrics))];

describe.each(FABRICS)('%s', (name) => {
  it('has numbers without a source, and others', () => {
    const numbers = unsourced(name);
    expect(numbers).toContain('host.copy');
    expect(numbers).not.toContain('node.ranks');
    expect(numbers).not.toContain('adapter.maxMessage');
  });

  it('is a fabric with each of them changed, which other times come out of', async () => {
    const before = loadFabric(name);
    for (const number of unsourced(name)) {
      const [group, field] = number.split('.');
      for (const factor of [0.7, 1.3]) {
        const fabric = changed(before, { number, factor });
        const [was, is] = [before, fabric].map((one) => (one as never)[group][field] as number);
        expect(Math.sign(is - was), number).toBe(Math.sign(factor - 1));
        await runTasks(2, (world) => world.barrier(), { fabric });
      }
    }
  });
});

it('whole numbers stay whole', () => {
  const fabric = loadFabric('infinihost-64');
  const { packet } = fabric.adapter;
  expect(changed(fabric, { number: 'adapter.packet', factor: 0.7 }).adapter.packet).toBe(Math.floor(0.7 * packet));
  expect(changed(fabric, { number: 'adapter.packet', factor: 1.3 }).adapter.packet).toBe(Math.ceil(1.3 * packet));
});

it('is told in words', () => {
  const flips = [{ fabric: 'infinihost-64', number: 'host.copy', factor: 0.7 }];
  expect(describeSensitivity({ numbers: 25, holds: true, flips })).toBe(
    'it does not hold with `host.copy` of infinihost-64 at −30 %; else the same with each of 25 numbers at −30 % and +30 %',
  );
  expect(describeSensitivity({ numbers: 25, holds: false, flips: [] })).toMatch(/^the verdict is the same/);
});
