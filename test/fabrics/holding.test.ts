/**
 * Operations of several requests that hold something for which other ranks wait (a stripe): whatever the rank that has
 * it does next, a wait that has ended well, a look, or a barrier, the others go on.
 */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Op } from '../../src/datatype/op.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';
import { Request } from '../../src/window/calls/window-request.ts';

const ONE = Float64Array.of(1);

/** What rank 0 does behind five sums at rank 1, before all meet. */
const WAYS: Readonly<Record<string, (win: Window<Float64Array>, world: Communicator) => Promise<unknown>>> = {
  'a flush of another rank': (win) => win.flush(2),
  'a local flush of another rank': (win) => win.flushLocal(2),
  'a request to another rank': (win) => win.rput(ONE, 2, 1).wait(),
  'a look at a request': async (win) => win.raccumulate(ONE, 1, 0, Op.SUM).test(),
  'a request that is complete before another one': (win) =>
    Request.waitAny([win.raccumulate(ONE, 1, 0, Op.SUM), win.rput(ONE, 2, 1)]),
  'a wait for any of them that ends early': (win) =>
    Request.waitAny(
      Array.from({ length: 50 }, () => win.raccumulate(ONE, 1, 0, Op.SUM)),
      { timeout: 0.02 },
    ).catch(() => {}),
};
const MORE: Readonly<Record<string, number>> = {
  'a look at a request': 1,
  'a request that is complete before another one': 1,
  'a wait for any of them that ends early': 50,
};

describe.each(['infinihost-64', 'connectx-16-cores'])('on %s', (fabric) => {
  test.each(Object.keys(WAYS))('%s keeps no stripe from a rank that wants it', async (way) => {
    const [, sum] = await runTasks(
      3,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, 4);
        await win.lockAll();
        if (world.rank === 0) {
          for (let i = 0; i < 5; i++) win.accumulate(ONE, 1, 0, Op.SUM);
          win.get(new Float64Array(1), 2, 1);
          await WAYS[way](win, world);
        } else if (world.rank === 2) {
          await world.compute(200);
          win.accumulate(ONE, 1, 0, Op.SUM);
          await win.flush(1);
        }
        await world.barrier();
        await win.flushAll();
        await world.barrier();
        const found = win.local[0];
        await win.unlockAll();
        await win.free();
        return found;
      },
      { fabric, seed: 1 },
    );
    expect(sum).toBe(6 + (MORE[way] ?? 0));
  });
});

test.each(['infinihost-64', 'connectx-16-cores'])(
  'a rank that computes behind a wait that has ended has given back what others want, on %s',
  async (fabric) => {
    for (let delay = 0; delay < 60; delay += 3) {
      const [, , ended] = await runTasks(
        3,
        async (world) => {
          const win = await Window.allocate(world, Float64Array, 4);
          await win.lockAll();
          await world.barrier();
          if (world.rank === 2) await world.compute(delay);
          for (let i = 0; i < 5; i++) if (world.rank !== 1) win.accumulate(ONE, 1, 0, Op.SUM);
          if (world.rank === 0) {
            await win.rput(ONE, 2, 1).wait();
            await world.compute(1e6);
          }
          await win.flush(1);
          const now = world.now();
          await world.barrier();
          await win.unlockAll();
          await win.free();
          return now;
        },
        { fabric, seed: delay },
      );
      expect(ended, `behind ${delay} µs`).toBeLessThan(1e5);
    }
  },
);

test('a wait for a notification of a window that is freed says so', async () => {
  const codes = await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 4);
      const waited = win.waitNotify(1).then(
        () => '',
        (error) => error.code,
      );
      await win.free();
      return waited;
    },
    { fabric: 'infinihost-64', seed: 1 },
  );
  expect(codes).toEqual(['ERR_WIN', 'ERR_WIN']);
});

test('under two-sided locks a failed operation is told to whoever waits for its target', async () => {
  const [codes] = await runTasks(
    4,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 4, { info: { lock: 'two-sided' } });
      const found: string[] = [];
      if (world.rank === 0) {
        for (const target of [1, 2, 3]) await win.lock(target, Lock.EXCLUSIVE);
        const results = [new Float64Array(1), new Float64Array(1)];
        for (const [i, result] of results.entries()) {
          win.get(result, 2 + i, 0);
          structuredClone(result, { transfer: [result.buffer] });
        }
        win.put(ONE, 1, 0);
        // Whatever has come from the others by now.
        await world.compute(200);
        for (const target of [1, 2, 3])
          found.push(
            await win.flush(target).then(
              () => 'complete',
              (error) => error.code,
            ),
          );
        for (const target of [1, 2, 3]) await win.unlock(target);
      }
      await world.barrier();
      await win.free();
      return found;
    },
    { fabric: 'infinihost-64', seed: 1 },
  );
  expect(codes).toEqual(['complete', 'ERR_BUFFER', 'ERR_BUFFER']);
});
