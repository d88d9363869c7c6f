import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { rankRuns } from '../support/ranks.ts';

describe('shared windows, hints and names', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4, 7]))
    describeCases(`on ${size} ranks as ${kind}`, 'window-shared', { kind, size });
});
