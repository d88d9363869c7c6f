import { describe, expect, test } from 'vitest';
import { rankRuns, runRanks } from '../support/ranks.ts';

const env = { ONESIDED_DEBUG: 'epochs' };

describe('ONESIDED_DEBUG=epochs: messages say where each open epoch was opened', () => {
  for (const { kind, size } of rankRuns([2])) {
    test(`on ${size} ranks as ${kind}`, async () => {
      const ranks = await runRanks<{ cases: readonly string[] }>('window-openings', { kind, size, env });
      for (const { cases } of ranks) expect(cases).toEqual(['locks', 'calls']);
    });
  }
});
