/**
 * Windows where memory cannot be shared: the ways that they take on a device across a network, on the emulator, which
 * then claims no more than a device can do.
 */
import { describe } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS, type RanksOptions } from '../support/ranks.ts';

const NOT_IMMEDIATE = { but: { fence: ['immediate'] } } as const;

/** Programs, which of their cases, and on how many ranks: on threads, the first number of them. */
const PROGRAMS: readonly { program: string; cases?: RanksOptions['cases']; sizes: readonly number[] }[] = [
  { program: 'window-by-requests', sizes: [1, 2, 4] },
  // More ranks than those of which each tells each other one.
  { program: 'window-by-requests', cases: { about: ['fences'] }, sizes: [9] },
  { program: 'sync-contention', cases: NOT_IMMEDIATE, sizes: [2] },
  { program: 'sync-contention', cases: { about: ['exclusive', 'giving up'], ...NOT_IMMEDIATE }, sizes: [5] },
  { program: 'window-pscw', cases: { fence: ['remote-notify'] }, sizes: [3] },
  { program: 'window-transfer', cases: { flavor: ['allocate'], fence: ['remote-notify'] }, sizes: [3] },
  { program: 'window-float-accumulate', cases: { about: ['allocated'] }, sizes: [3] },
  { program: 'window-requests', cases: NOT_IMMEDIATE, sizes: [3] },
];

/** Those in which it matters that neighbours put and get by loads and stores. */
const MIXED = [
  'window-by-requests',
  'window-transfer',
  'window-requests',
  'window-float-accumulate',
  'sync-contention',
];

describe('by requests', () => {
  // As if each two ranks were on a host of their own.
  for (const { program, cases } of PROGRAMS.filter((one) => MIXED.includes(one.program))) {
    for (const kind of RANK_KINDS) {
      const env = { ONESIDED_DEBUG: 'requests,neighbours' };
      const title = `${program}, on four ranks as ${kind} of which two each are neighbours`;
      describeCases(title, program, { kind, size: 4, env, cases });
    }
  }

  for (const { program, cases, sizes } of PROGRAMS) {
    for (const kind of RANK_KINDS) {
      for (const size of kind === 'threads' ? sizes.slice(0, 1) : sizes) {
        const env = { ONESIDED_DEBUG: 'requests' };
        describeCases(`${program}, on ${size} ranks as ${kind}`, program, { kind, size, env, cases });
      }
    }
  }
});
