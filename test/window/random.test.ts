import { describe } from 'vitest';
import { NONCONTIGUOUS_NAMES } from '../ranks/support/kinds.ts';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, seedOfRun } from '../support/ranks.ts';

const seed = seedOfRun();
const args = [`--seed=${seed}`, '--programs=6'];

describe('random programs of epochs end as a sequential model does', () => {
  for (const [kind, size] of [
    ['processes', 2],
    ['processes', 5],
    ['threads', 3],
  ] as const) {
    if (RANK_KINDS.includes(kind))
      describeCases(`${size} ranks as ${kind}, seed ${seed}`, 'window-random', { kind, size, args });
  }
});

describe('and where memory is not shared, with schemes drawn at random', () => {
  for (const [kind, size, debug] of [
    ['processes', 3, 'requests'],
    ['processes', 4, 'requests,neighbours'],
    ['threads', 2, 'requests'],
  ] as const) {
    if (!RANK_KINDS.includes(kind)) continue;
    for (const name of NONCONTIGUOUS_NAMES) {
      describeCases(`layouts by ${name}: ${size} ranks as ${kind}, ${debug}, seed ${seed}`, 'window-random', {
        ...{ kind, size },
        args: [`--seed=${seed}`, '--programs=3', '--by-requests', `--noncontiguous=${name}`],
        env: { ONESIDED_DEBUG: debug },
      });
    }
  }
});
