import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, rankRuns, seedOfRun } from '../support/ranks.ts';

describe('arrays of operations that are not complete', () => {
  for (const words of ['poison', 'poison,conflicts', 'poison,requests']) {
    const env = { ONESIDED_DEBUG: words };
    for (const { kind, size } of rankRuns([1, 2, 3]))
      describeCases(`${words}, on ${size} ranks as ${kind}`, 'window-poison', { kind, size, env });

    if (words === 'poison,requests') continue;
    // Random programs keep to MPI's rules: nothing of theirs may be told of, and their results are right.
    for (const kind of RANK_KINDS) {
      const args = [`--seed=${seedOfRun()}`, '--programs=8'];
      describeCases(`${words}: random programs on 3 ranks as ${kind}`, 'window-random', { kind, size: 3, env, args });
    }
  }
});
