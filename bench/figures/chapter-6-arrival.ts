/** What the fences of the dissertation's §6.2 and §6.3 send, and that all puts are there after them. */
import { Assert, type Communicator, Window } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { FABRIC } from './fence-times.ts';
import { FENCE_FILES, FENCES, type Fence, type Figure, forEach } from './figure.ts';
import { counted, type Sent, together } from './programs.ts';

const MEMBERS = 16;
const SEEDS = 20;
const SCHEDULES = 20;
const FENCED = 6;

/** Messages overtake each other. */
async function countedOf(fence: Fence, seed: number): Promise<Sent> {
  const main = (world: Communicator): Promise<Sent> => counted(world, { fence, seed, epochs: FENCED });
  return together(
    await runTasks(MEMBERS, main, { fabric: FABRIC.fabric, seed, order: 'random', faults: { delay: 5 } }),
  );
}

/**
 * Rank 0 puts to the last rank, all wait for their own requests, and meet in a barrier; or in a fence.
 * @returns whether the put is there then, and whether later
 */
async function putArrives(fence: Fence | undefined, seed: number, placement: number): Promise<readonly boolean[]> {
  const main = async (world: Communicator): Promise<readonly boolean[]> => {
    const win = await Window.allocate(world, Int32Array, 1, fence === undefined ? {} : { info: { fence } });
    const put = (): void => {
      if (world.rank === 0) win.put(Int32Array.of(42), world.size - 1, 0);
    };
    const arrived = (): boolean => win.local[0] === 42;
    await win.fence();
    if (fence === undefined) {
      await win.fence(Assert.NO_SUCCEED);
      await win.lockAll(Assert.NO_CHECK);
      put();
      await win.flushLocalAll();
      await world.barrier();
    } else {
      put();
      await win.fence(Assert.NO_SUCCEED);
    }
    const seen = arrived();
    await world.compute(2 * placement);
    const later = arrived();
    await world.barrier();
    if (fence === undefined) await win.unlockAll();
    await win.free();
    return [seen, later];
  };
  const options = { fabric: FABRIC.fabric, seed, order: 'random', faults: { delay: 1, placement } } as const;
  const found = await runTasks(MEMBERS, main, options);
  return found[MEMBERS - 1];
}

export const fenceArrivals: readonly Figure[] = [
  {
    id: 'D6.1',
    claim: 'four schemes: deferred, immediate-naive, immediate-optimized, remote-notify',
    source: 'dissertation §6.2–6.3',
    caption:
      `What a rank sends in a fence besides its collectives, the mean of ${SEEDS} random schedules of ` +
      `puts among ${MEMBERS} ranks.`,
    expected:
      'every put is there after its fence and not before its epoch, in every schedule; ' +
      'for each rank that is put to, a message (deferred), a finish message (immediate-naive, ' +
      'immediate-optimized) or neither (remote-notify); flags to all others with immediate-naive alone',
    schemes: FENCE_FILES,
    async measure() {
      const seeds = Array.from({ length: SEEDS }, (_, seed) => seed);
      const sent = await forEach(FENCES, async (fence) => {
        return together(await forEach(seeds, (seed) => countedOf(fence, seed)));
      });
      const number = SEEDS * MEMBERS * 2 * FENCED;
      const must = (name: Fence, puts: number): readonly number[] => [
        name === 'deferred' ? puts : 0,
        name === 'immediate-naive' || name === 'immediate-optimized' ? puts : 0,
        name === 'immediate-naive' ? number * (MEMBERS - 1) : 0,
        0,
      ];
      const found = sent.map(({ messages, finishes, flags, wrong }) => [messages, finishes, flags, wrong]);
      const kinds = ['messages', 'finish messages', 'flags'];
      return {
        chart: {
          kind: 'bars',
          x: { name: 'scheme', places: FENCES },
          y: { name: 'sent by a rank in a fence' },
          series: kinds.map((name, kind) => ({ name, values: found.map((counts) => counts[kind] / number) })),
        },
        measured: `for ${sent[0].puts} puts in ${number} fences: ${FENCES.map((name, i) => {
          const [messages, finishes, flags, wrong] = found[i];
          return `${name} ${messages} messages, ${finishes} finish messages, ${flags} flags, ${wrong} wrong values`;
        }).join('; ')}`,
        holds: FENCES.every((name, i) => must(name, sent[i].puts).every((count, k) => count === found[i][k])),
      };
    },
  },
  {
    id: 'D6.2',
    claim: 'waiting for local completion and then a barrier is wrong: a put can arrive after it',
    source: 'dissertation figure 6.3',
    caption:
      `A put is not in memory when ${MEMBERS} ranks have synchronized: ` +
      `in how many of ${SCHEDULES} random schedules.`,
    expected:
      'local completion and a barrier: the put is missing in some schedules, and arrives later in all; ' +
      'with the four fences it is missing in none; and in none at all if completed data is in memory',
    schemes: [...FENCE_FILES, 'src/providers/modelled/faults.ts'],
    async measure() {
      const placements = [0, 10, 20, 40, 80];
      const seeds = Array.from({ length: SCHEDULES }, (_, seed) => seed);
      let lost = 0;
      const missing = async (fence: Fence | undefined, placement: number): Promise<number> => {
        const runs = await forEach(seeds, (seed) => putArrives(fence, seed, placement));
        lost += runs.filter(([, later]) => !later).length;
        return runs.filter(([seen]) => !seen).length;
      };
      const inAll = (fence?: Fence): Promise<number[]> => forEach(placements, (placement) => missing(fence, placement));
      const wrong = await inAll();
      const four = await forEach(FENCES, inAll);
      const ofFences = placements.map((_, k) => four.reduce((sum, values) => sum + values[k], 0));
      return {
        chart: {
          kind: 'lines',
          x: { name: 'a write is in memory after its completion within (µs)', places: placements },
          y: { name: 'schedules in which the put is missing' },
          series: [
            { name: 'local completion, barrier', values: wrong },
            { name: 'the four fences together', values: ofFences },
          ],
        },
        measured:
          `missing in ${wrong.join(', ')} of ${SCHEDULES} schedules at ${placements.join(', ')} µs, ` +
          `${lost} of them for good; with the four fences in ${ofFences.join(', ')} of ${FENCES.length * SCHEDULES}`,
        holds: wrong[0] === 0 && Math.max(...wrong) > 0 && lost === 0 && ofFences.every((n) => n === 0),
        note:
          'InfiniBand leaves open what a completion says about the memory at the other end; so does the ' +
          'fabric, with faults.placement',
      };
    },
  },
];
