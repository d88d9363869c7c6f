/**
 * Jacobi's iteration as a bulk-synchronous program, predicted and measured, verified: see bench/bsp/jacobi.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/bsp-jacobi.js -- [--n 512] [--iterations 20] [--parts strips|squares]
 *     [--mflops 1000] [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--mflops`: what the arithmetic of a process is charged at on a modelled fabric.
 */
import type { GridParts } from 'onesided/bsp/model';
import { jacobi } from '../bsp/jacobi.ts';
import { program } from '../patterns/program.ts';

await program(
  {
    numbers: { n: [512, 1, 16384], iterations: [20, 1, 1e6], mflops: [1000, 1, 1e6] },
    words: { parts: ['strips', 'squares'] },
    hints: [],
  },
  ({ number, word }) => ({ ...number, parts: word.parts as GridParts }),
  jacobi,
  ({ n, parts, processes, microseconds, predicted, l, g, mflops, errors }) =>
    `${n} × ${n} in ${parts} on ${processes} processes: ${microseconds.toFixed(1)} µs an iteration, ` +
    `predicted ${predicted.toFixed(1)} (l ${l.toFixed(2)} µs, g ${g.toFixed(4)} µs a word, ` +
    `${mflops.toFixed(0)} Mflop/s)${errors === 0 ? ', as one process' : `, ${errors} elements WRONG`}`,
);
