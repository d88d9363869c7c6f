import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS } from '../support/ranks.ts';

describe('the fast path takes all types of 32 and 64 bits, whatever arrays a program uses', () => {
  for (const kind of RANK_KINDS)
    for (const size of [1, 2]) describeCases(`on ${size} ranks as ${kind}`, 'window-fast-path', { kind, size });
});
