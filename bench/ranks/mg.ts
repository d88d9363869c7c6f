/**
 * NAS MG, verified: see bench/nas/mg/mg.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/mg.js -- [--class S|W|A|B] [--style messages|blocking|non-blocking]
 *     [--samples 1] [--warm-ups 0] [--gflops 1] [--form sync|promise] [--json FILE] [--quiet]
 *
 * The number of ranks is a power of two. `--gflops`: what the arithmetic of a rank is charged at on a modelled fabric.
 * The exit code is 1 if NAS' check fails.
 */

import { mg } from '../nas/mg/mg.ts';
import { nasProgram } from '../nas/program.ts';

await nasProgram(
  mg,
  ({ class: name, style, n, grid, iterations, microseconds, norm, errors }) =>
    `MG, class ${name}, ${n}³ on ${grid.join(' × ')} ranks, ${style}: ` +
    `${iterations} iterations in ${(microseconds / 1e3).toFixed(2)} ms; ` +
    `norm ${norm.toExponential(12)}${errors === 0 ? ', verified' : ''}`,
);
