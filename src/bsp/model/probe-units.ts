/**
 * Measures a machine of two levels (Martin and Tiskin 1999, section 2): s, l and g within the units, L and G between
 * them. Each number is measured by what defines it, so that what a flat program sees can be compared with
 * (s, pq, l + L, g + pG) instead of being set equal to it:
 *
 * - l and g: a line through the times of `usync`, where each process puts to the others of its unit;
 * - L: what a `sync` with nothing to deliver takes beyond a `usync` with nothing, since it has one in it;
 * - G: the slope of a line through the times of `sync` where one process of each unit puts to the one of the next unit,
 *   so that a unit as a whole sends and receives as many words as that process.
 */
import { argumentTypeError, RmaError } from '../../errors.ts';
import { Bsp2 } from '../bsp2.ts';
import type { Bsp2Machine } from './machines.ts';
import { leastSquares, type ProbeOptions, readProbe, type Sample, sampled, speed } from './probe.ts';

export interface ProbedUnits {
  readonly machine: Bsp2Machine;
  /** The same in microseconds: of a superstep of a unit and of all, and of a word. */
  readonly microseconds: { readonly l: number; readonly L: number; readonly g: number; readonly G: number };
  /** Within units, and between them. */
  readonly samples: { readonly within: readonly Sample[]; readonly between: readonly Sample[] };
}

/**
 * Collective, like `probe`; the computation was begun with `units`, all of which have as many processes. `relation`
 * says which relation is measured within units. Errors: `ERR_ARG` if the units differ in size; those of `probe`.
 */
export async function probeUnits(bsp: Bsp2, options: ProbeOptions = {}): Promise<ProbedUnits> {
  if (!(bsp instanceof Bsp2)) {
    throw argumentTypeError("probeUnits: the computation has no units; begin it with { units: 'hosts' }", 'ERR_ARG');
  }
  const { relation, mflops, ...sampling } = readProbe(options);
  const { grain, most } = sampling;
  const { comm, units: q, uid } = bsp;
  const pids = bsp.pidsOf();
  const p = pids.length;
  for (let unit = 0; unit < q; unit++) {
    const { length } = bsp.pidsOf(unit);
    if (length === p) continue;
    throw new RmaError('ERR_ARG', `probeUnits: unit ${unit} has ${length} processes, unit ${uid} ${p}`);
  }
  return await bsp.unreported(async () => {
    const s = mflops ?? (await speed(bsp));
    const variable = new Float64Array(most + grain);
    const source = new Float64Array(grain).fill(1);
    bsp.pushReg(variable);
    await bsp.sync();
    const at = pids.indexOf(bsp.pid);
    const others = Math.max(1, p - 1);
    const within = await sampled(comm, sampling, async (puts) => {
      for (let i = 0; i < puts; i++) {
        const to = relation === 'sparse' ? at + 1 : at + 1 + (i % others);
        bsp.uput(pids[to % p], source, variable, i * grain);
      }
      await bsp.usync();
    });
    const next = bsp.pidsOf((uid + 1) % q)[0];
    const between = await sampled(comm, sampling, async (puts) => {
      if (at === 0) for (let i = 0; i < puts; i++) bsp.put(next, source, variable, i * grain);
      await bsp.sync();
    });
    bsp.popReg(variable);
    await bsp.sync();
    const [unit, all] = [leastSquares(within), leastSquares(between)];
    const [l, L, g, G] = [unit.l, all.l - unit.l, unit.g, all.g].map((number) => Math.max(0, number));
    return {
      machine: { s, p, q, l: l * s, L: L * s, g: g * s, G: G * s },
      microseconds: { l, L, g, G },
      samples: { within, between },
    };
  });
}
