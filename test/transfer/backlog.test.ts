/** Requests that wait for room: in their order, and each in constant time, however many there are. */
import { describe, expect, test } from 'vitest';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Fifo } from '../../src/fifo.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Window } from '../../src/window/calls/window.ts';
import { Random } from '../ranks/support/random.ts';
import { seedOfRun } from '../support/ranks.ts';

describe('what waits', () => {
  test('comes out in its order, whatever comes in meanwhile', () => {
    const random = new Random(seedOfRun(), 3);
    const fifo = new Fifo<number>();
    const model: number[] = [];
    for (let next = 0; next < 5000; ) {
      // In spells: it grows deep, and runs empty.
      const grows = random.chance(0.5);
      for (let i = random.below(400); i > 0; i--) {
        if (random.chance(grows ? 0.8 : 0.2)) {
          fifo.push(next);
          model.push(next++);
        } else expect(fifo.shift()).toBe(model.shift());
        expect(fifo.length).toBe(model.length);
        expect(fifo.first).toBe(model[0]);
      }
      expect([...fifo]).toEqual(model);
    }
  });

  test('one put of two hundred thousand single integers comes to an end', { timeout: 60_000 }, async () => {
    const n = 200_000;
    await runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Int32Array, 2 * n);
        await win.lockAll();
        await world.barrier();
        if (world.rank === 0) {
          const type = Datatype.vector(n, 1, 2, Datatype.INT32);
          win.put(
            Int32Array.from({ length: n }, (_, i) => i + 1),
            1,
            0,
            { target: { type } },
          );
          await win.flush(1);
        }
        await world.barrier();
        if (world.rank === 1) expect(win.local.every((value, i) => value === (i % 2 === 0 ? i / 2 + 1 : 0))).toBe(true);
        await win.unlockAll();
        await win.free();
      },
      { fabric: 'infinihost-64', seed: 1 },
    );
  });

  test('does not keep a request behind it from its end if it cannot be posted', async () => {
    const [found] = await runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, 4096);
        await win.lockAll();
        await world.barrier();
        const errors: string[] = [];
        if (world.rank === 0) {
          const lost = new Float64Array(1000);
          // More than may be outstanding: what follows waits.
          for (let i = 0; i < 300; i++) win.put(new Float64Array(1000).fill(1), 1, 0);
          win.put(lost, 1, 1000);
          structuredClone(lost, { transfer: [lost.buffer] });
          const request = win.rput(new Float64Array(1000).fill(3), 1, 2000);
          for (let tries = 0; tries < 3; tries++) {
            try {
              await request.wait({ timeout: 1000 });
              break;
            } catch (error) {
              errors.push((error as { code: string }).code);
            }
          }
          await win.flush(1);
        }
        await world.barrier();
        const there = win.local[2999];
        await win.unlockAll();
        await win.free();
        return world.rank === 0 ? errors : [there];
      },
      { fabric: 'infinihost-64', seed: 1 },
    );
    expect(found).toEqual(['ERR_BUFFER']);
  });
});
