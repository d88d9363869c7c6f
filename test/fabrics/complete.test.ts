/** What `complete` waits for where it is a request: this rank's operations, and nothing behind them. */
import { expect, test } from 'vitest';
import { runTasks } from '../../src/fabrics/index.ts';
import { Assert, type Communicator, Window } from '../../src/index.ts';

/** Microseconds of each part of a program at rank 0, which accesses rank 1. */
async function timed(main: (win: Window<Int32Array>, world: Communicator) => Promise<number[]>): Promise<number[]> {
  const [times] = await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Int32Array, 4);
      win.local.fill(world.rank + 5);
      await world.barrier();
      const found = world.rank === 0 ? await main(win, world) : [];
      if (world.rank === 1) {
        for (let i = 0; i < 3; i++) {
          win.post(win.group.include([0]));
          await win.wait();
        }
      }
      await world.barrier();
      await win.free();
      return found;
    },
    { fabric: 'infinihost-64', seed: 1 },
  );
  return times;
}

test('an epoch without operations does not wait for its notification, one with a get only for the get', async () => {
  const [empty, get, flush] = await timed(async (win, world) => {
    const times: number[] = [];
    const other = win.group.include([1]);
    const found = new Int32Array(1);
    for (const gets of [1, 0, 1]) {
      await win.start(other);
      await world.compute(50);
      const began = world.now();
      if (gets > 0) win.get(found, 1, 0);
      await win.complete();
      times.push(world.now() - began);
      if (gets > 0) expect(found[0]).toBe(6);
      found[0] = 0;
    }
    await win.lockAll(Assert.NO_CHECK);
    await world.compute(50);
    const began = world.now();
    win.get(found, 1, 0);
    await win.flush(1);
    times.push(world.now() - began);
    await win.unlockAll();
    return times.slice(1);
  });
  expect(empty).toBeLessThan(1);
  expect(get / flush).toBeGreaterThan(0.9);
  expect(get / flush).toBeLessThan(1.3);
});
