/** The figure of the BSP-IB report's programs: speed-ups of inner product, LU and FFT on 1 to 16 nodes (§4.2). */
import { type BspMachine, MACHINES, superstepCost } from 'onesided/bsp/model';
import { runTasks } from 'onesided/fabrics';
import { fft } from '../bsp/fft.ts';
import { innerProduct } from '../bsp/inner-product.ts';
import { lu } from '../bsp/lu.ts';
import { modelledMachine } from '../patterns/machine.ts';
import { fabricOf } from './fabrics.ts';
import { type Figure, forEach, show } from './figure.ts';

/** Table 1: of the report's processors, Xeons of 3.2 GHz. */
const MFLOPS = MACHINES['BSP-IB, baseline'].s;
const NODES = [1, 2, 4, 8, 16];
/** The same adapter as the report's, MT25208 on PCI-Express. */
const FABRIC = 'infinihost-express';
const PRINTED_AT = 8;
/** The reference of figures 4 to 6, by table 1. */
const ORIGIN: BspMachine = MACHINES['SGI Origin 3800'];

interface Program {
  readonly name: string;
  readonly larger: boolean;
  /** @returns microseconds and what is wrong */
  run(nodes: number): Promise<{ readonly microseconds: number; readonly errors: number }>;
  /** Operations on so many processors of a machine, with its g and l: what the program's supersteps cost. */
  cost(machine: BspMachine, p: number): number;
}

const tasks = (nodes: number, main: Parameters<typeof runTasks>[1]) =>
  runTasks(nodes, main, { fabric: fabricOf(FABRIC), seed: 1 }) as Promise<
    { readonly microseconds: number; readonly errors: number }[]
  >;

const product = (n: number, larger: boolean): Program => ({
  name: `inner product, n = ${n}`,
  larger,
  run: async (nodes) =>
    (await tasks(nodes, (world) => innerProduct(world, { n, samples: 3, mflops: MFLOPS }, modelledMachine(world))))[0],
  cost: (machine, p) => superstepCost(machine, { work: (2 * n) / p + p, h: p - 1 }),
});

const decomposition = (n: number, larger: boolean): Program => ({
  name: `LU, n = ${n}`,
  larger,
  run: async (nodes) =>
    (await tasks(nodes, (world) => lu(world, { n, samples: 1, mflops: MFLOPS }, modelledMachine(world))))[0],
  // Three supersteps a column: maxima to all, two rows, and what is left of column and row.
  cost: ({ g, l }, p) => {
    let rows = Math.floor(Math.sqrt(p));
    while (p % rows !== 0) rows--;
    const columns = p / rows;
    const words = n * (2 * p + n / columns) + (n ** 2 / 2) * ((columns - 1) / rows + (rows - 1) / columns);
    return (2 * n ** 3) / 3 / p + (p === 1 ? 0 : words * g) + 3 * n * l;
  },
});

const transform = (log2n: number, larger: boolean): Program => ({
  name: `FFT, n = 2^${log2n}`,
  larger,
  run: async (nodes) =>
    (await tasks(nodes, (world) => fft(world, { log2n, samples: 3, mflops: MFLOPS }, modelledMachine(world))))[0],
  cost: (machine, p) => {
    const n = 2 ** log2n;
    return superstepCost(machine, { work: (5 * n * log2n + 6 * n) / p, h: (2 * n * (p - 1)) / p / p });
  },
});

/** Small and large data sets; those of the report's figures are in pictures that its text does not repeat. */
const PROGRAMS: readonly Program[] = [
  product(100_000, false),
  product(1_000_000, true),
  decomposition(256, false),
  decomposition(1024, true),
  transform(14, false),
  transform(18, true),
];

export const bspPrograms: readonly Figure[] = [
  {
    id: 'B7',
    claim:
      'inner product, LU and FFT speed up well on up to 16 nodes, ' +
      'and better than on an SGI Origin 3800 with the same data',
    source: 'BSP-IB, §4.2 and figures 4 to 6',
    caption: 'Speed-ups of three programs over themselves on one node, each with a small and a large data set.',
    expected:
      "each program's large data set has a speed-up of more than 8 on 16 nodes, " +
      `and on 2 to 16 nodes a larger one than its small data set; on ${PRINTED_AT} nodes all speed-ups are above ` +
      'those that the model gives for the Origin 3800 of table 1',
    schemes: ['bench/bsp/inner-product.ts', 'bench/bsp/lu.ts', 'bench/bsp/fft.ts'],
    async measure() {
      const found = await forEach(PROGRAMS, (program) => forEach(NODES, (nodes) => program.run(nodes)));
      const speedUps = found.map((runs) => runs.map(({ microseconds }) => runs[0].microseconds / microseconds));
      const errors = found.flat().reduce((sum, one) => sum + one.errors, 0);
      const isFaster = PROGRAMS.map(
        (_, i) => i % 2 === 1 && NODES.every((_, k) => k === 0 || speedUps[i][k] > speedUps[i - 1][k]),
      );
      const origin = PROGRAMS.map(({ cost }) => cost({ ...ORIGIN, l: 0, g: 0 }, 1) / cost(ORIGIN, PRINTED_AT));
      const at = NODES.indexOf(PRINTED_AT);
      const beaten = PROGRAMS.filter((_, i) => speedUps[i][at] > origin[i]).length;
      const holds =
        PROGRAMS.every(({ larger }, i) => !larger || (speedUps[i].at(-1)! > 8 && isFaster[i])) &&
        beaten === PROGRAMS.length &&
        errors === 0;
      return {
        chart: {
          kind: 'lines',
          x: { name: 'nodes', places: NODES },
          y: { name: 'speed-up' },
          series: PROGRAMS.map(({ name }, i) => ({ name, values: speedUps[i] })),
        },
        measured:
          `on 16 nodes ${PROGRAMS.map(({ name }, i) => `${show(speedUps[i].at(-1)!)} (${name})`).join(', ')}; ` +
          `on ${PRINTED_AT} nodes ` +
          PROGRAMS.map(({ name }, i) => `${show(speedUps[i][at])}, the Origin 3800 ${show(origin[i])} (${name})`).join(
            ', ',
          ) +
          `: more in ${beaten} of ${PROGRAMS.length}; ${errors} results are wrong`,
        holds,
        note:
          'the report gives the sizes of its data in pictures only, so these are ours. ' +
          `Processors compute ${MFLOPS} Mflop/s (table 1). The Origin's speed-ups were not run: ` +
          "they are n_o + n_c·g + l of the programs' supersteps with its g and l of table 1, " +
          'over the work of one processor. In operations, g and l of the Origin are below those that the report ' +
          'measured for itself, so its own model contradicts its figures 4 to 6 unless supersteps cost less than ' +
          'table 1 says; here they do, since the programs put long pieces, and table 1 is of single words',
      };
    },
  },
];
