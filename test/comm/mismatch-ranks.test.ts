/** As mismatch.test.ts and given-away.test.ts, on processes and threads, and where memory cannot be shared. */
import { describe, expect, test } from 'vitest';
import { MISMATCHES, missing } from '../ranks/support/mismatches.ts';
import { RANK_KINDS, runRanks } from '../support/ranks.ts';

interface Done {
  readonly endings: Readonly<Record<string, string>>;
  readonly givenAway: { readonly wrong: readonly string[]; readonly ended: number };
}

describe('ranks that call different collectives are told', () => {
  for (const kind of RANK_KINDS) {
    for (const env of [{}, { ONESIDED_DEBUG: 'requests' }]) {
      const how = 'ONESIDED_DEBUG' in env ? `${kind}, without shared memory` : kind;
      test(how, async () => {
        const ranks = await runRanks<Done>('comm-mismatch', { kind, size: 4, env: env as Record<string, string> });
        for (const mismatch of MISMATCHES) {
          const endings = ranks.map(({ endings }) => endings[mismatch.name]);
          expect(missing(mismatch, endings), mismatch.name).toEqual([]);
        }
        for (const { givenAway } of ranks) {
          expect(givenAway.wrong).toEqual([]);
          expect(givenAway.ended).toBeGreaterThan(30);
        }
      });
    }
  }
});
