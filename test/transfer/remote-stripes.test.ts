/**
 * Accumulates under stripes by requests, in virtual time: what others get of a rank that is away, that gives up, or
 * whose program takes its buffer away.
 */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Op } from '../../src/datatype/op.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { LOCK_ORDERS, type LockOrder } from '../../src/sync/lock/lock-overtaking.ts';
import { Window } from '../../src/window/calls/window.ts';

const FABRIC = { fabric: 'infinihost-64', seed: 1 } as const;
const SCHEDULES: readonly Partial<TaskOptions>[] = [
  {},
  { order: 'random', seed: 5, faults: { delay: 20 } },
  { order: 'random', seed: 6, faults: { loss: 0.02 } },
];

const CASES = SCHEDULES.flatMap((options) => LOCK_ORDERS.map((order) => ({ ...options, lock_order: order })));

/** Elements of four pages, so that an accumulate takes four stripes. */
const ELEMENTS = 2048;
const ones = (): Float64Array => new Float64Array(ELEMENTS).fill(1);

/** Virtual milliseconds for which a rank stays away with what it has, and after which the others give up. */
const AWAY_MS = 30;
const DEADLINE_MS = 5;

function takeAway({ buffer }: Float64Array): void {
  structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
}

async function openWindow(world: Communicator, lock_order: LockOrder = 'arrival'): Promise<Window<Float64Array>> {
  const win = await Window.allocate(world, Float64Array, ELEMENTS, { info: { lock_order } });
  await win.lockAll();
  await world.barrier();
  return win;
}

describe('stripes by requests', () => {
  test('an accumulate of one double takes two round trips: its read goes along with the lock', async () => {
    const main = async (world: Communicator): Promise<readonly number[]> => {
      const win = await openWindow(world);
      const took: number[] = [];
      const read = new Float64Array(1);
      for (const call of [() => win.get(read, 0, 0), () => win.accumulate(Float64Array.of(1), 0, 0, Op.SUM)]) {
        for (let turn = 0; world.rank === 1 && turn < 2; turn++) {
          const began = world.now();
          call();
          await win.flush(0);
          took[turn === 0 ? took.length : took.length - 1] = world.now() - began;
        }
      }
      await win.unlockAll();
      await win.free();
      return took;
    };
    const [, [get, accumulate]] = await runTasks(2, main, FABRIC);
    expect(accumulate).toBeGreaterThan(1.5 * get);
    expect(accumulate).toBeLessThan(3 * get);
  });

  test.each(CASES)(
    'of ranks that meet at one double, each adds to what the others left: %o',
    async ({ lock_order, ...options }) => {
      const rounds = 20;
      const main = async (world: Communicator): Promise<readonly number[]> => {
        const win = await openWindow(world, lock_order);
        const seen: number[] = [];
        for (let i = 0; i < rounds; i++) {
          const before = new Float64Array(1);
          win.fetchAndOp(Float64Array.of(1), before, 0, 0, Op.SUM);
          await win.flush(0);
          seen.push(before[0]);
          await world.compute((7 * world.rank * i) % 11);
        }
        await world.barrier();
        if (world.rank === 0) expect(win.local[0]).toBe(rounds * world.size);
        await win.unlockAll();
        await win.free();
        return seen;
      };
      const seen = (await runTasks(5, main, { ...FABRIC, ...options })).flat();
      expect(seen.sort((a, b) => a - b)).toEqual(Array.from({ length: 5 * rounds }, (_, i) => i));
    },
  );

  test.each(CASES)(
    'a rank that stays away with one lets deadlines pass, and nothing is lost: %o',
    async ({ lock_order, ...options }) => {
      const main = async (world: Communicator): Promise<number> => {
        const win = await openWindow(world, lock_order);
        let late = 0;
        if (world.rank === 1) {
          win.accumulate(ones(), 0, 0, Op.SUM);
          const flushed = win.flush(0);
          await world.compute(1000 * AWAY_MS);
          await flushed;
        } else if (world.rank > 1) {
          // Behind the one that stays away.
          await world.compute(100);
          for (let i = 0; i < 3; i++) {
            win.accumulate(ones(), 0, 0, Op.SUM);
            const began = world.now();
            await expect(win.flush(0, { timeout: DEADLINE_MS })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
            late = Math.max(late, world.now() - began - 1000 * DEADLINE_MS);
          }
          await win.flush(0);
        }
        await world.barrier();
        if (world.rank === 0) expect(new Set(win.local)).toEqual(new Set([1 + 3 * (world.size - 2)]));
        await win.unlockAll();
        await win.free();
        return late;
      };
      const late = await runTasks(4, main, { ...FABRIC, ...options });
      for (const microseconds of late) expect(microseconds).toBeLessThan(1000);
    },
  );

  test('an origin that was taken away before the flush is told, and others go on', async () => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await openWindow(world);
      if (world.rank === 1) {
        const origin = ones();
        win.accumulate(origin, 0, 0, Op.SUM);
        takeAway(origin);
        await expect(win.flush(0)).rejects.toMatchObject({ code: 'ERR_BUFFER' });
        const result = new Float64Array(1);
        win.fetchAndOp(Float64Array.of(5), result, 0, 0, Op.SUM);
        takeAway(result);
        await expect(win.flush(0)).rejects.toMatchObject({ code: 'ERR_BUFFER' });
        await win.flush(0);
      }
      await world.barrier();
      win.accumulate(ones(), 0, 0, Op.SUM);
      await win.flush(0, { timeout: 1000 });
      await world.barrier();
      if (world.rank === 0) expect(new Set(win.local)).toEqual(new Set([world.size]));
      await win.unlockAll();
      await win.free();
    };
    await runTasks(3, main, FABRIC);
  });

  test.each(SCHEDULES)('64-bit integers in bulk agree with single ones: %o', async (options) => {
    const main = async (world: Communicator): Promise<void> => {
      const n = 100;
      const info = { mpi_accumulate_granularity: 4096 };
      const win = await Window.allocate(world, BigInt64Array, n, { info });
      await win.lockAll();
      await world.barrier();
      const all = new BigInt64Array(n);
      const one = new BigInt64Array(1);
      for (let i = 0; i < 5; i++) {
        win.getAccumulate(new BigInt64Array(n).fill(1n), all, 0, 0, Op.SUM);
        win.fetchAndOp(BigInt64Array.of(1n), one, 0, i, Op.SUM);
        await win.flush(0);
        // By what is there: somebody else may have changed it meanwhile.
        for (let seen = one[0]; ; seen = one[0]) {
          win.compareAndSwap(BigInt64Array.of(seen + 1n), BigInt64Array.of(seen), one, 0, i);
          await win.flush(0);
          if (one[0] === seen) break;
        }
      }
      await world.barrier();
      if (world.rank === 0) {
        const each = Array.from({ length: n }, (_, i) => (i < 5 ? 7 : 5));
        expect([...win.local]).toEqual(each.map((times) => BigInt(world.size * times)));
      }
      await win.unlockAll();
      await win.free();
    };
    await runTasks(3, main, { ...FABRIC, ...options });
  });

  test('64-bit integers in bulk take less time', async () => {
    const main = async (world: Communicator): Promise<number[]> => {
      const times: number[] = [];
      for (const granularity of [8, 4096]) {
        const info = { mpi_accumulate_granularity: granularity };
        const win = await Window.allocate(world, BigInt64Array, 1000, { info });
        await win.lockAll();
        const began = world.now();
        win.accumulate(new BigInt64Array(1000).fill(1n), 1 - world.rank, 0, Op.SUM);
        await win.flush(1 - world.rank);
        times.push(world.now() - began);
        await win.unlockAll();
        await win.free();
      }
      return times;
    };
    for (const [single, bulk] of await runTasks(2, main, FABRIC)) expect(bulk).toBeLessThan(single / 4);
  });

  test('hints about bulk must be alike, since the two ways to update 64-bit integers do not agree', async () => {
    const main = async (world: Communicator): Promise<void> => {
      const info = { mpi_accumulate_granularity: world.rank === 0 ? 4096 : 8 };
      await expect(Window.allocate(world, BigInt64Array, 1, { info })).rejects.toMatchObject({
        code: 'ERR_INFO_VALUE',
      });
    };
    await runTasks(2, main, FABRIC);
  });

  test.each(CASES)('no rank is overtaken for ever: %o', async ({ lock_order, ...options }) => {
    // By arrival: once that it had when rank 0 asked, and once that it got while rank 0 came into the line. Otherwise
    // as often as it comes back within 10 ms, 20 µs or more each time, and then as above.
    const bound = lock_order === 'arrival' ? 3 : 500;
    const size = 6;
    const updates = 30;
    let asks = false;
    let over = false;
    /** Of the updates of rank 0: how often each of the others has had the stripe since it asked, at most. */
    let most = 0;
    const since = new Int32Array(size);
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.allocate(world, Int32Array, 4, { info: { lock_order } });
      const found = new Int32Array(1);
      await win.lockAll();
      await world.barrier();
      if (world.rank === 0) {
        for (let i = 0; i < updates; i++) {
          await world.compute(7 * i);
          since.fill(0);
          asks = true;
          win.fetchAndOp(Int32Array.of(1), found, 1, 0, Op.SUM);
          await win.flush(1);
          asks = false;
          most = since.reduce((a, b) => Math.max(a, b), most);
        }
        over = true;
      } else {
        while (!over) {
          win.compareAndSwap(Int32Array.of(world.rank), Int32Array.of(-1), found, 1, 1);
          await win.flush(1);
          if (asks) since[world.rank]++;
        }
      }
      await world.barrier();
      if (world.rank === 1) expect(win.local[0]).toBe(updates);
      await win.unlockAll();
      await win.free();
    };
    await runTasks(size, main, { ...FABRIC, ...options });
    expect(most).toBeLessThanOrEqual(bound);
  });
});
