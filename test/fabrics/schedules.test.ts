/** Windows with a schedule: when their puts and gets become requests, and in which order (src/transfer/schedule). */
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Communicator } from '../../src/collective/communicator.ts';
import { runTasks, type TaskOptions } from '../../src/start/tasks.ts';
import { Lock } from '../../src/sync/lock/lock-scheme.ts';
import { HELD_OPERATIONS } from '../../src/transfer/schedule/held-operations.ts';
import type { ScheduleHint } from '../../src/transfer/schedule/schedule-kinds.ts';
import { Window } from '../../src/window/calls/window.ts';
import type { WindowInfo } from '../../src/window/creation/window-info.ts';
import { Assert } from '../../src/window/epochs/assertions.ts';
import { FABRIC, postings, two } from '../support/postings.ts';

const N = 64;

afterEach(() => {
  vi.restoreAllMocks();
});

interface Epoch {
  readonly win: Window<Float64Array>;
  /** Puts and gets to rank 1, by their letters. */
  issue(letters: string): void;
}

/** How an epoch of rank 0 to rank 1 is opened, and what completes its operations. The other rank does its part. */
const WAYS: Readonly<Record<string, (epoch: Epoch, world: Communicator, letters: string) => Promise<void>>> = {
  async fence({ win, issue }, { rank }, letters) {
    await win.fence();
    if (rank === 0) issue(letters);
    await win.fence();
  },
  async complete({ win, issue }, { rank }, letters) {
    if (rank === 0) {
      await win.start(win.group.include([1]));
      issue(letters);
      await win.complete();
    } else {
      win.post(win.group.include([0]));
      await win.wait();
    }
  },
  async unlock({ win, issue }, { rank }, letters) {
    if (rank !== 0) return;
    await win.lock(1, Lock.EXCLUSIVE);
    issue(letters);
    await win.unlock(1);
  },
  async unlockAll({ win, issue }, { rank }, letters) {
    await win.lockAll();
    if (rank === 0) issue(letters);
    await win.unlockAll();
  },
  ...Object.fromEntries(
    (['flush', 'flushLocal', 'flushAll', 'flushLocalAll'] as const).map((call) => [
      call,
      async ({ win, issue }: Epoch, { rank }: Communicator, letters: string): Promise<void> => {
        if (rank !== 0) return;
        await win.lock(1, Lock.SHARED);
        issue(letters);
        await (call === 'flush' || call === 'flushLocal' ? win[call](1) : win[call]());
        await win.unlock(1);
      },
    ]),
  ),
  async 'the wait for a request'({ win, issue }, { rank }, letters) {
    if (rank !== 0) return;
    await win.lock(1, Lock.SHARED);
    issue(letters.slice(0, -1));
    const last = new Float64Array(1);
    const request = letters.endsWith('p')
      ? win.rput(last.fill(letters.length), 1, letters.length)
      : win.rget(last, 1, N);
    await request.wait();
    if (letters.endsWith('g')) expect(last[0]).toBe(100);
    await win.unlock(1);
  },
  async 'tests of a request'({ win, issue }, world, letters) {
    if (world.rank !== 0) return;
    await win.lock(1, Lock.SHARED);
    issue(letters.slice(0, -1));
    const request = win.rget(new Float64Array(1), 1, N);
    while (!request.test()) await world.compute(1);
    await win.unlock(1);
  },
};

/** Rank 0 issues what the letters say. @returns what was posted, in order */
async function posted(
  way: (typeof WAYS)[string],
  letters: string,
  info: WindowInfo,
  options: Partial<TaskOptions> = {},
): Promise<string> {
  let order: string[] = [];
  await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 2 * N, { info });
      win.local.fill(0, 0, N).fill(100, N);
      await world.barrier();
      const results: Float64Array[] = [];
      const issue = (letters: string): void => {
        order = postings();
        for (const [i, letter] of [...letters].entries()) {
          if (letter === 'p') win.put(Float64Array.of(i + 1), 1, i + 1);
          else win.get((results[i] = new Float64Array(1)), 1, N + i);
        }
      };
      await way({ win, issue }, world, letters);
      vi.restoreAllMocks();
      order = [...order];
      await world.barrier();
      for (const result of results.filter((result) => result !== undefined)) expect(result[0]).toBe(100);
      for (const [i, letter] of [...letters].entries()) {
        if (world.rank === 1 && letter === 'p') expect(win.local[i + 1]).toBe(i + 1);
      }
      await win.free();
    },
    { fabric: FABRIC, ...options },
  );
  return order.join('');
}

describe('puts and gets are posted in the order of the schedule by', () => {
  const ISSUED = 'pppgpgggg';
  const ORDERS: readonly (readonly [ScheduleHint, string])[] = [
    ['issue-order', ISSUED],
    ['gets-first', 'gggggpppp'],
    ['interleave', 'pgpgpgpgg'],
    ['interleave,gets-first', 'gpgpgpgpg'],
  ];
  for (const [name, way] of Object.entries(WAYS)) {
    test(name, async () => {
      for (const [schedule, order] of ORDERS) {
        const found = await posted(way, ISSUED, { schedule });
        // A request that is waited for has all posted that was held.
        expect(`${schedule}: ${found}`).toBe(`${schedule}: ${order}`);
      }
    });
  }
});

describe('what is held', () => {
  test('is not posted before; where nothing is held, each is posted by its call', async () => {
    for (const schedule of ['issue-order', 'gets-first', 'interleave', 'aggregate'] as const) {
      await two(
        async (win, world) => {
          if (world.rank === 0) {
            await win.lock(1, Lock.SHARED);
            const order = postings();
            win.put(Float64Array.of(1), 1, 0);
            win.get(new Float64Array(1), 1, 1);
            // Only complete carries operations, so under a lock nothing has a reason to wait for aggregate.
            const holds = schedule === 'gets-first' || schedule === 'interleave';
            expect(`${schedule}: ${order.join('')}`).toBe(`${schedule}: ${holds ? '' : 'pg'}`);
            await win.unlock(1);
            vi.restoreAllMocks();
          }
        },
        { schedule },
      );
    }
  });

  test('is posted when the list is full, and all of it arrives', async () => {
    const many = 3 * HELD_OPERATIONS;
    await two(
      async (win, { rank }) => {
        await win.fence();
        if (rank === 0) {
          const order = postings();
          for (let i = 0; i < many; i++) win.put(Float64Array.of(i + 1), 1, i);
          // As many as the connection has room for, beside what the fence has told; the other full lists wait there.
          expect(order.length).toBe(HELD_OPERATIONS - 1);
          vi.restoreAllMocks();
        }
        await win.fence();
        if (rank === 1) expect(win.local.slice(0, many)).toEqual(Float64Array.from({ length: many }, (_, i) => i + 1));
      },
      { schedule: 'interleave' },
    );
  });

  test('comes before a notification that follows it', async () => {
    await two(
      async (win, { rank }) => {
        await win.lockAll();
        if (rank === 0) {
          win.put(Float64Array.of(1), 1, 0);
          win.putNotify(Float64Array.of(2), 1, 1);
        } else {
          await win.waitNotify();
          expect([...win.local.slice(0, 2)]).toEqual([1, 2]);
        }
        await win.unlockAll();
      },
      { schedule: 'gets-first' },
    );
  });

  test('is ordered by a flush, and by nothing else', async () => {
    await two(
      async (win, { rank }) => {
        await win.lockAll();
        if (rank === 0) {
          const order = postings();
          win.put(Float64Array.of(1), 1, 0);
          win.get(new Float64Array(1), 1, 1);
          await win.flush(1);
          const result = new Float64Array(1);
          win.put(Float64Array.of(2), 1, 1);
          win.get(result, 1, 0);
          await win.flushLocal(1);
          expect(order.join('')).toBe('gpgp');
          expect(result[0]).toBe(1);
          vi.restoreAllMocks();
        }
        await win.unlockAll();
      },
      { schedule: 'gets-first' },
    );
  });

  test.each(['fence', 'complete', 'unlock', 'flush'] as const)(
    'and has lost its origin, is refused by %s, which can be called again; the rest arrives',
    async (name) => {
      await two(
        async (win, { rank }) => {
          const lost = Float64Array.of(1);
          const issue = (): void => {
            win.put(lost, 1, 0);
            win.put(Float64Array.of(2), 1, 1);
            structuredClone(lost.buffer, { transfer: [lost.buffer] });
          };
          const refused = { code: 'ERR_BUFFER', message: expect.stringContaining('the origin of a put to rank 1') };
          if (name === 'fence') {
            await win.fence();
            if (rank === 0) {
              issue();
              await expect(win.fence()).rejects.toMatchObject(refused);
            }
            await win.fence();
          } else if (name === 'complete') {
            if (rank === 0) {
              await win.start(win.group.include([1]));
              issue();
              await expect(win.complete()).rejects.toMatchObject(refused);
              await win.complete();
            } else {
              win.post(win.group.include([0]));
              await win.wait();
            }
          } else if (rank === 0) {
            await win.lock(1, Lock.EXCLUSIVE);
            issue();
            await expect(win[name](1)).rejects.toMatchObject(refused);
            await win.unlock(1);
          }
          await win.fence();
          if (rank === 1) expect([...win.local.slice(0, 2)]).toEqual([0, 2]);
          await win.fence(Assert.NO_SUCCEED);
        },
        { schedule: 'gets-first,interleave' },
      );
    },
  );

  test('for a rank that has died, is told as everywhere: by what waits', async () => {
    const codes: string[] = [];
    for (const schedule of ['issue-order', 'interleave', 'aggregate'] as const) {
      let code = 'nothing';
      const run = runTasks(
        2,
        async (world) => {
          const win = await Window.allocate(world, Float64Array, 8, { info: { schedule } });
          await win.lockAll();
          if (world.rank === 1) await world.compute(10_000);
          await world.compute(2000);
          win.put(Float64Array.of(1), 1, 0);
          await win.flush(1).catch((error) => {
            code = error.code;
          });
          throw new Error('done');
        },
        { fabric: FABRIC, faults: { deaths: [{ rank: 1, time: 1000 }] } },
      );
      await expect(run).rejects.toThrow();
      codes.push(code);
    }
    expect(codes[0]).toMatch(/^ERR_(VERBS|RMA_RANK_FAILED)$/);
    expect(codes).toEqual([codes[0], codes[0], codes[0]]);
  });

  test('is checked by its call', async () => {
    await two(
      async (win, { rank }) => {
        await win.lockAll();
        if (rank === 0) {
          expect(() => win.put(new Float64Array(2), 1, 999)).toThrow(
            expect.objectContaining({ code: 'ERR_RMA_RANGE' }),
          );
          expect(() => win.get(new Float64Array(1), 2, 0)).toThrow(expect.objectContaining({ code: 'ERR_RANK' }));
        }
        await win.unlockAll();
      },
      { schedule: 'gets-first' },
    );
  });
});

test('in dynamic windows operations wait, too, and none travels with complete', async () => {
  await runTasks(
    2,
    async (world) => {
      const { rank } = world;
      const memory = new Float64Array(8).fill(100);
      const win = await Window.createDynamic(world, { info: { schedule: 'gets-first,aggregate' } });
      const addresses = new Float64Array(2);
      await world.allgather(Float64Array.of(win.attach(memory)), addresses);
      const [, address] = addresses;
      if (rank === 0) {
        await win.start(win.group.include([1]));
        const found = new Float64Array(1);
        win.put(Float64Array.of(7), 1, address);
        win.get(found, 1, address + 8);
        const order = postings();
        await win.complete();
        expect(order.join('')).toBe('gp');
        vi.restoreAllMocks();
        expect(found[0]).toBe(100);
        await win.start(win.group.include([1]));
        win.put(Float64Array.of(8), 1, address + 16);
        await win.complete();
      } else {
        for (let i = 0; i < 2; i++) {
          win.post(win.group.include([0]));
          await win.wait();
        }
        expect([...memory.slice(0, 3)]).toEqual([7, 100, 8]);
      }
      await win.free();
    },
    { fabric: FABRIC },
  );
});

test('ranks that give different schedules get no window', async () => {
  await runTasks(
    2,
    async (world) => {
      const info: WindowInfo = { schedule: world.rank === 0 ? 'interleave' : 'interleave,gets-first' };
      await expect(Window.allocate(world, Float64Array, 8, { info })).rejects.toMatchObject({ code: 'ERR_INFO_VALUE' });
    },
    { fabric: FABRIC },
  );
});
