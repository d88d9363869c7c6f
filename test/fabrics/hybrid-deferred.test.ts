/**
 * Hybrid locks with `lock_defer`: a small operation of another node travels with its lock and unlock, everything else
 * waits for the grant, and whatever the mode is, nobody else is in between.
 */
import { describe, expect, test } from 'vitest';
import { type Fabric, type FaultOptions, loadFabric, runTasks } from '../../src/fabrics/index.ts';
import { type Communicator, Lock, Op, Window, type WindowInfo } from '../../src/index.ts';

const NODES = loadFabric('connectx-16-cores');
/** Two ranks a node: 0 and 1, 2 and 3, and so on. */
const fabric: Fabric = { ...NODES, node: { ...NODES.node, ranks: 2 } };
const DEFERRED: WindowInfo = { lock: 'hybrid', lock_defer: true };

type Main = (world: Communicator, win: Window<Int32Array>) => Promise<void>;

/** What each rank has counted of its locks, and what rank 0's part holds in the end. */
async function run(info: WindowInfo, main: Main, options: { faults?: FaultOptions; size?: number } = {}) {
  const { size = 4, ...others } = options;
  const found = await runTasks(
    size,
    async (world) => {
      const win = await Window.allocate(world, Int32Array, 4, { info });
      await world.barrier();
      await main(world, win);
      await world.barrier();
      const { lock } = win.statistics();
      const values = [...win.local];
      await world.barrier();
      await win.free();
      return { lock, values };
    },
    { fabric, seed: 1, ...others },
  );
  return { locks: found.map(({ lock }) => lock), values: found[0].values };
}

const one = async (win: Window<Int32Array>, more = 0): Promise<void> => {
  await win.lock(0, Lock.EXCLUSIVE);
  for (let i = 0; i <= more; i++) win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
  await win.unlock(0);
};

describe('a lock of another node', () => {
  test('that is for one small operation takes one message, and does not change the mode', async () => {
    const info: WindowInfo = { ...DEFERRED, lock_migration: 'every-request' };
    const { locks, values } = await run(info, async ({ rank }, win) => {
      for (let i = 0; rank >= 2 && i < 5; i++) await one(win);
    });
    expect(values[0]).toBe(10);
    for (const rank of [2, 3]) expect(locks[rank]).toMatchObject({ messages: 0, operations: 5, atomics: 0 });
    expect(locks[0]).toMatchObject({ messages: 0, operations: 10, grants: 10, migrations: 0 });
  });

  test('that is for more operations is asked for, and is granted once', async () => {
    const info: WindowInfo = { ...DEFERRED, lock_migration: 'never' };
    const { locks, values } = await run(info, async ({ rank }, win) => {
      if (rank === 2) await one(win);
      if (rank === 2) await one(win, 2);
    });
    expect(values[0]).toBe(4);
    expect(locks[2]).toMatchObject({ messages: 2, operations: 2, atomics: 0 });
    expect(locks[0]).toMatchObject({ messages: 1, operations: 2, grants: 2, migrations: 0 });
  });

  test('that is for one large operation is asked for, too', async () => {
    const sum = await runTasks(
      3,
      async (world) => {
        const win = await Window.allocate(world, Uint8Array, 40_000, { info: DEFERRED });
        if (world.rank === 2) {
          await win.lock(0, Lock.EXCLUSIVE);
          win.put(new Uint8Array(40_000).fill(3), 0, 0);
          await win.unlock(0);
        }
        await world.barrier();
        const all = win.local.reduce((a, b) => a + b, 0);
        const { messages } = win.statistics().lock;
        await world.barrier();
        await win.free();
        return [all, messages];
      },
      { fabric, seed: 1 },
    );
    expect(sum).toEqual([
      [120_000, 1],
      [0, 0],
      [0, 2],
    ]);
  });

  test('is taken by an atomic once the mode is known to be the network’s', async () => {
    const info: WindowInfo = { ...DEFERRED, lock_migration: 'every-request' };
    const { locks, values } = await run(info, async (world, win) => {
      const { rank } = world;
      if (rank === 3) await world.compute(100);
      // Rank 2's epoch of two operations changes the mode; rank 3's operation finds it changed, and is told so.
      if (rank === 2) await one(win, 1);
      if (rank === 3) await one(win);
      for (let i = 0; rank >= 2 && i < 3; i++) await one(win);
    });
    expect(values[0]).toBe(9);
    expect(locks[0]).toMatchObject({ migrations: 1 });
    expect(locks[2]).toMatchObject({ atomics: 7, operations: 1 });
    expect(locks[3].operations).toBe(1);
    expect(locks[3].atomics).toBeGreaterThanOrEqual(6);
  });

  test('does nothing for an epoch without operations', async () => {
    const { locks } = await run(DEFERRED, async ({ rank }, win) => {
      if (rank === 2) await win.lock(0, Lock.EXCLUSIVE);
      if (rank === 2) await win.unlock(0);
    });
    expect(locks[2]).toMatchObject({ messages: 0, operations: 0, atomics: 0 });
  });

  test('is waited for where it is shared, and within the node', async () => {
    const { locks } = await run({ ...DEFERRED, lock_migration: 'never' }, async ({ rank }, win) => {
      if (rank === 0) return;
      await win.lock(0, rank === 1 ? Lock.EXCLUSIVE : Lock.SHARED);
      win.get(new Int32Array(1), 0, 0);
      await win.unlock(0);
    });
    expect(locks[1]).toMatchObject({ messages: 0, operations: 0 });
    for (const rank of [2, 3]) expect(locks[rank]).toMatchObject({ messages: 2, operations: 0 });
  });
});

test('epochs of a rank follow each other, of whatever kind they are', async () => {
  for (const lock_migration of ['never', 'every-request', 'threshold:2', 'history'] as const) {
    await run({ ...DEFERRED, lock_migration }, async ({ rank }, win) => {
      if (rank !== 2) return;
      const found = new Int32Array(1);
      for (let i = 0; i < 40; i++) {
        await win.lock(0, i % 5 === 4 ? Lock.SHARED : Lock.EXCLUSIVE);
        if (i % 3 === 0) {
          win.get(found, 0, 0);
          await win.flush(0);
          expect(found[0]).toBe(i);
        }
        win.put(Int32Array.of(i + 1), 0, 0);
        await win.unlock(0);
      }
    });
  }
});

test('nobody is in between who reads, computes and writes, on whichever node it is', async () => {
  for (const lock_migration of ['never', 'every-request', 'threshold:2', 'history'] as const) {
    const { values } = await run(
      { ...DEFERRED, lock_migration },
      async (world, win) => {
        const before = new Int32Array(1);
        for (let i = 0; i < 20; i++) {
          if ((i + world.rank) % 3 > 0) {
            await one(win);
            continue;
          }
          await win.lock(0, Lock.EXCLUSIVE);
          win.get(before, 0, 0);
          await win.flush(0);
          await world.compute(3);
          win.put(Int32Array.of(before[0] + 1), 0, 0);
          await win.unlock(0);
        }
      },
      { size: 6, faults: { delay: 20 } },
    );
    expect(values[0], lock_migration).toBe(120);
  }
});

test('accumulates under shared locks of both nodes and under lockAll lose nothing', async () => {
  const { values } = await run(DEFERRED, async ({ rank }, win) => {
    for (let i = 0; i < 10; i++) {
      if (i % 2 === 0) await win.lock(0, Lock.SHARED);
      else await win.lockAll();
      win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
      if (i % 3 === 0) await win.flushAll();
      if (i % 2 === 0) await win.unlock(0);
      else await win.unlockAll();
      if (rank >= 2) await one(win);
    }
  });
  expect(values[0]).toBe(60);
});

test('several locks at a time, some of them deferred: a flush of all completes all of them', async () => {
  const { values } = await run({ ...DEFERRED, lock_migration: 'never' }, async ({ rank }, win) => {
    if (rank !== 3) return;
    const found = [new Int32Array(1), new Int32Array(1), new Int32Array(1)];
    for (const target of [0, 1, 2]) await win.lock(target, target === 1 ? Lock.SHARED : Lock.EXCLUSIVE);
    for (const target of [0, 1, 2]) win.put(Int32Array.of(7 + target), target, 1);
    await win.flushAll();
    for (const target of [0, 1, 2]) win.get(found[target], target, 1);
    await win.flushLocalAll();
    expect(found.map(([value]) => value)).toEqual([7, 8, 9]);
    const request = win.rget(found[0], 0, 1);
    await request.wait();
    for (const target of [0, 1, 2]) await win.unlock(target);
  });
  expect(values[1]).toBe(7);
});

test('deadlines are kept, and a call that has given up can be repeated', async () => {
  for (const more of [0, 1]) {
    const { values } = await run(DEFERRED, async (world, win) => {
      if (world.rank === 0) {
        await win.lock(0, Lock.EXCLUSIVE);
        await world.barrier();
        await world.compute(500);
        expect(win.local[0], 'nobody has touched what is locked').toBe(0);
        await world.barrier();
        await win.unlock(0);
        return;
      }
      await world.barrier();
      if (world.rank >= 2) {
        await expect(win.lock(0, Lock.EXCLUSIVE, 0, { timeout: 0.05 })).rejects.toMatchObject({
          code: 'ERR_RMA_TIMEOUT',
        });
        await win.lock(0, Lock.EXCLUSIVE);
        for (let i = 0; i <= more; i++) win.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
        await expect(win.unlock(0, { timeout: 0.05 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
      }
      await world.barrier();
      if (world.rank >= 2) await win.unlock(0);
    });
    expect(values[0]).toBe(2 * (more + 1));
  }
});

test('a target that has died is named to whoever waits for its part', async () => {
  const errors = new Map<number, unknown>();
  const died = runTasks(
    4,
    async (world) => {
      const win = await Window.allocate(world, Int32Array, 4, { info: DEFERRED });
      await world.barrier();
      if (world.rank === 0) await world.compute(100_000);
      await world.compute(1000);
      try {
        await one(win, world.rank % 2);
      } catch (error) {
        errors.set(world.rank, error);
        throw error;
      }
    },
    { fabric, seed: 1, faults: { deaths: [{ rank: 0, time: 2000 }] } },
  );
  await expect(died).rejects.toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 0 });
  for (const rank of [2, 3]) expect(errors.get(rank)).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 0 });
});
