/** Layouts that a helper serves while the target computes (hint `noncontiguous`: `host-assisted`). */
import { type Communicator, Datatype, Window } from 'onesided';
import { loadFabric, runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';

const COMPUTE = 5000;
const ROWS = 300;
const COLUMNS = { target: { type: Datatype.vector(ROWS, 8, 16, Datatype.INT32) } };
const CALLS = ['put', 'get'] as const;

interface Seen {
  /** Microseconds of each call of rank 0 with its flush, while rank 1 computes. */
  readonly took: readonly number[];
  /** Microseconds of the computation at rank 1. */
  readonly computed: number;
  readonly progress: string;
}

interface Options {
  readonly helper: number;
  readonly noncontiguous?: 'host-assisted' | 'multi-write' | 'sgrs';
  readonly maxSge?: number;
}

function fabricWith({ helper, maxSge }: Options) {
  const { host, adapter, ...rest } = loadFabric('infinihost-express');
  return { ...rest, host: { ...host, helper }, adapter: { ...adapter, maxSge: maxSge ?? adapter.maxSge } };
}

/** Rank 0 puts to rank 1, which computes, and gets from it. */
async function served(world: Communicator, { noncontiguous = 'host-assisted' }: Options): Promise<Seen> {
  const win = await Window.allocate(world, Int32Array, ROWS * 16, { info: { noncontiguous } });
  const took: number[] = [];
  const values = Int32Array.from({ length: ROWS * 8 }, (_, i) => i + 1);
  const back = new Int32Array(values.length);
  await win.lockAll();
  await world.barrier();
  const begun = world.now();
  let computed = 0;
  if (world.rank === 1) {
    await world.compute(COMPUTE);
    computed = world.now() - begun;
  } else {
    for (const call of CALLS) {
      const called = world.now();
      win[call](call === 'put' ? values : back, 1, 0, COLUMNS);
      await win.flush(1);
      took.push(world.now() - called);
    }
    expect(back).toEqual(values);
  }
  await world.barrier();
  if (world.rank === 1) expect(win.local.filter((_, i) => i % 16 < 8)).toEqual(values);
  const progress = win.progress('put', 1 - world.rank);
  await win.unlockAll();
  await win.free();
  return { took, computed, progress };
}

async function run(options: Options): Promise<Seen> {
  const seen = await runTasks(2, (world) => served(world, options), { fabric: fabricWith(options), seed: 1 });
  return { ...seen[0], computed: seen[1].computed };
}

describe('while the target computes', () => {
  test('an interrupt serves layouts, and takes its time from the computation', async () => {
    const { took, computed, progress } = await run({ helper: 1 });
    expect(Math.max(...took)).toBeLessThan(COMPUTE / 4);
    expect(computed).toBeGreaterThan(COMPUTE);
    expect(progress).toBe('device');
  });

  test('another core serves them beside it', async () => {
    const { took, computed } = await run({ helper: 2 });
    expect(Math.max(...took)).toBeLessThan(COMPUTE / 4);
    expect(computed).toBe(COMPUTE);
  });

  test('sgrs waits for the end of the computation, helper or not', async () => {
    const { took, progress } = await run({ helper: 2, noncontiguous: 'sgrs' });
    expect(took[0]).toBeGreaterThan(COMPUTE / 2);
    expect(progress).toBe('target');
  });

  test('what no list can carry is packed by the helper', async () => {
    const { took, computed } = await run({ helper: 1, maxSge: 1 });
    expect(Math.max(...took)).toBeLessThan(COMPUTE / 4);
    expect(computed).toBeGreaterThan(COMPUTE);
  });

  test('where there is no helper, each piece is a request', async () => {
    const alone = await run({ helper: 0 });
    expect(alone).toEqual(await run({ helper: 0, noncontiguous: 'multi-write' }));
    expect(alone.progress).toBe('device');
    expect(alone.computed).toBe(COMPUTE);
  });

  test('the origin may compute, too: what it has begun goes on', async () => {
    const options = { helper: 2 } as const;
    const main = async (world: Communicator): Promise<number[]> => {
      const win = await Window.allocate(world, Int32Array, ROWS * 16, { info: { noncontiguous: 'host-assisted' } });
      await win.lockAll();
      // More lists than may be under way at once; the connection is there after the first round.
      const begun: number[] = [];
      for (const [round, compute] of [0, 0, COMPUTE].entries()) {
        await world.barrier();
        const values = new Int32Array(ROWS * 8).fill(round + 1);
        for (let i = 0; i < 6; i++) win.put(values, 1 - world.rank, 0, COLUMNS);
        await world.compute(compute);
        const waited = world.now();
        await win.flush(1 - world.rank);
        begun.push(world.now() - waited);
        await world.barrier();
        expect([...new Set(win.local)]).toEqual([round + 1, 0]);
      }
      await win.unlockAll();
      await win.free();
      return begun;
    };
    const waited = await runTasks(2, main, { fabric: fabricWith(options), seed: 1 });
    for (const [, alone, hidden] of waited) {
      expect(hidden).toBeLessThan(alone / 4);
    }
  });

  test.each(CALLS)('a target that dies in its computation is told to who waits: %s', async (call) => {
    const main = async (world: Communicator): Promise<void> => {
      const win = await Window.allocate(world, Int32Array, ROWS * 16, { info: { noncontiguous: 'host-assisted' } });
      await win.lockAll();
      await world.barrier();
      if (world.rank === 1) await world.compute(COMPUTE);
      else {
        for (;;) {
          win[call](new Int32Array(ROWS * 8), 1, 0, COLUMNS);
          await win.flush(1);
        }
      }
    };
    const faults = { deaths: [{ rank: 1, time: COMPUTE / 2 }] };
    const died = runTasks(2, main, { fabric: fabricWith({ helper: 1 }), seed: 1, faults });
    // Whichever is found first: that the rank is gone, or that its device answers nothing.
    await expect(died).rejects.toThrow(/rank 1 (\(a task of this thread\) is gone|was lost)/);
  });
});
