/** What the faults of a modelled fabric do: delays, losses, and deaths while locks are held. */
import { expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Op } from '../../src/datatype/op.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';

const SEEDS = Array.from({ length: 20 }, (_, seed) => seed);
const NUMBER = 10;

/** Ranks 1 and 2 count at rank 0, rank 2 later by so many microseconds: what each of them found there. */
async function counted(later: number, options: Partial<TaskOptions>): Promise<number[][]> {
  const main = async (world: Communicator): Promise<number[]> => {
    const win = await Window.allocate(world, BigInt64Array, 1);
    const found = new BigInt64Array(NUMBER);
    await win.lockAll(Assert.NO_CHECK);
    await world.barrier();
    await world.compute(world.rank === 2 ? 200 + later : 200);
    for (let i = 0; world.rank > 0 && i < NUMBER; i++) {
      win.fetchAndOp(BigInt64Array.of(1n), found.subarray(i, i + 1), 0, 0, Op.SUM);
    }
    await win.flushAll();
    await world.barrier();
    await win.unlockAll();
    await win.free();
    return [...found].map(Number);
  };
  const [, first, second] = await runTasks(3, main, { fabric: 'infinihost-64', ...options });
  return [first, second];
}

const ascending = (values: readonly number[]): boolean => values.every((value, i) => i === 0 || values[i - 1] < value);

test('delayed messages of different queue pairs overtake each other, those of one keep their order', async () => {
  const runs = await Promise.all(SEEDS.map((seed) => counted(20, { seed, faults: { delay: 100 } })));
  const overtaken = runs.filter(([first, second]) => second[0] < first[0]);
  expect(overtaken.length).toBeGreaterThan(0);
  expect(overtaken.length).toBeLessThan(runs.length);
  for (const found of runs) {
    expect(found.every(ascending)).toBe(true);
    expect(found.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 2 * NUMBER }, (_, i) => i));
  }
});

test('without delays, who is later by more than a message takes is never first', async () => {
  for (const seed of SEEDS) {
    const [first, second] = await counted(20, { seed });
    expect(first[0]).toBeLessThan(second[0]);
  }
});

test('what is lost is sent again, and carried out once', async () => {
  const runs = await Promise.all(SEEDS.map((seed) => counted(0, { seed, faults: { loss: 0.1 } })));
  for (const found of runs) {
    expect(found.every(ascending)).toBe(true);
    expect(found.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: 2 * NUMBER }, (_, i) => i));
  }
});

test.each<[string, WindowInfo]>([
  ['remote', {}],
  ['two-sided', { lock: 'two-sided' }],
  ['direct', { lock: 'direct' }],
  ['hybrid', { lock: 'hybrid', lock_migration: 'every-request' }],
])('a rank dies that holds a lock, or stands in its line: whoever waits is told which one (%s)', async (_, info) => {
  for (const dying of [1, 2]) {
    const errors = new Map<number, unknown>();
    const main = async (world: Communicator): Promise<void> => {
      const { rank } = world;
      const win = await Window.allocate(world, Int32Array, 1, { info });
      await world.barrier();
      try {
        // Rank 1 has the lock, rank 2 is next, rank 3 stands behind it; none of them comes to its unlock before the
        // death.
        await world.compute(50 * rank);
        if (rank === 0) await world.barrier();
        await win.lock(0, Lock.EXCLUSIVE);
        await world.compute(rank === 1 ? 100_000 : 1);
        await win.unlock(0);
        await world.barrier();
      } catch (error) {
        errors.set(rank, error);
        throw error;
      }
    };
    const run = runTasks(4, main, {
      fabric: 'infinihost-64',
      seed: 1,
      faults: { deaths: [{ rank: dying, time: 20_000 }] },
    });
    await expect(run).rejects.toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: dying });
    for (const rank of [0, 3])
      expect(errors.get(rank), `rank ${rank}`).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: dying });
  }
});

test('options and faults that there are not are refused, by name: they may be misspelt', async () => {
  const run = (options: object): Promise<number[]> =>
    runTasks(1, ({ rank }) => rank, { fabric: 'infinihost-64', ...options });
  await expect(run({ sead: 5 })).rejects.toThrowError(
    /runTasks: the options: unknown name "sead"; did you mean "seed"\?$/,
  );
  await expect(run({ faults: { dely: 5 } })).rejects.toThrowError(
    /faults: unknown name "dely"; did you mean "delay"\?$/,
  );
  await expect(run({ sead: 5 })).rejects.toMatchObject({ code: 'ERR_ARG', name: 'TypeError' });
  expect(await run({ seed: 5, faults: { delay: 5 } })).toEqual([0]);
});
