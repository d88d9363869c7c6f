import { describe, expect, test } from 'vitest';
import { RANK_KINDS, runRanks, seedOfRun } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();

describe('many ranks want the same thing at the same time', () => {
  for (const [kind, size] of [
    ['processes', 3],
    ['processes', 8],
    ['threads', 8],
  ] as const) {
    if (!RANK_KINDS.includes(kind)) continue;
    test(`${size} ranks as ${kind}`, async () => {
      const ranks = await runRanks<Done>('sync-contention', { kind, size, args: [`--seed=${seed}`] });
      for (const { cases } of ranks) expect(cases).toContain('fences beside locks: remote-notify');
    });
  }
});
