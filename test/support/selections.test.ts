/** Selections of cases: what they take, and that none takes nothing without a failure. */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { type Described, type Selection, select } from '../ranks/support/selections.ts';
import { LARGE, ON_A_DEVICE, ON_TWO_HOSTS } from '../rdma/selections.ts';
import { casesIn } from './cases.ts';
import { IN_GATE } from './gate.ts';
import { programOf } from './ranks.ts';

const CASES: readonly Described[] = [
  { title: 'a', about: ['locks'], fence: 'immediate' },
  { title: 'b', about: ['locks'], fence: 'deferred' },
  { title: 'c', about: ['fences', 'slow'], fence: 'deferred', schedule: 'interleave' },
  { title: 'd', about: ['making'] },
];
const titles = (selection: Selection): string =>
  select(CASES, selection)
    .map(({ title }) => title)
    .join('');

describe('a selection', () => {
  test('takes the cases that have a word of each list, but for those that it leaves out', () => {
    expect(titles({})).toBe('abcd');
    expect(titles({ about: ['locks', 'making'] })).toBe('abd');
    expect(titles({ about: ['locks'], fence: ['deferred'] })).toBe('b');
    expect(titles({ but: { fence: ['deferred'] } })).toBe('ad');
    expect(titles({ fence: ['deferred'], but: { schedule: ['interleave'] } })).toBe('b');
  });

  test.each<[string, Selection]>([
    ['has a word that no case has', { about: ['lokcs'] }],
    ['has such a word beside one that some have', { about: ['locks', 'lokcs'] }],
    ['has words that no case has together', { about: ['making'], fence: ['deferred'] }],
    [
      'has words of which one is in none of the cases that have the others',
      { about: ['locks'], fence: ['deferred', 'notify-all'] },
    ],
    ['leaves out what is not there', { but: { about: ['lokcs'] } }],
    ['leaves out what it has not taken', { about: ['making'], but: { fence: ['deferred'] } }],
    ['leaves out all', { about: ['locks'], but: { about: ['locks'] } }],
    ['has an empty list', { about: [] }],
  ])('is refused that %s', (_, selection) => {
    expect(() => select(CASES, selection)).toThrow(/^no case /);
  });
});

// In each a process of its own.
describe.skipIf(IN_GATE)('a program', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [programOf('window-pscw'), ...args], { encoding: 'utf8', timeout: 60_000 });

  test.each([
    ['words', `--cases=${JSON.stringify({ about: ['nothing'] })}`, 'no case has about "nothing"'],
    ['title', '--only=nothing', 'no case has the title "nothing"'],
  ])('of whose cases none has the %s fails', (_, arg, message) => {
    const { status, stderr } = run(arg);
    expect(status).not.toBe(0);
    expect(stderr).toContain(message);
  });

  test('runs one case alone by its title', () => {
    const { title } = casesIn('window-pscw')[3];
    expect(JSON.parse(run(`--only=${title}`, '--list').stdout)).toMatchObject([{ title }]);
  });
});

test.skipIf(IN_GATE).each([...ON_A_DEVICE, LARGE, ON_TWO_HOSTS])(
  'on a device, $program has $cases',
  ({ program, cases }) => {
    expect(select(casesIn(program), cases).length).toBeGreaterThan(0);
  },
);
