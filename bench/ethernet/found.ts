/** What became of supersteps on an ordinary network: of all processes together, and as cells of a table. */
import { availableParallelism, cpus } from 'node:os';
import { type Measured, type Spread, spreadOf } from '../figures/shifts.ts';

export interface Found {
  /** Milliseconds. Of the delivery alone, and of the whole superstep, of the process that took longest. */
  readonly delivery?: Spread;
  readonly superstep: Spread;
  /** Of packets that had a slot, the part that left within it, and the most milliseconds that one was late. */
  readonly kept?: number;
  readonly lateness?: number;
  readonly chosen?: string;
  /** Of datagrams, in a superstep: asks of all, and what was sent again. */
  readonly asks?: number;
  readonly resent?: number;
  readonly errors: number;
}

/** Of all processes: what each has found in each superstep. */
export function together(all: readonly (readonly Measured[])[]): Found {
  const longest = all[0].map((_, k) => Math.max(...all.map((one) => one[k].ended - one[k].began)) / 1000);
  const delivery = spreadOf(all[0].map((one) => one.delivery / 1000));
  const errors = all.flat().reduce((sum, one) => sum + one.errors, 0);
  const counted = (of: 'asks' | 'resent'): number =>
    all.reduce((sum, steps) => {
      const [first, last] = [steps[0].before.datagrams, steps.at(-1)!.after.datagrams];
      return sum + (last?.[of] ?? 0) - (first?.[of] ?? 0);
    }, 0) / all[0].length;
  const found = {
    ...{ delivery, superstep: spreadOf(longest), errors },
    ...(all[0][0].before.datagrams !== undefined && { asks: counted('asks'), resent: counted('resent') }),
  };
  const paced = all.map((one) => one.at(-1)!.after.pacing);
  if (paced[0] === undefined) return found;
  const sum = (of: 'cycles' | 'kept'): number => paced.reduce((total, one) => total + one![of], 0);
  const { slots, slot, whole } = paced[0];
  return {
    ...found,
    ...(sum('cycles') > 0 && {
      kept: sum('kept') / sum('cycles'),
      lateness: Math.max(...paced.map((one) => one!.lateness)) / 1000,
    }),
    chosen: whole ? 'chunks' : slot === 0 ? 'unpaced' : `Q = ${slots}, ${slot.toFixed(0)} µs`,
  };
}

/** A row of a table. */
export interface Row extends Partial<Found> {
  readonly network: string;
  readonly relation: string;
  readonly way: string;
  readonly failed?: string;
}

export const spread = (one: Spread | undefined): string =>
  one === undefined ? '' : `${one.mean.toFixed(1)} ± ${one.deviation.toFixed(1)}`;

export function cells({ network, relation, way, delivery, superstep, kept, lateness, chosen, failed }: Row): string[] {
  return [
    network,
    relation,
    way + (chosen === undefined || way.includes('frame') || way.includes('unpaced') ? '' : ` (${chosen})`),
    failed === undefined ? spread(delivery) : 'failed',
    failed ?? spread(superstep),
    kept === undefined ? '' : `${(100 * kept).toFixed(0)} %, ${lateness!.toFixed(1)} ms`,
  ];
}

/** What was measured, where, and when what else ran. */
export interface Machine {
  readonly hosts: number;
  readonly steps: number;
  readonly cores: number;
  readonly processor: string;
  readonly node: string;
  /** By other programs, before. */
  readonly load: number;
}

export interface Measurement extends Machine {
  readonly rows: readonly Row[];
}

/** @param load before it was measured */
export function machineOf(hosts: number, steps: number, load: number): Machine {
  const processor = cpus()[0].model.replace(/ +/g, ' ').trim();
  return { hosts, steps, cores: availableParallelism(), processor, node: process.versions.node, load };
}
