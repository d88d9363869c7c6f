/** MPI's chapter on communication where layouts go by each of the schemes (hint `noncontiguous`), as on a device. */
import { describe } from 'vitest';
import { NONCONTIGUOUS_NAMES } from '../ranks/support/kinds.ts';
import { RANK_KINDS } from '../support/ranks.ts';
import { testChapter } from './chapter.ts';

for (const noncontiguous of NONCONTIGUOUS_NAMES) {
  for (const kind of RANK_KINDS) {
    const name = `requests-${noncontiguous}-${kind}`;
    const env = { ONESIDED_DEBUG: 'requests' };
    describe(noncontiguous, () =>
      testChapter('communication', [{ name, kind, sizes: [3], env, info: { noncontiguous } }]),
    );
  }
}
