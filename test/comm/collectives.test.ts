import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, seedOfRun } from '../support/ranks.ts';

const args = [`--seed=${seedOfRun()}`];

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
    if (RANK_KINDS.includes(kind))
      describeCases(`among ${size} ranks as ${kind}`, 'comm-collectives', { kind, size, args });
  }
});
