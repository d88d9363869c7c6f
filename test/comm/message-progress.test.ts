/** Messages leave a rank that makes one-sided calls only, and never sleeps. */
import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { IN_GATE } from '../support/gate.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const WAYS: Readonly<Record<string, Record<string, string>>> = {
  '': {},
  ' by requests': { ONESIDED_DEBUG: 'requests' },
};

describe('messages leave while their sender repeats calls that are complete at once', () => {
  for (const kind of IN_GATE ? RANK_KINDS.slice(0, 1) : RANK_KINDS) {
    for (const [way, env] of Object.entries(WAYS)) {
      describeCases(`among 3 ranks as ${kind}${way}`, 'comm-message-progress', { kind, size: 3, env });
    }
  }
});
