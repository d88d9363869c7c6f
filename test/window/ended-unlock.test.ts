/** An unlock whose wait ends early, where it may have given the lock back by then (`lock_defer`). */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';

const FABRIC = loadFabric('infinihost-64');
const LENGTH = 4096;

describe.each(['two-sided', 'hybrid'] as const)('%s', (lock) => {
  const info = { lock, lock_defer: true };
  const run = <T>(program: (window: Window<Int32Array>, world: Communicator) => Promise<T>): Promise<T> =>
    runTasks(
      2,
      async (world) => {
        const window = await Window.allocate(world, Int32Array, LENGTH, { info });
        const result = world.rank === 0 ? await program(window, world) : undefined;
        await world.barrier();
        const sum = window.local.reduce((a, b) => a + b, 0);
        await window.free();
        return { result, sum };
      },
      { fabric: FABRIC },
    ).then(([{ result }, { sum }]) => {
      expect(sum).toBe(LENGTH * 7);
      return result!;
    });

  /** @returns whether the epoch is open after that */
  const interrupted = async (
    window: Window<Int32Array>,
    world: Communicator,
    microseconds: number,
  ): Promise<boolean> => {
    const controller = new AbortController();
    const unlocked = window.unlock(1, { signal: controller.signal });
    unlocked.catch(() => {});
    if (microseconds > 0) await world.compute(microseconds);
    controller.abort(new Error('enough'));
    try {
      await unlocked;
    } catch (error) {
      expect(error).toMatchObject({ message: expect.stringContaining('enough') });
      try {
        window.put(new Int32Array(LENGTH).fill(7), 1, 0);
        return true;
      } catch (refusal) {
        expect(refusal).toMatchObject({
          code: 'ERR_RMA_SYNC',
          message: expect.stringContaining('an unlock of rank 1 whose wait ended early is in progress; call unlock(1)'),
        });
        return false;
      }
    }
    await window.lock(1, Lock.EXCLUSIVE);
    return true;
  };

  test('the lock that has left with its operation opens nothing any more; another unlock ends it', async () => {
    await run(async (window, world) => {
      await window.lock(1, Lock.EXCLUSIVE);
      window.put(Int32Array.of(1), 1, 0);
      expect(await interrupted(window, world, 0)).toBe(false);
      await expect(window.flush(1)).rejects.toMatchObject({ code: 'ERR_RMA_SYNC' });
      await expect(window.lock(1, Lock.SHARED)).rejects.toThrow(
        /an unlock of it whose wait ended early is in progress/,
      );
      await expect(window.free()).rejects.toMatchObject({ code: 'ERR_RMA_SYNC' });
      await window.unlock(1);
      await window.lock(1, Lock.EXCLUSIVE);
      window.put(new Int32Array(LENGTH).fill(7), 1, 0);
      await window.unlock(1);
    });
  });

  test('wherever the wait ends: either the lock is held, or the epoch is closed', async () => {
    const seen = new Set<boolean>();
    await run(async (window, world) => {
      await window.lock(1, Lock.EXCLUSIVE);
      for (let microseconds = 0; microseconds < 60; microseconds += 0.5) {
        window.put(new Int32Array(LENGTH).fill(3), 1, 0);
        const open = await interrupted(window, world, microseconds);
        seen.add(open);
        if (open) continue;
        await window.unlock(1);
        await window.lock(1, Lock.EXCLUSIVE);
      }
      window.put(new Int32Array(LENGTH).fill(7), 1, 0);
      await window.unlock(1);
    });
    expect(seen).toEqual(new Set([true, false]));
  });
});
