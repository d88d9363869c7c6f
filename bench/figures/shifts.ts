/**
 * Cyclic shifts and total exchanges as supersteps on an Ethernet (BSP over TCP/IP, figures 4 to 7): words of 4 bytes,
 * as the paper has them. A run has one superstep of that kind, after one with a word to the same processes, which makes
 * the connections; runs differ in their seed, which draws slots, back-offs and losses.
 */
import type { Communicator } from 'onesided';
import { type BspOptions, type BspStatistics, begin } from 'onesided/bsp';
import { type Fabric, type FaultOptions, runTasks } from 'onesided/fabrics';
import { forEach } from './figure.ts';

/** Words of 4 bytes that a process puts in the paper's figures: 100,000 and 33,332 bytes. */
export const LONG = 25_000;
export const SHORT = 8333;
/** Bytes of a packet at most, as the paper has it. */
export const PACKET = 1418;
/** Runs of a point. */
export const SEEDS = 20;

export interface Shift {
  readonly processes: number;
  /** Words of 4 bytes that a process puts to each of its targets. */
  readonly words: number;
  /** To the right neighbour, or to all others; default: `shift`. */
  readonly pattern?: 'shift' | 'total';
  readonly options: BspOptions;
  readonly faults?: FaultOptions;
  /** Processes compute for up to so many microseconds before each superstep, drawn anew (default: 0). */
  readonly skew?: number;
  /** Supersteps of the same kind before the measured one (default: 0). */
  readonly warm?: number;
  /** Supersteps that are measured (default: 1). */
  readonly steps?: number;
}

/** What became of a superstep. Times are milliseconds. */
export interface Step {
  /** From the end of the counts until everything was there, of the process for which it was longest. */
  readonly delivery: number;
  /** Of the whole superstep, from the last process's call to the last one's return. */
  readonly superstep: number;
  /** Of all processes, in the superstep. */
  readonly asks: number;
  readonly resent: number;
  /** The pace of the superstep, as process 0 has it. */
  readonly slots: number;
  readonly slot: number;
  readonly whole: boolean;
  readonly isTrying: boolean;
  /** Values that are not those that were put. */
  readonly errors: number;
}

/** Each superstep that was measured, in one run. */
export async function supersteps(fabric: Fabric, shift: Shift, seed: number): Promise<Step[]> {
  const { processes, steps = 1, faults } = shift;
  const run = { fabric, seed, ...(faults !== undefined && { faults }) };
  const all = await runTasks(processes, (world) => shifted(world, shift), run);
  return Array.from({ length: steps }, (_, k) => together(all.map((steps) => steps[k])));
}

/** What the process of `world` has found in each superstep that is measured. */
export async function shifted(world: Communicator, shift: Omit<Shift, 'processes'>): Promise<Measured[]> {
  const { words, pattern = 'shift', options, skew = 0, warm = 0, steps = 1 } = shift;
  const bsp = await begin(world, { counts: 'tree', ...options, report: true });
  const { pid, nprocs } = bsp;
  const others = pattern === 'shift' ? 1 : nprocs - 1;
  const came = new Float32Array(others * words);
  const mine = new Float32Array(words);
  bsp.pushReg(came);
  await bsp.sync();
  const puts = (count: number): void => {
    for (let k = 0; k < others; k++) bsp.put((pid + 1 + k) % nprocs, mine, came, k * words, count);
  };
  const put = (source: number, step: number): number => 1 + 100 * source + step;
  puts(1);
  await bsp.sync();
  let drawn = (world.job.tasks?.seed ?? 0) + pid + 1;
  const found: Omit<Measured, 'delivery'>[] = [];
  for (let step = 0; step < warm + steps; step++) {
    mine.fill(put(pid, step));
    if (skew > 0) {
      drawn = (Math.imul(drawn, 1_664_525) + 1_013_904_223) >>> 0;
      await world.compute((skew * drawn) / 2 ** 32);
    }
    const before = bsp.statistics();
    const began = world.now();
    puts(words);
    await bsp.sync();
    const ended = world.now();
    let errors = 0;
    for (let k = 0; k < others; k++) {
      const value = put((pid - 1 - k + nprocs) % nprocs, step);
      for (const one of came.subarray(k * words, (k + 1) * words)) if (one !== value) errors++;
    }
    found.push({ began, ended, errors, before, after: bsp.statistics() });
  }
  const { supersteps: told } = await bsp.report();
  await bsp.end();
  return found.slice(warm).map((one, k) => ({ ...one, delivery: told.at(k - steps)!.communication }));
}

/** A superstep of one process; microseconds. */
export interface Measured {
  readonly began: number;
  readonly ended: number;
  readonly delivery: number;
  readonly errors: number;
  readonly before: BspStatistics;
  readonly after: BspStatistics;
}

/** One superstep of all processes. */
function together(all: readonly Measured[]): Step {
  const sum = (of: (one: Measured) => number): number => all.reduce((total, one) => total + of(one), 0);
  const counted = (of: (statistics: BspStatistics) => number | undefined): number =>
    sum(({ before, after }) => (of(after) ?? 0) - (of(before) ?? 0));
  const { pacing } = all[0].after;
  return {
    delivery: all[0].delivery / 1000,
    superstep: (Math.max(...all.map(({ ended }) => ended)) - Math.max(...all.map(({ began }) => began))) / 1000,
    asks: counted((statistics) => statistics.datagrams?.asks),
    resent: counted((statistics) => statistics.datagrams?.resent),
    slots: pacing?.slots ?? 0,
    slot: pacing?.slot ?? 0,
    whole: pacing === undefined || pacing.whole,
    isTrying: pacing?.isTrying === true,
    errors: sum(({ errors }) => errors),
  };
}

/** The first superstep that is measured, by seeds 1, 2, …. */
export function overSeeds(fabric: Fabric, shift: Shift, seeds = SEEDS): Promise<Step[]> {
  return forEach(
    Array.from({ length: seeds }, (_, k) => k + 1),
    async (seed) => (await supersteps(fabric, shift, seed))[0],
  );
}

/** Microseconds from the beginning of a frame with such a packet until the next frame can begin. */
export function frameOf({ ethernet, tcp }: Fabric): number {
  const { gap, preamble, interframe } = ethernet!;
  // Headers of IP and TCP; addresses, type and check sum.
  return preamble + (PACKET + tcp!.header + 40 + 18) * gap + interframe;
}

export interface Spread {
  readonly mean: number;
  readonly deviation: number;
}

export function spreadOf(values: readonly number[]): Spread {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return { mean, deviation: Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / values.length) };
}

/** Of a mean, what a deviation is below where times scatter little. */
const CALM = 0.02;
const isCalm = ({ mean, deviation }: Spread): boolean => deviation < CALM * mean;

/** The smallest of these slots from which on all deviations are below a share of their means; undefined: none. */
export function calmFrom(slots: readonly number[], spreads: readonly Spread[]): number | undefined {
  return slots.find((_, k) => spreads.slice(k).every(isCalm));
}

/** The same, measured from the longest slot down, as far as it takes. */
export async function calmSlot(
  slots: readonly number[],
  measure: (slot: number) => Promise<Spread>,
): Promise<number | undefined> {
  let calm: number | undefined;
  for (const slot of slots.toReversed()) {
    if (!isCalm(await measure(slot))) break;
    calm = slot;
  }
  return calm;
}

/** Milliseconds of a delivery, for each slot; 0: packets that are not paced. */
export function deliveries(
  fabric: Fabric,
  shift: Shift,
  slots: readonly number[],
  { delivery = 'packed', seeds = SEEDS }: { readonly delivery?: 'packed' | 'datagrams'; readonly seeds?: number } = {},
): Promise<Spread[]> {
  return forEach(slots, async (slot) => {
    const options = { ...shift.options, delivery, pacing: { slot } } as const;
    return spreadOf((await overSeeds(fabric, { ...shift, options }, seeds)).map((step) => step.delivery));
  });
}
