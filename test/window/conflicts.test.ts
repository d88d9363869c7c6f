import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, rankRuns, seedOfRun } from '../support/ranks.ts';

const env = { ONESIDED_DEBUG: 'conflicts' };

describe('accesses that overlap in one epoch', () => {
  for (const { kind, size } of rankRuns([1, 2, 3]))
    describeCases(`on ${size} ranks as ${kind}`, 'window-conflicts', { kind, size, env });

  // Random programs keep to MPI's rules: none of their accesses may be taken for a conflict.
  for (const kind of RANK_KINDS) {
    const args = [`--seed=${seedOfRun()}`, '--programs=8'];
    describeCases(`random programs on 3 ranks as ${kind}`, 'window-random', { kind, size: 3, env, args });
  }
});
