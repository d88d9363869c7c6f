/**
 * Programs with and without a race on tasks: those after RMARaceBench, random ones, and the conformance suite, in which
 * nobody may be accused. `npm run test:races` tries all fabrics and schedules.
 */
import { describe, expect, test } from 'vitest';
import { RACE_CASES } from '../ranks/support/races/all-cases.ts';
import { ALL, onTasks } from './run-program.ts';

interface Tried {
  readonly name: string;
  readonly racy: boolean;
  readonly seed: number;
  readonly found: readonly unknown[];
}

const FABRICS = ALL
  ? ['connectx-16-cores', 'infinihost-64', 'bsp-ib-16', 'myrinet-2000', 'quadrics-elan3', 'ethernet-100-switch']
  : ['connectx-16-cores'];
/** Random schedules of each program. */
const SCHEDULES = ALL ? 10 : 1;

describe.each(FABRICS)('after RMARaceBench, on %s', (fabric) => {
  const tried = onTasks<Tried>('races-tasks', fabric, SCHEDULES);
  test.each(RACE_CASES)('$name, racy: $racy', async ({ name, racy }) => {
    const of = (await tried).filter((one) => one.name === name);
    expect(of).toHaveLength(SCHEDULES);
    for (const { found, seed } of of) {
      if (racy) expect(found, `seed ${seed}`).not.toEqual([]);
      else expect(found, `seed ${seed}`).toEqual([]);
    }
  });
});

test('random programs: no race is found, and one where a synchronization is left out', async () => {
  interface Outcome {
    readonly seed: number;
    readonly kind: string;
    readonly free: number;
    readonly racy: number;
  }
  const first = 1 + (Number(process.env['ONESIDED_SEED'] ?? 1) % 1_000_000);
  const outcomes = await onTasks<Outcome>('races-random', first, ALL ? 1000 : 20);
  expect(outcomes.filter(({ free }) => free !== 0)).toEqual([]);
  const missed = outcomes.filter(({ racy }) => racy === 0);
  expect(missed.length, JSON.stringify(missed)).toBeLessThanOrEqual(outcomes.length / 100);
});

const CONFORMANCE = ALL
  ? [
      '3 1 infinihost-64',
      '4 5 infinihost-64',
      '3 6 connectx-16-cores/2',
      '2 2 ethernet-100-switch',
      '4 9 infinihost-64',
    ]
  : [];

describe.skipIf(!ALL)('the conformance suite', () => {
  test.each(CONFORMANCE)('nobody is accused: %s', async (schedule) => {
    const lines = await onTasks<{ readonly tried?: number }>('races-conformance', ...schedule.split(' '));
    expect(lines.filter(({ tried }) => tried === undefined)).toEqual([]);
    expect(lines.at(-1)!.tried).toBeGreaterThan(300);
  });
});
