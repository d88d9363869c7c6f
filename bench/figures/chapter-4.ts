/**
 * The figures of the dissertation's chapter 4: passive synchronization, one rank a node. `two-sided` is that of the
 * dissertation's library (`lock_defer`): the unlock asks for the lock, or sends one small operation with it.
 */
import { Assert, type Communicator, Window, type WindowInfo } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { modelledMachine } from '../patterns/machine.ts';
import { overlap } from '../patterns/overlap.ts';
import type { LuResult } from '../splash/lu.ts';
import { fight } from './contention.ts';
import { fabricOf } from './fabrics.ts';
import { factorOn } from './factor.ts';
import { type Figure, forEach, GFLOPS, lockFile, type Series, show, sizeName } from './figure.ts';
import { epoch, type Locked, locked, mean } from './programs.ts';

const FABRIC = { fabric: fabricOf('infinihost-64'), seed: 1 } as const;
const TWO_SIDED: WindowInfo = { lock: 'two-sided', lock_defer: true };
const DIRECT: WindowInfo = { lock: 'direct' };
const SCHEMES: readonly (readonly [string, WindowInfo])[] = [
  ['two-sided', TWO_SIDED],
  ['direct', DIRECT],
];
/** D4.1: locks that are timed together, while the target computes so many times as long. */
const LOCKS = 100;
const FILES = [lockFile('two-sided'), lockFile('direct')];
const SAMPLES = 10;
/**
 * Shared locks that the agent of `direct` lets in, of 8 ranks, before it steps aside (`DirectGate`): four times as many
 * as ranks.
 */
const SHARED_BATCH = 32;
const BOTH = ['put', 'get'] as const;

/** Microseconds of an epoch. */
async function epochOf(info: WindowInfo, bytes: number, operation: 'put' | 'get'): Promise<number> {
  const options = { info, bytes, operation, samples: SAMPLES, warm: 1 };
  const [took] = await runTasks(2, (world) => epoch(world, options), FABRIC);
  return took;
}

async function hidden(info: WindowInfo, operation: 'put' | 'get', bytes: number, operations: number): Promise<number> {
  const options = { side: 'sender', operation, bytes, operations, samples: 3, compute: 1, info } as const;
  const [result] = await runTasks(2, (world) => overlap(world, options, modelledMachine(world)), FABRIC);
  return 'overlap' in result ? result.overlap : Number.NaN;
}

/**
 * How much longer 10 ms of computation take at a rank of whose part others get 32 KiB, over and over.
 * @param piece microseconds after which it lets the library serve them
 */
async function slowdown(info: WindowInfo, origins: number, piece: number): Promise<number> {
  const compute = 10_000;
  const common = { side: 'receiver', operation: 'get', bytes: 32768, operations: 1, samples: 1 } as const;
  const options = { ...common, compute, pieces: compute / piece, info };
  const [result] = await runTasks(origins + 1, (world) => overlap(world, options, modelledMachine(world)), FABRIC);
  if (result.errors > 0) throw new Error(`${result.errors} gets have found something else`);
  return 'slowdown' in result ? result.slowdown : Number.NaN;
}

const LU_RANKS = [8, 16, 32, 64];
/** D4.7: operations a nanosecond of a core that could do 9.3. */
const NEAR_PEAK = 8;
/** Per cent that §4.4.2 prints, of 8 to 64 processes together. */
const GAINS = [
  { name: 'n = 2048', least: 25, most: 81 },
  { name: 'n = 3000', least: 58, most: 87 },
] as const;
/** Milliseconds in unlock, of two-sided and direct, that §4.4.2 prints for n = 3000 on 64 processes. */
const PRINTED_UNLOCK = [832, 421] as const;
const measured = new Map<string, Promise<LuResult>>();

/** The dissertation's program, whose arithmetic is charged and not done. */
function factored(n: number, ranks: number, info: WindowInfo, gflops = GFLOPS): Promise<LuResult> {
  const key = `${n} ${ranks} ${info.lock} ${gflops}`;
  const found = measured.get(key) ?? factorOn(FABRIC, ranks, { n, block: 128, info }, gflops);
  measured.set(key, found);
  return found;
}

/** By how many per cent longer two-sided takes than direct. */
async function gainOf(n: number, ranks: number, gflops = GFLOPS): Promise<number> {
  const [twoSided, direct] = await forEach(SCHEMES, ([, info]) => factored(n, ranks, info, gflops));
  return 100 * (twoSided.milliseconds[0] / direct.milliseconds[0] - 1);
}

/**
 * Swaps of rank 0's word for each lock that was taken by ranks that swap again at once until they have it, and hold it
 * as long as others do.
 */
async function impatient(ranks: number, locks: number): Promise<number> {
  const main = async (world: Communicator): Promise<number> => {
    // 64 bits, which the adapter swaps itself.
    const win = await Window.allocate(world, BigInt64Array, 1, { info: DIRECT });
    const [mine, free, found] = [BigInt64Array.of(BigInt(world.rank + 1)), BigInt64Array.of(0n), new BigInt64Array(1)];
    let swaps = 0;
    const swap = async (to: BigInt64Array, from: BigInt64Array): Promise<boolean> => {
      swaps++;
      win.compareAndSwap(to, from, found, 0, 0);
      await win.flush(0);
      return found[0] === from[0];
    };
    await win.lockAll(Assert.NO_CHECK);
    await world.barrier();
    for (let i = 0; i < locks; i++) {
      while (!(await swap(mine, free)));
      await world.compute(5);
      await swap(free, mine);
    }
    await world.barrier();
    await win.unlockAll();
    await win.free();
    return swaps;
  };
  const swaps = await runTasks(ranks, main, FABRIC);
  return swaps.reduce((sum, n) => sum + n, 0) / (ranks * locks);
}

/** The same of another operation, or size. */
const alike = (series: readonly Series[], what: string): Series[] =>
  series.map(({ name, values }) => ({ name: `${name}, ${what}`, values, like: name }));

export const chapter4: readonly Figure[] = [
  {
    id: 'D4.2',
    claim:
      'shared locks go through an agent at the target that takes the same word and counts holders; ' +
      'both modes exclude each other correctly',
    source: 'dissertation §4.1',
    caption:
      'Mean time of a lock when 8 ranks lock one part for 5 µs each, by the share of shared locks; 20 ' +
      'random schedules.',
    expected:
      'in no schedule an exclusive holder together with another holder; several shared holders at a ' +
      'time; messages for shared locks, none if all are exclusive',
    schemes: [lockFile('direct'), 'src/sync/lock/lock-agent.ts'],
    async measure() {
      const shares = [0, 25, 50, 75, 100];
      const schedules = Array.from({ length: 20 }, (_, i) => i);
      let violations = 0;
      const results = await forEach(shares, (share) =>
        forEach(schedules, async (schedule) => {
          const fought = await fight({
            ranks: 8,
            locks: 20,
            info: DIRECT,
            options: { ...FABRIC, seed: schedule, order: 'random', faults: { delay: 5 } },
            isExclusive: (rank, turn) => (37 * rank + 61 * turn + 13 * schedule) % 100 >= share,
          });
          violations += fought.violations;
          return fought;
        }),
      );
      const messages = results.map((all) => all.reduce((sum, { counts }) => sum + counts.messages, 0));
      const together = results.map((all) => Math.max(...all.map((one) => one.together)));
      const took = results.map((all) => all.reduce((sum, one) => sum + one.took, 0) / all.length);
      // After a full batch of shared locks the agent steps aside for 2 ms.
      const times = results[4].flatMap((one) => one.times);
      const others = times.filter((time) => time < 1500);
      return {
        chart: {
          kind: 'lines',
          x: { name: 'shared locks (%)', places: shares },
          y: { name: 'time of a lock (µs)' },
          series: [{ name: 'direct', values: took }],
        },
        note:
          'locks take much longer if all of them are shared, ' +
          `${show(took[4])} µs rather than ${show(took[0])}, which is the price of fairness: after ` +
          `every ${SHARED_BATCH} shared locks the agent releases the word and steps aside for 2 ms, so ` +
          `that exclusive locks can get it, even if there are none. ${times.length - others.length} of ` +
          `${times.length} ` +
          `locks wait for that; the others take ${show(mean(others))} µs`,
        measured:
          `${violations} violations in ${results.flat().length} schedules; ` +
          `at most ${together.join(', ')} shared holders at a time; ${messages.join(', ')} messages`,
        holds: violations === 0 && messages[0] === 0 && messages.slice(1).every((n) => n > 0) && together[4] > 1,
      };
    },
  },
  {
    id: 'D4.1',
    claim:
      "exclusive lock is one 64-bit compare-and-swap on the target's lock word (size = free, rank = holder, " +
      'size + 1 = shared); no target CPU',
    source: 'dissertation figure 4.2, §4.1',
    caption: 'Exclusive lock and unlock while the target computes, by the length of the computation.',
    expected:
      'direct: two atomic operations and no message for a lock and its unlock, ' +
      `and the same time within 1 % for every length of the computation, the mean of ${LOCKS} in a row; ` +
      'two-sided: longer with the computation',
    schemes: FILES,
    async measure() {
      const computations = [0, 50, 100, 200, 400];
      const run = async (info: WindowInfo, compute: number): Promise<Locked> => {
        const [found] = await runTasks(
          2,
          (world) => locked(world, { info, compute, rounds: 1, warm: 1, each: LOCKS }),
          FABRIC,
        );
        return found;
      };
      // What is waited for is the lock, so that it is seen how long that takes.
      const direct = await forEach(computations, (compute) => run(DIRECT, compute));
      const twoSided = await forEach(computations, (compute) => run({ lock: 'two-sided' }, compute));
      const times = direct.map(({ took }) => took);
      const holds =
        direct.every(({ atomics, messages }) => atomics === 2 && messages === 0) &&
        times.every((time) => Math.abs(time / times[0] - 1) < 0.01) &&
        twoSided[4].took > twoSided[0].took + 300;
      return {
        chart: {
          kind: 'lines',
          x: { name: 'computation at the target (µs)', places: computations },
          y: { name: 'lock and unlock (µs)' },
          series: [
            { name: 'two-sided', values: twoSided.map(({ took }) => took) },
            { name: 'direct', values: times },
          ],
        },
        measured:
          `direct ${show(times[0])} and ${show(times[4])} µs, ${direct[0].atomics} atomic operations, ` +
          `${direct[0].messages} messages; two-sided ${show(twoSided[0].took)} and ${show(twoSided[4].took)} µs`,
        holds,
      };
    },
  },
  {
    id: 'D4.3',
    claim: 'lock + put/get + unlock: two-sided is faster for small messages, direct is equal or faster for large ones',
    source: 'dissertation figure 4.4',
    caption: 'Lock, put (dashed: get) and unlock, by the size of the transfer; no other rank wants the lock.',
    expected: 'put and get: two-sided faster at 4 bytes, direct not more than 2 % slower at 256 KiB',
    schemes: FILES,
    async measure() {
      const sizes = [4, 64, 1024, 4096, 16384, 65536, 262144];
      const [put, get] = await forEach(BOTH, (operation) =>
        forEach(SCHEMES, async ([name, info]) => ({
          name,
          values: await forEach(sizes, (bytes) => epochOf(info, bytes, operation)),
        })),
      );
      const last = sizes.length - 1;
      const holds = [put, get].every(
        ([twoSided, direct]) =>
          twoSided.values[0] < direct.values[0] && direct.values[last] <= 1.02 * twoSided.values[last],
      );
      const at = ([twoSided, direct]: readonly Series[], k: number): string =>
        `two-sided ${show(twoSided.values[k])}, direct ${show(direct.values[k])}`;
      return {
        chart: {
          kind: 'lines',
          x: { name: 'bytes of the put or get', places: sizes.map(sizeName) },
          y: { name: 'lock, put or get, unlock (µs)', logarithmic: true },
          series: [...put, ...alike(get, 'get')],
        },
        measured:
          `µs: put 4 B: ${at(put, 0)}; put 256 KiB: ${at(put, last)}; get 4 B: ${at(get, 0)}; get ` +
          `256 KiB: ${at(get, last)}`,
        holds,
        note: 'the dissertation draws these times but does not print them, so only the shape could be compared',
      };
    },
  },
  {
    id: 'D4.4',
    claim: 'sender-side overlap: direct reaches nearly all of a large transfer, two-sided none',
    source: 'dissertation figure 4.5',
    caption: 'Share of an epoch of one put (dashed: get) that is hidden behind computation before the unlock.',
    expected: 'put and get: 256 KiB: direct at least 85 %; two-sided below 10 % at every size',
    schemes: FILES,
    async measure() {
      const sizes = [4, 1024, 16384, 65536, 262144, 1048576];
      const [put, get] = await forEach(BOTH, (operation) =>
        forEach(SCHEMES, async ([name, info]) => ({
          name,
          values: await forEach(sizes, (bytes) => hidden(info, operation, bytes, 1)),
        })),
      );
      const all = [put, get].map((series) => series.map(({ values }) => values));
      return {
        chart: {
          kind: 'lines',
          x: { name: 'bytes of the put or get', places: sizes.map(sizeName) },
          y: { name: 'overlap (%)' },
          series: [...put, ...alike(get, 'get')],
        },
        measured: all
          .map(
            ([twoSided, direct], i) =>
              `${BOTH[i]} of 256 KiB: direct ${direct[4].toFixed(0)} %, two-sided ${twoSided[4].toFixed(0)} %; ` +
              `two-sided at most ${Math.max(...twoSided).toFixed(0)} %`,
          )
          .join('; '),
        holds: all.every(([twoSided, direct]) => direct[4] >= 85 && twoSided.every((value) => value < 10)),
      };
    },
  },
  {
    id: 'D4.5',
    claim: 'the same for 32 KiB with a growing number of operations in the epoch',
    source: 'dissertation figure 4.6',
    caption: 'Share of an epoch of several puts (dashed: gets) of 32 KiB that is hidden behind computation.',
    expected: 'puts and gets: from 8 operations on: direct at least 85 %; two-sided below 10 % at every number',
    schemes: FILES,
    async measure() {
      const numbers = [1, 2, 4, 8, 16, 32];
      const [put, get] = await forEach(BOTH, (operation) =>
        forEach(SCHEMES, async ([name, info]) => ({
          name,
          values: await forEach(numbers, (operations) => hidden(info, operation, 32768, operations)),
        })),
      );
      const all = [put, get].map((series) => series.map(({ values }) => values));
      return {
        chart: {
          kind: 'lines',
          x: { name: 'puts or gets of 32 KiB in the epoch', places: numbers },
          y: { name: 'overlap (%)' },
          series: [...put, ...alike(get, 'get')],
        },
        measured: all
          .map(
            ([twoSided, direct], i) =>
              `8 ${BOTH[i]}s: direct ${direct[3].toFixed(0)} %, two-sided ${twoSided[3].toFixed(0)} %`,
          )
          .join('; '),
        holds: all.every(
          ([twoSided, direct]) =>
            direct.slice(3).every((value) => value >= 85) && twoSided.every((value) => value < 10),
        ),
      };
    },
  },
  {
    id: 'D4.6',
    claim: 'receiver-side: direct = 1 however many origins; two-sided grows with the origins, to about 4.5 at 64',
    source: 'dissertation figure 4.7',
    caption: 'Slowdown of a computation in pieces while other ranks lock, get 32 KiB and unlock.',
    // §4.4.1: "for 64 processes, the deterioration in the execution time is about 4.5 times worse for the two-sided
    // case as compared to direct passive". It says neither how often the computation lets the library serve, nor that
    // each further origin adds to it.
    expected:
      'direct within 1 % of 1 with every number of origins; two-sided, for at least one length of a ' +
      'piece, slower with each larger number of origins. Factor: with some length, two-sided 3.6 to 5.4 with 63 ' +
      'origins (printed: about 4.5)',
    schemes: [...FILES, 'bench/patterns/overlap.ts'],
    async measure() {
      const origins = [1, 3, 7, 15, 31, 63];
      const pieces = [0.5, 1, 10, 50];
      const inPieces = (info: WindowInfo, piece: number): Promise<number[]> =>
        forEach(origins, (n) => slowdown(info, n, piece));
      const twoSided = await forEach(pieces, (piece) => inPieces(TWO_SIDED, piece));
      const direct = await inPieces(DIRECT, 10);
      const steps = pieces.map((_, i) => twoSided[i].map((time, k) => k === 0 || time > twoSided[i][k - 1]));
      const growing = pieces.flatMap((_, i) => (steps[i].every((grows) => grows) ? [i] : []));
      const stalled = pieces.flatMap((piece, i) => {
        const at = origins.filter((_, k) => !steps[i][k]);
        return at.length === 0 ? [] : [`${piece} µs: not at ${at.join(', ')} origins`];
      });
      return {
        chart: {
          kind: 'lines',
          x: { name: 'origins', places: origins },
          y: { name: 'time of the computation, alone = 1', logarithmic: true },
          series: [
            ...pieces.map((piece, i) => ({ name: `two-sided, pieces of ${piece} µs`, values: twoSided[i] })),
            { name: 'direct', values: direct },
          ],
        },
        measured:
          `63 origins: direct ${show(direct[5])}; two-sided, in pieces of ${pieces.join(', ')} µs, ` +
          `${twoSided.map((values) => show(values[5])).join(', ')}`,
        holds: direct.every((time) => Math.abs(time - 1) < 0.01) && growing.length > 0,
        factor: twoSided.some((values) => values[5] >= 3.6 && values[5] <= 5.4),
        note:
          'the criterion was corrected: it required growth at each step for every length of a piece, ' +
          'which the dissertation does not claim. It grows at each step in pieces of ' +
          `${growing.map((i) => pieces[i]).join(', ') || 'no length'} µs; with the other lengths it ` +
          `does not grow everywhere (${stalled.join('; ') || 'none'}). The dissertation’s factor, ` +
          `about 4.5 at 64 processes, is not reached: ${show(Math.max(...twoSided.map((values) => values[5])))} at ` +
          'most, and how often the library serves does not explain it. ' +
          'What the target’s software spent on a request there, which the dissertation does not ' +
          'print, is not in the model',
      };
    },
  },
  {
    id: 'D4.7',
    claim:
      'SPLASH LU, block 128: direct beats two-sided at every size by 25–81 % (n = 2048) and 58–87 % (n = 3000), ' +
      '8–64 processes; "by" is t(two-sided) / t(direct) − 1',
    source: 'dissertation figure 4.8',
    caption:
      'By how much two-sided takes longer than direct: SPLASH LU of 2048 × 2048 and 3000 × 3000 in blocks of 128; ' +
      `arithmetic is charged at ${GFLOPS} GFLOP/s a process.`,
    expected:
      'two-sided takes longer than direct by at least 25 % (n = 2048) and 58 % (n = 3000), on 8, 16, 32 and 64 ' +
      'processes. Factor: by at most 81 and 87 %',
    schemes: [...FILES, 'bench/splash/lu.ts'],
    async verdict() {
      const gains = await forEach([2048, 3000], (n) => forEach(LU_RANKS, (ranks) => gainOf(n, ranks)));
      return gains.every((values, i) => values.every((gain) => gain >= GAINS[i].least));
    },
    async measure() {
      const gains = await forEach([2048, 3000], (n) => forEach(LU_RANKS, (ranks) => gainOf(n, ranks)));
      const times = await forEach([2048, 3000], (n) =>
        forEach(SCHEMES, ([, info]) =>
          forEach(LU_RANKS, async (ranks) => (await factored(n, ranks, info)).milliseconds[0]),
        ),
      );
      const percent = (values: readonly number[]): string => values.map((value) => value.toFixed(0)).join(', ');
      const rates = [GFLOPS / 4, 4 * GFLOPS];
      const atRates = await forEach(rates, (gflops) => gainOf(2048, 8, gflops));
      const fewAndMany = [LU_RANKS[0], LU_RANKS[LU_RANKS.length - 1]];
      const atPeak = await forEach([2048, 3000], (n) => forEach(fewAndMany, (ranks) => gainOf(n, ranks, NEAR_PEAK)));
      const inRange = atPeak
        .flatMap((values, i) => values.map((gain) => gain >= GAINS[i].least && gain <= GAINS[i].most))
        .filter((is) => is).length;
      const { fetched } = await factored(2048, 8, TWO_SIDED);
      const above = GAINS.flatMap(({ name, most }, i) => {
        const ranks = LU_RANKS.filter((_, k) => gains[i][k] > most);
        return ranks.length === 0 ? [] : [`${name} on ${ranks.join(' and ')} processes`];
      });
      return {
        chart: {
          kind: 'lines',
          x: { name: 'processes', places: LU_RANKS },
          y: { name: 'time of two-sided over that of direct, − 1 (%)' },
          also: Object.fromEntries(
            GAINS.flatMap(({ name }, i) => [
              [`${name}, two-sided: ms`, times[i][0].map((time) => Number(show(time)))],
              [`${name}, direct: ms`, times[i][1].map((time) => Number(show(time)))],
            ]),
          ),
          series: GAINS.flatMap(({ name, least, most }, i) => [
            { name, values: gains[i] },
            { name: `${name}, dissertation, least`, values: LU_RANKS.map(() => least), like: name },
            { name: `${name}, dissertation, most`, values: LU_RANKS.map(() => most), like: name },
          ]),
        },
        measured:
          `on ${LU_RANKS.join(', ')} processes two-sided takes longer by ${percent(gains[0])} % (n = 2048) and ` +
          `${percent(gains[1])} % (n = 3000)`,
        holds: gains[0].every((gain) => gain >= 25) && gains[1].every((gain) => gain >= 58),
        factor: above.length === 0,
        note:
          `${above.length === 0 ? '' : `that is more than the dissertation's most at ${above.join(', ')}. `}` +
          'The dissertation does not say how fast its processors compute. The faster, the smaller the gain: with ' +
          `${rates.join(' and ')} GFLOP/s it is ${percent(atRates)} % (n = 2048, 8 processes). With ` +
          `${NEAR_PEAK}, near ` +
          `the peak of a core of 2.33 GHz, it is ${percent(atPeak[0])} % (n = 2048) and ${percent(atPeak[1])} % ` +
          `(n = 3000) on ${fewAndMany.join(' and ')} processes: ${inRange} of these 4 are in the printed ranges. So ` +
          'the rate explains a part, and one rate for all points was not found. ' +
          'What else does is open. The program was ' +
          `changed to the dissertation's, whose pattern of gets is known from table 5.1 (${fetched} gets with blocks ` +
          'of 128 on 8 processes)',
      };
    },
  },
  {
    id: 'D4.8',
    claim: 'two-sided spends the difference in unlock and barrier; its lock and get calls cost next to nothing',
    source: 'dissertation figure 4.9',
    caption:
      'Where SPLASH LU of 3000 × 3000 spends its time on 64 processes, the mean of all (pale: unlock as ' +
      'the dissertation prints it)' +
      `; arithmetic is charged at ${GFLOPS} GFLOP/s a process.`,
    expected:
      'two-sided: lock and get together below 5 % of the time; unlock and barrier together longer than under ' +
      'direct by at least 80 % of the whole difference',
    schemes: [...FILES, 'bench/splash/lu.ts'],
    async measure() {
      const parts = ['lock', 'get', 'unlock', 'barrier', 'compute'] as const;
      const results = await forEach(SCHEMES, ([, info]) => factored(3000, 64, info));
      const [twoSided, direct] = results.map(({ breakdown }) => breakdown);
      const total = (b: typeof twoSided): number => parts.reduce((sum, part) => sum + b[part], 0);
      const difference = total(twoSided) - total(direct);
      const waited = twoSided.unlock + twoSided.barrier - direct.unlock - direct.barrier;
      return {
        chart: {
          kind: 'bars',
          x: { name: 'calls', places: parts },
          y: { name: 'time a process (ms)' },
          series: results.flatMap(({ breakdown }, i) => [
            { name: SCHEMES[i][0], values: parts.map((part) => breakdown[part]) },
            {
              name: `${SCHEMES[i][0]}, dissertation`,
              values: parts.map((part) => (part === 'unlock' ? PRINTED_UNLOCK[i] : null)),
              like: SCHEMES[i][0],
            },
          ]),
        },
        measured:
          `two-sided, ms: ${parts.map((part) => `${part} ${show(twoSided[part])}`).join(', ')}; direct: ` +
          `${parts.map((part) => `${part} ${show(direct[part])}`).join(', ')}`,
        holds: (twoSided.lock + twoSided.get) / total(twoSided) < 0.05 && difference > 0 && waited >= 0.8 * difference,
        note:
          'the dissertation prints 832 and 421 ms for unlock; here lock and unlock together, ' +
          `since direct waits for its lock in the first, take ${show(twoSided.lock + twoSided.unlock)} and ` +
          `${show(direct.lock + direct.unlock)}`,
      };
    },
  },
  {
    id: 'D4.9',
    claim: 'exponential back-off keeps a contended direct lock from flooding the network',
    source: 'dissertation §4.1, left open there',
    caption: 'Atomic operations per acquired lock, when all ranks want the same lock and hold it for 5 µs.',
    expected: 'with 64 ranks, fewer than a fifth of the atomic operations of ranks that retry at once',
    schemes: [lockFile('direct'), 'src/sync/lock/lock-back-off.ts'],
    async measure() {
      const locks = 10;
      const patient = await forEach(LU_RANKS, async (ranks) => {
        const { counts, taken } = await fight({ ranks, locks, info: DIRECT, options: FABRIC, isExclusive: () => true });
        return counts.atomics / taken;
      });
      const hasty = await forEach(LU_RANKS, (ranks) => impatient(ranks, locks));
      const [with64, without64] = [patient, hasty].map((values) => values[LU_RANKS.indexOf(64)]);
      return {
        chart: {
          kind: 'lines',
          x: { name: 'processes', places: LU_RANKS },
          y: { name: 'atomic operations a lock', logarithmic: true },
          series: [
            { name: 'direct, with back-off', values: patient },
            { name: 'again at once', values: hasty },
          ],
        },
        measured: `atomic operations a lock with 64 ranks: ${show(with64)} with back-off, ${show(without64)} without`,
        holds: with64 < without64 / 5,
      };
    },
  },
  {
    id: 'O.1',
    claim:
      'our own reader-writer lock without agent, `remote`, keeps up under contention with the locks of the ' +
      'dissertation, and is fair',
    source: 'ours; the locks of dissertation §4.1 and §5.2 beside it',
    caption:
      'Locks of one part, a quarter of them exclusive, held for 5 µs: ' +
      'the mean, and (dashed) the longest of all, by the number of processes that want it.',
    expected:
      'no exclusive holder beside another one with any lock; from 16 processes on, ' +
      'a lock of remote takes no longer than the fastest of the three others, ' +
      'and its longest wait is not more than three times its mean',
    schemes: [lockFile('remote'), ...FILES, lockFile('hybrid')],
    async measure() {
      const locks = ['two-sided', 'direct', 'hybrid', 'remote'] as const;
      const found = await forEach(locks, (lock) =>
        forEach(LU_RANKS, (ranks) =>
          fight({
            ranks,
            locks: 20,
            info: { lock },
            options: FABRIC,
            isExclusive: (rank, turn) => (rank + turn) % 4 === 0,
          }),
        ),
      );
      const mean = locks.map((name, i) => ({ name, values: found[i].map(({ took }) => took) }));
      const longest = locks.map((name, i) => ({ name, values: found[i].map((one) => one.longest) }));
      const violations = found.flat().reduce((sum, one) => sum + one.violations, 0);
      const [others, [remote]] = [mean.slice(0, 3), mean.slice(3)];
      const at64 = LU_RANKS.indexOf(64);
      const at64Longest = locks.map((_, i) => longest[i].values[at64] / mean[i].values[at64]);
      const holds =
        violations === 0 &&
        [1, 2, 3].every(
          (k) =>
            remote.values[k] <= Math.min(...others.map(({ values }) => values[k])) &&
            longest[3].values[k] <= 3 * remote.values[k],
        );
      return {
        chart: {
          kind: 'lines',
          x: { name: 'processes', places: LU_RANKS },
          y: { name: 'lock, 5 µs, unlock (µs)', logarithmic: true },
          series: [...mean, ...alike(longest, 'longest')],
        },
        note:
          'a lock that serves ranks in order cannot let shared locks with an exclusive one between them ' +
          'hold it together; with direct and hybrid, a rank that comes at the right time overtakes the ' +
          'others, and the longest wait is ' +
          `${at64Longest.slice(1, 3).map(Math.round).join(' and ')} times the mean with ` +
          `64 processes, with remote ${at64Longest[3].toFixed(1)} times. ` +
          'The agent of two-sided needs no request of the network to see who is next',
        measured:
          `${violations} violations; µs with 64 processes, mean and longest: ` +
          locks.map((name, i) => `${name} ${show(mean[i].values[at64])}, ${show(longest[i].values[at64])}`).join('; '),
        holds,
      };
    },
  },
];
