/**
 * BSP-IB (Birk and others, CCIT report 588, 2006): what it measures of its schemes for the end of a superstep, on the
 * description of its cluster. `fabrics/bsp-ib-16.json` says which of its numbers are fitted to which of the paper's: g
 * and l of the baseline on 8 nodes, and g of BSP-IB-R in bulk. All others are predicted here.
 */
import { Bsp, type BspOptions } from 'onesided/bsp';
import type { Fabric } from 'onesided/fabrics';
import { fabricOf } from './fabrics.ts';
import { type Figure, forEach, show } from './figure.ts';
import {
  bspbenchUpTo,
  parameters,
  type RelationKind,
  type Relations,
  relationsUpTo,
  superstepTimes,
} from './supersteps.ts';

export const FABRIC = 'bsp-ib-16';
export const NODES = 8;
/** BSP-IB table 1: million operations a second, by which its g and l are counted. */
const MFLOPS = 840;

/** A scheme of the paper: its name here and there, and table 1: microseconds. */
export interface Scheme {
  readonly name: string;
  readonly printed: { readonly as: string; readonly g: number; readonly l: number };
  readonly options: BspOptions;
  /** Which of its numbers the fabric is fitted to. */
  readonly fitted: readonly ('g' | 'l')[];
}

/** A scheme more is a line more. */
export const SCHEMES: readonly Scheme[] = [
  {
    name: 'baseline',
    printed: { as: 'BSP-IB-B', g: 0.21, l: 52 },
    options: { delivery: 'packed', headers: 'plain', counts: 'all-to-all' },
    fitted: ['g', 'l'],
  },
  {
    name: 'compressed',
    printed: { as: 'BSP-IB-H', g: 0.19, l: 52 },
    options: { delivery: 'packed', headers: 'compressed', counts: 'all-to-all' },
    fitted: [],
  },
  {
    name: 'multicast',
    printed: { as: 'BSP-IB-M', g: 0.21, l: 51 },
    options: { delivery: 'packed', headers: 'plain', counts: 'multicast' },
    fitted: [],
  },
  {
    name: 'zero-copy',
    printed: { as: 'BSP-IB-R', g: 0.31, l: 115 },
    options: { delivery: 'zero-copy', counts: 'all-to-all' },
    fitted: [],
  },
];
const [BASELINE, , , ZERO_COPY] = SCHEMES;
const DELIVERY = ['packed-delivery', 'zero-copy-delivery', 'choices', 'links', 'counts'].map(
  (name) => `src/bsp/delivery/${name}.ts`,
);
const FILES = [...DELIVERY, 'bench/figures/supersteps.ts'];
export const ONCE = { warm: 1, repetitions: 2 } as const;

const relations = (options: BspOptions, grain: number, kind: RelationKind = 'full'): Relations => ({
  ...{ options, grain, kind },
  ...ONCE,
});
const within = (value: number, printed: number, tolerance: number): boolean =>
  Math.abs(value / printed - 1) <= tolerance;

/** BSPlib's, under their names here. */
const PRIMITIVES = [
  ...['abort', 'pid', 'nprocs', 'time', 'sync', 'pushReg', 'popReg', 'put', 'hpput', 'get', 'hpget'],
  ...['setTagsize', 'send', 'qsize', 'getTag', 'move', 'hpmove', 'end'],
];

/** `begin`, `init` and `run` are functions beside it. */
export function missingPrimitives(): string[] {
  return PRIMITIVES.filter((name) => !(name in Bsp.prototype) && name !== 'pid' && name !== 'nprocs');
}

const b1: Figure = {
  id: 'B1',
  claim:
    'the twenty primitives of BSPlib; puts packed into chunks of 16 KiB, a list for each destination, ' +
    'sent in a Latin square, and placed while others are transferred',
  source: 'BSP-IB §3.1',
  caption:
    'Time of a superstep in which each of 8 processes sends and receives h words in puts of 64 words: ' +
    'to all others in turn, and to its neighbour only; and the time that packing, transfer and ' +
    'placement would take one after the other.',
  expected:
    'from 8192 words on, a further word costs as much in a relation with all others as in one with the ' +
    'neighbour, within a tenth (no two processes send to one at a time); and a relation takes less ' +
    'than nine tenths of what ' +
    'packing, transfer and placement of its bytes take together (they are pipelined); ' +
    'all of the primitives are there',
  schemes: FILES,
  async measure() {
    const fabric = fabricOf(FABRIC);
    const sizes = [1024, 2048, 4096, 8192, 16_384, 32_768];
    const grain = 64;
    const [full, sparse] = await forEach(['full', 'sparse'] as const, (kind) =>
      superstepTimes(fabric, NODES, relations(BASELINE.options, grain, kind), sizes),
    );
    const [empty] = await superstepTimes(fabric, NODES, relations(BASELINE.options, grain), [0]);
    const { host, link } = fabric;
    const serial = sizes.map((h) => {
      const bytes = 8 * h + (12 * h) / grain;
      return empty + 2 * (bytes * host.copy + (h / grain) * host.record) + bytes * Math.max(link.outGap, link.inGap);
    });
    const missing = missingPrimitives();
    const large = sizes.map((_, i) => i).filter((i) => sizes[i] >= 8192);
    const last = sizes.length - 1;
    const slope = (line: readonly number[]): number =>
      (1000 * (line[last] - line[large[0]])) / (sizes[last] - sizes[large[0]]);
    return {
      chart: {
        kind: 'lines',
        x: { name: 'h (words of 8 bytes)', places: sizes },
        y: { name: 'time of a superstep (µs)', logarithmic: true },
        series: [
          { name: 'with all others', values: full },
          { name: 'with the neighbour', values: sparse },
          { name: 'one after the other', values: serial },
        ],
      },
      measured:
        `${sizes[last]} words: ${show(full[last])} µs with all others, ${show(sparse[last])} with the neighbour, ` +
        `${show(serial[last])} one after the other; without any: ${show(empty)}; ` +
        `a word more costs ${show(slope(full))} and ${show(slope(sparse))} ns; primitives that are not there: ` +
        `${missing.length === 0 ? 'none' : missing.join(', ')}`,
      holds:
        missing.length === 0 &&
        within(slope(full), slope(sparse), 0.1) &&
        large.every((i) => full[i] < 0.9 * serial[i]),
      note:
        'the criterion was changed: whole relations had to take as long with all others as with the neighbour, ' +
        'within a tenth, not a further word',
    };
  },
};

const b3: Figure = {
  id: 'B3',
  claim:
    'on 8 nodes a word costs 0.21, 0.19, 0.21 and 0.31 µs with the baseline, header compression, ' +
    'the multicast barrier and zero-copy receive, and a superstep 52, 52, 51 and 115 µs',
  source: 'BSP-IB table 1',
  caption:
    'g and l on 8 nodes: the line through relations of 8 to 4096 words, each word a put. ' +
    'The numbers of the baseline are fitted, the others predicted.',
  expected: 'the two fitted numbers within 5 %, each of the six predicted ones within 20 %',
  schemes: FILES,
  async measure() {
    const sizes = bspbenchUpTo(4096, NODES);
    const found = await forEach(SCHEMES, ({ options }) =>
      parameters(fabricOf(FABRIC), NODES, relations(options, 1), sizes),
    );
    const checked = SCHEMES.flatMap(({ name, printed, fitted }, i) =>
      (['g', 'l'] as const).map((what) => {
        const isFitted = fitted.includes(what);
        const isRight = within(found[i][what], printed[what], isFitted ? 0.05 : 0.2);
        const error = 100 * (found[i][what] / printed[what] - 1);
        return { isRight, text: `${what} of ${name} ${error >= 0 ? '+' : '−'}${Math.abs(error).toFixed(0)} %` };
      }),
    );
    const wrong = checked.filter(({ isRight }) => !isRight).map(({ text }) => text);
    const chartOf = (what: 'g' | 'l', unit: string) => ({
      kind: 'bars' as const,
      x: { name: 'scheme', places: SCHEMES.map(({ name }) => name) },
      y: { name: `${what} (${unit})` },
      series: [
        { name: 'measured', values: found.map((one) => one[what]) },
        { name: 'paper', values: SCHEMES.map(({ printed }) => printed[what]), printed: true },
      ],
    });
    return {
      chart: { ...chartOf('g', 'µs a word'), beside: chartOf('l', 'µs') },
      measured: SCHEMES.map(
        ({ name, printed }, i) =>
          `${name}: g ${show(found[i].g)} µs a word (printed: ${printed.g}), l ${found[i].l.toFixed(0)} µs (printed: ` +
          `${printed.l})`,
      ).join('; '),
      holds: wrong.length === 0,
      note:
        'fitted: g and l of the baseline; predicted: the others. ' +
        `${wrong.length === 0 ? 'All are within the tolerance' : `Beyond the tolerance: ${wrong.join(', ')}`}. ` +
        'What makes l of zero-copy twice that of the baseline in the paper ("additional descriptor manipulation and ' +
        'round trip time") is only a round trip in the model; how many reads the paper has under way at once, which ' +
        'decides between l and g, it does not say. The receiver posts descriptors that the sender has written ' +
        '("readily available", §3.2), so it pays nothing for an entry. The fit was changed: the line is that of ' +
        'bspbench, through relations of p words and more; with the empty superstep in it, post and completion were ' +
        'fitted too dear',
    };
  },
};

const GRAINS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];

/** The first grain from which on one line is below another one; `undefined` if there is none. */
function crossing(line: readonly number[], other: readonly number[]): number | undefined {
  const from = line.findLastIndex((value, i) => value >= other[i]) + 1;
  return from < line.length ? GRAINS[from] : undefined;
}

/** Operations a word of the baseline in bulk, by §4.1. */
const PRINTED_BULK = 21;
/** Words that a process puts before, by its number: a mean over them is no case of luck. */
export const STARTS = [0, 2, 5] as const;
/** Microseconds of an entry within the range of adapter.entry, and the puts that it decides. */
const ENTRY = 0.1;
const ENTRY_GRAINS = [4, 8, 16];

/** The fabric, of whose adapters each request has one piece of memory. */
function withoutLists(): Fabric {
  const fabric = fabricOf(FABRIC);
  return { ...fabric, adapter: { ...fabric.adapter, maxSge: 1 } };
}

/** In each start; below 16 words a put, which take longest to measure, in one. */
const startsOf = (on: Fabric, { options }: Scheme, grain: number): Promise<number[]> =>
  forEach(
    grain < 16 ? STARTS.slice(0, 1) : STARTS,
    // As bspbench, not from none on.
    async (start) =>
      (await parameters(on, NODES, { ...relations(options, grain), start }, relationsUpTo(32_768, 5).slice(1))).g,
  );

const gOf = (on: Fabric, scheme: Scheme, grains: readonly number[] = GRAINS): Promise<number[]> =>
  forEach(grains, async (grain) => {
    const found = await startsOf(on, scheme, grain);
    return found.reduce((sum, g) => sum + g, 0) / found.length;
  });

const b5: Figure = {
  id: 'B5',
  claim: 'zero-copy receive wins from 8 words a put on with scatter lists, and from 512 without',
  source: 'BSP-IB figure 3',
  caption:
    'g on 8 nodes by the words of a put: the line through four relations of 8192 to 32,768 words; ' +
    'packed, zero-copy with lists of 28 entries, and with a read for each put.',
  expected:
    'g of zero-copy is below that of the baseline from 4 to 16 words a put on, ' +
    'without scatter lists from 256 to 1024 on',
  schemes: FILES,
  // Without lists it still loses in the longest puts from which on it may win.
  async necessary() {
    const [packed, alone] = [
      await gOf(fabricOf(FABRIC), BASELINE, [1024]),
      await gOf(withoutLists(), ZERO_COPY, [1024]),
    ];
    return alone[0] < packed[0];
  },
  async measure() {
    const fabric = fabricOf(FABRIC);
    const single = withoutLists();
    const [packed, lists, alone] = [
      await gOf(fabric, BASELINE),
      await gOf(fabric, ZERO_COPY),
      await gOf(single, ZERO_COPY),
    ];
    const [fromLists, fromAlone] = [crossing(lists, packed), crossing(alone, packed)];
    const ratio = (line: readonly number[], grain: number): string => {
      const i = GRAINS.indexOf(grain);
      return (line[i] / packed[i]).toFixed(2);
    };
    const cheap = await gOf({ ...fabric, adapter: { ...fabric.adapter, entry: ENTRY } }, ZERO_COPY, ENTRY_GRAINS);
    const ofCheap = ENTRY_GRAINS.map((grain, i) => (cheap[i] / packed[GRAINS.indexOf(grain)]).toFixed(2));
    const below = GRAINS.filter((_, i) => lists[i] < packed[i]);
    const at512 = await startsOf(single, ZERO_COPY, 512);
    const bulk = 1000 * packed.at(-1)!;
    const printedBulk = (1000 * PRINTED_BULK) / MFLOPS;
    const from = (grain: number | undefined): string => (grain === undefined ? 'at no size' : `from ${grain} words on`);
    return {
      chart: {
        kind: 'lines',
        x: { name: 'words of a put', places: GRAINS },
        y: { name: 'g (µs a word)', logarithmic: true },
        series: [
          { name: 'baseline', values: packed },
          { name: 'zero-copy', values: lists },
          { name: 'no scatter', values: alone },
        ],
      },
      measured:
        `zero-copy is below the baseline with ${below.join(', ') || 'no'} words a put and stays so ` +
        `${from(fromLists)}, ` +
        `without scatter lists ${from(fromAlone)}. Of the baseline's g it has, with lists, ${ratio(lists, 1)} ` +
        `times ` +
        `with single words, ${[8, 16, 64].map((grain) => `${ratio(lists, grain)} in puts of ${grain}`).join(', ')}; ` +
        `without lists ${[512, 1024, 2048].map((grain) => `${ratio(alone, grain)} in puts of ${grain}`).join(', ')}`,
      holds:
        fromLists !== undefined &&
        within(Math.log2(fromLists), 3, 1 / 3) &&
        fromAlone !== undefined &&
        within(Math.log2(fromAlone), 9, 1 / 9),
      note:
        'only the part without lists fails; nothing is fitted to this figure. With lists, where the lines cross ' +
        `depends on what an entry costs the adapter (adapter.entry, ${fabric.adapter.entry} µs, free, 0.05 to 0.3): ` +
        `with ${ENTRY} zero-copy has ${ofCheap.join(', ')} times the baseline's g in puts of ` +
        `${ENTRY_GRAINS.join(', ')} words, and the lines cross where the paper has it. In puts of 64 words they ` +
        'touch again: a chunk of 16 KiB has 32 entries, and its last read only 4 of them. Without lists each put is ' +
        'a read, and in puts of 512 words takes ' +
        `${at512.map((g) => (512 * (g - packed[GRAINS.indexOf(512)])).toFixed(1)).join(', ')} µs longer than packed ` +
        `(by the start). Packed words are too cheap here, by g in bulk: ${bulk.toFixed(1)} ns, ` +
        `${printedBulk.toFixed(1)} by §4.1 (${PRINTED_BULK} operations, B6), with which zero-copy without lists ` +
        `would have ${((1000 * alone[GRAINS.indexOf(512)]) / printedBulk).toFixed(2)} times the baseline's g. ` +
        'Changed: the line is that of bspbench, through four relations and not the empty superstep; from 16 words a ' +
        `put on it is a mean over ${STARTS.length} starts (B8); puts of 2048 words were added`,
    };
  },
};

const b6: Figure = {
  id: 'B6',
  claim:
    'in relations of a million words, a word costs 197 (baseline) and 267 (zero-copy) ' +
    'operations as a put of its own, 21 and 17 in bulk',
  source: 'BSP-IB §4.1',
  caption: 'g on 8 nodes from relations of 1,048,576 words: each word a put, and one put to each other process.',
  expected:
    'the fitted number (zero-copy in bulk) within 5 %, the other three within 20 %; ' +
    'zero-copy costs more with fine grain and less in bulk',
  schemes: FILES,
  async measure() {
    const h = 2 ** 20;
    const printed = [197, 267, PRINTED_BULK, 17];
    const cases = [1, 0].flatMap((grain) => [BASELINE, ZERO_COPY].map((scheme) => ({ grain, scheme })));
    const found = await forEach(cases, async ({ grain, scheme }) => {
      const once = { options: scheme.options, kind: 'full', grain, warm: 0, repetitions: 1 } as const;
      const [small, large] = await superstepTimes(fabricOf(FABRIC), NODES, once, [2 ** 15, h]);
      return (MFLOPS * (large - small)) / (h - 2 ** 15);
    });
    const right = found.map((g, i) => within(g, printed[i], i === 3 ? 0.05 : 0.2));
    const names = ['baseline, fine', 'zero-copy, fine', 'baseline, bulk', 'zero-copy, bulk'];
    return {
      chart: {
        kind: 'bars',
        x: { name: 'puts', places: names },
        y: { name: 'g (operations a word)', logarithmic: true },
        series: [
          { name: 'measured', values: found },
          { name: 'paper', values: printed, printed: true },
        ],
      },
      measured: found.map((g, i) => `${names[i]}: ${show(g)} (printed: ${printed[i]})`).join('; '),
      holds: right.every((one) => one) && found[1] > found[0] && found[3] < found[2],
      note:
        'fitted: zero-copy in bulk; predicted: the others. The paper had to post a receive for every chunk, ' +
        'since its adapter waits for a second when there is none; here 64 are posted, ' +
        'and one that finds none is tried again after 10 µs',
    };
  },
};

export const chapterBsp: readonly Figure[] = [b1, b3, b5, b6];
