/** What ranks have heard by, and races as a picture. */
import { expect, test } from 'vitest';
import type { RaceReport } from '../../src/races/race-findings.ts';
import { drawRaces } from '../../src/races/race-picture.ts';
import { readRaces } from '../../src/races/race-request.ts';
import { Told } from './teller.ts';

/** Rank 0 puts, tells rank 1 somehow, and does not complete the put before. */
const WAYS: readonly (readonly [heard: string, text: string, tell: (told: Told) => void])[] = [
  ['collective', 'by a collective call', (told) => told.barrier()],
  [
    'message',
    'by a message',
    ({ ranks: [a, b] }) => {
      a.sends(1);
      b.receives(0);
    },
  ],
  [
    'lock',
    'by a lock that it had before',
    ({ ranks: [a, b] }) => {
      a.locks(2, true);
      a.unlocks(2, true);
      b.locks(2, true);
    },
  ],
];

test.each(WAYS)('a rank that has heard by %s is told so', (heard, text, tell) => {
  const told = new Told(3);
  told.ranks[0].put(1, 0, 'A');
  tell(told);
  told.ranks[1].loads(0, 'B');
  const [race] = told.report.races;
  expect(race.heard).toBe(heard);
  expect(race.missing).toContain(`rank 1 has heard from rank 0 ${text}`);
});

test('the last of several is told, and nothing where nothing was heard since the call', () => {
  const told = new Told(3);
  told.barrier();
  told.ranks[0].put(1, 0, 'A');
  told.ranks[1].loads(0, 'B');
  told.barrier();
  told.ranks[0].sends(1);
  told.ranks[1].receives(0);
  told.ranks[1].loads(0, 'C');
  expect(told.report.races.map(({ heard }) => heard)).toEqual([undefined, 'message']);
});

const drawn = (told: Told): string => drawRaces(told.report);
const count = (text: string, part: string): number => text.split(part).length - 1;

test('a race between ranks has both lanes, both lines, what was heard and what is missing', () => {
  const told = new Told(2);
  told.ranks[0].put(1, 0, 'first.mjs:3:4');
  told.barrier();
  told.ranks[1].loads(0, 'second.mjs:5:6');
  const svg = drawn(told);
  for (const text of [
    'rank 0',
    'rank 1',
    'first.mjs:3:4',
    'second.mjs:5:6',
    'a collective call',
    'to mend it: flush(1)',
  ])
    expect(svg).toContain(`${text}`);
  // One in the legend.
  expect(count(svg, 'class="tip-signal"')).toBe(2);
  expect(count(svg, 'class="tip-lock"')).toBe(2);
});

test('where nothing was heard the missing edge has two ends, and within a rank there is one lane', () => {
  const told = new Told(2);
  told.ranks[0].put(1, 0, 'A');
  told.ranks[1].loads(0, 'B');
  const remote = drawn(told);
  expect(count(remote, 'class="tip-signal"')).toBe(1);
  expect(count(remote, 'class="tip-lock"')).toBe(3);
  expect(count(remote, 'class="lane"')).toBe(2);
  const alone = new Told(2);
  alone.ranks[0].get(1, 0, 'A');
  alone.ranks[0].uses('result', 0, true);
  alone.ranks[0].loads(0, 'B', 200);
  expect(count(drawn(alone), 'class="lane"')).toBe(1);
});

test('names of files and windows cannot be markup, and long ones are cut; 50 races are drawn', () => {
  const told = new Told(2);
  told.ranks[0].put(1, 0, `<script>"&'.mjs:1:1${'x'.repeat(200)}`);
  told.ranks[1].loads(0, 'B');
  const { races } = told.report;
  const many: RaceReport = { ...told.report, races: Array.from({ length: 60 }, () => races[0]) };
  const svg = drawRaces(many);
  expect(svg).not.toContain('<script>');
  expect(svg).not.toContain('x'.repeat(100));
  expect(count(svg, 'font-weight="bold" x="20"')).toBe(50);
  expect(svg).toContain('60 races');
  expect(svg).toContain('the first 50 are drawn');
  expect(drawRaces({ ...told.report, races: [] })).toContain('No race');
});

test('the options name a report and a picture', () => {
  expect(readRaces('--races', 'strict,a.json,b.svg', undefined)).toMatchObject({ file: 'a.json', picture: 'b.svg' });
  expect(() => readRaces('--races', 'b.png', undefined)).toThrow(/FILE.svg/);
});
