/** Small puts that travel with the message which completes their epoch: the schedule `aggregate`. */
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
    const many = (win: Window<Float64Array>): void => {
      win.put(Float64Array.of(7), 1, 0);
      win.get(new Float64Array(1), 1, 1);
    };
    expect(await accessed(many, isOf(7, 8), {}, schedule)).toBe('gp');
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

  test.each(['put', 'get'] as const)('and a %s to a rank that has died ends with an error, not never', async (call) => {
    let code = 'nothing';
    const run = runTasks(
      2,
      async (world) => {
        const win = await Window.allocate(world, Float64Array, 8, { info: { schedule: 'aggregate' } });
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
