/**
 * Accumulates that the target's processor carries out (hint `update`), in virtual time: that they are atomic, ordered
 * and complete when they should be, and what becomes of them when a rank is away, dead, or takes its buffer away.
 */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Op } from '../../src/datatype/op.ts';
import { TypeCode } from '../../src/datatype/type-codes.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { UPDATE_SCHEMES, updateNamed } from '../../src/transfer/served/update-kinds.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';

const FABRIC = { fabric: 'infinihost-64', seed: 1 } as const;
const SCHEDULES: readonly Partial<TaskOptions>[] = [
  {},
  { order: 'random', seed: 5, faults: { delay: 20 } },
  { order: 'random', seed: 6, faults: { loss: 0.02 } },
];
const CASES = UPDATE_SCHEMES.flatMap((update) => SCHEDULES.map((options) => ({ update, options })));
const RANKS = 4;
const ROUNDS = 30;

describe('updates', () => {
  test.each(CASES)('lose nothing, and give each its own number: $update, $options', async ({ update, options }) => {
    const main = async (world: Communicator): Promise<{ tickets: number[]; sums: number[] }> => {
      const win = await Window.allocate(world, Float64Array, 4, { info: { update } });
      const wide = await Window.allocate(world, BigInt64Array, 4, { info: { update } });
      await win.lockAll();
      await wide.lockAll();
      const tickets: number[] = [];
      const [found, before] = [new Float64Array(1), new BigInt64Array(1)];
      for (let i = 0; i < ROUNDS; i++) {
        const target = (world.rank + i) % world.size;
        win.accumulate(Float64Array.of(1, 2), target, 1, Op.SUM);
        wide.accumulate(BigInt64Array.of(1n, 2n), target, 1, Op.SUM);
        win.fetchAndOp(Float64Array.of(1), found, 0, 0, Op.SUM);
        await win.flush(0);
        tickets.push(found[0]);
        // Adds 1 by compare-and-swap, until nobody has come between.
        for (let expected = -1n; expected !== before[0]; ) {
          expected = before[0];
          wide.compareAndSwap(BigInt64Array.of(expected + 1n), BigInt64Array.of(expected), before, 0, 3);
          await wide.flush(0);
        }
      }
      await win.unlockAll();
      await wide.unlockAll();
      await world.barrier();
      const sums = [...win.local.subarray(1, 3), ...Array.from(wide.local, Number)];
      await win.free();
      await wide.free();
      return { tickets, sums };
    };
    const results = await runTasks(RANKS, main, { ...FABRIC, ...options });
    const tickets = results.flatMap((result) => result.tickets).sort((a, b) => a - b);
    expect(tickets).toEqual(Array.from({ length: RANKS * ROUNDS }, (_, i) => i));
    const all = results.map((result) => result.sums).reduce((a, b) => a.map((value, i) => value + b[i]));
    const each = RANKS * ROUNDS;
    expect(all).toEqual([each, 2 * each, 0, each, 2 * each, each]);
  });

  test.each(CASES)('of one rank to one place keep their order: $update, $options', async ({ update, options }) => {
    const main = async (world: Communicator): Promise<readonly number[]> => {
      const win = await Window.allocate(world, Int32Array, 2, { info: { update } });
      const found = Array.from({ length: ROUNDS }, () => new Int32Array(1));
      if (world.rank === 1) {
        await win.lock(0, Lock.SHARED);
        for (let i = 0; i < ROUNDS; i++) win.fetchAndOp(Int32Array.of(i + 1), found[i], 0, 1, Op.REPLACE);
        await win.unlock(0);
      }
      await world.barrier();
      await win.free();
      return found.map(([value]) => value);
    };
    const [, order] = await runTasks(2, main, { ...FABRIC, ...options });
    expect(order).toEqual(Array.from({ length: ROUNDS }, (_, i) => i));
  });

  test.each(CASES)('are there behind a fence, and behind wait: $update, $options', async ({ update, options }) => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.allocate(world, Float32Array, 600, { info: { update } });
      const { rank, size } = world;
      const ones = new Float32Array(600).fill(1);
      await win.fence(Assert.NO_PRECEDE);
      for (let round = 1; round <= 3; round++) {
        for (let target = 0; target < size; target++) win.accumulate(ones, target, 0, Op.SUM);
        await win.fence();
        expect(new Set(win.local)).toEqual(new Set([round * size]));
        await win.fence(round < 3 ? 0 : Assert.NO_SUCCEED);
      }
      const next = world.group.include([(rank + 1) % size]);
      const previous = world.group.include([(rank + size - 1) % size]);
      win.post(previous);
      await win.start(next);
      win.accumulate(ones, (rank + 1) % size, 0, Op.SUM);
      await win.complete();
      await win.wait();
      await win.lockAll();
      await win.raccumulate(ones, (rank + 1) % size, 0, Op.SUM).wait();
      await world.barrier();
      await win.unlockAll();
      expect(new Set(win.local)).toEqual(new Set([3 * size + 2]));
      await win.free();
    };
    await runTasks(RANKS, main, { ...FABRIC, ...options });
  });

  test('of many scattered elements are one message, whatever their number', async () => {
    const main = async (world: Communicator): Promise<{ took: number; local: bigint[] }> => {
      const win = await Window.allocate(world, BigUint64Array, 1024, { info: { update: 'by-target' } });
      const places = Int32Array.from({ length: 512 }, (_, i) => 2 * i);
      const type = Datatype.indexedBlock(1, places, Datatype.UINT64);
      await win.lockAll();
      await world.barrier();
      const began = world.now();
      if (world.rank === 1) {
        const values = BigUint64Array.from(places, (place) => BigInt(place + 1));
        win.accumulate(values, 0, 0, Op.BXOR, { target: { type, count: 1 } });
        await win.flush(0);
      }
      const took = world.now() - began;
      await win.unlockAll();
      await world.barrier();
      const local = [...(win.local as BigUint64Array)];
      await win.free();
      return { took, local };
    };
    const [{ local }, { took }] = await runTasks(2, main, FABRIC);
    expect(local).toEqual(Array.from({ length: 1024 }, (_, i) => (i % 2 === 0 ? BigInt(i + 1) : 0n)));
    // One by one, a round trip of 8 µs each would take milliseconds.
    expect(took).toBeLessThan(100);
  });

  test.each([
    ['by-requests', 'device', false],
    ['by-target', 'target', true],
  ] as const)('%s make progress by the %s', async (update, progress, waits) => {
    const main = async (world: Communicator): Promise<number> => {
      const win = await Window.allocate(world, Float64Array, 1, { info: { update } });
      expect(win.progress('accumulate', 1)).toBe(progress);
      expect(win.progress('put', 1)).toBe('device');
      await win.lockAll();
      await world.barrier();
      const began = world.now();
      if (world.rank === 0) {
        win.accumulate(Float64Array.of(1), 1, 0, Op.SUM);
        await win.flush(1);
      } else await world.compute(5000);
      const took = world.now() - began;
      await win.unlockAll();
      await win.free();
      return took;
    };
    const [took] = await runTasks(2, main, FABRIC);
    expect(took > 5000).toBe(waits);
  });

  test('a deadline passes while the target is away, and nothing is lost', async () => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.allocate(world, Float64Array, 1, { info: { update: 'by-target' } });
      await win.lockAll();
      await world.barrier();
      if (world.rank === 0) await world.compute(30_000);
      else {
        await world.compute(100);
        for (let i = 0; i < 3; i++) {
          win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
          await expect(win.flush(0, { timeout: 5 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
        }
        await win.flush(0);
      }
      await world.barrier();
      if (world.rank === 0) expect(win.local[0]).toBe(3 * (world.size - 1));
      await win.unlockAll();
      await win.free();
    };
    await runTasks(3, main, FABRIC);
  });

  test('a target that dies is told to who waits for it', async () => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.allocate(world, Float64Array, 1, { info: { update: 'by-target' } });
      await win.lockAll();
      await world.barrier();
      if (world.rank === 0) await world.compute(10_000);
      else {
        await world.compute(100);
        win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
        await win.flush(0);
      }
    };
    const died = runTasks(2, main, { ...FABRIC, faults: { deaths: [{ rank: 0, time: 5000 }] } });
    await expect(died).rejects.toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
  });

  const CARRIED: readonly WindowInfo[] = [{ update: 'by-target' }, { lock: 'two-sided' }];

  test.each(CARRIED)('a result that was taken away before the flush is told, and others go on: %o', async (info) => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.allocate(world, Float64Array, 1, { info });
      await win.lockAll();
      if (world.rank === 1) {
        const result = new Float64Array(1);
        const kept = new Float64Array(1);
        win.fetchAndOp(Float64Array.of(5), result, 0, 0, Op.SUM);
        win.fetchAndOp(Float64Array.of(0), kept, 0, 0, Op.NO_OP);
        structuredClone(result.buffer, { transfer: [result.buffer as ArrayBuffer] });
        await expect(win.flush(0)).rejects.toMatchObject({ code: 'ERR_BUFFER' });
        win.accumulate(Float64Array.of(2), 0, 0, Op.SUM);
        await win.flush(0);
        expect(kept[0]).toBe(5);
      }
      await world.barrier();
      if (world.rank === 0) expect(win.local[0]).toBe(7);
      await win.unlockAll();
      await win.free();
    };
    await runTasks(2, main, FABRIC);
  });
});

test('by type, the device updates 64-bit integers alone, and nothing that it would update under stripes', () => {
  const byTarget = updateNamed('by-type').byTarget!;
  const types = [TypeCode.INT64, TypeCode.UINT64, TypeCode.FLOAT64, TypeCode.INT32];
  expect(types.map((type) => byTarget(type, false))).toEqual([false, false, true, true]);
  expect(types.map((type) => byTarget(type, true))).toEqual([true, true, true, true]);
});
