/**
 * NAS CG, verified: see bench/nas/cg/cg.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/cg.js -- [--class S|W|A|B] [--style messages|blocking|non-blocking]
 *     [--samples 1] [--warm-ups 0] [--gflops 1] [--form sync|promise] [--json FILE] [--quiet]
 *
 * The number of ranks is a power of two. `--gflops`: what the arithmetic of a rank is charged at on a modelled fabric.
 * The exit code is 1 if NAS' check fails.
 */
import { cg } from '../nas/cg/cg.ts';
import { nasProgram } from '../nas/program.ts';

await nasProgram(
  cg,
  ({ class: name, style, n, grid, iterations, microseconds, zeta, errors }) =>
    `CG, class ${name}, order ${n} on ${grid.join(' × ')} ranks, ${style}: ` +
    `${iterations} iterations in ${(microseconds / 1e3).toFixed(2)} ms; ` +
    `zeta ${zeta.toPrecision(14)}${errors === 0 ? ', verified' : ''}`,
);
