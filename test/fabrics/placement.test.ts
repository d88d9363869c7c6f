/** Writes that are complete before they are in memory: `faults.placement`. */
import { expect, test } from 'vitest';
import type { Communicator } from '../../src/comm/communicator.ts';
import { runTasks } from '../../src/comm/tasks.ts';
import { Assert } from '../../src/window/assert.ts';
import { Window } from '../../src/window/window.ts';

const PLACEMENT = 1000;
const SEEDS = [1, 2, 3, 4, 5];

interface Found {
  readonly load: number;
  readonly got: number;
  readonly later: number;
}

/** A put of rank 0 to rank 1 is complete: what that one loads then, what rank 2 gets, if it does, and what is loaded afterwards. */
async function found(seed: number, placement: number, gets: boolean): Promise<Found> {
  const main = async (world: Communicator): Promise<Found> => {
    const win = await Window.allocate(world, Int32Array, 1);
    const result = new Int32Array(1);
    await win.lockAll(Assert.NO_CHECK);
    if (world.rank === 0) win.put(Int32Array.of(42), 1, 0);
    await win.flushAll();
    await world.barrier();
    const load = win.local[0];
    if (gets && world.rank === 2) win.get(result, 1, 0);
    else await world.compute(PLACEMENT);
    await win.flushAll();
    await world.barrier();
    const later = win.local[0];
    await win.unlockAll();
    await win.free();
    return { load, got: result[0], later };
  };
  const [, { load, later }, { got }] = await runTasks(3, main, {
    fabric: 'infinihost-64',
    seed,
    faults: { placement },
  });
  return { load, got, later };
}

const each = (placement: number, gets: boolean): Promise<Found[]> =>
  Promise.all(SEEDS.map((seed) => found(seed, placement, gets)));

test('loads do not always find what is complete at its origin, and do later', async () => {
  const runs = await each(PLACEMENT, false);
  expect(runs.map(({ load }) => load)).toContain(0);
  for (const { later } of runs) expect(later).toBe(42);
});

test('a get finds it', async () => {
  for (const { got } of await each(PLACEMENT, true)) expect(got).toBe(42);
});

test('so do loads after a wait for the origin’s complete, though its connection with a third rank may be faster', async () => {
  const main = async (world: Communicator): Promise<number[]> => {
    const win = await Window.allocate(world, Int32Array, 1);
    const { group, rank } = world;
    const found: number[] = [];
    for (let round = 1; round <= 5; round++) {
      if (rank === 0) {
        await win.start(group.exclude([0]));
        for (const target of [1, 2]) win.put(Int32Array.of(round), target, 0);
        await win.complete();
      } else {
        await win.post(group.include([0]));
        await win.wait();
        found.push(win.local[0]);
      }
    }
    await win.free();
    return found;
  };
  for (const seed of SEEDS) {
    const options = { fabric: 'infinihost-64', seed, faults: { placement: PLACEMENT } } as const;
    const [, ...found] = await runTasks(3, main, options);
    for (const loads of found) expect(loads).toEqual([1, 2, 3, 4, 5]);
  }
});

test('so do they if complete has ended early, when its targets were told already, and goes on', async () => {
  const words = 2 ** 18;
  const main = async (world: Communicator): Promise<readonly [string, number]> => {
    const win = await Window.allocate(world, Int32Array, words);
    const { group, rank } = world;
    let code = '';
    if (rank === 0) {
      await win.start(group.include([1]));
      win.put(new Int32Array(words).fill(7), 1, 0);
      const error = await win.complete({ timeout: 0.001 }).catch((thrown) => thrown);
      code = error.code;
      await win.complete();
    } else {
      await win.post(group.include([0]));
      await win.wait();
    }
    const found = win.local.filter((value) => value === 7).length;
    await win.free();
    return [code, found];
  };
  const options = { fabric: 'infinihost-64', seed: 1, faults: { placement: PLACEMENT } } as const;
  expect(await runTasks(2, main, options)).toEqual([
    ['ERR_RMA_TIMEOUT', 0],
    ['', words],
  ]);
});

test('without it, loads find it at once', async () => {
  for (const { load } of await each(0, false)) expect(load).toBe(42);
});

test('the time is checked', async () => {
  await expect(found(1, -1, false)).rejects.toThrow('faults.placement must be from 0 to 1000000000, not -1');
});
