/** `lockAll` by requests: the locks of all ranks are asked for at once (src/window/calls/lock-all.ts). */
import { type Communicator, Lock, type LockSchemeName, Window } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';

const FABRIC = 'infinihost-pci-x';

/** Microseconds that rank 0 takes for a `lockAll` and its `unlockAll`, with locks that it has had before. */
async function took(size: number, lock: LockSchemeName): Promise<number> {
  const main = async (world: Communicator): Promise<number> => {
    const win = await Window.allocate(world, Float64Array, 1, { info: { lock } });
    let time = 0;
    for (let round = 0; world.rank === 0 && round < 2; round++) {
      const begin = world.now();
      await win.lockAll();
      time = world.now() - begin;
      await win.unlockAll();
    }
    await world.barrier();
    await win.free();
    return time;
  };
  return (await runTasks(size, main, { fabric: FABRIC }))[0];
}

describe.each(['remote', 'direct', 'two-sided'] as const)('with the scheme %s', (lock) => {
  test('it takes little longer of sixteen ranks than of two', async () => {
    expect(await took(16, lock)).toBeLessThan(6 * (await took(2, lock)));
  });

  test('it is undone by a deadline while one rank keeps its lock: the others are free', async () => {
    const main = async (world: Communicator): Promise<string> => {
      const win = await Window.allocate(world, Float64Array, 1, { info: { lock } });
      let code = '';
      if (world.rank === 3) await win.lock(3, Lock.EXCLUSIVE);
      await world.barrier();
      if (world.rank === 0) code = await win.lockAll(0, { timeout: 5 }).catch(({ code }) => code);
      await world.barrier();
      // Whoever had kept a share would be waited for, for ever.
      for (const target of [1, 2, 4]) {
        if (world.rank !== 1) continue;
        await win.lock(target, Lock.EXCLUSIVE);
        await win.unlock(target);
      }
      if (world.rank === 3) await win.unlock(3);
      await win.lockAll();
      await win.unlockAll();
      await world.barrier();
      await win.free();
      return code;
    };
    expect((await runTasks(5, main, { fabric: FABRIC }))[0]).toBe('ERR_RMA_TIMEOUT');
  });
});
