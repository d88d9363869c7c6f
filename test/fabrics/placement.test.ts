/** Writes that are complete before they are in memory: `faults.placement`. */

import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { LOCK_SCHEMES } from '../../src/sync/lock/lock-kinds.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';

const PLACEMENT = 1000;
const SEEDS = [1, 2, 3, 4, 5];
const PUT = 42;

/** How rank 0 puts to rank 1 and is sure that it has: then rank 1 is told by a message. */
const WAYS: Readonly<Record<string, (win: Window<Int32Array>, origin: Int32Array) => Promise<void>>> = {
  async 'unlock of an exclusive lock'(win, origin) {
    await win.lock(1, Lock.EXCLUSIVE);
    win.put(origin, 1, 0);
    await win.unlock(1);
  },
  async 'unlock of a shared lock'(win, origin) {
    await win.lock(1, Lock.SHARED);
    win.put(origin, 1, 0);
    await win.unlock(1);
  },
  async unlockAll(win, origin) {
    await win.lockAll();
    win.put(origin, 1, 0);
    await win.unlockAll();
  },
  async flush(win, origin) {
    await win.lockAll(Assert.NO_CHECK);
    win.put(origin, 1, 0);
    await win.flush(1);
  },
  async flushAll(win, origin) {
    await win.lockAll(Assert.NO_CHECK);
    win.put(origin, 1, 0);
    await win.flushAll();
  },
  async 'flushLocal, and then flush'(win, origin) {
    await win.lockAll(Assert.NO_CHECK);
    win.put(origin, 1, 0);
    await win.flushLocal(1);
    await win.flush(1);
  },
  async 'a request, and flush'(win, origin) {
    await win.lockAll(Assert.NO_CHECK);
    await win.rput(origin, 1, 0).wait();
    await win.flush(1);
  },
  async 'a flush that has ended early, and another one'(win, origin) {
    await win.lockAll(Assert.NO_CHECK);
    win.put(origin, 1, 0);
    await win.flush(1, { timeout: 0.001 }).catch(() => {});
    await win.flush(1);
  },
};

/** What rank 1 loads when it has been told, and has called `sync`; and the time at which rank 0's put was complete. */
async function told(
  way: string,
  seed: number,
  placement: number,
  info: WindowInfo = {},
  words = 1,
): Promise<{ loaded: Int32Array; took: number }> {
  const main = async (world: Communicator): Promise<{ loaded: Int32Array; took: number }> => {
    const win = await Window.allocate(world, Int32Array, words, { info });
    let took = 0;
    if (world.rank === 0) {
      const began = world.now();
      await WAYS[way](win, new Int32Array(words).fill(PUT));
      took = world.now() - began;
      await world.send(Int32Array.of(1), 1);
    } else {
      await world.receive(new Int32Array(1), 0);
      win.sync();
    }
    const loaded = win.local.slice();
    await world.barrier();
    if (way.includes('flush')) await win.unlockAll().catch(() => {});
    await win.free();
    return { loaded, took };
  };
  const [{ took }, { loaded }] = await runTasks(2, main, { fabric: 'infinihost-64', seed, faults: { placement } });
  return { loaded, took };
}

describe('who is told by a message of a put that is complete by', () => {
  test.each(Object.keys(WAYS))('%s finds it in its memory', async (way) => {
    for (const seed of SEEDS) expect([...(await told(way, seed, PLACEMENT)).loaded]).toEqual([PUT]);
  });

  test.each([...LOCK_SCHEMES])('unlock (lock: %s) finds it there', async (lock) => {
    for (const seed of SEEDS) {
      const { loaded } = await told('unlock of an exclusive lock', seed, PLACEMENT, { lock });
      expect([...loaded]).toEqual([PUT]);
    }
  });

  test('flush finds all of it, if it is too long for one request inline', async () => {
    const words = 2 ** 16;
    const { loaded } = await told('flush', 1, PLACEMENT, {}, words);
    expect(loaded.every((value) => value === PUT)).toBe(true);
  });
});

test.each(['flushLocal', 'flushLocalAll'] as const)(
  'what %s completes may not be in memory yet, and costs no round trip to be sure of it',
  async (call) => {
    const main = async (world: Communicator): Promise<number> => {
      const win = await Window.allocate(world, Int32Array, 1);
      await win.lockAll(Assert.NO_CHECK);
      const began = world.now();
      if (world.rank === 0) {
        win.put(Int32Array.of(PUT), 1, 0);
        await (call === 'flushLocal' ? win.flushLocal(1) : win.flushLocalAll());
      }
      const took = world.now() - began;
      await world.barrier();
      const loaded = win.local[0];
      await win.unlockAll();
      await win.free();
      return world.rank === 0 ? took : loaded;
    };
    const run = (placement: number): Promise<number[]> =>
      runTasks(2, main, { fabric: 'infinihost-64', seed: 1, faults: { placement } });
    const [[took, missing], [tookOnce, there]] = await Promise.all([run(PLACEMENT), run(0)]);
    expect([missing, there]).toEqual([0, PUT]);
    expect(took).toBe(tookOnce);
  },
);

test('to be sure of it costs nothing where completion implies placement', async () => {
  // Virtual times of this fabric before flush waited for placement anywhere: figures depend on them.
  const times = await Promise.all(['flush', 'unlock of an exclusive lock'].map((way) => told(way, 1, 0)));
  const [flush, unlock] = times.map(({ took }) => took);
  expect(flush).toBeCloseTo(4.25956, 6);
  expect(unlock).toBeCloseTo(11.37868, 6);
});

describe('a put whose request is complete, which says only that its origin may be changed,', () => {
  interface Found {
    readonly load: number;
    readonly got: number;
    readonly later: number;
  }

  /** What rank 1 loads when it has been told, what rank 2 gets, if it does, and what is loaded afterwards. */
  async function found(seed: number, placement: number, gets: boolean): Promise<Found> {
    const main = async (world: Communicator): Promise<Found> => {
      const win = await Window.allocate(world, Int32Array, 1);
      const result = new Int32Array(1);
      await win.lockAll(Assert.NO_CHECK);
      if (world.rank === 0) await win.rput(Int32Array.of(PUT), 1, 0).wait();
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
    const options = { fabric: 'infinihost-64', seed, faults: { placement } } as const;
    const [, { load, later }, { got }] = await runTasks(3, main, options);
    return { load, got, later };
  }

  const each = (placement: number, gets: boolean): Promise<Found[]> =>
    Promise.all(SEEDS.map((seed) => found(seed, placement, gets)));

  test('is not always found by loads, but is later', async () => {
    const runs = await each(PLACEMENT, false);
    expect(runs.map(({ load }) => load)).toContain(0);
    for (const { later } of runs) expect(later).toBe(PUT);
  });

  test('is found by a get', async () => {
    for (const { got } of await each(PLACEMENT, true)) expect(got).toBe(PUT);
  });

  test('is found by loads at once where completion implies placement', async () => {
    for (const { load } of await each(0, false)) expect(load).toBe(PUT);
  });
});

test('a put that the next request of its connection finds is not confirmed twice', async () => {
  const main = async (world: Communicator): Promise<number> => {
    const win = await Window.allocate(world, Int32Array, 1);
    await win.lockAll(Assert.NO_CHECK);
    if (world.rank === 0) win.put(Int32Array.of(PUT), 1, 0);
    await win.flushAll();
    const began = world.now();
    await win.flushAll();
    const took = world.now() - began;
    await win.unlockAll();
    await win.free();
    return took;
  };
  const [took] = await runTasks(2, main, { fabric: 'infinihost-64', seed: 1, faults: { placement: PLACEMENT } });
  expect(took).toBe(0);
});

test('loads find a put after a wait for the origin’s complete, though it may reach a third rank sooner', async () => {
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

test('and if complete has ended early, when its targets were told already, and goes on', async () => {
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

test('a request is complete at the target once its window is freed, also if a wait for it ended early', async () => {
  const main = async (world: Communicator): Promise<unknown[]> => {
    const win = await Window.allocate(world, Int32Array, 1);
    await win.lockAll(Assert.NO_CHECK);
    const requests = [0, 1, 2].map(() => win.rput(Int32Array.of(PUT), 1 - world.rank, 0));
    const early = await requests[0].waitRemote({ timeout: 0.001 }).catch((error) => error.code);
    await win.unlockAll();
    await win.free();
    await requests[0].waitRemote();
    await requests[1].waitRemote();
    return [early, requests[2].testRemote()];
  };
  const options = { fabric: 'infinihost-64', seed: 1, faults: { placement: PLACEMENT } } as const;
  expect(await runTasks(2, main, options)).toEqual(Array(2).fill(['ERR_RMA_TIMEOUT', true]));
});

test('the time is checked', async () => {
  await expect(told('flush', 1, -1)).rejects.toThrow('faults.placement must be from 0 to 1000000000, not -1');
});
