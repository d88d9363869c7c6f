/** docs/guide/services.md: its picture is that of the numbers that were measured last. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { drawHttp, type HttpFile } from '../../bench/service/http-picture.ts';

const DOCS = new URL('../../docs/', import.meta.url);

it('services.md has the picture of what was measured', () => {
  expect(readFileSync(new URL('guide/services.md', DOCS), 'utf8')).toContain('(../figures/services-http.svg)');
  const file = JSON.parse(readFileSync(new URL('figures/services-http.json', DOCS), 'utf8')) as HttpFile;
  expect(file.http.length).toBe(6);
  // `npm run figures:services` draws it again.
  expect(readFileSync(new URL('figures/services-http.svg', DOCS), 'utf8')).toBe(drawHttp(file));
});
