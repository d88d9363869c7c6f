import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { rankRuns } from '../support/ranks.ts';

const env = { ONESIDED_DEBUG: 'epochs' };

describe('ONESIDED_DEBUG=epochs: messages say where each open epoch was opened', () => {
  for (const { kind, size } of rankRuns([2]))
    describeCases(`on ${size} ranks as ${kind}`, 'window-openings', { kind, size, env });
});
