import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, seedOfRun } from '../support/ranks.ts';

const seed = seedOfRun();
const args = [`--seed=${seed}`, '--programs=6'];

describe('random programs of epochs end as a sequential model does', () => {
  for (const [kind, size] of [
    ['processes', 2],
    ['processes', 5],
    ['threads', 3],
  ] as const) {
    if (RANK_KINDS.includes(kind))
      describeCases(`${size} ranks as ${kind}, seed ${seed}`, 'window-random', { kind, size, args });
  }
});
