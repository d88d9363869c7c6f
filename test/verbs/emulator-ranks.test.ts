/** The direct emulator between ranks that are processes and threads: what one thread cannot show. */
import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { casesOf, IN_GATE } from '../support/gate.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const MESSAGES = IN_GATE ? 20_000 : 100_000;

describe.each(RANK_KINDS)('queue pairs between %s', (kind) => {
  for (const size of casesOf([1, 2, 3], (size) => size === 2))
    describeCases(`of ${size} ranks do what the verbs say`, 'verbs-pairs', { kind, size });

  const args = [`--messages=${MESSAGES}`, '--updates=10000'];
  const title = `four producers make ${MESSAGES} completions each in one queue, and nothing is lost, doubled or mixed`;
  describeCases(title, 'verbs-stress', { kind, size: 5, args });
});
