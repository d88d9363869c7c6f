import { describe, expect, test } from 'vitest';
import { RANK_KINDS, runRanks, seedOfRun } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();

describe('wrong arguments are refused, nothing is written, and windows go on working', () => {
  for (const [kind, size] of [
    ['processes', 1],
    ['processes', 2],
    ['threads', 2],
  ] as const) {
    if (!RANK_KINDS.includes(kind)) continue;
    test(`on ${size} ranks as ${kind}`, async () => {
      const ranks = await runRanks<Done>('window-arguments', { kind, size, args: [`--seed=${seed}`] });
      for (const { cases } of ranks) expect(cases).toContain('after finalize');
    });
  }
});
