/** Aggregate handles (src/window/calls/aggregate-handle.ts) where memory is reached by requests, in virtual time. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Rank } from '../../src/collective/group.ts';
import { Op } from '../../src/datatype/op.ts';
import { QueuePairCore as QueuePair } from '../../src/providers/core/queue-pair-base.ts';
import { type FaultOptions, runTasks } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import type { Aggregate, AggregateOptions } from '../../src/window/calls/aggregate-handle.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';
import { aggregates } from '../ranks/support/aggregates.ts';
import { transfer } from '../ranks/support/liars.ts';
import { FABRIC, postings, two } from '../support/postings.ts';
import { seedOfRun } from '../support/ranks.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Doorbells from now on. */
function doorbells(): { count: number } {
  const rung = { count: 0 };
  const { wrStart } = QueuePair.prototype;
  vi.spyOn(QueuePair.prototype, 'wrStart').mockImplementation(function (this: unknown) {
    rung.count++;
    wrStart.apply(this as never);
  });
  return rung;
}

/** Rank 0 in an epoch with a lock on rank 1, whose part holds its indices. */
function locked(
  body: (win: Window<Float64Array>, batch: Aggregate<Float64Array>, world: Communicator) => Promise<void>,
  options?: AggregateOptions,
  look: (local: Float64Array) => void = () => {},
): Promise<void> {
  return two(async (win, world) => {
    win.local.set(win.local.map((_, i) => i));
    await world.barrier();
    if (world.rank === 0) {
      await win.lock(1, Lock.SHARED);
      await body(win, win.aggregate(1, options), world);
      await win.unlock(1);
    }
    await world.barrier();
    if (world.rank === 1) look(win.local);
  }, {});
}

const SOME = [1, 2, 3, 4, 5];
const put = (batch: Pick<Aggregate<Float64Array>, 'put'>, at: number): void => batch.put(Float64Array.of(-at), at);

describe('operations of an aggregate handle are posted together', () => {
  test('by one doorbell when it is waited for, whatever they are', async () => {
    const got = new Float64Array(2);
    await locked(
      async (_, batch) => {
        const order = postings();
        const rung = doorbells();
        for (const at of SOME) put(batch, at);
        batch.get(got, 10);
        expect(order).toEqual([]);
        await batch.wait();
        expect(order.join('')).toBe('pppppg');
        expect(rung.count).toBe(1);
        expect([...got]).toEqual([10, 11]);
        await batch.wait();
        expect(rung.count).toBe(1);
      },
      undefined,
      (local) => expect([...local.slice(0, 7)]).toEqual([0, -1, -2, -3, -4, -5, 6]),
    );
  });

  test('when it is full, without a wait', async () => {
    await locked(
      async (_, batch) => {
        const order = postings();
        const posted = SOME.map((at) => {
          put(batch, at);
          return order.length;
        });
        expect(posted).toEqual([0, 2, 2, 4, 4]);
      },
      { limit: 2 },
      (local) => expect([...local.slice(1, 6)]).toEqual([-1, -2, -3, -4, -5]),
    );
  });

  test('as many as there are, in lists', async () => {
    await locked(
      async (_, batch) => {
        const rung = doorbells();
        for (let at = 0; at < 1000; at++) put(batch, at);
        await batch.wait();
        expect(rung.count).toBeLessThan(1000 / 10);
      },
      { limit: 1000 },
      (local) => expect(local.every((value, at) => value === -at)).toBe(true),
    );
  });

  test('before an operation to the same rank that goes past it, and not before one to another rank', async () => {
    await locked(async (win, batch) => {
      await win.lock(0, Lock.SHARED);
      const order = postings();
      for (const at of SOME) put(batch, at);
      win.put(Float64Array.of(1), 0, 0);
      expect(order.length).toBe(1);
      win.get(new Float64Array(1), 1, 20);
      expect(order.join('')).toBe('ppppppg');
      await win.unlock(0);
    });
  });

  test('before a notification, which says that they are there', async () => {
    await two(async (win, { rank }) => {
      await win.lockAll();
      if (rank === 0) {
        for (const at of SOME) put(win.aggregate(1), at);
        win.putNotify(Float64Array.of(7), 1, 0);
      } else {
        await win.waitNotify();
        expect([...win.local.slice(0, 6)]).toEqual([7, -1, -2, -3, -4, -5]);
      }
      await win.unlockAll();
    }, {});
  });
});

/** What opens an epoch of rank 0, and completes its operations without a wait of the handle. */
const ENDS: Readonly<Record<string, (win: Window<Float64Array>, rank: number, issue: () => void) => Promise<void>>> = {
  async fence(win, rank, issue) {
    await win.fence();
    if (rank === 0) issue();
    await win.fence(Assert.NO_SUCCEED);
  },
  async complete(win, rank, issue) {
    if (rank === 0) {
      await win.start(win.group.include([1]));
      issue();
      await win.complete();
    } else {
      win.post(win.group.include([0]));
      await win.wait();
    }
  },
  async unlock(win, rank, issue) {
    if (rank !== 0) return;
    await win.lock(1, Lock.EXCLUSIVE);
    issue();
    await win.unlock(1);
  },
  async unlockAll(win, rank, issue) {
    await win.lockAll();
    if (rank === 0) issue();
    await win.unlockAll();
  },
  ...Object.fromEntries(
    (['flush', 'flushAll'] as const).map((call) => [
      call,
      async (win: Window<Float64Array>, rank: number, issue: () => void): Promise<void> => {
        if (rank !== 0) return;
        await win.lockAll();
        issue();
        await (call === 'flush' ? win.flush(1) : win.flushAll());
        // The target may look now: nothing else completes them.
        const found = new Float64Array(1);
        win.get(found, 1, 1);
        await win.flush(1);
        expect(found[0]).toBe(-1);
        await win.unlockAll();
      },
    ]),
  ),
};
const INFOS: readonly WindowInfo[] = [
  {},
  { fence: 'remote-notify' },
  { fence: 'deferred', lock: 'two-sided' },
  { schedule: 'gets-first' },
  { schedule: 'aggregate' },
];

describe.each(INFOS)('with %j, what completes operations completes those of handles', (info) => {
  test.each(Object.keys(ENDS))('%s', async (end) => {
    await two(async (win, world) => {
      await world.barrier();
      await ENDS[end](win, world.rank, () => {
        const batch = win.aggregate(1);
        for (const at of SOME) put(batch, at);
        batch.accumulate(Float64Array.of(1), 10, Op.SUM);
      });
      await world.barrier();
      if (world.rank === 1) expect([...win.local.slice(0, 11)]).toEqual([0, -1, -2, -3, -4, -5, 0, 0, 0, 0, 1]);
    }, info);
  });
});

/** Microseconds of `n` operations and their completion at rank 0, and of its processor. */
async function times(fabric: string, n: number, aggregated: boolean): Promise<{ total: number; processor: number }> {
  const size = fabric.startsWith('connectx') ? 17 : 2;
  const target = size - 1;
  const [took] = await runTasks(
    size,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 2 * n);
      const found = { total: 0, processor: 0 };
      await win.lockAll();
      // Full with the last one: posted before the computation.
      const batch = win.aggregate(target, { limit: n });
      const origin = Float64Array.of(1);
      for (const computes of [false, false, true]) {
        await world.barrier();
        if (world.rank !== 0) continue;
        const began = world.now();
        for (let i = 0; i < n; i++) {
          if (aggregated) batch.put(origin, 2 * i);
          else win.put(origin, target, 2 * i);
        }
        // Everything has arrived meanwhile: what the calls take besides is the processor's.
        if (computes) await world.compute(1000);
        if (aggregated) await batch.wait();
        await win.flush(target);
        if (computes) found.processor = world.now() - began - 1000;
        else found.total = world.now() - began;
      }
      await win.unlockAll();
      await win.free();
      return found;
    },
    { fabric, seed: 1 },
  );
  return took;
}

describe('on modelled fabrics', () => {
  test.each(['infinihost-64', 'connectx-16-cores', 'infinihost-pci-x'])(
    'on %s, puts of a handle take less of the processor than separate ones, from two on',
    async (fabric) => {
      for (const n of [2, 3, 8, 64]) {
        const [separate, together] = [await times(fabric, n, false), await times(fabric, n, true)];
        expect(together.processor).toBeLessThan(0.6 * separate.processor);
        expect(together.total).toBeLessThan(1.08 * separate.total);
      }
    },
  );

  test('on connectx-16-cores they are complete earlier from two on, on infinihost-64 from sixteen on', async () => {
    const faster = async (fabric: string, n: number): Promise<boolean> =>
      (await times(fabric, n, true)).total < (await times(fabric, n, false)).total;
    for (const n of [2, 3, 8, 64]) expect(await faster('connectx-16-cores', n)).toBe(true);
    for (const n of [16, 64]) expect(await faster('infinihost-64', n)).toBe(true);
  });

  test('sums of 64-bit integers to one rank do not wait for each other', async () => {
    const sums = async (aggregated: boolean): Promise<number> => {
      const [took] = await runTasks(
        2,
        async (world) => {
          const win = await Window.allocate(world, BigInt64Array, 4);
          await win.lockAll();
          const batch = win.aggregate(1);
          await world.barrier();
          const began = world.now();
          for (let i = 0; i < 10 && world.rank === 0; i++) {
            if (aggregated) batch.accumulate(BigInt64Array.of(1n), 1, Op.SUM);
            else win.accumulate(BigInt64Array.of(1n), 1, 1, Op.SUM);
          }
          await win.flushAll();
          const took = world.now() - began;
          await win.unlockAll();
          await world.barrier();
          expect([...win.local]).toEqual([0n, world.rank === 1 ? 10n : 0n, 0n, 0n]);
          await win.free();
          return took;
        },
        { fabric: FABRIC },
      );
      return took;
    };
    expect(await sums(true)).toBeLessThan((await sums(false)) / 2);
  });
});

describe('errors of handles', () => {
  test('are those of the call that adds the operation; the others go on', async () => {
    await locked(
      async (win, batch) => {
        put(batch, 1);
        expect(() => batch.put(Float64Array.of(1), 1000)).toThrow(expect.objectContaining({ code: 'ERR_RMA_RANGE' }));
        expect(() => batch.put(null as never, 0)).toThrow(expect.objectContaining({ code: 'ERR_BUFFER' }));
        expect(() => batch.accumulate(Float64Array.of(1), 0, Op.BAND as never)).toThrow(
          expect.objectContaining({ code: 'ERR_OP' }),
        );
        expect(() => win.aggregate(0).get(new Float64Array(1), 0)).toThrow(
          expect.objectContaining({ code: 'ERR_RMA_SYNC' }),
        );
        put(batch, 2);
        await batch.wait();
      },
      undefined,
      (local) => expect([...local.slice(0, 4)]).toEqual([0, -1, -2, 3]),
    );
  });

  test('an origin that is lost is said by the wait, once, and the others are put', async () => {
    await locked(
      async (_, batch) => {
        const lost = new Float64Array(100).fill(9);
        put(batch, 1);
        batch.put(lost, 100);
        put(batch, 2);
        transfer(lost);
        await expect(batch.wait()).rejects.toThrow(expect.objectContaining({ code: 'ERR_BUFFER' }));
        await batch.wait();
        put(batch, 3);
        await batch.wait();
      },
      undefined,
      (local) => expect([...local.slice(0, 5), local[100]]).toEqual([0, -1, -2, -3, 4, 100]),
    );
  });

  test('wrong arguments of aggregate are refused, and Rank.NULL does nothing', async () => {
    await locked(async (win) => {
      for (const limit of [0, -1, 1.5, Number.NaN])
        expect(() => win.aggregate(1, { limit })).toThrow(expect.objectContaining({ name: 'RangeError' }));
      expect(() => win.aggregate(1, { limit: '2' as never })).toThrow(expect.objectContaining({ name: 'TypeError' }));
      expect(() => win.aggregate(1, { size: 2 } as never)).toThrow(expect.objectContaining({ code: 'ERR_ARG' }));
      expect(() => win.aggregate(2)).toThrow(expect.objectContaining({ code: 'ERR_RANK' }));
      const none = win.aggregate(Rank.NULL);
      put(none, 0);
      await none.wait();
    });
  });

  test('outside of epochs a wait has nothing to wait for, also when the window is freed', async () => {
    await two(async (win, world) => {
      const { rank } = world;
      const batch = win.aggregate(1);
      await win.fence();
      if (rank === 0) put(batch, 3);
      await batch.wait();
      await win.fence(Assert.NO_SUCCEED);
      if (rank === 1) expect(win.local[3]).toBe(-3);
      await batch.wait();
      expect(() => put(batch, 3)).toThrow(expect.objectContaining({ code: 'ERR_RMA_SYNC' }));
      const other = await Window.allocate(world, Int8Array, 4);
      const late = other.aggregate(0);
      await other.free();
      expect(() => late.put(Int8Array.of(1), 0)).toThrow(expect.objectContaining({ code: 'ERR_WIN' }));
      await late.wait();
      expect(() => other.aggregate(0)).toThrow(expect.objectContaining({ code: 'ERR_WIN' }));
    }, {});
  });
});

describe('a handle', () => {
  test('reaches what is attached to a dynamic window', async () => {
    await runTasks(
      2,
      async (world) => {
        const win = await Window.createDynamic(world);
        const memory = new Float64Array(100);
        const addresses = new Float64Array(2);
        await world.allgather(Float64Array.of(win.attach(memory)), addresses);
        await win.lockAll();
        if (world.rank === 0) {
          const batch = win.aggregate(1);
          const rung = doorbells();
          for (let i = 0; i < 90; i++) batch.put(Float64Array.of(i), addresses[1] + 8 * i);
          batch.accumulate(Float64Array.of(5), addresses[1] + 8 * 95, Op.SUM);
          await batch.wait();
          expect(rung.count).toBeLessThan(45);
        }
        await win.unlockAll();
        await world.barrier();
        if (world.rank === 1) expect(memory).toEqual(memory.map((_, i) => (i < 90 ? i : i === 95 ? 5 : 0)));
        win.detach(memory);
        await win.free();
      },
      { fabric: FABRIC },
    );
  });

  test('whose target dies says so in every wait and in the end of the epoch, as requests do', async () => {
    const codesOf = async (aggregated: boolean): Promise<unknown[]> => {
      const codes: unknown[] = [];
      const code = (error: { code?: string }): unknown => codes.push(error.code);
      const job = runTasks(
        2,
        async (world) => {
          const win = await Window.allocate(world, Float64Array, 100);
          await win.lock(1, Lock.SHARED);
          await world.barrier();
          if (world.rank === 1) await world.compute(1e6);
          const batch = win.aggregate(1);
          await world.compute(20_000);
          const requests = Array.from({ length: 50 }, (_, at) => {
            if (aggregated) put(batch, at);
            return aggregated ? batch : win.rput(Float64Array.of(1), 1, at);
          });
          for (let i = 0; i < 2; i++) await requests[i].wait().catch(code);
          await win.unlock(1).catch(code);
        },
        { fabric: FABRIC, faults: { deaths: [{ rank: 1, time: 10_000 }] } },
      );
      await job.catch(() => {});
      return codes;
    };
    const codes = await codesOf(true);
    expect(codes.length).toBe(3);
    expect(codes).toEqual(await codesOf(false));
  });
});

describe('a random program leaves the same with handles as without', () => {
  const FAULTS: readonly FaultOptions[] = [{}, { delay: 2 }, { delay: 50, placement: 20 }, { delay: 5, loss: 0.02 }];

  test.each(INFOS)('%j', async (info) => {
    for (const [i, faults] of FAULTS.entries()) {
      const seed = seedOfRun() + i;
      const run = (aggregated: boolean): Promise<unknown> =>
        runTasks(3, (world) => aggregates(world, { seed, info, aggregated }), {
          ...{ fabric: FABRIC, seed, faults },
          order: 'random',
        });
      const separate = await run(false);
      expect(await run(true), `seed ${seed}`).toEqual(separate);
    }
  });
});
