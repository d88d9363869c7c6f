/** Runs the five algorithms of Martin and Tiskin (1999, section 3), on a flat machine or on two levels. */
import { type Communicator, Op } from 'onesided';
import type { Algorithm } from 'onesided/bsp/model';
import type { Machine } from '../patterns/machine.ts';
import { cube, diamond } from './dags.ts';
import { Levels, type LevelsOptions } from './levels.ts';
import { type Measured, median } from './measured.ts';
import { matrixMatrix, matrixVector } from './products.ts';
import { sampleSort } from './sample-sort.ts';

/** @returns what says how much is wrong, for when the time has been taken */
type Program = (levels: Levels, n: number) => Promise<() => number>;

const PROGRAMS = {
  'diamond DAG': diamond,
  'cube DAG': cube,
  'matrix × vector': matrixVector,
  'matrix × matrix': matrixMatrix,
  'sort by regular sampling': sampleSort,
} as const satisfies Record<Algorithm, Program>;

/** Operations of one process, as the programs charge them. */
const OPERATIONS: Readonly<Record<Algorithm, (n: number) => number>> = {
  'diamond DAG': (n) => 3 * n ** 2,
  'cube DAG': (n) => 5 * n ** 3,
  'matrix × vector': (n) => 2 * n ** 2,
  'matrix × matrix': (n) => 2 * n ** 3,
  'sort by regular sampling': (n) => n * Math.log2(n),
};

export interface TwoLevelsOptions extends LevelsOptions {
  readonly algorithm: Algorithm;
  readonly n: number;
  readonly samples: number;
}

export interface TwoLevelsResult extends Measured {
  readonly algorithm: Algorithm;
  readonly n: number;
  readonly levels: 'flat' | 'two';
  readonly units: number;
}

/** Collective. Errors: `RangeError` where n and the processes do not fit. */
export async function twoLevels(
  world: Communicator,
  options: TwoLevelsOptions,
  machine: Machine,
): Promise<TwoLevelsResult> {
  const { algorithm, n, samples, ...given } = options;
  const levels = await Levels.begin(world, given, machine);
  const times = new Float64Array(samples);
  const errors = new Float64Array(1);
  for (let sample = -1; sample < samples; sample++) {
    await levels.sync();
    const began = machine.now();
    const wrong = await PROGRAMS[algorithm](levels, n);
    if (sample >= 0) times[sample] = machine.now() - began;
    errors[0] += wrong();
  }
  const longest = new Float64Array(samples);
  await world.allreduce(times, longest, Op.MAX);
  const all = new Float64Array(1);
  await world.allreduce(errors, all, Op.SUM);
  await levels.bsp.end();
  const took = median([...longest]);
  const { q } = levels;
  return {
    ...{ algorithm, n, levels: given.levels, units: q, processes: world.size, microseconds: took },
    ...{ mflops: OPERATIONS[algorithm](n) / took, errors: all[0] },
  };
}
