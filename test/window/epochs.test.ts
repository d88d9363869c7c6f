import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { rankRuns } from '../support/ranks.ts';

describe('epochs: what they allow, what is visible after them, and how waits end early', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4, 7]))
    describeCases(`on ${size} ranks as ${kind}`, 'window-epochs', { kind, size });
});
