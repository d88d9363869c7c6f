/**
 * Supersteps on ordinary networks, and what h·g + l says of them: our own figure (docs/guide/bsp.md has its numbers).
 * g and l are those of the line through the means of ten runs; other runs, with relations of other sizes, are predicted
 * by it.
 */
import type { BspOptions } from 'onesided/bsp';
import { leastSquares } from 'onesided/bsp/model';
import { fabricOf, holdsStill } from './fabrics.ts';
import { type Figure, forEach, type Line, show } from './figure.ts';
import { type Spread, spreadOf, supersteps } from './shifts.ts';
import { BUS, lineOf } from './slot-times.ts';

const PROCESSES = 8;
/** Bytes that each process puts to its neighbour: of the line, and that are predicted. */
const FITTED = [8_000, 20_000, 40_000, 60_000, 100_000];
const OTHERS = [12_000, 32_000, 80_000];
const SIZES = [...FITTED, ...OTHERS].sort((a, b) => a - b);
/** Runs of each. */
const RUNS = 10;
/** Of the time that was predicted. */
const NEAR = 0.1;
/** The best slot on 8 processes, as T3 has it. */
const SLOT = 1750;

interface Way {
  readonly name: string;
  readonly network: string;
  readonly options: BspOptions;
}

const WAYS: readonly Way[] = [
  { name: 'bus, chunks', network: BUS, options: { delivery: 'packed' } },
  { name: 'bus, unpaced', network: BUS, options: { delivery: 'packed', pacing: { slot: 0 } } },
  { name: 'bus, packets in slots', network: BUS, options: { delivery: 'packed', pacing: { slot: SLOT } } },
  { name: 'bus, datagrams in slots', network: BUS, options: { delivery: 'datagrams', pacing: { slot: SLOT } } },
  { name: 'switch, chunks', network: 'ethernet-100-switch', options: { delivery: 'packed' } },
  { name: 'switch, datagrams', network: 'ethernet-100-switch', options: { delivery: 'datagrams' } },
];

interface Predicted {
  /** Milliseconds of supersteps, by the sizes. */
  readonly spreads: readonly Spread[];
  /** Microseconds of a word of 8 bytes, and of the superstep itself. */
  readonly g: number;
  readonly l: number;
  /** Of the supersteps that were predicted, those within `NEAR`; and how far off one of them is at most. */
  readonly within: number;
  readonly worst: number;
}

async function predicted({ network, options }: Way): Promise<Predicted> {
  const fabric = fabricOf(network);
  const times = await forEach(SIZES, (bytes) =>
    forEach(
      Array.from({ length: RUNS }, (_, k) => SIZES.indexOf(bytes) * RUNS + k + 1),
      async (seed) =>
        (await supersteps(fabric, { processes: PROCESSES, words: bytes / 4, options, warm: 1 }, seed))[0].superstep,
    ),
  );
  const spreads = times.map(spreadOf);
  const { g, l } = leastSquares(
    FITTED.map((bytes) => ({ h: bytes / 8, microseconds: 1000 * spreads[SIZES.indexOf(bytes)].mean })),
  );
  const errors = OTHERS.flatMap((bytes) =>
    times[SIZES.indexOf(bytes)].map((time) => Math.abs((1000 * time) / ((g * bytes) / 8 + l) - 1)),
  );
  return {
    ...{ spreads, g, l },
    within: errors.filter((error) => error <= NEAR).length / errors.length,
    worst: Math.max(...errors),
  };
}

/** Whether it is as the claim says of one on its network. */
function isAsExpected({ network, options: { pacing } }: Way, { within }: Predicted): boolean {
  const isSlotted = typeof pacing === 'object' && pacing.slot > 0;
  return network !== BUS || isSlotted ? within >= 0.9 : within < 0.5;
}

const percent = (part: number): string => `${(100 * part).toFixed(0)} %`;

const o5: Figure = {
  id: 'O.5',
  claim: 'on a bus, h·g + l predicts supersteps whose packets have slots, and not those without; on a switch, all',
  source: 'ours; the purpose of BSP over TCP/IP',
  caption:
    `Supersteps of ${PROCESSES} processes, each of which puts to its neighbour, on a bus of 10 Mbit/s and a switch ` +
    `of 100 Mbit/s: means and deviations of ${RUNS} runs. Slots are of ${SLOT} µs.`,
  expected:
    'at least 90 % of the supersteps of runs and sizes that were not measured for g and l are within 10 % of ' +
    'h·g + l, on a switch, and on a bus with slots; in chunks and packets without a pace on a bus, less than half',
  schemes: ['src/bsp/delivery/paced-carrier.ts', 'bench/figures/shifts.ts'],
  async verdict() {
    for (const way of WAYS) {
      if (!holdsStill(way.network) && !isAsExpected(way, await predicted(way))) return false;
    }
    return true;
  },
  async measure() {
    const found = await forEach(WAYS, predicted);
    return {
      chart: {
        kind: 'lines',
        x: { name: 'kB that a process puts', places: SIZES.map((bytes) => bytes / 1000), all: true },
        y: { name: 'superstep (ms)' },
        series: found.map(({ spreads }, k): Line => lineOf(WAYS[k].name, SIZES, SIZES, spreads)),
      },
      measured: found
        .map(
          ({ g, l, within, worst }, k) =>
            `${WAYS[k].name}: g ${show(g)} µs a word, l ${show(l / 1000)} ms, ${percent(within)} within 10 %, at ` +
            `most ${percent(worst)} off`,
        )
        .join('; '),
      holds: found.every((one, k) => isAsExpected(WAYS[k], one)),
      note: 'a word has 8 bytes, as in all of BSP’s parameters here; l has the exchange of counts in it',
    };
  },
};

export const predictedSupersteps: readonly Figure[] = [o5];
