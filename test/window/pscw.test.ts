import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { rankRuns } from '../support/ranks.ts';

describe('start, complete, post and wait: what they allow, what is visible after them, and what they refuse', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4, 7]))
    describeCases(`on ${size} ranks as ${kind}`, 'window-pscw', { kind, size });
});
