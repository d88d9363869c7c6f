/** The guide has a row for each scheme, and for each hint, with its default. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { FENCE_SCHEMES } from '../../src/sync/fence/fence-kinds.ts';
import { LOCK_SCHEMES } from '../../src/sync/lock/lock-kinds.ts';
import { NONCONTIGUOUS_NAMES } from '../../src/transfer/layouts/layout-kinds.ts';
import { SCHEDULE_NAMES } from '../../src/transfer/schedule/schedule-kinds.ts';
import { UPDATE_SCHEMES } from '../../src/transfer/served/update-kinds.ts';
import { readInfo, showInfo } from '../../src/window/creation/window-info.ts';

const GUIDE = readFileSync(new URL('../../docs/guide/schemes.md', import.meta.url), 'utf8');

/** First cells of the rows of the table under a heading of the guide, in order. */
function rowsOf(hint: 'fence' | 'lock' | 'schedule' | 'noncontiguous' | 'update'): string[] {
  const table = GUIDE.slice(GUIDE.indexOf(`| \`${hint}\` |`));
  const rows = table.slice(0, table.indexOf('\n\n')).split('\n').slice(2);
  return rows.map((row) => /^\| `([a-z-]+)`/.exec(row)?.[1] ?? row).sort();
}

test.each([
  ['fence', FENCE_SCHEMES],
  ['lock', LOCK_SCHEMES],
  ['schedule', SCHEDULE_NAMES],
  ['noncontiguous', NONCONTIGUOUS_NAMES],
  ['update', UPDATE_SCHEMES],
] as const)('for the hint %s', (hint, names) => {
  expect(rowsOf(hint)).toEqual([...names].sort());
});

test('for each hint, with its default', () => {
  const hints = Object.entries(
    showInfo(readInfo('Window.create', undefined, { immediateCompletion: true, size: 1, virtualTime: false })),
  );
  const beginnings = hints.map(
    ([name, value]) => `| \`${name}\` | ${name === 'fence' ? 'see above' : `\`${value}\``} |`,
  );
  const table = GUIDE.slice(GUIDE.indexOf('| hint |'));
  const rows = table.slice(0, table.indexOf('\n\n')).split('\n').slice(2);
  expect(rows.map((row) => `${row.split('|', 3).join('|')}|`)).toEqual(beginnings);
});
