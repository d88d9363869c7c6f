/**
 * Halo exchange with computation: see bench/patterns/halo.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/halo.js -- [--neighbours 4|8] [--bytes 65536] [--compute 100] [--steps
 *   200]
 *     [--fence SCHEME] [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--compute` is in microseconds a step; `--fence` is the window's hint of that name.
 */
import { halo } from '../patterns/halo.ts';
import { inWords, program } from '../patterns/program.ts';

await program(
  {
    numbers: { bytes: [65536, 4, 2 ** 26], compute: [100, 0, 1e9], steps: [200, 1, 1e7] },
    words: { neighbours: ['4', '8'] },
    hints: ['fence'],
  },
  ({ number: { bytes, compute, steps }, word: { neighbours }, info }) => ({
    neighbours: neighbours === '4' ? (4 as const) : (8 as const),
    bytes: inWords(bytes),
    compute,
    steps,
    info,
  }),
  halo,
  ({ neighbours, grid, bytes, compute, microseconds }) =>
    `halo of ${neighbours} neighbours on ${grid.join(' × ')} ranks, ${bytes} bytes each: ` +
    `${microseconds.toFixed(1)} µs a step, ${compute} of them computing`,
);
