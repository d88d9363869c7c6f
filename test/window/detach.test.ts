/** `detach`, after somebody who was next in line for the lock of the part has given up. */
import { expect, test } from 'vitest';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';

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
