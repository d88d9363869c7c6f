/**
 * The figures of chapter 7 of the dissertation: read-modify-write. Its testbed, nodes with DDR adapters, is not that of
 * chapters 4 and 6; but of it no more than three times are printed, so the fabric of the other one stands for it.
 */
import { Assert, type WindowInfo } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import type { EpochsOptions, EpochsResult, WayName } from '../hpcc/epochs.ts';
import { fabricOf } from './fabrics.ts';
import { type Figure, forEach, rounded, type Series, show } from './figure.ts';
import {
  type ManyOptions,
  many,
  OPERATIONS,
  one,
  type SingleOptions,
  SYNCHRONIZATIONS,
  single,
  updates,
} from './updates.ts';

const FABRIC = { fabric: fabricOf('infinihost-64'), seed: 1 } as const;
const SAMPLES = 20;
const RANKS = [2, 4, 8, 16, 32, 64];
/** Twice as many take the model four times as long: packs are half as full, so there are four times as many. */
const MANY_RANKS = [...RANKS, 128, 256];
const MOST_RANKS = [64, 128, 256, 512];
/** As many times as many updates, where it matters how long the program is. */
const LONGER = 4;

/**
 * The dissertation's library: an epoch of one small operation is one message, which the target's processor carries out.
 */
const LIBRARY: WindowInfo = { lock: 'two-sided', lock_defer: true };
/** The adapter updates a 64-bit integer atomically, so nobody takes a lock for it. */
const ADAPTER: WindowInfo = { update: 'by-requests' };

/** How each way of RandomAccess is run. */
export const UPDATE_WAYS: Readonly<Record<WayName, Pick<EpochsOptions, 'info' | 'lock'>>> = {
  'get-modify-put': { info: LIBRARY, lock: 'shared' },
  accumulate: { info: LIBRARY, lock: 'shared' },
  packed: { info: LIBRARY, lock: 'shared' },
  direct: { info: ADAPTER, lock: 'unchecked' },
};
const FILES = [
  'src/sync/lock/two-sided-lock.ts',
  'src/transfer/requests/request-updates.ts',
  'src/transfer/served/update-kinds.ts',
];

interface HowRun {
  readonly ahead?: number;
  /** As many times as many updates. */
  readonly times?: number;
}

async function run(ranks: number, way: WayName, { ahead = 1024, times = 1 }: HowRun): Promise<EpochsResult> {
  // Four updates a word. Packed ones are more, or few packs would be full before the end.
  const words = times * (way === 'packed' ? 512 : 256) * ranks;
  const [result] = await runTasks(
    ranks,
    (world) => updates(world, { way, words, ahead, asHpcc: true, ...UPDATE_WAYS[way] }),
    FABRIC,
  );
  return result;
}

interface Rates extends Series {
  readonly runs: readonly EpochsResult[];
}

/** Thousand updates in a millisecond: as HPCC's GUP/s, times a million. */
async function rates(name: string, way: WayName, ranks: readonly number[], how: HowRun = {}): Promise<Rates> {
  const runs = await forEach(ranks, (size) => run(size, way, how));
  return { name, runs, values: runs.map(({ rate }) => rate) };
}

const y = { name: 'updates of all ranks (million a second)', logarithmic: true };
const byRanks = (ranks: readonly number[]): { name: string; places: readonly number[] } => ({
  name: 'processes',
  places: ranks,
});
const listed = (values: readonly number[]): string => values.map(show).join(', ');
const grows = (values: readonly number[]): boolean => values.every((value, k) => k === 0 || value > values[k - 1]);
const at = (ranks: readonly number[], wrong: (k: number) => boolean): string =>
  ranks.filter((_, k) => wrong(k)).join(', ');

/** Printed: figure 7.3a. */
const PRINTED = [5.68, 11.03, 7.06];
const TOLERANCE = 0.2;
/** Puts and gets are written and read at once, accumulates are messages: so it was in the dissertation's library. */
const FENCES: readonly WindowInfo[] = [{ fence: 'notify-all' }, { fence: 'notify-all' }, { fence: 'deferred' }];

const NUMBERS = [1, 4, 16, 64, 256, 512, 1024];
const HOW = ['an epoch each', 'one epoch', 'packed'] as const;
const SINGLES: Readonly<Record<string, Pick<SingleOptions, 'info' | 'way' | 'assert'>>> = {
  'get-modify-put': { info: LIBRARY, way: 'get-modify-put', assert: 0 },
  accumulate: { info: LIBRARY, way: 'accumulate', assert: 0 },
  direct: { info: ADAPTER, way: 'accumulate', assert: Assert.NO_CHECK },
  'direct, with an exclusive lock of its own': { info: { lock: 'direct' }, way: 'accumulate', assert: 0 },
};

async function singleOf(name: string): Promise<number> {
  const [took] = await runTasks(2, (world) => single(world, { ...SINGLES[name], samples: SAMPLES }), FABRIC);
  return took;
}
/** Of times as in `SINGLES`: that of direct. */
const isLeast = ([gmp, acc, direct]: readonly number[]): boolean => direct < Math.min(gmp, acc);
/** Packed and direct updates, and how many times as many are packed in the same time, by processes. */
async function leads(
  ranks: readonly number[],
  { times = 1, direct = times }: { readonly times?: number; readonly direct?: number } = {},
): Promise<{ series: readonly Rates[]; factors: number[] }> {
  const packed = await rates('packed', 'packed', ranks, { times });
  const single = await rates('direct', 'direct', ranks, { times: direct });
  return { series: [packed, single], factors: ranks.map((_, k) => packed.values[k] / single.values[k]) };
}

/** D7.5: of such factors. */
const narrows = (factors: readonly number[]): boolean =>
  factors.every((factor) => factor > 1) && grows(factors.map((factor) => -factor));

export const chapter7: readonly Figure[] = [
  {
    id: 'D7.1',
    claim: '8-byte put 5.68 µs, get 11.03 µs, accumulate 7.06 µs',
    source: 'dissertation figure 7.3a',
    caption:
      'An operation of 8 bytes with its synchronization, for three kinds of synchronization; the ' +
      'dissertation does not name its own.',
    expected:
      'with one of the three synchronizations, all three operations within ' +
      `${100 * TOLERANCE} % of what is printed`,
    schemes: [
      'src/sync/fence/notify-all-fence.ts',
      'src/sync/fence/deferred-fence.ts',
      'src/sync/pscw/pscw-by-requests.ts',
      ...FILES,
    ],
    async measure() {
      const infos: readonly (readonly WindowInfo[])[] = [
        FENCES,
        OPERATIONS.map(() => ({ update: 'by-target' })),
        OPERATIONS.map(() => LIBRARY),
      ];
      const series = await forEach([...SYNCHRONIZATIONS.keys()], async (k) => ({
        name: SYNCHRONIZATIONS[k],
        values: await forEach([...OPERATIONS.keys()], async (i) => {
          const options = { info: infos[k][i], operation: OPERATIONS[i], by: SYNCHRONIZATIONS[k], samples: SAMPLES };
          const [took] = await runTasks(2, (world) => one(world, options), FABRIC);
          return took;
        }),
      }));
      const fits = series.filter(({ values }) =>
        values.every((value, i) => Math.abs(value / PRINTED[i] - 1) <= TOLERANCE),
      );
      return {
        chart: {
          kind: 'bars',
          x: { name: 'operation', places: OPERATIONS },
          y: { name: 'time (µs)' },
          series: [{ name: 'dissertation', values: PRINTED }, ...series],
        },
        measured:
          `put, get, accumulate, µs: ${series.map(({ name, values }) => `${name} ${listed(values)}`).join('; ')}; ` +
          `printed ${listed(PRINTED)}. Within ${100 * TOLERANCE} %: ` +
          `${fits.map(({ name }) => name).join(', ') || 'none'}`,
        holds: fits.length > 0,
        note:
          'with the fence, puts and gets are one-sided (notify-all) and accumulates are messages (deferred), ' +
          'as in the library behind the dissertation; the adapters of that testbed were faster. A fence of this ' +
          'library waited until what it had told the other rank had arrived, as that library does: then it took ' +
          '4.96, 9.12 and 7.20 µs, all within the tolerance. It does not wait for that any more',
      };
    },
  },
  {
    id: 'D7.2',
    claim: 'RandomAccess by accumulate beats get-modify-put, more so with more processes; get-modify-put loses updates',
    source: 'dissertation figures 7.2–7.3b',
    caption: 'RandomAccess with an epoch for each update, by get-modify-put and by accumulate.',
    expected:
      'accumulate faster at every number of processes, with a lead in updates a second that grows at ' +
      'each step; get-modify-put loses updates from 4 processes on, accumulate none',
    schemes: ['bench/hpcc/epochs.ts', ...FILES],
    async measure() {
      const gmp = await rates('get-modify-put', 'get-modify-put', RANKS);
      const acc = await rates('accumulate', 'accumulate', RANKS);
      const gaps = RANKS.map((_, k) => acc.values[k] - gmp.values[k]);
      const ratios = RANKS.map((_, k) => acc.values[k] / gmp.values[k]);
      const lost = gmp.runs.map((result) => result.lost);
      return {
        chart: {
          kind: 'lines',
          x: byRanks(RANKS),
          y,
          series: [gmp, acc],
          also: { 'words that lost updates, get-modify-put': lost, 'words in all': gmp.runs.map(({ words }) => words) },
        },
        measured:
          `accumulate makes ${show(gaps[0])} million updates a second more than get-modify-put on ${RANKS[0]} ` +
          `processes, and ${grows(gaps) ? 'with each further step more, up to' : 'not more at each step:'} ` +
          `${show(gaps.at(-1)!)} on ${RANKS.at(-1)}. With get-modify-put ${lost.join(', ')} words lost updates on ` +
          `${RANKS.join(', ')} processes, with accumulate ${acc.runs.reduce((sum, { lost: one }) => sum + one, 0)}`,
        holds:
          gaps.every((gap) => gap > 0) &&
          grows(gaps) &&
          RANKS.every((size, k) => size < 4 || lost[k] > 0) &&
          acc.runs.every((result) => result.lost === 0),
        note:
          `the gap grows as drawn, in updates a second; as a factor it is ${show(Math.min(...ratios))} to ` +
          `${show(Math.max(...ratios))}, because two epochs replace one. A rank updates its own words without a ` +
          "call, as in HPCC's own program; an earlier version called the library for them",
      };
    },
  },
  {
    id: 'D7.3',
    claim: 'packing 512 to 1024 updates into one accumulate beats single accumulates, in the small and in RandomAccess',
    source: 'dissertation figure 7.4',
    caption: 'Updates of single words of one rank, together and one by one.',
    expected:
      'between two ranks: packed faster than an epoch for each update from 4 updates on, by a margin ' +
      'that grows with their number; RandomAccess: faster at every number of processes with 512 ' +
      'and with 1024 updates ahead',
    schemes: ['bench/hpcc/epochs.ts', ...FILES],
    async measure() {
      const series = await forEach(HOW, async (how) => ({
        name: how,
        values: await forEach(NUMBERS, async (number) => {
          const options: ManyOptions = { info: LIBRARY, number, how, samples: 3 };
          const [took] = await runTasks(2, (world) => many(world, options), FABRIC);
          return took;
        }),
      }));
      const [each, together, packed] = series.map(({ values }) => values);
      const gains = NUMBERS.map((_, k) => each[k] / packed[k]);
      const acc = await rates('accumulate', 'accumulate', RANKS);
      const ahead = await forEach([512, 1024], (n) => rates(`packed, ${n}`, 'packed', RANKS, { ahead: n }));
      return {
        chart: {
          kind: 'lines',
          x: { name: 'updates', places: NUMBERS },
          y: { name: 'time (µs)', logarithmic: true },
          series,
          also: Object.fromEntries(
            [acc, ...ahead].map(({ name, values }) => [
              `RandomAccess, ${name}: million updates a second on ${RANKS.join(', ')} processes`,
              values.map((value) => Number(show(value))),
            ]),
          ),
        },
        measured:
          `packed is ${show(gains[NUMBERS.indexOf(4)])} times as fast as an epoch for each with 4 updates, and ` +
          `${show(gains.at(-1)!)} times with ${NUMBERS.at(-1)}. In RandomAccess it makes ` +
          ahead
            .map(({ name, values }) => {
              const least = Math.min(...values.map((value, k) => value / acc.values[k]));
              return `at least ${10 * Math.floor(least / 10)} times as many updates as accumulate (${name} ahead)`;
            })
            .join(', ') +
          `, on ${RANKS[0]} to ${RANKS.at(-1)} processes`,
        holds:
          grows(gains) &&
          NUMBERS.every((n, k) => n < 4 || packed[k] < each[k]) &&
          ahead.every(({ values }) => values.every((value, k) => value > acc.values[k])),
        note:
          'here, accumulates of one epoch also leave in one message, and cost little more than the packed one: ' +
          `${show(together.at(-1)!)} µs for ${show(packed.at(-1)!)} with ${NUMBERS.at(-1)} updates`,
      };
    },
  },
  {
    id: 'D7.4',
    claim: 'a 64-bit SUM by fetch-and-add of the adapter beats both others for single updates, and scales better',
    source: 'dissertation figures 7.5–7.6',
    caption: 'RandomAccess with an epoch for each update: by messages to the target, and by the adapter.',
    // §7.4: "for single updates of 64bit integer, the (DIRECT_ACC) scheme provides the lowest latency"; in RandomAccess
    // "the Direct accumulate performs significantly better than the basic accumulate" and "seems to scale very well
    // with increasing number of processors". It says nothing of how the factor between them grows.
    expected:
      'a single update between two ranks: direct takes the least time; RandomAccess: ' +
      'direct faster than accumulate at every number of processes, with a lead in updates a second that ' +
      'grows at each step',
    schemes: ['bench/hpcc/epochs.ts', ...FILES],
    async verdict() {
      if (!isLeast(await forEach(Object.keys(SINGLES), singleOf))) return false;
      const [acc, direct] = [await rates('', 'accumulate', RANKS), await rates('', 'direct', RANKS)];
      const leads = RANKS.map((_, k) => direct.values[k] - acc.values[k]);
      return leads.every((lead) => lead > 0) && grows(leads);
    },
    async measure() {
      const names = Object.keys(SINGLES);
      const times = await forEach(names, singleOf);
      const gmp = await rates('get-modify-put', 'get-modify-put', RANKS);
      const acc = await rates('accumulate', 'accumulate', RANKS);
      const direct = await rates('direct', 'direct', RANKS);
      const factors = RANKS.map((_, k) => direct.values[k] / acc.values[k]);
      const leads = RANKS.map((_, k) => direct.values[k] - acc.values[k]);
      const slower = at(RANKS, (k) => factors[k] <= 1);
      return {
        chart: { kind: 'lines', x: byRanks(RANKS), y, series: [gmp, acc, direct] },
        measured:
          `a single update takes ${names.map((name, i) => `${show(times[i])} µs (${name})`).join(', ')}. In ` +
          `RandomAccess on ${RANKS.join(', ')} processes direct makes ${listed(factors)} times as many updates as ` +
          `accumulate. Its lead, ${listed(leads)} million a second, ${grows(leads) ? 'grows' : 'does not grow'} at ` +
          'each step',
        holds: isLeast(times) && slower === '' && grows(leads),
        note:
          `${slower === '' ? '' : `with ${slower} processes direct is slower. `}` +
          'direct takes no lock (NO_CHECK): an exclusive one of its own would cost two more round trips. Program and ' +
          "criterion were changed: a rank updates its own words without a call, as in HPCC's own program, and the " +
          'lead has to grow in updates a second, not as a factor',
      };
    },
  },
  {
    id: 'D7.5',
    claim: 'packed accumulates beat direct ones, and the gap narrows as processes grow',
    source: 'dissertation figure 7.7',
    caption:
      'RandomAccess with up to 1024 updates ahead, packed by rank, and by the adapter: 2,048 packed and 1,024 direct ' +
      'updates a process.',
    expected:
      'up to 64 processes packed is faster, by a smaller factor at each number than at the one before, and so it is ' +
      `with ${LONGER} times as many updates a process`,
    schemes: ['bench/hpcc/epochs.ts', ...FILES],
    async verdict() {
      for (const times of [1, LONGER]) if (!narrows((await leads(RANKS, { times })).factors)) return false;
      return true;
    },
    async measure() {
      const { series, factors } = await leads(MANY_RANKS);
      const longer = (await leads(RANKS, { times: LONGER })).factors;
      const judged = factors.slice(0, RANKS.length);
      const crossed = MANY_RANKS.find((_, k) => factors[k] < 1);
      return {
        chart: {
          kind: 'lines',
          x: byRanks(MANY_RANKS),
          y,
          series,
          also: { [`${LONGER} times as many updates: packed over direct on ${RANKS.join(', ')}`]: rounded(longer, 2) },
        },
        measured:
          `on ${MANY_RANKS.join(', ')} processes packed makes ${listed(factors)} times as many updates as direct; ` +
          `with ${LONGER} times as many updates a process ${listed(longer)} times, on up to ${RANKS.at(-1)}`,
        holds: narrows(judged) && narrows(longer),
        note:
          "as in HPCC's own program, the 1,024 updates ahead are one pool, and the fullest bucket is sent, which " +
          'has twice as many as there would be in equal shares. Packed ones are messages: a connection that ten have ' +
          'come by is one that every look looks at, for `host.pollConnection` (fitted to table 6.1), and where all ' +
          'are, looks take longer than packs. So the gap narrows faster in longer programs. ' +
          `${crossed === undefined ? '' : `From ${crossed} processes on direct is faster. `}` +
          'The program was changed: it gave each rank an equal share of the room, so that packed became slower with ' +
          'more processes by itself; and more updates were tried since',
      };
    },
  },
];

/** D7.5 with more processes, and as many more updates of packed ones that connections are polled (see the note). */
export const manyProcesses: Figure = {
  id: 'O.3',
  claim:
    `the gap of packed and direct accumulates goes on to narrow up to ${MOST_RANKS.at(-1)} processes, where direct ` +
    'ones have passed',
  source: 'ours; the programs of dissertation figure 7.7',
  caption: `RandomAccess as in D7.5 with more processes, and ${LONGER} times as many packed updates.`,
  expected:
    'packed is faster by a smaller factor at each number of processes than at the one before, and slower at ' +
    `${MOST_RANKS.at(-1)}`,
  schemes: ['bench/hpcc/epochs.ts', ...FILES],
  long: true,
  async measure() {
    const { series, factors } = await leads(MOST_RANKS, { times: LONGER, direct: 1 });
    return {
      chart: { kind: 'lines', x: byRanks(MOST_RANKS), y, series },
      measured: `on ${MOST_RANKS.join(', ')} processes packed makes ${listed(factors)} times as many updates as direct`,
      holds: factors.at(-1)! < 1 && grows(factors.map((factor) => -factor)),
      note:
        'the program was changed: each rank had an equal share of the updates ahead for every other one, up to 1,024 ' +
        'processes, where direct ones were 4.7 times as fast; now there is one pool, as in D7.5, whose packs are ' +
        'longer. Packed updates are as many as in the longer runs of D7.5, for the reason that its note has: ' +
        '`host.pollConnection` and how many connections are looked at (`host.pollLimit`, free) decide. With 30 % ' +
        'more of the first, packed makes 34.4 million a second on 512 processes, fewer than direct. The figure takes ' +
        'ten minutes, so it is measured only when it is named (`npm run figures -- --only O.3`)',
    };
  },
};
