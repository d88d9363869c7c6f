/** The figures of the dissertation's chapter 4: passive synchronization, one rank a node. */
import type { WindowInfo } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { modelledMachine } from '../patterns/machine.ts';
import { overlap } from '../patterns/overlap.ts';
import { fight } from './contention.ts';
import { type Figure, forEach, lockFile, type Series, show, sizeName } from './figure.ts';
import { alike, DIRECT, FABRIC, FILES, SCHEMES, TWO_SIDED } from './passive-locks.ts';
import { epoch, type Locked, locked, mean } from './programs.ts';

/** D4.1: locks that are timed together, while the target computes so many times as long. */
const LOCKS = 100;
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
];
