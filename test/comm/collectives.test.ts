import { describe, expect, test } from 'vitest';
import { RANK_KINDS, runRanks, seedOfRun } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();

describe('collectives and messages do what they mean', () => {
  for (const [kind, size] of [
    ['processes', 1],
    ['processes', 2],
    ['processes', 3],
    ['processes', 7],
    ['threads', 2],
    ['threads', 4],
    ['threads', 7],
  ] as const) {
    if (!RANK_KINDS.includes(kind)) continue;
    test(`among ${size} ranks as ${kind}`, async () => {
      const ranks = await runRanks<Done>('comm-collectives', { kind, size, args: [`--seed=${seed}`] });
      for (const { cases } of ranks) expect(cases).toContain('init again');
    });
  }
});
