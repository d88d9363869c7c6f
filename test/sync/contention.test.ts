import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, seedOfRun } from '../support/ranks.ts';

const args = [`--seed=${seedOfRun()}`];

describe('many ranks want the same thing at the same time', () => {
  for (const [kind, size] of [
    ['processes', 3],
    ['processes', 8],
    ['threads', 8],
  ] as const) {
    if (RANK_KINDS.includes(kind)) describeCases(`${size} ranks as ${kind}`, 'sync-contention', { kind, size, args });
  }
});
