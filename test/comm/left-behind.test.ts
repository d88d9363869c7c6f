/** Barriers that were left, of ranks whose event loop sleeps for something else. */
import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS } from '../support/ranks.ts';

describe('a rank that has left a barrier holds up nobody', () => {
  for (const kind of RANK_KINDS) {
    for (const barrier of ['words', 'messages', 'waits'])
      describeCases(`among 3 ranks as ${kind}, barriers by ${barrier}`, 'comm-left-behind', {
        ...{ kind, size: 3 },
        env: { ONESIDED_BARRIER: barrier },
      });
  }
});
