/** Windows with a schedule: when their puts and gets become requests, and in which order (src/transfer/schedule). */
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Communicator } from '../../src/comm/communicator.ts';
import { runTasks, type TaskOptions } from '../../src/comm/tasks.ts';
import { Datatype } from '../../src/datatype/datatype.ts';
import { Op } from '../../src/datatype/op.ts';
import { QueuePairCore as QueuePair } from '../../src/providers/core/queue-pair.ts';
import { Lock } from '../../src/sync/lock/scheme.ts';
import { FOLDED_BYTES } from '../../src/transfer/schedule/aggregate.ts';
import { HELD_OPERATIONS } from '../../src/transfer/schedule/held-operations.ts';
import type { ScheduleHint } from '../../src/transfer/schedule/kinds.ts';
import { Assert } from '../../src/window/assert.ts';
import type { WindowInfo } from '../../src/window/info.ts';
import { Window } from '../../src/window/window.ts';

const FABRIC = 'infinihost-64';
const N = 64;

afterEach(() => {
  vi.restoreAllMocks();
});

/** Writes and reads that are posted from now on, in order: `p` and `g`. Notifications do not count. */
function postings(): string[] {
  const posted: string[] = [];
  const { wrRdmaWrite, wrRdmaRead } = QueuePair.prototype;
  vi.spyOn(QueuePair.prototype, 'wrRdmaWrite').mockImplementation(function (this: unknown, ...args) {
    posted.push('p');
    wrRdmaWrite.apply(this as never, args);
  });
  vi.spyOn(QueuePair.prototype, 'wrRdmaRead').mockImplementation(function (this: unknown, ...args) {
    posted.push('g');
    wrRdmaRead.apply(this as never, args);
  });
  return posted;
}

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

/** Two ranks with a window of 1,000 numbers. */
async function two(
  main: (win: Window<Float64Array>, world: Communicator) => Promise<void>,
  info: WindowInfo,
  options: Partial<TaskOptions> = {},
): Promise<void> {
  await runTasks(
    2,
    async (world) => {
      const win = await Window.allocate(world, Float64Array, 1000, { info });
      await main(win, world);
      await win.free();
    },
    { fabric: FABRIC, ...options },
  );
}

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
          // As many as the connection has room for; the other full lists wait there.
          expect(order.length).toBe(HELD_OPERATIONS);
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

describe('a small operation that is the only one to its target travels with complete', () => {
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
    ['a get', (win) => win.get(result, 1, 0), '', () => {}],
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
    if (name === 'a get') expect(result).toEqual(new Float64Array(small).fill(100));
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
    ).toBe('');
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

  test('complete does not wait for the wait of its target, only for a call there', async () => {
    await two(
      async (win, world) => {
        win.local.fill(100);
        await world.barrier();
        if (world.rank === 0) {
          await win.start(win.group.include([1]));
          const found = new Float64Array(1);
          win.get(found, 1, 0);
          await win.complete();
          expect(found[0]).toBe(100);
          await world.barrier();
        } else {
          win.post(win.group.include([0]));
          await world.barrier();
          await win.wait();
        }
      },
      { schedule: 'aggregate' },
    );
  });

  test('a get whose complete ends early is answered all the same, when complete is called again', async () => {
    await two(
      async (win, world) => {
        win.local.fill(100);
        await world.barrier();
        if (world.rank === 0) {
          await win.start(win.group.include([1]));
          const found = new Float64Array(1);
          win.get(found, 1, 0);
          await expect(win.complete({ timeout: 0.001 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
          await win.complete();
          expect(found[0]).toBe(100);
        } else {
          win.post(win.group.include([0]));
          await world.compute(100);
          await win.wait();
        }
      },
      { schedule: 'aggregate' },
    );
  });

  test('a get whose origin is lost while the answer is on its way is an error, and nothing is written', async () => {
    await two(
      async (win, world) => {
        await world.barrier();
        if (world.rank === 0) {
          await win.start(win.group.include([1]));
          const lost = new Float64Array(1);
          win.get(lost, 1, 0);
          const completed = win.complete();
          structuredClone(lost.buffer, { transfer: [lost.buffer] });
          await expect(completed).rejects.toMatchObject({ code: 'ERR_BUFFER' });
          await win.complete();
        } else {
          win.post(win.group.include([0]));
          await win.wait();
        }
      },
      { schedule: 'aggregate' },
    );
  });

  test('and one whose origin is lost before is refused by complete, which can be called again', async () => {
    await two(
      async (win, world) => {
        if (world.rank === 0) {
          await win.start(win.group.include([1]));
          const lost = new Float64Array(1);
          win.put(lost, 1, 0);
          structuredClone(lost.buffer, { transfer: [lost.buffer] });
          await expect(win.complete()).rejects.toMatchObject({ code: 'ERR_BUFFER' });
          // The epoch goes on.
          win.put(Float64Array.of(2), 1, 1);
          await win.complete();
        } else {
          win.post(win.group.include([0]));
          await win.wait();
          expect([...win.local.slice(0, 2)]).toEqual([0, 2]);
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
});
