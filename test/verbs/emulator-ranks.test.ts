/** The direct emulator between ranks that are processes and threads: what one thread cannot show. */
import { describe, expect, test } from 'vitest';
import { casesOf, IN_GATE } from '../support/gate.ts';
import { RANK_KINDS, runRanks } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

const MESSAGES = IN_GATE ? 20_000 : 100_000;

describe.each(RANK_KINDS)('queue pairs between %s', (kind) => {
  for (const size of casesOf([1, 2, 3], (size) => size === 2)) {
    test(`of ${size} ranks do what the verbs say`, async () => {
      for (const { cases } of await runRanks<Done>('verbs-pairs', { kind, size })) expect(cases.length).toBe(8);
    });
  }

  test(`four producers make ${MESSAGES} completions each in one queue, and nothing is lost, doubled or mixed`, async () => {
    const args = [`--messages=${MESSAGES}`, '--updates=10000'];
    for (const { cases } of await runRanks<Done>('verbs-stress', { kind, size: 5, args })) {
      expect(cases.length).toBe(4);
    }
  });
});
