import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { rankRuns } from '../support/ranks.ts';

describe('epochs as objects end with their blocks', () => {
  for (const { kind, size } of rankRuns([1, 2, 4]))
    describeCases(`on ${size} ranks as ${kind}`, 'window-epoch-objects', { kind, size });
});
