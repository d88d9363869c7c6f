import { describe, expect, test } from 'vitest';
import { casesOf } from '../support/gate.ts';
import { RANK_KINDS, rankRuns, runRanks, seedOfRun } from '../support/ranks.ts';

/** Cases by name, as `runCases` prints them. */
interface Done {
  readonly cases: readonly string[];
}

const seed = seedOfRun();

describe('what put, get, accumulate, fetchAndOp and compareAndSwap move', () => {
  for (const { kind, size } of casesOf(rankRuns([1, 2, 3, 7]), ({ kind }) => kind === RANK_KINDS[0])) {
    test(`${size} ranks as ${kind} write and read what the model says`, async () => {
      const ranks = await runRanks<Done>('window-transfer', { kind, size, args: [`--seed=${seed}`] });
      // Six kinds of calls on three kinds of windows.
      for (const { cases } of ranks) expect(cases.length).toBe(18);
    });
  }
});
