import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, seedOfRun } from '../support/ranks.ts';

describe('long messages', () => {
  for (const [kind, size] of [
    ['processes', 2],
    ['processes', 4],
    ['threads', 3],
  ] as const) {
    if (!RANK_KINDS.includes(kind)) continue;
    const args = [`--seed=${seedOfRun()}`, `--kind=${kind}`];
    describeCases(`among ${size} ranks as ${kind}`, 'comm-long', { kind, size, args });
  }
});
