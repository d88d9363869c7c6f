/**
 * The inner product of two vectors as a bulk-synchronous program, verified: see bench/bsp/inner-product.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/bsp-inner-product.js -- [--n 1000000] [--samples 10] [--mflops 1000]
 *     [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--mflops`: what the arithmetic of a process is charged at on a modelled fabric.
 */
import { innerProduct } from '../bsp/inner-product.ts';
import { program } from '../patterns/program.ts';

await program(
  { numbers: { n: [1e6, 1, 1e8], samples: [10, 1, 1e6], mflops: [1000, 1, 1e6] }, hints: [] },
  ({ number }) => number,
  innerProduct,
  ({ n, processes, microseconds, mflops, errors }) =>
    `two vectors of ${n} on ${processes} processes: ${microseconds.toFixed(1)} µs, ` +
    `${mflops.toFixed(0)} Mflop/s${errors === 0 ? ', as one process' : ', WRONG'}`,
);
