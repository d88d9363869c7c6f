/**
 * Windows where memory cannot be shared: the ways that they take on a device across a network, on the emulator, which
 * then claims no more than a device can do.
 */
import { describe, expect, test } from 'vitest';
import { RANK_KINDS, runRanks } from '../support/ranks.ts';

interface Done {
  readonly cases: readonly string[];
}

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
      test(`${program}, on four ranks as ${kind} of which two each are neighbours`, async () => {
        const env = { ONESIDED_DEBUG: 'requests,neighbours' };
        const ranks = await runRanks<Done>(program, { kind, size: 4, env, args: [`--matching=${matching}`] });
        for (const { cases } of ranks) expect(cases.length).toBeGreaterThan(1);
      });
    }
  }

  for (const [program, matching, sizes] of PROGRAMS) {
    for (const kind of RANK_KINDS) {
      for (const size of kind === 'threads' ? sizes.slice(0, 1) : sizes) {
        test(`${program}, on ${size} ranks as ${kind}`, async () => {
          const env = { ONESIDED_DEBUG: 'requests' };
          const ranks = await runRanks<Done>(program, { kind, size, env, args: [`--matching=${matching}`] });
          for (const { cases } of ranks) expect(cases.length).toBeGreaterThan(1);
        });
      }
    }
  }
});
