/** As mismatch.test.ts and given-away.test.ts, on processes and threads, and where memory cannot be shared. */
import { beforeAll, describe, expect, test } from 'vitest';
import { BARRIER_MISMATCHES, FENCE_MISMATCHES, MISMATCHES, missing } from '../ranks/support/mismatches.ts';
import { RANK_KINDS, runRanks } from '../support/ranks.ts';

interface Done {
  readonly endings: Readonly<Record<string, string>>;
  readonly givenAway: { readonly wrong: readonly string[]; readonly ended: number };
}

const SIZE = 4;

describe('ranks that call different collectives are told', () => {
  for (const kind of RANK_KINDS) {
    for (const env of [{}, { ONESIDED_DEBUG: 'requests' }]) {
      const how = 'ONESIDED_DEBUG' in env ? `${kind}, without shared memory` : kind;
      describe(how, () => {
        let ranks: readonly Done[] = [];
        beforeAll(async () => {
          ranks = await runRanks('comm-mismatch', { kind, size: SIZE, env: env as Record<string, string> });
        });
        for (const mismatch of [...MISMATCHES, ...BARRIER_MISMATCHES, ...FENCE_MISMATCHES].filter(
          ({ size }) => size <= SIZE,
        )) {
          test(mismatch.name, () => {
            const endings = ranks.map(({ endings }) => endings[mismatch.name]);
            expect(endings).toHaveLength(SIZE);
            expect(missing(mismatch, endings)).toEqual([]);
          });
        }
        test('a buffer that was given away', () => {
          expect(ranks.map(({ givenAway }) => givenAway.wrong)).toEqual(Array(SIZE).fill([]));
          for (const { givenAway } of ranks) expect(givenAway.ended).toBeGreaterThan(30);
        });
      });
    }
  }
});
