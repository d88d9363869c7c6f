/**
 * Barriers of each kind among ranks in virtual time: nobody leaves before all have entered, whatever else is under way;
 * those that adapters carry out go on while the ranks compute; who never comes is told.
 */
import { describe, expect, test } from 'vitest';
import type { BarrierOptions } from '../../src/collective/barrier-kinds.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { Entries, enterMany } from '../ranks/support/barriers.ts';
import { Random } from '../ranks/support/random.ts';
import { IN_GATE } from '../support/gate.ts';
import { seedOfRun } from '../support/ranks.ts';

/** A fabric whose adapters can do both. */
const LANAI = loadFabric('myrinet-lanai-xp');
const FABRIC = { ...LANAI, name: 'both', adapter: { ...LANAI.adapter, step: 0.5 } };
const SEEDS = IN_GATE ? 2 : 40;
const FEWER_SEEDS = IN_GATE ? 2 : 12;

const KINDS = (['messages', 'waits', 'adapter'] as const).flatMap((barrier) =>
  (barrier === 'messages' ? ['dissemination'] : ['dissemination', 'pairwise', 'gather-broadcast:3']).map(
    (barrierAlgorithm): BarrierOptions => ({ barrier, barrierAlgorithm, barrierNackAfter: 0.1 }),
  ),
);
const TABLE = KINDS.map((kind) => [`${kind.barrier}, ${kind.barrierAlgorithm}`, kind] as const);

const optionsOf = (seed: number, kind: BarrierOptions): TaskOptions => ({
  ...kind,
  fabric: FABRIC,
  seed,
  order: seed % 2 === 0 ? 'random' : 'ranks',
  faults: { delay: seed % 3 === 0 ? 20 : 0, loss: seed % 4 === 1 ? 0.1 : 0, placement: seed % 5 === 2 ? 5 : 0 },
});

describe.each(TABLE)('barriers of kind %s', (_, kind) => {
  test('nobody leaves before all have entered', async () => {
    for (let seed = seedOfRun(), last = seed + SEEDS; seed < last; seed++) {
      const size = 2 + (seed % 7);
      const entries = new Entries();
      await runTasks(
        size,
        (world) => enterMany(world, new Random(seed, 100 + world.rank), new Random(seed, 7), entries),
        optionsOf(seed, kind),
      );
    }
  });

  test('a rank that never comes is told, and who waits for it', async () => {
    const never = runTasks(
      5,
      async (world) => {
        if (world.rank === 3) await world.receive(new Uint8Array(1), 0);
        else await world.barrier();
      },
      { fabric: FABRIC, ...kind },
    );
    await expect(never).rejects.toMatchObject({ code: 'ERR_RMA_WOULD_DEADLOCK', message: /barrier/ });
  });

  test('free completes what all have called, and ends no barrier that others are in when it ends early', async () => {
    for (let seed = seedOfRun(), last = seed + FEWER_SEEDS; seed < last; seed++) {
      const size = 2 + (seed % 4);
      await runTasks(
        size,
        async (world) => {
          const comm = await world.dup();
          for (let i = 0; i < 2; i++) await comm.barrier();
          const pending = comm.barrier();
          await comm.free();
          await pending;
          const other = await world.dup();
          if (world.rank === 0) {
            await other.barrier({ timeout: 0.1 }).catch(() => {});
            await expect(other.free({ timeout: 0.1 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
            await world.receive(new Uint8Array(1), 1);
          } else {
            await world.compute(1000);
            await other.barrier();
            if (world.rank === 1) world.send(new Uint8Array(1), 0);
          }
        },
        optionsOf(seed, kind),
      );
    }
  });

  test('ranks that die end the barriers of the others, whenever that is', async () => {
    const errors = new Set<string>();
    for (let time = 0; time < 120; time += 3) {
      await runTasks(
        4,
        async (world) => {
          try {
            for (let i = 0; i < 12; i++) await world.barrier();
          } catch (error) {
            errors.add((error as { code: string }).code);
            throw error;
          }
        },
        { fabric: FABRIC, ...kind, faults: { deaths: [{ rank: 2, time }] } },
      ).catch((error: unknown) => expect(error).toMatchObject({ code: 'ERR_RMA_RANK_FAILED' }));
    }
    expect([...errors]).toEqual(['ERR_RMA_RANK_FAILED']);
  });
});

/** What a barrier that was begun before a computation adds to it, in microseconds; a mean. */
async function behindComputation(size: number, kind: BarrierOptions, microseconds: number): Promise<number> {
  const times = await runTasks(
    size,
    async (world) => {
      for (let i = 0; i < 3; i++) await world.barrier();
      const start = world.now();
      for (let i = 0; i < 10; i++) {
        const going = world.barrier();
        await world.compute(microseconds);
        await going;
      }
      return (world.now() - start) / 10 - microseconds;
    },
    { fabric: FABRIC, ...kind },
  );
  return Math.max(...times);
}

test('adapters ask for nothing where nothing is lost, not even in the first barrier of a communicator', async () => {
  const made = KINDS.filter(({ barrier }) => barrier === 'adapter');
  for (const kind of made)
    for (const size of [3, 5, 7, 9, 17]) {
      const nacks = await runTasks(
        size,
        async (world) => {
          await world.barrier();
          const half = (await world.split(world.rank % 2))!;
          await half.barrier();
          const all = await half.dup();
          await all.barrier();
          return [world, half, all].map((comm) => comm.statistics().adapter?.nacks);
        },
        { fabric: FABRIC, ...kind, barrierNackAfter: 10 },
      );
      expect(nacks, `${kind.barrierAlgorithm}, ${size} ranks`).toEqual(Array.from(nacks, () => [0, 0, 0]));
    }
});

test('barriers of adapters go on while the ranks compute, those of messages do not', async () => {
  const alone = await behindComputation(8, { barrier: 'messages' }, 0);
  expect(await behindComputation(8, { barrier: 'messages' }, 200)).toBeGreaterThan(alone / 2);
  for (const barrier of ['waits', 'adapter'] as const)
    expect(await behindComputation(8, { barrier }, 200)).toBeLessThan(alone / 8);
});

test('ranks must want the same barrier, and what a device does not offer goes by messages', async () => {
  const without = await runTasks(3, async (world) => void (await world.barrier()), {
    fabric: 'infinihost-64',
    barrier: 'adapter',
  });
  expect(without).toHaveLength(3);
});

test.each([
  [{ barrier: 'word' }, RangeError, /barrier: unknown name "word"; did you mean "words"\?/],
  [{ barrier: 3 }, TypeError, /barrier must be a string, not 3/],
  [{ barrierAlgorithm: 'gather-broadcast:1' }, Error, /there is no barrier algorithm "gather-broadcast:1"/],
  [{ barrierAlgorithm: 3 }, TypeError, /barrierAlgorithm must be a string/],
  [{ barrierNackAfter: 0 }, RangeError, /barrierNackAfter must be from 0.001/],
  [{ barrierNackAfter: '1' }, TypeError, /barrierNackAfter must be a number/],
])('%o is refused', async (options, type, message) => {
  const run = runTasks(1, () => {}, { fabric: FABRIC, ...(options as object) });
  await expect(run).rejects.toThrow(type as typeof Error);
  await expect(run).rejects.toThrow(message);
});
