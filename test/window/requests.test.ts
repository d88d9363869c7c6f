import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { rankRuns } from '../support/ranks.ts';

describe('fetching accumulates, requests, and puts with notification', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4, 7]))
    describeCases(`on ${size} ranks as ${kind}`, 'window-requests', { kind, size });
});
