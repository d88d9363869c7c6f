import { describe, expect, test } from 'vitest';
import { rankRuns, runRanks } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

describe('start, complete, post and wait: what they allow, what is visible after them, and what they refuse', () => {
  for (const { kind, size } of rankRuns([1, 2, 3, 4, 7])) {
    test(`on ${size} ranks as ${kind}`, async () => {
      const ranks = await runRanks<Done>('window-pscw', { kind, size });
      for (const { cases } of ranks) expect(cases).toContain('wrongArguments: remote-notify');
    });
  }
});
