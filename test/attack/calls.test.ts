/**
 * Hostile calls by seed, on all kinds of ranks: test/ranks/attack-calls.ts says which. A few hundred in the gate;
 * `ONESIDED_ATTACK_CALLS=10000` for that many at each rank of each kind.
 */
import { describe, expect, test } from 'vitest';
import { IN_GATE } from '../support/gate.ts';
import { RANK_KINDS, runRanks, seedOfRun } from '../support/ranks.ts';

const seed = seedOfRun();
const count = Number(process.env['ONESIDED_ATTACK_CALLS'] ?? (IN_GATE ? 200 : 600));
const KINDS = [
  ...RANK_KINDS.map((kind) => ({ kind, env: {} })),
  { kind: RANK_KINDS[0], env: { ONESIDED_DEBUG: 'requests' } },
];

describe('hostile calls', () => {
  test.each(KINDS)(
    'do what their arrays really are or fail with an error of the library: $kind $env',
    async (how) => {
      const args = [`--seed=${seed}`, `--count=${count}`];
      // The timeout is for hangs: a thousand calls take some two seconds.
      const ranks = await runRanks<{ calls: number; refused: number }>('attack-calls', {
        ...how,
        size: 3,
        args,
        timeout: 120 + count / 10,
      });
      for (const { calls, refused } of ranks) {
        expect(calls).toBeGreaterThanOrEqual(count);
        expect(refused).toBeGreaterThan(count / 10);
      }
    },
    180_000 + 120 * count,
  );
});
