/**
 * Measures a machine as bsp_bench does (Bisseling 2004; BSP-IB §4.1): the speed of a processor by adding vectors of a
 * thousand numbers, and g and l by a line through the times of supersteps that only communicate.
 */
import type { Communicator } from '../../collective/communicator.ts';
import { Op } from '../../datatype/op.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../../errors.ts';
import { refuseUnknown } from '../../options.ts';
import type { Bsp } from '../bsp.ts';
import { LEARNING } from '../delivery/choices.ts';
import type { BspMachine } from './machines.ts';

/** Options of `probe`. All processes give the same. */
export interface ProbeOptions {
  /** `full`: each process sends to all others in turn; `sparse`: to the next one only. Default `full`. */
  readonly relation?: 'full' | 'sparse';
  /** Words that a put has (default 1). */
  readonly grain?: number;
  /** Words that a process sends at most (default 256, or 16 puts if those are more). */
  readonly most?: number;
  /** Relations that are measured between none and the most (default 9). */
  readonly steps?: number;
  /** Supersteps of each that are timed together (default 16). */
  readonly repetitions?: number;
  /** The speed of a processor, in million operations a second, where time is virtual or it is known. */
  readonly mflops?: number;
}

/** The time of a superstep in which each process sends `h` words. */
export interface Sample {
  readonly h: number;
  readonly microseconds: number;
}

export interface Probed {
  readonly machine: BspMachine;
  /** The same in microseconds: of a superstep, and of a word. 0 where the line through the samples has less. */
  readonly microseconds: { readonly l: number; readonly g: number };
  readonly samples: readonly Sample[];
  /** How far the samples are from the line: the root of the mean square, in microseconds. */
  readonly residual: number;
}

const KNOWN = ['relation', 'grain', 'most', 'steps', 'repetitions', 'mflops'];
const RELATIONS = ['full', 'sparse'];
const VECTOR = 1000;
/** Milliseconds for which vectors are added. */
const SPEED_MS = 20;

/**
 * Collective: all processes of a computation call it, with no variable put or got meanwhile. It registers two variables
 * and takes `steps` × (`repetitions` + 7) supersteps and some, which are in no report: before a relation is timed,
 * `auto` has chosen its way. Where others use the cores, too, the line may go anywhere: `residual` says how far the
 * samples are from it.
 * Errors: `TypeError`, `RangeError`, those of `sync`; `ERR_ARG` where time is virtual and `mflops` is not given.
 */
export async function probe(bsp: Bsp, options: ProbeOptions = {}): Promise<Probed> {
  const given = readProbe(options);
  return await bsp.unreported(() => measured(bsp, given));
}

async function measured(
  bsp: Bsp,
  { relation, grain, most, steps, repetitions, mflops }: ReturnType<typeof readProbe>,
): Promise<Probed> {
  const s = mflops ?? (await speed(bsp));
  const variable = new Float64Array(most + grain);
  const source = new Float64Array(grain).fill(1);
  bsp.pushReg(variable);
  await bsp.sync();
  const { pid, nprocs, comm } = bsp;
  const others = Math.max(1, nprocs - 1);
  const relate = async (puts: number): Promise<void> => {
    for (let i = 0; i < puts; i++) {
      const to = relation === 'sparse' ? pid + 1 : pid + 1 + (i % others);
      bsp.put(to % nprocs, source, variable, i * grain);
    }
    await bsp.sync();
  };
  const samples = await sampled(comm, { grain, most, steps, repetitions }, relate);
  bsp.popReg(variable);
  await bsp.sync();
  const line = leastSquares(samples);
  const [l, g] = [Math.max(0, line.l), Math.max(0, line.g)];
  return { machine: { s, p: nprocs, l: l * s, g: g * s }, microseconds: { l, g }, samples, residual: line.residual };
}

/** How relations are measured: `ProbeOptions`, with all numbers. */
export type Sampling = Required<Pick<ProbeOptions, 'grain' | 'most' | 'steps' | 'repetitions'>>;

/**
 * @internal Times supersteps that only communicate, with no put up to the most.
 * @param relate a superstep with so many puts of `grain` words; `most` words are sent where all of them are this one's
 */
export async function sampled(
  comm: Communicator,
  { grain, most, steps, repetitions }: Sampling,
  relate: (puts: number) => Promise<void>,
): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (let step = 0; step < steps; step++) {
    const puts = Math.floor(((most / grain) * step) / (steps - 1));
    // Links are made, buffers grow, and `auto` tries its ways, which none of the supersteps after these does.
    for (let i = 0; i < LEARNING; i++) await relate(puts);
    const began = comm.now();
    for (let i = 0; i < repetitions; i++) await relate(puts);
    const took = Float64Array.of((comm.now() - began) / repetitions);
    const longest = new Float64Array(1);
    await comm.allreduce(took, longest, Op.MAX);
    samples.push({ h: puts * grain, microseconds: longest[0] });
  }
  return samples;
}

/** The line through samples with the least squares: microseconds of a superstep, and of a word. */
export function leastSquares(samples: readonly Sample[]): {
  readonly l: number;
  readonly g: number;
  readonly residual: number;
} {
  const n = samples.length;
  const mean = (of: (sample: Sample) => number): number => samples.reduce((sum, one) => sum + of(one), 0) / n;
  const [h, t] = [mean((one) => one.h), mean((one) => one.microseconds)];
  const spread = mean((one) => (one.h - h) ** 2);
  const g = spread === 0 ? 0 : mean((one) => (one.h - h) * (one.microseconds - t)) / spread;
  const l = t - g * h;
  return { l, g, residual: Math.sqrt(mean((one) => (one.microseconds - l - g * one.h) ** 2)) };
}

/** @internal Million operations a second, of the slowest process. */
export async function speed({ comm }: Bsp): Promise<number> {
  const [x, y] = [new Float64Array(VECTOR).fill(1), new Float64Array(VECTOR)];
  const began = comm.now();
  const until = performance.now() + SPEED_MS;
  let rounds = 0;
  do {
    for (let i = 0; i < VECTOR; i++) y[i] += 1e-6 * x[i];
    rounds++;
  } while (performance.now() < until);
  const took = comm.now() - began;
  const mine = Float64Array.of(took > 0 ? (2 * VECTOR * rounds) / took : 0);
  const least = new Float64Array(1);
  await comm.allreduce(mine, least, Op.MIN);
  if (least[0] > 0) return least[0];
  throw new RmaError(
    'ERR_ARG',
    'probe: computation takes no virtual time, so its speed cannot be measured; pass { mflops }',
  );
}

/** @internal Errors: `TypeError`, `RangeError`. */
export function readProbe(options: ProbeOptions) {
  if (typeof options !== 'object' || options === null) {
    throw argumentTypeError(`probe: the options must be { ${KNOWN.join(', ')} }, not ${show(options)}`);
  }
  refuseUnknown('probe', 'the options', options, KNOWN);
  const { relation = 'full', grain = 1, steps = 9, repetitions = 16, mflops } = options;
  const { most = Math.max(256, 16 * grain) } = options;
  if (!RELATIONS.includes(relation)) {
    throw argumentTypeError(`probe: relation must be 'full' or 'sparse', not ${show(relation)}`);
  }
  const least = { grain: 1, most: grain, steps: 2, repetitions: 1 };
  for (const [name, value] of Object.entries({ grain, most, steps, repetitions })) {
    const from = least[name as keyof typeof least];
    if (Number.isSafeInteger(value) && value >= from) continue;
    throw argumentRangeError(`probe: ${name} must be a whole number from ${from} on, not ${show(value)}`);
  }
  if (mflops !== undefined && !(mflops > 0 && mflops < Number.POSITIVE_INFINITY)) {
    throw argumentRangeError(`probe: mflops must be above 0, not ${show(mflops)}`);
  }
  return { relation, grain, most, steps, repetitions, mflops };
}
