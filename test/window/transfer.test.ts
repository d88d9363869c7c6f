import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { casesOf } from '../support/gate.ts';
import { RANK_KINDS, rankRuns, seedOfRun } from '../support/ranks.ts';

const args = [`--seed=${seedOfRun()}`];

describe('what put, get, accumulate, fetchAndOp and compareAndSwap move is what the model says', () => {
  for (const { kind, size } of casesOf(rankRuns([1, 2, 3, 7]), ({ kind }) => kind === RANK_KINDS[0]))
    describeCases(`on ${size} ranks as ${kind}`, 'window-transfer', { kind, size, args });
});
