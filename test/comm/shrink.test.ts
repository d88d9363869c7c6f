/** Ranks that go on when others have failed: `shrink`, `agree`, `failed`, and `onesided run --keep-going`. */
import { describe, expect, it } from 'vitest';
import { followRanks, RANK_KINDS, seedOfRun } from '../support/ranks.ts';

/** By requests, messages take the place of words in shared memory. */
const RUNS = RANK_KINDS.flatMap((kind) =>
  ['', 'requests'].map((debug) => ({ kind, env: { ONESIDED_DEBUG: debug }, how: debug && ', by requests' })),
);
const JOBS = Number(process.env['ONESIDED_TEST_SHRINKS'] ?? 6);

interface Said {
  readonly ranks: readonly number[];
}

describe.each(RUNS)('$kind that go on$how', ({ kind, env }) => {
  it('without a rank that has died, and end well', async () => {
    const { lines, exitCode, complaints } = await followRanks('shrink-calls', {
      kind,
      env,
      size: 4,
      launch: ['--keep-going'],
    });
    expect(exitCode, complaints).toBe(0);
    expect(lines.map((of) => of.length)).toEqual([1, 0, 1, 1]);
    expect(complaints).toMatch(
      /^onesided: the job went on without a rank: rank 1 (was killed by SIGKILL|exited with)/m,
    );
  });

  it('end the job as before where it was not told to go on', async () => {
    const { exitCode } = await followRanks('shrink-calls', { kind, env, size: 4, launch: ['--grace', '0'] });
    expect(exitCode).toBe(kind === 'processes' ? 137 : 7);
  });

  it('while ranks die one after the other, also in the middle of it', { timeout: 60_000 + 30_000 * JOBS }, async () => {
    const seed = seedOfRun();
    for (let job = 0; job < JOBS; job++) {
      const size = 3 + (job % 4);
      const living = 1 + (job % 2);
      const { lines, exitCode, complaints } = await followRanks('shrink', {
        kind,
        env,
        size,
        args: [String(seed + job), String(living)],
        launch: ['--keep-going'],
      });
      expect(exitCode, `seed ${seed + job}: ${complaints}`).toBe(0);
      const said = lines.flat() as Said[];
      expect(said).toHaveLength(living);
      for (const { ranks } of said) expect(ranks).toEqual(said[0].ranks);
      expect(said[0].ranks).toHaveLength(living);
    }
  });
});
