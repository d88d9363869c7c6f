/** Who is told that an operation has failed: whoever waits for operations to its target, and nobody else. */
import { Lock, Op, Window } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test, vi } from 'vitest';

// Against hanging only.
vi.setConfig({ testTimeout: 120_000 });

const fabric = 'infinihost-64';
const LENGTH = 100_000;

/** The memory of arrays is given away. */
function giveAway(...arrays: readonly Float64Array[]): void {
  structuredClone(0, { transfer: arrays.map(({ buffer }) => buffer as ArrayBuffer) });
}

/** Gets that take all registrations, and one behind them whose origin is gone before it can be posted. */
function failBehindOthers(window: Window<Float64Array>, target: number): void {
  const lost = new Float64Array(500);
  for (let i = 0; i < 64; i++) window.get(new Float64Array(3000), target, 0);
  window.get(lost, target, 0);
  giveAway(lost);
}

/** Calls, and what became of each. */
class Calls {
  readonly results: string[] = [];

  async call(name: string, call: () => Promise<unknown>): Promise<void> {
    try {
      await call();
      this.results.push(name);
    } catch (error) {
      this.results.push(`${name}: ${(error as { code?: string }).code}`);
    }
  }
}

describe('an operation that has failed', () => {
  const FENCES = ['remote-notify', 'immediate-naive', 'immediate-optimized', 'notify-all'] as const;
  const WAYS = ['aggregate', 'behind others'] as const;

  test.each(FENCES.flatMap((fence) => WAYS.map((way) => [fence, way] as const)))(
    'does not keep other ranks in a %s fence, though the rank does not call it again (%s)',
    async (fence, way) => {
      const results = await runTasks(
        2,
        async (world) => {
          const window = await Window.allocate(world, Float64Array, LENGTH, { info: { fence } });
          await window.fence();
          const calls = new Calls();
          if (world.rank === 0) {
            const lost = new Float64Array(500);
            if (way === 'aggregate') {
              window.aggregate(1, { limit: 8 }).get(lost, 0);
              giveAway(lost);
            } else failBehindOthers(window, 1);
          }
          await calls.call('fence', () => window.fence());
          const left = world.now();
          if (world.rank === 0) await world.compute(1e6);
          await calls.call('barrier', () => world.barrier());
          return { results: calls.results, left };
        },
        { fabric },
      );
      expect(results.map((one) => one.results)).toEqual([
        ['fence: ERR_BUFFER', 'barrier'],
        ['fence', 'barrier'],
      ]);
      expect(Math.abs(results[0].left - results[1].left)).toBeLessThan(1e5);
    },
  );

  test('fails the end of its epoch, and no collective that is called meanwhile', async () => {
    const results = await runTasks(
      2,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, LENGTH);
        const calls = new Calls();
        await window.lockAll();
        if (world.rank === 0) failBehindOthers(window, 1);
        else await world.compute(1e5);
        const sum = new Float64Array(1);
        await calls.call('allreduce', () => world.allreduce(Float64Array.of(1), sum, Op.SUM));
        await calls.call('barrier', () => world.barrier());
        await calls.call('unlockAll', () => window.unlockAll());
        if (world.rank === 0) await calls.call('unlockAll', () => window.unlockAll());
        await calls.call('free', () => window.free());
        return calls.results;
      },
      { fabric },
    );
    const others = ['unlockAll', 'free'];
    expect(results).toEqual([
      ['allreduce', 'barrier', 'unlockAll: ERR_BUFFER', ...others],
      ['allreduce', 'barrier', ...others],
    ]);
  });

  test('fails the flush of its target, and no flush of another one', async () => {
    const [results] = await runTasks(
      3,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, LENGTH);
        const calls = new Calls();
        if (world.rank === 0) {
          await window.lockAll();
          failBehindOthers(window, 2);
          window.put(Float64Array.of(1), 1, 0);
          await calls.call('flush 1', () => window.flush(1));
          await calls.call('flush 2', () => window.flush(2));
          await calls.call('flush 2', () => window.flush(2));
          await calls.call('unlockAll', () => window.unlockAll());
        }
        await window.free();
        return calls.results;
      },
      { fabric },
    );
    expect(results).toEqual(['flush 1', 'flush 2: ERR_BUFFER', 'flush 2', 'unlockAll']);
  });

  test.each([
    ['first and second', [true, true]],
    ['second and third', [false, true, true]],
    ['first and third', [true, false, true]],
  ] as const)('as the %s of one list, does not keep the handle from being complete', async (_, gone) => {
    const [results] = await runTasks(
      2,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, LENGTH);
        const calls = new Calls();
        if (world.rank === 0) {
          await window.lock(1, Lock.EXCLUSIVE);
          const batch = window.aggregate(1);
          const origins = gone.map(() => new Float64Array(200).fill(3));
          origins.forEach((origin, i) => {
            batch.put(origin, 1000 * i);
          });
          giveAway(...origins.filter((_, i) => gone[i]));
          await calls.call('wait', () => batch.wait());
          await calls.call('wait', () => batch.wait());
          await calls.call('unlock', () => window.unlock(1));
        }
        await world.barrier();
        const put = gone.map((_, i) => window.local[1000 * i]);
        await window.free();
        return { results: calls.results, put };
      },
      { fabric },
    ).then(([origin, target]) => [{ ...origin, put: target.put }]);
    expect(results).toEqual({
      results: ['wait: ERR_BUFFER', 'wait', 'unlock'],
      put: gone.map((lost) => (lost ? 0 : 3)),
    });
  });
});

test('a request that a promise has said to be complete stays so when its window is freed', async () => {
  const results = await runTasks(
    2,
    async (world) => {
      const window = await Window.allocate(world, Float64Array, 8);
      let request: ReturnType<typeof window.rput> | undefined;
      if (world.rank === 0) {
        await window.lock(1, Lock.SHARED);
        request = window.rput(Float64Array.of(5), 1, 0);
        await request.wait();
        await window.unlock(1);
      }
      await window.free();
      return request?.test();
    },
    { fabric },
  );
  expect(results).toEqual([true, undefined]);
});
