/**
 * Windows where memory cannot be shared: the ways that they take on a device across a network, on the emulator, which
 * then claims no more than a device can do.
 */
import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS } from '../support/ranks.ts';

/** Programs, which of their cases, and on how many ranks. */
const PROGRAMS: readonly [string, string, readonly number[]][] = [
  ['window-by-requests', '', [1, 2, 4]],
  // More ranks than those of which each tells each other one.
  ['window-by-requests', 'fences', [9]],
  ['sync-contention', '^(?!.*immediate)', [2]],
  ['sync-contention', 'exclusive: remote|giving', [5]],
  ['window-pscw', 'remote-notify', [3]],
  ['window-transfer', 'allocate, fence remote-notify', [3]],
  ['window-float-accumulate', 'allocated|least', [3]],
  ['window-requests', '^(?!.*immediate)', [3]],
];

/** Those in which it matters that neighbours put and get by loads and stores. */
const MIXED = ['window-by-requests', 'window-transfer', 'window-requests'];

describe('by requests', () => {
  // As if each two ranks were on a host of their own.
  for (const [program, matching] of PROGRAMS.filter(([name]) => MIXED.includes(name))) {
    for (const kind of RANK_KINDS) {
      const env = { ONESIDED_DEBUG: 'requests,neighbours' };
      const title = `${program}, on four ranks as ${kind} of which two each are neighbours`;
      describeCases(title, program, { kind, size: 4, env, args: [`--matching=${matching}`] });
    }
  }

  for (const [program, matching, sizes] of PROGRAMS) {
    for (const kind of RANK_KINDS) {
      for (const size of kind === 'threads' ? sizes.slice(0, 1) : sizes) {
        const env = { ONESIDED_DEBUG: 'requests' };
        describeCases(`${program}, on ${size} ranks as ${kind}`, program, {
          ...{ kind, size, env },
          args: [`--matching=${matching}`],
        });
      }
    }
  }
});
