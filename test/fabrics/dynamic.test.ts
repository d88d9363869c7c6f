/** Dynamic windows on modelled fabrics: what is attached where is read by requests, in calls that do not wait. */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Op } from '../../src/datatype/op.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';

const SIZE = 5;

/**
 * Each rank attaches memory three times, of which the others learn each time by a message; everybody adds to
 * everybody's, and puts there. The second one is given back before the third is made.
 */
async function program(world: Communicator): Promise<number[]> {
  const { rank, size } = world;
  const win = await Window.createDynamic(world);
  const addresses = new Float64Array(size);
  const times: number[] = [];
  for (let round = 0; round < 3; round++) {
    const memory = world.allocMem(Int32Array, 16);
    await world.allgather(Float64Array.of(win.attach(memory)), addresses);
    await win.lockAll();
    for (let target = 0; target < size; target++) {
      win.accumulate(Int32Array.of(rank + 1), target, addresses[target] + 4 * round, Op.SUM);
      win.put(Int32Array.of(10 * round + rank), target, addresses[target] + 4 * (3 + rank));
    }
    await win.unlockAll();
    await world.barrier();
    expect(memory[round]).toBe((size * (size + 1)) / 2);
    for (let source = 0; source < size; source++) expect(memory[3 + source]).toBe(10 * round + source);
    if (round === 1) {
      win.detach(memory);
      world.freeMem(memory);
    }
    times.push(world.now());
    await world.barrier();
  }
  await win.free();
  return times;
}

const RUNS: readonly Partial<TaskOptions>[] = [
  {},
  { order: 'random', seed: 7, faults: { delay: 20 } },
  { fabric: 'connectx-16-cores', order: 'random', seed: 8, faults: { loss: 0.05, placement: 20 } },
];

describe('a dynamic window', () => {
  test.each(RUNS)('is accessed at what was attached, at the same times each time: %o', async (options) => {
    const run = () => runTasks(SIZE, program, { fabric: 'infinihost-64', ...options });
    expect(await run()).toEqual(await run());
  });

  test('whose memory was detached is accessed there no more', async () => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.createDynamic(world);
      const memory = world.allocMem(Int32Array, 4);
      const addresses = new Float64Array(2);
      await world.allgather(Float64Array.of(win.attach(memory)), addresses);
      const other = 1 - world.rank;
      await win.lock(other, Lock.SHARED);
      win.put(Int32Array.of(7), other, addresses[other]);
      await win.unlock(other);
      await world.barrier();
      if (world.rank === 0) win.detach(memory);
      await world.barrier();
      await win.lock(other, Lock.SHARED);
      const again = (): void => win.put(Int32Array.of(8), other, addresses[other]);
      if (world.rank === 0) again();
      else expect(again).toThrow(expect.objectContaining({ code: 'ERR_RMA_RANGE' }));
      await win.unlock(other);
      await world.barrier();
      expect(memory[0]).toBe(world.rank === 0 ? 7 : 8);
      await win.free();
    };
    await runTasks(2, main, { fabric: 'infinihost-64' });
  });

  test('gives up memory while others share all locks, and is accessed elsewhere', async () => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.createDynamic(world);
      const [memory, kept] = [world.allocMem(Int32Array, 4), world.allocMem(Int32Array, 4)];
      const [first, second] = [new Float64Array(3), new Float64Array(3)];
      await world.allgather(Float64Array.of(win.attach(memory)), first);
      await world.allgather(Float64Array.of(win.attach(kept)), second);
      const next = (world.rank + 1) % 3;
      await win.lockAll();
      win.put(Int32Array.of(7), next, first[next]);
      await win.flush(next);
      await world.barrier();
      expect(memory[0]).toBe(7);
      win.detach(memory);
      await world.barrier();
      const again = (): void => win.put(Int32Array.of(8), next, first[next]);
      expect(again).toThrow(expect.objectContaining({ code: 'ERR_RMA_RANGE' }));
      win.put(Int32Array.of(9), next, second[next]);
      await win.flush(next);
      await world.barrier();
      expect([memory[0], kept[0]]).toEqual([7, 9]);
      await win.unlockAll();
      await win.free();
    };
    await runTasks(3, main, { fabric: 'infinihost-64' });
  });

  test('keeps its memory while another rank holds the lock alone, and gives it up when that is over', async () => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.createDynamic(world);
      const memory = world.allocMem(Int32Array, 4);
      win.attach(memory);
      if (world.rank === 1) await win.lock(0, Lock.EXCLUSIVE);
      await world.barrier();
      if (world.rank === 0) {
        const detach = (): void => win.detach(memory);
        expect(detach).toThrow(expect.objectContaining({ code: 'ERR_RMA_ATTACH' }));
      }
      await world.barrier();
      if (world.rank === 1) await win.unlock(0);
      await world.barrier();
      if (world.rank === 0) win.detach(memory);
      await win.free();
    };
    await runTasks(3, main, { fabric: 'infinihost-64' });
  });
});
