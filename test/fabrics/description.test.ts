/** Descriptions of fabrics: those of this package are complete, and what is wrong in one is told by file and field. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { fabricNames, loadFabric, readFabric } from '../../src/fabrics/index.ts';

type Loose = Record<string, Record<string, { value?: unknown; source?: unknown }>>;

const fresh = (): Loose =>
  JSON.parse(readFileSync(new URL('../../fabrics/infinihost-64.json', import.meta.url), 'utf8')) as Loose;

/** The error of a description that was changed. */
function errorOf(change: (description: Loose) => void): string {
  const description = fresh();
  change(description);
  try {
    readFabric('mine.json', description);
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_ARG' });
    return (error as Error).message;
  }
  return 'nothing is wrong';
}

describe('descriptions', () => {
  test('those of this package can be read', () => {
    expect(fabricNames()).toEqual(['connectx-16-cores', 'infinihost-64']);
    for (const name of fabricNames()) expect(loadFabric(name).name).toBe(name);
  });

  test('every number that is missing, negative, no number, or without a source is told by its field', () => {
    for (const [part, fields] of Object.entries(fresh())) {
      if (typeof fields === 'string') continue;
      for (const field of Object.keys(fields)) {
        const at = `fabric mine.json: ${part}.${field}`;
        expect(errorOf((d) => delete d[part][field])).toBe(`${at} is missing`);
        for (const value of [-1, '1', null, Number.NaN, Number.POSITIVE_INFINITY, 1e12]) {
          expect(errorOf((d) => (d[part][field].value = value))).toContain(`${at}.value`);
        }
        expect(errorOf((d) => (d[part][field].source = ' '))).toContain(`${at}.source must say where`);
      }
      expect(errorOf((d) => delete d[part])).toBe(`fabric mine.json: ${part} is missing`);
    }
  });

  test('counts are whole, and some things take time', () => {
    expect(errorOf((d) => (d['node']['ranks'].value = 1.5))).toContain(
      'node.ranks.value must be a whole number from 1',
    );
    expect(errorOf((d) => (d['bus']['shared'].value = 2))).toContain('bus.shared.value');
    expect(errorOf((d) => (d['link']['latency'].value = 0))).toContain('link.latency.value must be more than 0');
  });

  test('what it does not know is refused: it may be a misspelt field', () => {
    expect(errorOf((d) => (d['link']['latancy'] = { value: 1, source: 'a' }))).toContain('link.latancy is none of');
    expect(errorOf((d) => (d['links'] = {}))).toContain('links is none of');
  });

  test('files that are not there, or no JSON, are told', () => {
    expect(() => loadFabric('nowhere.json')).toThrowError(/nowhere.json: the file cannot be read/);
    expect(() => loadFabric('tin-cans')).toThrowError(/there is no fabric "tin-cans"; there are connectx/);
  });
});
