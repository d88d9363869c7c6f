import { describe, expect, test } from 'vitest';
import { casesOf } from '../support/gate.ts';
import { RANK_KINDS, runRanks, seedOfRun } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();

describe('wrong arguments are refused, nothing is written, and windows go on working', () => {
  const all = [
    ['processes', 1],
    ['processes', 2],
    ['threads', 2],
  ] as const;
  for (const [kind, size] of casesOf<(typeof all)[number]>(all, ([kind, size]) => kind === 'processes' && size === 2)) {
    if (!RANK_KINDS.includes(kind)) continue;
    test(`on ${size} ranks as ${kind}`, async () => {
      const ranks = await runRanks<Done>('window-arguments', { kind, size, args: [`--seed=${seed}`] });
      for (const { cases } of ranks) expect(cases).toContain('after finalize');
    });
  }
});
