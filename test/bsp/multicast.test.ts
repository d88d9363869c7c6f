/** The multicast barrier on modelled fabrics and real ranks: what is lost, late, or missing is recovered, and counted. */
import { type BspOptions, type BspStatistics, begin } from 'onesided/bsp';
import { runTasks, type TaskOptions } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';
import type { Context } from '../../src/verbs/device.ts';
import { RANK_KINDS, runRanks, seedOfRun } from '../support/ranks.ts';

const STEPS = 40;

interface Outcome {
  readonly errors: number;
  readonly statistics: BspStatistics;
  readonly microseconds: number;
}

/**
 * In each superstep each process puts its number and the superstep to all others, and checks what has come.
 * @param without processes whose ports have no multicast
 */
async function exchanged(
  size: number,
  faults: TaskOptions['faults'] = {},
  options: BspOptions = {},
  fabric = 'infinihost-64',
  seed = seedOfRun(),
  steps = STEPS,
  without: readonly number[] = [],
): Promise<Outcome[]> {
  return runTasks(
    size,
    async (world) => {
      if (without.includes(world.rank)) {
        const { capabilities } = (world as unknown as { job: { context: Context } }).job.context;
        (capabilities as { multicast: boolean }).multicast = false;
      }
      const bsp = await begin(world, { delivery: 'packed', counts: 'multicast', ...options });
      const came = new Float64Array(size);
      bsp.pushReg(came);
      await bsp.sync();
      const since = world.now();
      let errors = 0;
      for (let step = 0; step < steps; step++) {
        // Some have nothing to say, and others come late.
        if ((bsp.pid + step) % 3 === 0) await world.compute(20 * (1 + (step % 5)));
        for (let pid = 0; pid < size; pid++) {
          if ((pid + step) % 4 !== 1) bsp.put(pid, Float64Array.of(1000 * step + bsp.pid), came, bsp.pid);
        }
        await bsp.sync();
        const last = (bsp.pid + step) % 4 !== 1 ? step : step - 1;
        for (let pid = 0; pid < size; pid++) if (last >= 0 && came[pid] !== 1000 * last + pid) errors++;
      }
      const microseconds = world.now() - since;
      const statistics = bsp.statistics();
      await bsp.end();
      return { errors, statistics, microseconds };
    },
    { fabric, seed, faults, order: 'random' },
  );
}

/** Outcomes of processes other than the manager, summed. */
function summed(outcomes: Outcome[]): { errors: number; multicasts: number; nacks: number } {
  const sum = { errors: 0, multicasts: 0, nacks: 0 };
  for (const { errors, statistics } of outcomes.slice(1)) {
    sum.errors += errors;
    sum.multicasts += statistics.multicasts;
    sum.nacks += statistics.nacks;
  }
  return sum;
}

describe('without losses', () => {
  test.each([1, 2, 5, 16])('on %i processes every superstep comes by a datagram, and nobody asks', async (size) => {
    const outcomes = await exchanged(size);
    expect(summed(outcomes)).toEqual({ errors: 0, multicasts: (size - 1) * (STEPS + 1), nacks: 0 });
    expect(outcomes[0].statistics).toMatchObject({ supersteps: STEPS + 1, nacks: 0 });
  });

  test('the sums of more processes than a datagram has room for take several', async () => {
    const size = 140;
    const outcomes = await exchanged(size, {}, {}, 'infinihost-pci-x', seedOfRun(), 2);
    expect(summed(outcomes)).toEqual({ errors: 0, multicasts: 3 * (size - 1), nacks: 0 });
  }, 120_000);

  test('who asks too early gets a superfluous answer, and nothing goes wrong', async () => {
    const outcomes = await exchanged(5, {}, { nackAfter: 0 });
    const { errors, nacks } = summed(outcomes);
    expect(errors).toBe(0);
    expect(nacks).toBeGreaterThan(STEPS);
    expect(outcomes[0].statistics.nacks).toBeGreaterThan(STEPS);
  });
});

describe('with losses', () => {
  test.each([0.02, 0.1])(
    'a share of %f: each lost datagram is asked for, once',
    async (loss) => {
      const size = 8;
      const outcomes = await exchanged(size, { loss, delay: 30 }, { nackAfter: 1 });
      const { errors, multicasts, nacks } = summed(outcomes);
      expect(errors).toBe(0);
      // Each superstep's sums come to each process one way or the other; some come by both.
      expect(multicasts + nacks).toBeGreaterThanOrEqual((size - 1) * (STEPS + 1));
      const lost = (size - 1) * (STEPS + 1) - multicasts;
      expect(lost).toBeGreaterThan(0);
      expect(nacks).toBeGreaterThanOrEqual(lost);
    },
    120_000,
  );

  test('a longer patience makes a lost datagram cost more, and asks less', async () => {
    const [quick, slow] = [
      await exchanged(8, { loss: 0.2 }, { nackAfter: 0.5 }, 'infinihost-64', 5),
      await exchanged(8, { loss: 0.2 }, { nackAfter: 20 }, 'infinihost-64', 5),
    ];
    expect(slow[0].microseconds).toBeGreaterThan(2 * quick[0].microseconds);
    expect(summed(slow).nacks).toBeLessThanOrEqual(summed(quick).nacks);
  });

  test('the same seed gives the same run', async () => {
    const [first, second] = [
      await exchanged(6, { loss: 0.1 }, {}, 'infinihost-64', 9),
      await exchanged(6, { loss: 0.1 }, {}, 'infinihost-64', 9),
    ];
    expect(second).toEqual(first);
  });

  test("computations of parts of the processes do not take each other's datagrams", async () => {
    const errors = await runTasks(
      6,
      async (world) => {
        const part = (await world.split(world.rank % 2))!;
        const bsp = await begin(part, { delivery: 'packed', counts: 'multicast', nackAfter: 1 });
        const x = new Float64Array(part.size);
        bsp.pushReg(x);
        await bsp.sync();
        let wrong = 0;
        for (let step = 0; step < 30; step++) {
          // One part has twice as many puts as the other.
          for (let i = 0; i <= world.rank % 2; i++) {
            for (let pid = 0; pid < part.size; pid++) bsp.put(pid, Float64Array.of(step), x, bsp.pid);
          }
          await bsp.sync();
          wrong += x.filter((value) => value !== step).length;
        }
        await bsp.end();
        await part.free();
        return wrong;
      },
      { fabric: 'infinihost-64', seed: seedOfRun(), faults: { loss: 0.05 } },
    );
    expect(errors).toEqual(new Array(6).fill(0));
  });
});

describe('where ports have no multicast', () => {
  const SIZE = 7;
  const pids = [...Array(SIZE).keys()];

  test.each([
    ['none has', pids],
    ['that of the manager has none', [0]],
    ['that of another process has none', [4]],
  ])('%s: the counts come all the same', async (_, without) => {
    const outcomes = await exchanged(SIZE, { loss: 0.01 }, {}, 'infinihost-64', seedOfRun(), STEPS, without);
    for (const { errors, statistics } of outcomes) {
      expect(errors).toBe(0);
      expect(statistics).toEqual({ supersteps: STEPS + 1, multicasts: 0, nacks: 0 });
    }
  });

  test('without losses it takes as long as the tree', async () => {
    const run = async (counts: 'multicast' | 'tree', without: readonly number[]) =>
      (await exchanged(SIZE, {}, { counts }, 'infinihost-64', 11, STEPS, without)).map((one) => one.microseconds);
    const tree = await run('tree', []);
    for (const [i, microseconds] of (await run('multicast', [2])).entries()) {
      expect(microseconds).toBeCloseTo(tree[i], 6);
    }
    expect(await run('multicast', [])).not.toEqual(tree);
  });
});

describe('a process that dies', () => {
  test.each([0, 3])('number %i: all others are told', async (victim) => {
    const codes: string[] = [];
    const size = 5;
    const run = runTasks(
      size,
      async (world) => {
        const bsp = await begin(world, { delivery: 'packed', counts: 'multicast', nackAfter: 1 });
        try {
          for (let step = 0; step < 1000; step++) await bsp.sync();
        } catch (error) {
          codes.push((error as { code: string }).code);
        }
      },
      { fabric: 'infinihost-64', seed: seedOfRun(), faults: { loss: 0.05, deaths: [{ rank: victim, time: 2000 }] } },
    );
    await run.catch(() => {});
    expect(codes).toEqual(new Array(size - 1).fill('ERR_RMA_RANK_FAILED'));
  });
});

test.each(RANK_KINDS)('on ranks that are %s, what one does not hear is asked for', async (kind) => {
  const size = 3;
  const options = { kind, size, args: ['--deaf', '--nackAfter=200'] } as const;
  const ranks = await runRanks<BspStatistics & { lost: number }>('bsp-multicast', options);
  const { supersteps, multicasts, nacks, lost } = ranks[size - 1];
  expect(lost).toBeGreaterThan(10);
  expect(nacks).toBeGreaterThanOrEqual(lost);
  expect(multicasts).toBeLessThanOrEqual(supersteps - lost);
  // A busy machine may make others late, whose datagrams come all the same.
  for (const other of ranks.slice(0, -1)) expect(other.multicasts + other.nacks).toBeGreaterThanOrEqual(supersteps);
});
