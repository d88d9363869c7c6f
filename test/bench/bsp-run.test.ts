/** The bulk-synchronous programs of bench/bsp/ as a user runs them: on processes and threads, small, verified. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { reportIn } from '../../bench/programs.ts';
import { onesided } from '../launcher/command.ts';
import { RANK_KINDS } from '../support/ranks.ts';

const RUNS: readonly (readonly [program: string, ranks: number, args: readonly string[], said: RegExp])[] = [
  ['bsp-fft', 2, ['--log2n=12', '--samples=2'], /4096 complex numbers on 2 processes: .* differs by [0-9.]+e-1[5-9] /],
  ['bsp-lu', 4, ['--n=48'], /48 × 48 on 2 × 2 processes: .*, as one process/],
  ['bsp-inner-product', 3, ['--n=10000', '--samples=2'], /on 3 processes: .*, as one process/],
  ['bsp-two-levels', 4, ['--algorithm=diamond', '--n=32', '--unit=2'], /2 units of 2 processes: .*, as one process/],
  [
    'bsp-two-levels',
    4,
    ['--algorithm=cube', '--n=16', '--unit=4', '--form=promise'],
    /1 units of 4 .*, as one process/,
  ],
  ['bsp-two-levels', 4, ['--algorithm=vector', '--n=32', '--levels=flat'], /4 processes, flat: .*, as one process/],
  ['bsp-two-levels', 4, ['--algorithm=sort', '--n=4096', '--unit=2'], /2 units of 2 processes: .*, as one process/],
];

describe.each(RANK_KINDS)('as %s', (kind) => {
  it.each(['bsp-l/2', 'bsp-g/2', 'bsp-g-put/2', 'bsp-fft/2^18'])(
    'the row %s of the benchmark is measured, and right',
    async (row) => {
      const path = fileURLToPath(new URL('../../build/programs/bench/ranks/bsp.js', import.meta.url));
      const run = await onesided('run', '-n', '2', '--ranks', kind, '--timeout', '100', path, '--', row, '2', '1');
      expect(run.code, run.stderr).toBe(0);
      expect(reportIn(run.stdout).samples).toHaveLength(2);
    },
  );

  it.each(RUNS)('%s on %i ranks %j', async (program, ranks, args, said) => {
    const path = fileURLToPath(new URL(`../../build/programs/bench/ranks/${program}.js`, import.meta.url));
    const run = await onesided('run', '-n', String(ranks), '--ranks', kind, '--timeout', '100', path, '--', ...args);
    expect(run.code, run.stderr).toBe(0);
    expect(run.stdout).toMatch(said);
  });
});
