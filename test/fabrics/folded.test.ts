/**
 * Small operations that travel with the message which completes their epoch: the schedules `aggregate`, for puts, and
 * `aggregate-gets`.
 */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Op } from '../../src/datatype/op.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { FOLDED_BYTES } from '../../src/transfer/schedule/aggregate.ts';
import type { ScheduleHint } from '../../src/transfer/schedule/schedule-kinds.ts';
import { Window } from '../../src/window/calls/window.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';
import { FABRIC, postings, two } from '../support/postings.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

describe('a small put that is the only operation to its target travels with complete', () => {
  /** Rank 0 accesses rank 1 in one epoch. @returns writes and reads that were posted, and notifications */
  async function accessed(
    issue: (win: Window<Float64Array>) => void,
    look: (local: Float64Array) => void,
    options: Partial<TaskOptions> = {},
    schedule: ScheduleHint = 'aggregate',
  ): Promise<string> {
    let order: string[] = [];
    await two(
      async (win, { rank }) => {
        win.local.fill(100);
        await win.fence();
        for (let round = 0; round < 3; round++) {
          if (rank === 0) {
            await win.start(win.group.include([1]));
            order = postings();
            issue(win);
            await win.complete();
            vi.restoreAllMocks();
          } else {
            win.post(win.group.include([0]));
            await win.wait();
            look(win.local);
          }
        }
        await win.fence(Assert.NO_SUCCEED);
      },
      { schedule },
      options,
    );
    return order.join('');
  }
  const small = FOLDED_BYTES / 8;
  const result = new Float64Array(small);
  const isOf = (value: number, bytes: number) => (local: Float64Array) =>
    expect(local.slice(0, bytes / 8).every((found) => found === value)).toBe(true);

  test.each<[string, (win: Window<Float64Array>) => void, string, (local: Float64Array) => void]>([
    ['a put', (win) => win.put(new Float64Array(small).fill(7), 1, 0), '', isOf(7, FOLDED_BYTES)],
    ['a get does not: it leaves at once', (win) => win.get(result, 1, 0), 'g', () => {}],
    [
      'a larger put does not',
      (win) => win.put(new Float64Array(small + 1).fill(8), 1, 0),
      'p',
      isOf(8, FOLDED_BYTES + 8),
    ],
    ['a larger get does not', (win) => win.get(new Float64Array(small + 1), 1, 0), 'g', () => {}],
    [
      'the second of two does not, nor the first',
      (win) => {
        win.put(Float64Array.of(1), 1, 0);
        win.put(Float64Array.of(2), 1, 1);
      },
      'pp',
      (local) => expect([...local.slice(0, 3)]).toEqual([1, 2, 100]),
    ],
    [
      'the third does not',
      (win) => {
        for (const i of [0, 1, 2]) win.put(Float64Array.of(i), 1, i);
      },
      'ppp',
      (local) => expect([...local.slice(0, 3)]).toEqual([0, 1, 2]),
    ],
  ])('%s', async (name, issue, expected, look) => {
    result.fill(0);
    for (const options of [{}, { order: 'random', faults: { delay: 50, placement: 20 } }] as const) {
      expect(await accessed(issue, look, options)).toBe(expected);
    }
    if (name.startsWith('a get')) expect(result).toEqual(new Float64Array(small).fill(100));
  });

  test('what a layout scatters, at both ends', async () => {
    const pairs = Datatype.vector(4, 1, 2, Datatype.FLOAT64);
    const target = { type: pairs };
    const look = (local: Float64Array): void =>
      expect([...local.slice(0, 8)]).toEqual([1, 100, 2, 100, 3, 100, 4, 100]);
    expect(await accessed((win) => win.put(Float64Array.of(1, 2, 3, 4), 1, 0, { target }), look)).toBe('');
    const found = new Float64Array(8).fill(5);
    expect(
      await accessed(
        (win) => win.get(found, 1, 1, { origin: { type: pairs }, target }),
        () => {},
      ),
    ).toBe('gggg');
    expect([...found]).toEqual([100, 5, 100, 5, 100, 5, 100, 5]);
  });

  test('not beside an update, whose bytes it must not overtake', async () => {
    const issue = (win: Window<Float64Array>): void => {
      win.accumulate(Float64Array.of(1), 1, 1, Op.SUM);
      win.put(Float64Array.of(1), 1, 0);
    };
    let round = 0;
    const options = { order: 'random', faults: { delay: 50, placement: 20 } } as const;
    const posted = await accessed(
      issue,
      (local) => expect([...local.slice(0, 2)]).toEqual([1, 101 + round++]),
      options,
    );
    expect(posted).toContain('p');
  });

  test('with other schedules, too', async () => {
    const schedule = 'interleave,gets-first,aggregate';
    expect(await accessed((win) => win.put(Float64Array.of(7), 1, 0), isOf(7, 8), {}, schedule)).toBe('');
    const all = 'interleave,gets-first,aggregate,aggregate-gets';
    const got = new Float64Array(1);
    expect(await accessed((win) => win.get(got, 1, 0), isOf(100, 8), {}, all)).toBe('');
    expect(got[0]).toBe(100);
    expect(await accessed((win) => win.put(Float64Array.of(7), 1, 0), isOf(7, 8), {}, all)).toBe('');
    const many = (win: Window<Float64Array>): void => {
      win.put(Float64Array.of(7), 1, 0);
      win.get(new Float64Array(1), 1, 1);
    };
    for (const both of [schedule, all] as const) expect(await accessed(many, isOf(7, 8), {}, both)).toBe('gp');
  });

  test('to some targets of an epoch, while others are served by requests', async () => {
    await runTasks(
      4,
      async (world) => {
        const { rank } = world;
        const win = await Window.allocate(world, Float64Array, 400, { info: { schedule: 'aggregate' } });
        win.local.fill(rank);
        for (let round = 1; round <= 5; round++) {
          const others = win.group.exclude([rank]);
          win.post(others);
          await win.start(others);
          const large = new Float64Array(200).fill(10 * round + rank);
          const got = new Float64Array(1);
          for (let i = 1; i < 4; i++) {
            const target = (rank + i) % 4;
            if (i === 1) win.put(large.subarray(0, 1), target, rank);
            else if (i === 2) win.put(large, target, 200);
            else win.get(got, target, 399 - 200);
          }
          await win.complete();
          expect(got[0]).toBe((rank + 3) % 4);
          await win.wait();
          expect(win.local[(rank + 3) % 4]).toBe(10 * round + ((rank + 3) % 4));
          expect(win.local[399]).toBe(10 * round + ((rank + 2) % 4));
        }
        await win.free();
      },
      { fabric: FABRIC, order: 'random', faults: { delay: 20 } },
    );
  });

  test('complete does not wait for its target', async () => {
    await two(
      async (win, world) => {
        win.local.fill(100);
        await world.barrier();
        if (world.rank === 0) {
          await win.start(win.group.include([1]));
          const began = world.now();
          win.put(Float64Array.of(3), 1, 0);
          await win.complete();
          expect(world.now() - began).toBeLessThan(10);
          await world.barrier();
        } else {
          win.post(win.group.include([0]));
          await world.compute(1000);
          await world.barrier();
          await win.wait();
          expect(win.local[0]).toBe(3);
        }
      },
      { schedule: 'aggregate' },
    );
  });

  test('one whose origin is lost before is refused by complete, which can be called again', async () => {
    await two(
      async (win, world) => {
        if (world.rank === 0) {
          await win.start(win.group.include([1]));
          const lost = new Float64Array(1);
          win.put(lost, 1, 0);
          structuredClone(lost.buffer, { transfer: [lost.buffer] });
          await expect(win.complete()).rejects.toMatchObject({ code: 'ERR_BUFFER' });
          await win.complete();
        } else {
          win.post(win.group.include([0]));
          await win.wait();
          expect([...win.local.slice(0, 2)]).toEqual([0, 0]);
        }
      },
      { schedule: 'aggregate' },
    );
  });

  test('of which progress depends on the target, as win.progress says', async () => {
    for (const [schedule, by] of [
      ['issue-order', 'device'],
      ['interleave', 'device'],
      ['aggregate', 'target'],
      ['aggregate-gets', 'target'],
    ] as const) {
      await two(
        async (win) => {
          expect([win.progress('put', 1), win.progress('complete', 1)]).toEqual([by, by]);
          expect(win.progress('fetchAndOp', 1)).toBe('device');
        },
        { schedule },
      );
    }
  });

  test.each([
    ['put', 'aggregate'],
    ['get', 'aggregate'],
    ['get', 'aggregate-gets'],
  ] as const)('and a %s by %s to a rank that has died ends with an error, not never', async (call, schedule) => {
    let code = 'nothing';
    const run = runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, 8, { info: { schedule } });
        if (world.rank === 1) {
          win.post(win.group.include([0]));
          await world.compute(10_000);
          await win.wait();
        } else {
          await win.start(win.group.include([1]));
          await world.compute(2000);
          win[call](new Float64Array(1), 1, 0);
          const told = (error: { readonly code?: string }): void => void (code = `${error.code}`);
          await win.complete().catch(told);
          if (code === 'nothing') await world.barrier().catch(told);
        }
        throw new Error('done');
      },
      { fabric: FABRIC, faults: { deaths: [{ rank: 1, time: 1000 }] } },
    );
    await expect(run).rejects.toThrow();
    expect(code).toMatch(/^ERR_(VERBS|RMA_RANK_FAILED)$/);
  });
});

describe('a small get that is the only operation to its target travels with complete', () => {
  const random = { order: 'random', faults: { delay: 50, placement: 20 } } as const;
  const info = { schedule: 'aggregate-gets' } as const;

  /** Rank 0 accesses rank 1 in one epoch. @returns writes and reads that were posted */
  async function posted(issue: (win: Window<Float64Array>) => void, options: Partial<TaskOptions>): Promise<string> {
    let order: string[] = [];
    await two(
      async (win, { rank }) => {
        if (rank === 1) {
          win.local.fill(1).fill(2, 500);
          win.post(win.group.include([0]));
          await win.wait();
          // The get has what was there before.
          win.local.fill(9);
        } else {
          await win.start(win.group.include([1]));
          order = postings();
          issue(win);
          await win.complete();
          vi.restoreAllMocks();
        }
      },
      info,
      options,
    );
    return order.join('');
  }

  const few = FOLDED_BYTES / 8;
  const got = new Float64Array(1000);
  const ONE = Datatype.FLOAT64;
  test.each<[string, (win: Window<Float64Array>) => void, string, Record<number, number>]>([
    ['of all bytes that may', (win) => win.get(got.subarray(0, few), 1, 0), '', { 0: 1, [few - 1]: 1, [few]: 0 }],
    ['of no byte', (win) => win.get(got.subarray(0, 0), 1, 0), '', { 0: 0 }],
    [
      'by layouts at both ends',
      (win) =>
        win.get(got, 1, 499, {
          origin: { type: Datatype.vector(2, 1, 3, ONE) },
          target: { type: Datatype.indexed([1, 1], [1, 0], ONE) },
        }),
      '',
      { 0: 2, 1: 0, 3: 1 },
    ],
    ['while a larger one does not', (win) => win.get(got.subarray(0, few + 1), 1, 0), 'g', { 0: 1, [few]: 1 }],
    [
      'while two do not',
      (win) => {
        win.get(got.subarray(0, 1), 1, 0);
        win.get(got.subarray(1, 2), 1, 500);
      },
      'gg',
      { 0: 1, 1: 2 },
    ],
    ['while a put does not', (win) => win.put(Float64Array.of(4), 1, 0), 'p', {}],
  ])('%s', async (_, issue, expected, found) => {
    for (const options of [{}, random]) {
      got.fill(0);
      expect(await posted(issue, options)).toBe(expected);
      for (const [at, value] of Object.entries(found)) expect([at, got[Number(at)]]).toEqual([at, value]);
    }
  });

  test('in many epochs, of all ranks at the same time, between puts that travel', async () => {
    await runTasks(
      4,
      async (world) => {
        const { rank, size } = world;
        const win = await Window.allocate(world, Float64Array, 8, { info: { schedule: 'aggregate,aggregate-gets' } });
        const others = win.group.exclude([rank]);
        const fetched = [0, 1, 2, 3].map(() => new Float64Array(1));
        for (let round = 1; round <= 20; round++) {
          win.local[0] = 100 * round + rank;
          win.post(others);
          await win.start(others);
          for (let target = 0; target < size; target++) {
            if (target === rank) continue;
            if ((rank + target + round) % 3 === 0) win.put(Float64Array.of(round), target, 1 + rank);
            else win.get(fetched[target], target, 0);
          }
          await win.complete();
          for (let target = 0; target < size; target++) {
            if (target === rank || (rank + target + round) % 3 === 0) continue;
            expect(fetched[target][0]).toBe(100 * round + target);
          }
          await win.wait();
          for (let origin = 0; origin < size; origin++)
            if (origin !== rank && (rank + origin + round) % 3 === 0) expect(win.local[1 + origin]).toBe(round);
        }
        await win.free();
      },
      { fabric: FABRIC, ...random },
    );
  });

  test('complete waits for its target to be in a call, a barrier for one', async () => {
    await two(async (win, world) => {
      win.local.fill(world.rank + 5);
      await world.barrier();
      if (world.rank === 0) {
        await win.start(win.group.include([1]));
        const began = world.now();
        const result = new Float64Array(1);
        win.get(result, 1, 0);
        await expect(win.complete({ timeout: 1 })).rejects.toMatchObject({
          code: 'ERR_RMA_TIMEOUT',
          message: expect.stringContaining('waiting for the answer of rank 1'),
        });
        await win.complete();
        expect(world.now() - began).toBeGreaterThan(10_000);
        expect(result[0]).toBe(6);
        await world.barrier();
      } else {
        win.post(win.group.include([0]));
        await world.compute(20_000);
        await world.barrier();
        await win.wait();
      }
    }, info);
  });

  test('an exposure does not end before its answer has left, behind many messages', async () => {
    await two(async (win, world) => {
      const messages = 200;
      if (world.rank === 0) {
        await world.compute(20_000);
        await win.start(win.group.include([1]));
        const began = world.now();
        const result = new Float64Array(1);
        win.get(result, 1, 0);
        await win.complete();
        expect(world.now() - began).toBeLessThan(10_000);
        expect(result[0]).toBe(4);
        for (let i = 0; i < messages; i++) await world.receive(new Float64Array(1), 1);
      } else {
        win.local[0] = 4;
        win.post(win.group.include([0]));
        for (let i = 0; i < messages; i++) world.send(Float64Array.of(i), 0);
        await win.wait();
        await world.compute(500_000);
      }
    }, info);
  });

  test.each(['waits', 'tests'])('an exposure ends once, whether its target %s', async (how) => {
    await two(async (win, world) => {
      for (let round = 0; round < 5; round++) {
        if (world.rank === 0) {
          const result = new Float64Array(1);
          await win.start(win.group.include([1]));
          win.get(result, 1, 0);
          await win.complete();
          expect(result[0]).toBe(round);
        } else {
          win.local[0] = round;
          win.post(win.group.include([0]));
          if (how === 'waits') await win.wait();
          else while (!win.test()) await world.compute(1);
          await expect(win.wait()).rejects.toMatchObject({ code: 'ERR_RMA_SYNC' });
        }
      }
    }, info);
  });

  test.each(['before complete', 'before the answer'])(
    'one whose origin is lost %s is refused by complete, which can be called again',
    async (when) => {
      await two(async (win, world) => {
        if (world.rank === 0) {
          await win.start(win.group.include([1]));
          const lost = new Float64Array(1);
          win.get(lost, 1, 0);
          const lose = (): void => void structuredClone(lost.buffer, { transfer: [lost.buffer] });
          if (when === 'before complete') lose();
          const completed = win.complete();
          if (when === 'before the answer') lose();
          await expect(completed).rejects.toMatchObject({
            code: 'ERR_BUFFER',
            message: expect.stringMatching(/the origin of a get (to|from) rank 1/),
          });
          await win.complete();
        } else {
          win.post(win.group.include([0]));
          await world.compute(500);
          await win.wait();
        }
        await world.barrier();
      }, info);
    },
  );
});
