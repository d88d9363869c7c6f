/** The guide has a row for each scheme. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FENCE_SCHEMES } from '../../src/sync/fence/kinds.ts';
import { LOCK_SCHEMES } from '../../src/sync/lock/kinds.ts';

const GUIDE = readFileSync(new URL('../../docs/guide/schemes.md', import.meta.url), 'utf8');

/** First cells of the rows of the table under a heading of the guide, in order. */
function rowsOf(hint: 'fence' | 'lock'): string[] {
  const table = GUIDE.slice(GUIDE.indexOf(`| \`${hint}\` |`));
  const rows = table.slice(0, table.indexOf('\n\n')).split('\n').slice(2);
  return rows.map((row) => /^\| `([a-z-]+)`/.exec(row)?.[1] ?? row).sort();
}

test.each([
  ['fence', FENCE_SCHEMES],
  ['lock', LOCK_SCHEMES],
] as const)('for the hint %s', (hint, names) => {
  expect(rowsOf(hint)).toEqual([...names].sort());
});
