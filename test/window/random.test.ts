import { describe, expect, test } from 'vitest';
import { RANK_KINDS, runRanks, seedOfRun } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();

describe('random programs of epochs end as a sequential model does', () => {
  for (const [kind, size] of [
    ['processes', 2],
    ['processes', 5],
    ['threads', 3],
  ] as const) {
    if (!RANK_KINDS.includes(kind)) continue;
    test(`${size} ranks as ${kind}, seed ${seed}`, async () => {
      const ranks = await runRanks<Done>('window-random', { kind, size, args: [`--seed=${seed}`, '--programs=6'] });
      for (const { cases } of ranks) expect(cases.length).toBe(6);
    });
  }
});
