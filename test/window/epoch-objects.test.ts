import { describe, expect, test } from 'vitest';
import { rankRuns, runRanks } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

describe('epochs as objects end with their blocks', () => {
  for (const { kind, size } of rankRuns([1, 2, 4])) {
    test(`on ${size} ranks as ${kind}`, async () => {
      const ranks = await runRanks<Done>('window-epoch-objects', { kind, size });
      for (const { cases } of ranks) expect(cases).toContain('general: remote-notify');
    });
  }
});
