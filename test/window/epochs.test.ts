import { describe, expect, test } from 'vitest';
import { rankRuns, runRanks } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

describe('epochs: what they allow, what is visible after them, and how waits end early', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4, 7])) {
    test(`on ${size} ranks as ${kind}`, async () => {
      const ranks = await runRanks<Done>('window-epochs', { kind, size });
      for (const { cases } of ranks) expect(cases).toContain('own part: remote-notify');
    });
  }
});
