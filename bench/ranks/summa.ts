/**
 * The dense matrix product on a grid of ranks, by non-contiguous gets, verified: see bench/summa/summa.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/summa.js -- [--m 512] [--n 512] [--k 512] [--panel 64] [--samples 3]
 *     [--gflops 1] [--noncontiguous SCHEME] [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--gflops`: what the arithmetic of a rank is charged at on a modelled fabric. `--noncontiguous` is the windows' hint
 * of that name.
 */
import { program } from '../patterns/program.ts';
import { summa } from '../summa/summa.ts';

await program(
  {
    numbers: {
      ...{ m: [512, 1, 8192], n: [512, 1, 8192], k: [512, 1, 8192] },
      ...{ panel: [64, 1, 8192], samples: [3, 1, 1000], gflops: [1, 1, 1e6] },
    },
    hints: ['noncontiguous'],
  },
  ({ number, info }) => ({ ...number, info }),
  summa,
  ({ m, n, k, grid, panel, microseconds, gflops, errors }) =>
    `${m} × ${k} times ${k} × ${n} on ${grid.join(' × ')} ranks, panels of ${panel}: ` +
    `${(microseconds / 1e3).toFixed(2)} ms, ${gflops.toFixed(2)} ` +
    `GFLOP/s${errors === 0 ? ', as the direct product' : ''}`,
);
