/**
 * A target that serves others and has taken its own part of the window away: whoever asks it is told why, by the call
 * that waits for the operation, and only by that one. In virtual time.
 */
import { expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Op } from '../../src/datatype/op.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';

const LAYOUT = { target: { type: Datatype.vector(4, 1, 2, Datatype.INT32) } };

const TOLD =
  "rank 0 could not carry out an operation of this rank: window #1: this rank's part is detached, because its " +
  'ArrayBuffer was transferred; other ranks still access the original memory';

interface Case {
  readonly what: string;
  readonly info: WindowInfo;
  operation(win: Window<Int32Array>): void;
}

const CASES: readonly Case[] = [
  {
    what: 'an update by the target',
    info: { update: 'by-target' },
    operation: (win) => win.accumulate(Int32Array.of(1), 0, 0, Op.SUM),
  },
  {
    what: 'a put under a lock by messages',
    info: { lock: 'two-sided' },
    operation: (win) => win.put(Int32Array.of(1), 0, 0),
  },
  {
    what: 'a packed put',
    info: { noncontiguous: 'pack' },
    operation: (win) => win.put(Int32Array.of(1, 2, 3, 4), 0, 0, LAYOUT),
  },
  {
    what: 'a packed get',
    info: { noncontiguous: 'pack' },
    operation: (win) => win.get(new Int32Array(4), 0, 0, LAYOUT),
  },
];

test.each(CASES)(
  '$what that its target cannot carry out fails in the flush behind it, once',
  async ({ info, operation }) => {
    const main = async (world: Communicator): Promise<unknown> => {
      const memory = new Int32Array(16);
      const win = await Window.create(world, memory, { info });
      if (world.rank === 0) structuredClone(memory.buffer, { transfer: [memory.buffer] });
      await world.barrier();
      let told: unknown;
      if (world.rank === 1) {
        await win.lock(0, Lock.SHARED);
        operation(win);
        told = await win.flush(0).catch((error: unknown) => error);
        // The next ones have nothing to say.
        await win.flush(0);
        await win.unlock(0);
      }
      await world.barrier();
      await win.free();
      return told;
    };
    const [, told] = await runTasks(2, main, { fabric: 'infinihost-64', seed: 1 });
    expect(told).toMatchObject({ code: 'ERR_BUFFER', message: TOLD });
  },
);

test('a get that travels with complete, and that its target cannot carry out, fails in complete, once', async () => {
  const main = async (world: Communicator): Promise<unknown> => {
    const memory = new Int32Array(16);
    const win = await Window.create(world, memory, { info: { schedule: 'aggregate-gets' } });
    const other = win.group.include([1 - world.rank]);
    if (world.rank === 0) structuredClone(memory.buffer, { transfer: [memory.buffer] });
    let told: unknown;
    for (let round = 0; round < 2; round++) {
      if (world.rank === 0) {
        win.post(other);
        await win.wait();
        continue;
      }
      await win.start(other);
      if (round === 0) win.get(new Int32Array(1), 0, 0);
      const result = await win.complete().catch((error: unknown) => error);
      if (round === 0) {
        told = result;
        await win.complete();
      } else expect(result).toBe(undefined);
    }
    await world.barrier();
    await win.free();
    return told;
  };
  const [, told] = await runTasks(2, main, { fabric: 'infinihost-64', seed: 1 });
  expect(told).toMatchObject({ code: 'ERR_BUFFER', message: expect.stringContaining(TOLD) });
});
