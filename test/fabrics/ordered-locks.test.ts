/**
 * Programs that lock in one order of all locks cannot block each other, also where `lock` does not wait (`lock_defer`):
 * a lock that is deferred is had before the next one is asked for.
 */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { type Fabric, loadFabric } from '../../src/fabrics/index.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';

const LOCKS = ['two-sided', 'hybrid'] as const;
const NODES = loadFabric('connectx-16-cores');
const FABRICS: readonly Fabric[] = [
  loadFabric('infinihost-64'),
  { ...NODES, name: 'two ranks a node', node: { ...NODES.node, ranks: 2 } },
];
const CASES = LOCKS.flatMap((lock) => FABRICS.map((fabric) => [lock, fabric.name, fabric] as const));
const ROUNDS = 8;

describe.each(CASES)('deferred %s locks on %s', (lock, _, fabric) => {
  const info: WindowInfo = { lock, lock_defer: true };
  const run = <T>(main: (world: Communicator) => Promise<T>, size = 3) => runTasks(size, main, { fabric });

  /** Counts up what lies at each of two ranks, whose locks are taken in the order of ranks. */
  const both = async (world: Communicator, of: (rank: number) => Window<Int32Array>): Promise<void> => {
    const next = (world.rank + 1) % world.size;
    const order = [Math.min(world.rank, next), Math.max(world.rank, next)];
    for (let round = 0; round < ROUNDS; round++) {
      for (const rank of order) await of(rank).lock(rank, Lock.EXCLUSIVE);
      // The last one first: no lock is asked for by its own accesses.
      for (const rank of order.toReversed()) {
        const found = new Int32Array(1);
        of(rank).get(found, rank, 0);
        await of(rank).flush(rank);
        of(rank).put(Int32Array.of(found[0] + 1), rank, 0);
        await of(rank).flush(rank);
      }
      for (const rank of order) await of(rank).unlock(rank);
    }
  };

  test('of one window', async () => {
    const values = await run(async (world) => {
      const win = await Window.allocate(world, Int32Array, 1, { info });
      await both(world, () => win);
      await world.barrier();
      const [value] = win.local;
      await win.free();
      return value;
    });
    expect(values).toEqual([2 * ROUNDS, 2 * ROUNDS, 2 * ROUNDS]);
  });

  test('of several windows, of which one waits for its locks', async () => {
    const values = await run(async (world) => {
      const windows = [
        await Window.allocate(world, Int32Array, 1, { info }),
        await Window.allocate(world, Int32Array, 1, { info }),
        await Window.allocate(world, Int32Array, 1, { info: { lock } }),
      ];
      await both(world, (rank) => windows[rank]);
      await world.barrier();
      const value = windows[world.rank].local[0];
      for (const win of windows) await win.free();
      return value;
    });
    expect(values).toEqual([2 * ROUNDS, 2 * ROUNDS, 2 * ROUNDS]);
  });

  test('before a lockAll of another window', async () => {
    const order = await run(async (world) => {
      const first = await Window.allocate(world, Int32Array, 1, { info });
      const second = await Window.allocate(world, Int32Array, 1, { info });
      const mine: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        if (world.rank === 0) {
          await first.lock(2, Lock.EXCLUSIVE);
          await second.lock(1, Lock.EXCLUSIVE);
          first.put(Int32Array.of(round), 2, 0);
          await first.flush(2);
          await second.unlock(1);
        } else {
          await first.lock(2, Lock.EXCLUSIVE);
          await second.lockAll();
          first.put(Int32Array.of(round), 2, 0);
          await first.flush(2);
          await second.unlockAll();
        }
        await first.unlock(2);
        mine.push(round);
      }
      await world.barrier();
      await first.free();
      await second.free();
      return mine.length;
    });
    expect(order).toEqual([ROUNDS, ROUNDS, ROUNDS]);
  });

  test('of which the first is given back before anything is done under the second: nobody overtakes', async () => {
    const at = await run(async (world) => {
      const win = await Window.allocate(world, Int32Array, 1, { info });
      await world.barrier();
      const found = new Int32Array(1);
      const isThere = (): boolean => found[0] === 1;
      if (world.rank === 0) {
        await win.lock(1, Lock.EXCLUSIVE);
        await win.lock(2, Lock.EXCLUSIVE);
        win.put(Int32Array.of(1), 1, 0);
        await win.unlock(1);
        // Whoever finds what was put under the first comes behind this one at the second.
        await world.compute(500);
        win.put(Int32Array.of(1), 2, 0);
        await win.unlock(2);
      } else if (world.rank === 1) {
        for (let i = 0; i < 1000; i++) {
          await world.compute(1);
          await win.lock(1, Lock.EXCLUSIVE);
          win.get(found, 1, 0);
          await win.flush(1);
          if (isThere()) {
            await win.lock(2, Lock.EXCLUSIVE);
            win.get(found.fill(0), 2, 0);
            await win.flush(2);
            await win.unlock(2);
            await win.unlock(1);
            break;
          }
          await win.unlock(1);
        }
      }
      await world.barrier();
      await win.free();
      return found[0];
    });
    expect(at[1]).toBe(1);
  });
});
