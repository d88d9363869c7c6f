import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { casesOf } from '../support/gate.ts';
import { RANK_KINDS, seedOfRun } from '../support/ranks.ts';

const args = [`--seed=${seedOfRun()}`];

describe('wrong arguments are refused, nothing is written, and windows go on working', () => {
  const all = [
    ['processes', 1],
    ['processes', 2],
    ['threads', 2],
  ] as const;
  for (const [kind, size] of casesOf<(typeof all)[number]>(all, ([kind, size]) => kind === 'processes' && size === 2)) {
    if (RANK_KINDS.includes(kind))
      describeCases(`on ${size} ranks as ${kind}`, 'window-arguments', { kind, size, args });
  }
});
