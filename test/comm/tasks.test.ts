/** Ranks that are tasks, in virtual time: `runTasks`. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Op } from '../../src/datatype/op.ts';
import { loadFabric } from '../../src/fabrics/index.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';

const FABRIC = { fabric: 'infinihost-64' } as const;

/**
 * A program with messages, puts, locks, atomics and computation; the same data come out however it goes, at times that
 * tell how it went.
 */
async function program(world: Communicator, info: WindowInfo = {}): Promise<number[]> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Int32Array, size + 1, { info });
  const times: number[] = [];
  await win.fence();
  for (let i = 0; i < 3; i++) {
    await world.compute(10 * ((rank * 7 + i) % 5));
    for (let distance = 1; distance < size; distance *= 2) win.put(Int32Array.of(rank), (rank + distance) % size, rank);
    await win.fence();
    times.push(world.now());
  }
  await win.fence(Assert.NO_SUCCEED);
  await win.lock(0, Lock.EXCLUSIVE);
  win.accumulate(Int32Array.of(1), 0, size, Op.SUM);
  await win.unlock(0);
  times.push(world.now());
  const sum = new Float64Array(1);
  await world.allreduce(Float64Array.of(rank), sum, Op.SUM);
  expect(sum[0]).toBe((size * (size - 1)) / 2);
  await world.barrier();
  if (rank === 0) expect(win.local[size]).toBe(size);
  await win.free();
  times.push(world.now());
  return times;
}

const digest = (times: number[][]): string =>
  createHash('sha256').update(new Float64Array(times.flat())).digest('hex').slice(0, 16);

describe('a run', () => {
  test('gives what each rank returned, by rank', async () => {
    expect(await runTasks(5, ({ rank, size }) => [rank, size], FABRIC)).toEqual([0, 1, 2, 3, 4].map((r) => [r, 5]));
  });

  test('is the same for the same seed, to the last bit, and on every version of Node', async () => {
    const options: TaskOptions = { ...FABRIC, seed: 7, order: 'random', faults: { delay: 3, loss: 0.01 } };
    const first = await runTasks(8, (world) => program(world), options);
    expect(await runTasks(8, (world) => program(world), options)).toEqual(first);
    // Whoever changes the model, or a fabric, changes this: it is to be the same everywhere, not for ever.
    expect(digest(first)).toBe('5c41142902733b56');
    expect(await runTasks(8, (world) => program(world), { ...options, seed: 8 })).not.toEqual(first);
  });

  // Where ranks of a node share the words of a lock, what one does is seen by the others at once.
  const nodes = loadFabric('connectx-16-cores');
  const two = { fabric: { ...nodes, node: { ...nodes.node, ranks: 2 } } };
  test.each([
    ['schemes that windows have by themselves', FABRIC, {}],
    ['direct locks, on nodes', two, { lock: 'direct', fence: 'immediate-naive' }],
    ['locks by agents, on nodes', two, { lock: 'two-sided', fence: 'deferred' }],
    ['hybrid locks, on nodes', two, { lock: 'hybrid', lock_migration: 'every-request', fence: 'immediate-optimized' }],
  ] as const)('does not depend on how many microtasks a task takes: %s', async (_, options, info) => {
    const plain = await runTasks(6, (world) => program(world, info), options);
    for (const order of [1, -1]) {
      const slow = await runTasks(
        6,
        async (world) => {
          const pauses = (n: number): number => 10 * (order > 0 ? n : 5 - n);
          for (let i = 0; i < pauses(world.rank); i++) await undefined;
          const times = await program(world, info);
          for (let i = 0; i < pauses(5 - world.rank); i++) await undefined;
          return times;
        },
        options,
      );
      expect(slow).toEqual(plain);
    }
  });

  test('computing takes the time that it is given, and overlaps with what the adapters do', async () => {
    const [times] = await runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Uint8Array, 2 ** 20);
        const origin = new Uint8Array(2 ** 20);
        await win.lockAll();
        await world.barrier();
        if (world.rank === 1) {
          await win.unlockAll();
          return [];
        }
        const measure = async (microseconds: number): Promise<number> => {
          const began = world.now();
          win.put(origin, 1, 0);
          await world.compute(microseconds);
          await win.flush(1);
          return world.now() - began;
        };
        const found = [await measure(0), await measure(500), await measure(5000)];
        await win.unlockAll();
        return found;
      },
      FABRIC,
    );
    // A megabyte takes a little over 1,100 microseconds.
    expect(times[0]).toBeGreaterThan(1000);
    expect(times[1]).toBeLessThan(times[0] * 1.02);
    expect(times[2]).toBeGreaterThanOrEqual(5000);
    expect(times[2]).toBeLessThan(5010);
  });
});

describe('abort', () => {
  test('ends all tasks where they are, and the run', async () => {
    const passed: string[] = [];
    const run = runTasks(
      3,
      async (world) => {
        await world.barrier();
        if (world.rank === 1) world.abort(42);
        passed.push(`rank ${world.rank} goes on`);
        await world.barrier();
        passed.push(`rank ${world.rank} is past the barrier`);
      },
      FABRIC,
    );
    await expect(run).rejects.toMatchObject({
      code: 'ERR_RMA_RANK_FAILED',
      rank: 1,
      message: 'rank 1 called abort(42), which ended all ranks',
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(passed.filter((line) => !line.endsWith('goes on'))).toEqual([]);
  });

  test.each([0, -1, 256, 1.5, Number.NaN, '1', undefined])('takes exit codes only, not %s', async (code) => {
    await runTasks(
      1,
      (world) => expect(() => world.abort(code as number)).toThrow(/^abort: the exit code must be/),
      FABRIC,
    );
  });
});

describe('what cannot be', () => {
  test('calls that block the thread are refused before they begin anything', async () => {
    await runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Int32Array, 4);
        const refusal = expect.objectContaining({ code: 'ERR_RMA_WOULD_DEADLOCK' });
        for (const call of [
          () => world.barrierSync(),
          () => world.allreduceSync(new Int32Array(1), new Int32Array(1), Op.SUM),
          () => world.receiveSync(new Int32Array(1), 0),
          () => world.splitSync(0),
          () => world.finalizeSync(),
          () => Window.allocateSync(world, Int32Array, 1),
          () => win.fenceSync(),
          () => win.startSync(world.group),
          () => win.lockSync(0, Lock.SHARED),
          () => win.lockAllSync(),
          () => win.waitNotifySync(),
          () => win.freeSync(),
        ]) {
          expect(call).toThrowError(refusal);
        }
        await win.fence();
        await win.fence(Assert.NO_SUCCEED);
        await win.lockAll();
        for (const call of [() => win.flushSync(0), () => win.flushAllSync(), () => win.unlockAllSync()]) {
          expect(call).toThrowError(refusal);
        }
        await win.unlockAll();
        await win.free();
      },
      FABRIC,
    );
  });

  test('a deadlock is told at once, with who waits for whom in which call', async () => {
    const run = runTasks(
      3,
      async (world) => {
        if (world.rank === 0) await world.receive(new Int32Array(1), 2);
        else await world.barrier();
      },
      FABRIC,
    );
    await expect(run).rejects.toThrowError(
      /deadlock .*rank 0 waits in receive\(\) from rank 2; rank 1 waits in barrier of 3 ranks \(waiting for rank 0\); rank 2 waits in barrier/,
    );
    await expect(run).rejects.toMatchObject({ code: 'ERR_RMA_WOULD_DEADLOCK' });
  });

  test('so is one where ranks ask again and again', async () => {
    const run = runTasks(
      3,
      async (world) => {
        const win = await Window.allocate(world, Int32Array, 1);
        if (world.rank === 0) {
          await win.lock(0, Lock.EXCLUSIVE);
          await world.barrier();
          await world.receive(new Int32Array(1), 1);
        } else {
          await world.barrier();
          await win.lock(0, Lock.EXCLUSIVE);
        }
      },
      FABRIC,
    );
    await expect(run).rejects.toThrowError(
      /deadlock .*rank 1 waits in lock of rank 0 in window #1 \(rank 0 held it exclusively .*\); rank 2 waits in lock of/,
    );
  });

  test('what a rank throws ends the run, and the others learn that it has failed', async () => {
    const told: unknown[] = [];
    const run = runTasks(
      3,
      async (world) => {
        if (world.rank === 1) throw new Error('enough');
        await world.barrier().catch((error) => {
          told.push(error.code);
          throw error;
        });
      },
      FABRIC,
    );
    await expect(run).rejects.toThrowError('enough');
    expect(told).toEqual(['ERR_RMA_RANK_FAILED', 'ERR_RMA_RANK_FAILED']);
  });

  test('arguments that make no sense are refused', async () => {
    const main = (): void => {};
    for (const [size, options, words] of [
      [0, FABRIC, /number of ranks/],
      [1.5, FABRIC, /number of ranks/],
      [1, { fabric: 'tin-cans' }, /no fabric is named "tin-cans"; give bsp-ib-16, connectx-16-cores, ethernet-10-bus/],
      [1, { ...FABRIC, seed: -1 }, /seed/],
      [1, { ...FABRIC, order: 'alphabetical' }, /order/],
      [1, { ...FABRIC, timeout: Number.NaN }, /timeout/],
      [2, { ...FABRIC, faults: { loss: 2 } }, /faults.loss/],
      [2, { ...FABRIC, faults: { delay: -1 } }, /faults.delay/],
      [2, { ...FABRIC, faults: { registration: -1 } }, /faults.registration/],
      [2, { ...FABRIC, faults: { deaths: [{ rank: 2, time: 0 }] } }, /not a rank from 0 to 1/],
    ] as const) {
      await expect(runTasks(size, main, options as TaskOptions)).rejects.toThrowError(words);
    }
  });
});

describe('faults', () => {
  test('lost messages are sent again, and take longer', async () => {
    const orderly = await runTasks(4, (world) => program(world), FABRIC);
    const lossy = await runTasks(4, (world) => program(world), { ...FABRIC, faults: { loss: 0.1 } });
    expect(Math.max(...lossy.flat())).toBeGreaterThan(Math.max(...orderly.flat()));
  });

  test('the others learn of a rank that dies, whatever they wait for', async () => {
    const ends = await runTasks(
      4,
      async (world) => {
        const win = await Window.allocate(world, Int32Array, 1);
        const began = world.now();
        const error = await (async () => {
          for (;;) {
            await win.fence();
            win.put(Int32Array.of(1), (world.rank + 1) % 4, 0);
          }
        })().catch((thrown) => thrown);
        expect(error).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 2 });
        return world.now() - began;
      },
      { ...FABRIC, faults: { deaths: [{ rank: 2, time: 5000 }] } },
    ).catch((error) => error);
    // It is the death that ends the run: the ranks that are left cannot leave together.
    expect(ends).toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 2 });
  });

  test('those that share something without a rank that dies go on with it', async () => {
    const ends: unknown[] = [];
    const run = runTasks(
      3,
      async (world) => {
        const pair = (await world.split(world.rank === 2 ? 1 : 0))!;
        const win = await Window.allocate(pair, Int32Array, 1);
        // More than there is room for, to who will not take it.
        if (world.rank < 2) for (let i = 0; i < 100; i++) world.send(new Float64Array(1000), 2);
        else await world.compute(1e6);
        const error = await world.barrier().catch((thrown) => thrown);
        for (let i = 0; i < 10; i++) {
          await win.lockAll(Assert.NO_CHECK);
          win.put(Int32Array.of(1 + world.rank), 1 - world.rank, 0);
          await win.unlockAll();
          await pair.barrier();
          await pair.allreduce(new Float64Array(3000), new Float64Array(3000), Op.SUM);
          await (await pair.dup()).free();
        }
        ends.push([error.rank, win.local[0]]);
        await win.free();
        await pair.free();
      },
      { ...FABRIC, faults: { deaths: [{ rank: 2, time: 2000 }] } },
    );
    await expect(run).rejects.toMatchObject({ code: 'ERR_RMA_RANK_FAILED', rank: 2 });
    expect(ends).toEqual([
      [2, 2],
      [2, 1],
    ]);
  });

  test('a virtual deadline ends a wait', async () => {
    const [found] = await runTasks(
      2,
      async (world) => {
        if (world.rank === 1) {
          await world.compute(20_000);
          world.send(Int32Array.of(1), 0);
          return undefined;
        }
        const error = await world.receive(new Int32Array(1), 1, { timeout: 5 }).catch((thrown) => thrown);
        const late = world.now();
        await world.receive(new Int32Array(1), 1);
        return { code: error.code, late };
      },
      FABRIC,
    );
    expect(found?.code).toBe('ERR_RMA_TIMEOUT');
    expect(found?.late).toBeGreaterThanOrEqual(5000);
    expect(found?.late).toBeLessThan(5200);
  });

  test.each(['all of them', 'one of them'] as const)(
    'a virtual deadline that was not needed, %s outside',
    async (who) => {
      const times = await runTasks(
        2,
        async (world) => {
          if (world.rank === 1) await world.compute(10);
          await world.barrier({ timeout: 1e6 });
          // Nothing is left to happen meanwhile: that leaves the time alone.
          const waits = world.rank === 0 || who === 'all of them';
          if (waits) await new Promise((resolve) => setTimeout(resolve, 20));
          await world.barrier();
          return world.now();
        },
        FABRIC,
      );
      for (const time of times) expect(time).toBeLessThan(1000);
    },
  );
});
