/** Supersteps that only communicate, as bsp_bench and bsp_sparse measure them (BSP-IB §4.1). */
import type { Communicator } from 'onesided';
import { type BspOptions, begin } from 'onesided/bsp';
import { leastSquares, type Sample } from 'onesided/bsp/model';
import { type Fabric, runTasks } from 'onesided/fabrics';
import { forEach } from './figure.ts';

/** From one relation to the next that a line is fitted to. */
const STEP = 31;

/** `full`: each process puts to all others in turn; `sparse`: to the next one only. */
export type RelationKind = 'full' | 'sparse';

export interface Relations {
  readonly options: BspOptions;
  readonly kind: RelationKind;
  /** Words of a put; 0: all that goes to a process is one put. */
  readonly grain: number;
  /** Supersteps of each relation before it is timed, and that are timed together. */
  readonly warm: number;
  readonly repetitions: number;
  /**
   * Each process computes for up to so many microseconds before a superstep ends, drawn anew (default: 0). Without it,
   * all keep step to the nanosecond, as no machine does.
   */
  readonly skew?: number;
  /**
   * So many times its number each process puts a word before all relations (default: 0). Whether processes read in
   * turns or get in each other's way depends on fractions of a microsecond between them, and stays so: other numbers
   * are other cases of the same.
   */
  readonly start?: number;
}

export interface RelationsOptions extends Relations {
  /** Words that each process sends and receives in a superstep. */
  readonly sizes: readonly number[];
}

/** The time of a superstep, for each of several sizes. */
export async function relations(world: Communicator, given: RelationsOptions): Promise<number[]> {
  const { options, kind, warm, repetitions, skew = 0, start = 0, sizes } = given;
  const bsp = await begin(world, options);
  const { pid, nprocs } = bsp;
  const others = kind === 'sparse' ? 1 : nprocs - 1;
  const most = Math.max(...sizes);
  const grainOf = (h: number): number => (given.grain === 0 ? Math.max(1, Math.floor(h / others)) : given.grain);
  const source = new Float64Array(grainOf(most)).fill(1);
  const variable = new Float64Array(most + source.length);
  bsp.pushReg(variable);
  await bsp.sync();
  for (let k = 0; k < start * pid; k++) bsp.put((pid + 1) % nprocs, source, variable, k % most, 1);
  if (start > 0) await bsp.sync();
  let state = pid + 1;
  const relate = async (h: number): Promise<void> => {
    const grain = grainOf(h);
    const puts = Math.floor(h / grain);
    for (let i = 0; i < puts; i++) bsp.put((pid + 1 + (i % others)) % nprocs, source, variable, i * grain, grain);
    if (skew > 0) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      await world.compute((skew * state) / 2 ** 32);
    }
    await bsp.sync();
  };
  const taken = await forEach(sizes, async (h) => {
    for (let i = 0; i < warm; i++) await relate(h);
    const began = world.now();
    for (let i = 0; i < repetitions; i++) await relate(h);
    return (world.now() - began) / repetitions;
  });
  await bsp.end();
  return taken;
}

/** The same of the process that took longest. */
export async function superstepTimes(
  fabric: Fabric,
  ranks: number,
  related: Relations,
  sizes: readonly number[],
): Promise<number[]> {
  const all = await runTasks(ranks, (world) => relations(world, { ...related, sizes }), { fabric, seed: 1 });
  return sizes.map((_, i) => Math.max(...all.map((taken) => taken[i])));
}

/** g and l in microseconds, by the line through relations of these sizes. */
export async function parameters(
  fabric: Fabric,
  ranks: number,
  related: Relations,
  sizes: readonly number[],
): Promise<{ readonly g: number; readonly l: number }> {
  const taken = await superstepTimes(fabric, ranks, related, sizes);
  return leastSquares(sizes.map((h, i): Sample => ({ h, microseconds: taken[i] })));
}

/** From none to the most, in equal steps. */
export function relationsUpTo(most: number, steps: number): number[] {
  return Array.from({ length: steps }, (_, i) => Math.floor((most * i) / (steps - 1)));
}

/**
 * Relations that bspbench of BSPedupack fits its bottom line to, `leastsquares(p, MAXH, …)`: from as many words as
 * there
 * are processes on. With fewer, some of a process's messages are not there, and the line would begin too low. It has
 * each h; every 31st, a number that divides no size of a chunk, gives the same line.
 */
export function bspbenchUpTo(most: number, processes: number): number[] {
  return Array.from({ length: Math.floor((most - processes) / STEP) + 1 }, (_, i) => processes + STEP * i);
}
