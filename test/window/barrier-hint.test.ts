/** Hints `barrier` and `barrier_algorithm`: the barrier that closes fences, on tasks, processes and threads. */
import { describe, expect, test } from 'vitest';
import type { BarrierKind } from '../../src/collective/barrier-kinds.ts';
import { BARRIER_KINDS } from '../../src/collective/barrier-kinds.ts';
import { Assert, Window, type WindowInfo } from '../../src/index.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import {
  changeInfo,
  givesSeldom,
  numberOf,
  readInfo,
  seldomNumberOf,
  seldomThatDiffers,
  showInfo,
} from '../../src/window/creation/window-info.ts';
import { Random } from '../ranks/support/random.ts';
import { describeCases } from '../support/cases.ts';
import { IN_GATE } from '../support/gate.ts';
import { rankRuns, seedOfRun } from '../support/ranks.ts';

/** A fabric whose adapters can do both. */
const LANAI = loadFabric('myrinet-lanai-xp');
const FABRIC = { ...LANAI, name: 'both', adapter: { ...LANAI.adapter, step: 0.5 } };
const SEEDS = IN_GATE ? 3 : 20;
const ROUNDS = 8;

const ALGORITHMS = ['dissemination', 'pairwise', 'gather-broadcast:3'];
const BARRIERS: WindowInfo[] = [
  { barrier: 'messages' },
  ...(['waits', 'adapter'] as const).flatMap((barrier) =>
    ALGORITHMS.map((barrier_algorithm) => ({ barrier, barrier_algorithm })),
  ),
];
const INFOS = (['remote-notify', 'immediate-optimized'] as const).flatMap((fence) =>
  BARRIERS.map((barrier): WindowInfo => ({ fence, ...barrier })),
);

test.each(INFOS)('what was put is there behind a fence, and nothing of the next epoch: %o', async (info) => {
  for (let seed = seedOfRun(), last = seed + SEEDS; seed < last; seed++) {
    const size = 2 + (seed % 6);
    const options: TaskOptions = {
      fabric: FABRIC,
      seed,
      order: seed % 2 === 0 ? 'random' : 'ranks',
      faults: { delay: seed % 3 === 0 ? 20 : 0, loss: seed % 4 === 1 ? 0.1 : 0, placement: seed % 5 === 2 ? 5 : 0 },
      barrierNackAfter: 0.1,
    };
    await runTasks(
      size,
      async (world) => {
        const { rank } = world;
        const random = new Random(seed, 100 + rank);
        const shared = new Random(seed, 7);
        const win = await Window.allocate(world, Float64Array, size, { info });
        const other = await Window.allocate(world, Float64Array, 1);
        let expected = new Float64Array(size);
        await win.fence();
        for (let round = 1; round <= ROUNDS; round++) {
          const puts = Array.from({ length: size }, () => Array.from({ length: size }, () => shared.chance(0.5)));
          if (random.chance(0.5)) await world.compute(random.between(0, 40));
          puts[rank].forEach((does, to) => {
            if (does) win.put(Float64Array.of(100 * round + rank), to, rank);
          });
          if (random.chance(0.2)) await win.fence(0, { timeout: 0.002 }).catch(() => win.fence());
          else await win.fence();
          expected = expected.map((value, from) => (puts[from][rank] ? 100 * round + from : value));
          expect(win.local).toEqual(expected);
          // All have looked before anything of the next round comes.
          await win.fence();
          if (shared.chance(0.3)) await world.barrier();
        }
        await other.free();
        await win.free();
      },
      options,
    );
  }
});

/** What a fence that is its barrier alone adds to a computation that it was called before, in microseconds; a mean. */
async function behindComputation(
  info: WindowInfo,
  microseconds: number,
  options: Partial<TaskOptions> = {},
): Promise<number> {
  const times = await runTasks(
    8,
    async (world) => {
      const win = await Window.allocate(world, Int32Array, 1, { info: { fence: 'immediate-optimized', ...info } });
      for (let i = 0; i < 3; i++) await win.fence(Assert.NO_PRECEDE);
      const start = world.now();
      for (let i = 0; i < 10; i++) {
        const going = win.fence(Assert.NO_PRECEDE);
        await world.compute(microseconds);
        await going;
      }
      const time = (world.now() - start) / 10 - microseconds;
      await win.free();
      return time;
    },
    { fabric: FABRIC, ...options },
  );
  return Math.max(...times);
}

test('a barrier by adapters closes fences while ranks compute, whatever the communicator has', async () => {
  const alone = await behindComputation({}, 0);
  expect(await behindComputation({}, 200)).toBeGreaterThan(alone / 2);
  for (const barrier of ['waits', 'adapter'] as const) {
    expect(await behindComputation({ barrier }, 200)).toBeLessThan(alone / 8);
    expect(await behindComputation({ barrier: 'messages' }, 200, { barrier })).toBeGreaterThan(alone / 2);
  }
});

test('without hints, a window takes the time that it took', async () => {
  for (const barrier of ['auto', 'adapter'] as const)
    expect(await behindComputation({ barrier: 'auto' }, 20, { barrier })).toBe(
      await behindComputation({}, 20, { barrier }),
    );
});

describe('refusals', () => {
  const made = (info: object, fabric: TaskOptions['fabric'] = FABRIC) =>
    runTasks(2, async (world) => void (await Window.allocate(world, Int32Array, 1, { info })), { fabric });

  test.each([
    [{ barrier: 'words' }, FABRIC, /barrier "words" needs a device .*leave it out, or choose one of auto, messages, /],
    [{ barrier: 'waits' }, 'infinihost-64', /barrier "waits" needs a device .* choose one of auto, messages$/],
    [{ barrier: 'adapter' }, 'infinihost-64', /barrier "adapter" needs a device .* choose one of auto, messages$/],
    [{ barrier: 'word' }, FABRIC, /the hint barrier cannot be "word"; allowed: auto, words, /],
    [{ barrier_algorithm: 'gather-broadcast:1' }, FABRIC, /the hint barrier_algorithm cannot be "gather-broadcast:1"/],
    [{ barrier_algorithm: 3 }, FABRIC, /the hint barrier_algorithm cannot be 3; allowed: dissemination, pairwise, /],
  ] as const)('%o', async (info, fabric, message) => {
    await expect(made(info, fabric)).rejects.toMatchObject({ code: 'ERR_INFO_VALUE', message });
  });

  test.each([
    ['barrier', { barrier: 'waits' }, {}],
    ['barrier', { barrier: 'waits' }, { barrier: 'adapter' }],
    ['barrier_algorithm', { barrier: 'waits' }, { barrier: 'waits', barrier_algorithm: 'pairwise' }],
    ['barrier_algorithm', {}, { barrier_algorithm: 'gather-broadcast:2' }],
    ['lock', { lock: 'two-sided', barrier: 'waits' }, { barrier: 'adapter' }],
  ] as const)('ranks that give different ones: the first that differs is %s', async (hint, some, others) => {
    const codes = await runTasks(
      4,
      async (world) => {
        const call = Window.allocate(world, Int32Array, 1, { info: world.rank === 2 ? others : some });
        return await call.then(
          () => 'none',
          ({ code, message }) => `${code} ${message}`,
        );
      },
      { fabric: FABRIC },
    );
    for (const told of codes)
      expect(told).toMatch(`ERR_INFO_VALUE Window.allocate: the hint ${hint} of rank 2 differs`);
  });
});

describe('by the table of hints', () => {
  const where = { immediateCompletion: true, size: 4, virtualTime: false };
  const read = (info?: WindowInfo) => readInfo('Window.create', info, where);

  test('each kind and each algorithm is a number of its own, and the usual number says that there is one', () => {
    const algorithms = [
      'dissemination',
      'pairwise',
      ...Array.from({ length: 31 }, (_, i) => `gather-broadcast:${i + 2}`),
    ];
    const all = BARRIER_KINDS.flatMap((barrier: BarrierKind) =>
      algorithms.map((barrier_algorithm) => read({ barrier, barrier_algorithm })),
    );
    expect(new Set(all.map(seldomNumberOf)).size).toBe(all.length);
    expect(all.filter((hints) => !givesSeldom(numberOf(hints)))).toEqual([read()]);
    expect(seldomThatDiffers(seldomNumberOf(all[5]), seldomNumberOf(all[6]))).toBe('barrier_algorithm');
    expect(seldomThatDiffers(seldomNumberOf(all[5]), seldomNumberOf(all[5 + algorithms.length]))).toBe('barrier');
  });

  test('setInfo leaves them as they are', () => {
    const hints = read({ barrier: 'waits' });
    const before = showInfo(hints);
    changeInfo('setInfo', hints, { barrier: 'messages', barrier_algorithm: 'pairwise' });
    expect(showInfo(hints)).toEqual(before);
    expect(before).toMatchObject({ barrier: 'waits', barrier_algorithm: 'dissemination' });
  });
});

if (!IN_GATE)
  for (const { kind, size } of rankRuns([1, 2, 5]))
    describeCases(`on ${size} ranks as ${kind}`, 'window-barriers', { kind, size });
