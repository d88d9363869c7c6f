/** `detach`, where somebody is or was next in line for the lock of the part. */
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';
import { makeLocalWorlds } from '../support/local-worlds.ts';

test('is not refused, since nobody has the lock, and nobody waits for it', async () => {
  const results = await runTasks(
    3,
    async (world) => {
      const window = await Window.createDynamic(world);
      const memory = world.allocMem(Float64Array, 8);
      if (world.rank === 0) window.attach(memory);
      if (world.rank === 1) await window.lock(0, Lock.EXCLUSIVE);
      await world.barrier();
      if (world.rank === 0) {
        await world.compute(500);
        world.send(new Uint8Array(1), 2);
      }
      if (world.rank === 2) {
        const controller = new AbortController();
        const locked = window.lock(0, Lock.EXCLUSIVE, 0, { signal: controller.signal });
        locked.catch(() => {});
        // Meanwhile it comes to the head of the line.
        await world.receive(new Uint8Array(1), 0);
        controller.abort(new Error('enough'));
        await expect(locked).rejects.toThrow('enough');
      }
      await world.barrier();
      if (world.rank === 1) await window.unlock(0);
      await world.barrier();
      if (world.rank === 0) window.detach(memory);
      await window.free();
      return true;
    },
    { fabric: loadFabric('infinihost-64') },
  );
  expect(results).toEqual([true, true, true]);
});

describe('is not refused while one waits for the lock that others share', () => {
  const HOW = [{ by: 'lock' }, { by: 'lockAll' }] as const;

  /** Rank 1 shares the lock, and rank 2 would have it alone. @param wait until it has closed it */
  async function detachBeside(world: Communicator, by: 'lock' | 'lockAll', wait: () => Promise<void>): Promise<void> {
    // The head of the line keeps others out from its first look on.
    const window = await Window.createDynamic(world, { info: { lock_order: 'arrival' } });
    const memory = world.allocMem(Float64Array, 8);
    if (world.rank === 0) window.attach(memory);
    if (world.rank === 1) await (by === 'lock' ? window.lock(0, Lock.SHARED) : window.lockAll());
    await world.barrier();
    const locked = world.rank === 2 ? window.lock(0, Lock.EXCLUSIVE) : Promise.resolve();
    if (world.rank === 0) {
      await wait();
      window.detach(memory);
      world.send(new Uint8Array(1), 1);
    }
    if (world.rank === 1) {
      await world.receive(new Uint8Array(1), 0);
      await (by === 'lock' ? window.unlock(0) : window.unlockAll());
    }
    await locked;
    if (world.rank === 2) await window.unlock(0);
    await window.free();
  }

  test.each(HOW)('where memory is shared, by $by', async ({ by }) => {
    const worlds = await makeLocalWorlds(3);
    await Promise.all(worlds.map(({ world }) => detachBeside(world, by, () => setTimeout(100))));
  });

  test.each(HOW)('by requests, by $by', async ({ by }) => {
    await runTasks(3, (world) => detachBeside(world, by, () => world.compute(5000)), { fabric: 'infinihost-64' });
  });
});
