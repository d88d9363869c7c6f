/**
 * LU decomposition with partial pivoting as a bulk-synchronous program, verified: see bench/bsp/lu.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/bsp-lu.js -- [--n 512] [--samples 1] [--mflops 1000]
 *     [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--mflops`: what the arithmetic of a process is charged at on a modelled fabric.
 */
import { lu } from '../bsp/lu.ts';
import { program } from '../patterns/program.ts';

await program(
  { numbers: { n: [512, 1, 8192], samples: [1, 1, 1000], mflops: [1000, 1, 1e6] }, hints: [] },
  ({ number }) => number,
  lu,
  ({ n, grid, microseconds, mflops, errors }) =>
    `${n} × ${n} on ${grid.join(' × ')} processes: ${(microseconds / 1e3).toFixed(2)} ms, ` +
    `${mflops.toFixed(0)} Mflop/s${errors === 0 ? ', as one process' : `, ${errors} elements WRONG`}`,
);
