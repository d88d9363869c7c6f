/**
 * The five algorithms of the BSP2 paper (Martin and Tiskin 1999), flat and on two levels, verified: see
 * bench/bsp/two-levels.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/bsp-two-levels.js -- [--algorithm diamond|cube|vector|matrix|sort]
 *     [--n 256] [--levels two|flat] [--unit 0] [--placement random|in-order] [--samples 3] [--mflops 1000]
 *     [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--unit`: processes of a unit; 0: those of a host, or of a fabric's node. `--placement`: of a flat program's
 * processes on the nodes. `--mflops`: what the arithmetic of a process is charged at on a modelled fabric. The cube and
 * the vector need squares of units and of processes in each, the matrix cubes.
 */
import type { Algorithm } from 'onesided/bsp/model';
import type { LevelsOptions } from '../bsp/levels.ts';
import { twoLevels } from '../bsp/two-levels.ts';
import { program } from '../patterns/program.ts';

const ALGORITHMS = {
  diamond: 'diamond DAG',
  cube: 'cube DAG',
  vector: 'matrix × vector',
  matrix: 'matrix × matrix',
  sort: 'sort by regular sampling',
} as const satisfies Record<string, Algorithm>;

await program(
  {
    numbers: { n: [256, 1, 2 ** 26], unit: [0, 0, 65_536], samples: [3, 1, 1e6], mflops: [1000, 1, 1e6] },
    words: { algorithm: Object.keys(ALGORITHMS), levels: ['two', 'flat'], placement: ['random', 'in-order'] },
    hints: [],
  },
  ({ number, word }) => ({
    ...number,
    algorithm: ALGORITHMS[word.algorithm as keyof typeof ALGORITHMS],
    levels: word.levels as LevelsOptions['levels'],
    placement: word.placement as LevelsOptions['placement'],
  }),
  twoLevels,
  ({ algorithm, n, levels, units, processes, microseconds, mflops, errors }) =>
    `${algorithm}, n = ${n}, ` +
    `${levels === 'two' ? `${units} units of ${processes / units} processes` : `${processes} processes, flat`}: ` +
    `${microseconds.toFixed(1)} µs, ${mflops.toFixed(0)} ` +
    `Mflop/s${errors === 0 ? ', as one process' : `, ${errors} elements WRONG`}`,
);
