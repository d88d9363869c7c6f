import { describe, expect, test } from 'vitest';
import { RANK_KINDS, rankRuns, runRanks, seedOfRun } from '../support/ranks.ts';

const env = { ONESIDED_DEBUG: 'conflicts' };

describe('accesses that overlap in one epoch', () => {
  for (const { kind, size } of rankRuns([1, 2, 3])) {
    test(`on ${size} ranks as ${kind}`, async () => {
      const ranks = await runRanks<{ cases: readonly string[] }>('window-conflicts', { kind, size, env });
      for (const { cases } of ranks) expect(cases).toEqual(['pairs', 'ends', 'requests', 'layouts']);
    });
  }

  // Random programs keep to MPI's rules: none of their accesses may be taken for a conflict.
  test.each(RANK_KINDS)('random programs on 3 ranks as %s', async (kind) => {
    const args = [`--seed=${seedOfRun()}`, '--programs=8'];
    await runRanks('window-random', { kind, size: 3, env, args });
  });
});
