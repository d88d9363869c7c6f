/** Barriers whose waits have ended early, beside collectives: they keep their places, and the next call goes on. */
import { describe, expect, test } from 'vitest';
import { anyOf } from '../../src/collective/collectives.ts';
import type { Communicator } from '../../src/collective/communicator.ts';
import { Op } from '../../src/datatype/op.ts';
import { loadFabric } from '../../src/providers/modelled/known-fabrics.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { REAL_PROCESSOR } from '../../src/verbs/processor.ts';

const FABRIC = loadFabric('infinihost-64');

async function sumOf(comm: Communicator): Promise<number> {
  const sum = new Int32Array(1);
  await comm.allreduce(Int32Array.of(1), sum, Op.SUM);
  return sum[0];
}

/** A barrier that is called, and whose wait is ended at once. */
function leave(comm: Communicator): Promise<void> {
  const controller = new AbortController();
  const barrier = comm.barrier({ signal: controller.signal });
  controller.abort(new Error('enough'));
  return expect(barrier).rejects.toThrow('enough');
}

/** What rank 0 calls, and what the others do. Each returns the sums that it has got. */
const PROGRAMS: Readonly<Record<string, (comm: Communicator) => Promise<number[]>>> = {
  'a collective is called before the barrier is called again': async (comm) => {
    if (comm.rank > 0) {
      await comm.compute(100);
      await comm.barrier();
      return [await sumOf(comm)];
    }
    const left = leave(comm);
    const sum = sumOf(comm);
    await left;
    await comm.barrier();
    return [await sum];
  },
  'it stands behind a collective, and one is called behind it': async (comm) => {
    if (comm.rank > 0) {
      await comm.compute(100);
      const first = await sumOf(comm);
      await comm.barrier();
      return [first, await sumOf(comm)];
    }
    const first = sumOf(comm);
    const left = leave(comm);
    const second = sumOf(comm);
    await left;
    await comm.barrier();
    return [await first, await second];
  },
  'two of them are left, the later one first': async (comm) => {
    if (comm.rank > 0) {
      await comm.compute(100);
      for (let i = 0; i < 2; i++) await comm.barrier();
      const sum = await sumOf(comm);
      await comm.barrier();
      return [sum];
    }
    const [one, two] = [new AbortController(), new AbortController()];
    const first = comm.barrier({ signal: one.signal });
    const second = comm.barrier({ signal: two.signal });
    two.abort(new Error('the second'));
    one.abort(new Error('the first'));
    await expect(first).rejects.toThrow('the first');
    await expect(second).rejects.toThrow('the second');
    await leave(comm);
    await comm.barrier();
    await comm.barrier();
    const sum = sumOf(comm);
    await comm.barrier();
    return [await sum];
  },
  'nobody comes back to it, and the communicator is freed': async (comm) => {
    if (comm.rank === 0) await leave(comm);
    return [comm.size];
  },
};

describe('a barrier that was left', () => {
  test.each(Object.entries(PROGRAMS))('%s', async (_, program) => {
    for (const size of [2, 3, 4]) {
      const results = await runTasks(
        size,
        async (world) => {
          const comm = await world.dup();
          const sums = await program(comm);
          await comm.free();
          return sums;
        },
        { fabric: FABRIC },
      );
      for (const sums of results) expect(sums.every((sum) => sum === size)).toBe(true);
    }
  });
});

describe('other ranks come out of a barrier whose wait has ended early at one of them', () => {
  /** Rank 0's wait ends before the last rank comes; it does not call the barrier again. */
  async function leaveEarly(comm: Communicator): Promise<string> {
    if (comm.rank === comm.size - 1) await comm.compute(5000);
    return comm.barrier(comm.rank === 0 ? { timeout: 1 } : undefined).then(
      () => 'complete',
      ({ code }) => code,
    );
  }

  const NEXT: Readonly<Record<string, (comm: Communicator) => Promise<void>>> = {
    'calls a collective': async (comm) => expect(await sumOf(comm)).toBe(comm.size),
    computes: async (comm) => {
      await comm.compute(comm.rank === 0 ? 1e5 : 1);
    },
    'frees the communicator': async () => {},
  };

  test.each(Object.entries(NEXT))('which then %s', async (_, next) => {
    for (const size of [3, 4, 7]) {
      const results = await runTasks(
        size,
        async (world) => {
          const comm = await world.dup();
          const first = comm.barrier();
          const left = await leaveEarly(comm);
          await first;
          const alone = await world.dup();
          const other = await leaveEarly(alone);
          await next(alone);
          await next(comm);
          await alone.free();
          await comm.free();
          return [left, other];
        },
        { fabric: FABRIC },
      );
      expect(results[0]).toEqual(['ERR_RMA_TIMEOUT', 'ERR_RMA_TIMEOUT']);
      for (const result of results.slice(1)) expect(result).toEqual(['complete', 'complete']);
    }
  });
});

test('a barrier that one rank calls, and nobody else before all have parted, fails', async () => {
  const [code] = await runTasks(
    3,
    async (world) => {
      const comm = await world.dup();
      const barrier = comm.rank === 0 ? comm.barrier() : undefined;
      const told = barrier?.then(
        () => 'complete',
        ({ code }) => code,
      );
      await comm.free();
      return told;
    },
    { fabric: FABRIC },
  );
  expect(code).toBe('ERR_COMM');
});

test('a barrier that is complete before its next wait begins is not lost if that ends at once', async () => {
  const [found] = await runTasks(
    2,
    async (comm) => {
      const ends: string[] = [];
      const note = (barrier: Promise<void>): Promise<unknown> =>
        barrier.then(
          () => ends.push('complete'),
          (error) => ends.push(error.message.slice(0, 7)),
        );
      if (comm.rank === 1) {
        await comm.compute(100);
        await comm.barrier();
        await comm.compute(1e5);
        await comm.barrier();
        return ends;
      }
      await leave(comm);
      await comm.compute(1000);
      await note(comm.barrier({ signal: AbortSignal.abort(new Error('enough')) }));
      await note(comm.barrier({ timeout: 10 }));
      await note(comm.barrier({ timeout: 10 }));
      await note(comm.barrier());
      return ends;
    },
    { fabric: FABRIC },
  );
  expect(found).toEqual(['enough', 'complete', 'barrier', 'complete']);
});

test('nor one in the line of collectives', async () => {
  const sums = await runTasks(
    3,
    async (comm) => {
      if (comm.rank > 0) {
        await comm.compute(100);
        const first = await sumOf(comm);
        await comm.barrier();
        return [first, await sumOf(comm)];
      }
      const first = sumOf(comm);
      await leave(comm);
      const sums = [await first];
      // A round of the barrier each, at their ends.
      for (let i = 0; i < 4; i++) await comm.compute(1000);
      await expect(comm.barrier({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough');
      await comm.barrier({ timeout: 10 });
      sums.push(await sumOf(comm));
      return sums;
    },
    { fabric: FABRIC },
  );
  for (const found of sums) expect(found).toEqual([3, 3]);
});

test.each([2, 3])('none begins behind the end of its communicator of %i ranks', async (size) => {
  const ends = await runTasks(
    size,
    async (world) => {
      const comm = await world.dup();
      const freed = comm.free();
      const late = comm.barrier().catch((error) => error.code);
      await freed;
      return late;
    },
    { fabric: FABRIC },
  );
  expect(ends).toEqual(Array(size).fill('ERR_COMM'));
});

/** What a communicator has served from now on: how often, and in the background how. */
function watchServed(comm: Communicator): { active: number; how: unknown[] } {
  const seen = { active: 0, how: [] as unknown[] };
  const serve = comm.members.serve.bind(comm.members);
  comm.members.serve = (look, background) => {
    seen.active++;
    seen.how.push(background);
    const stop = serve(look, background);
    let stopped = false;
    return () => {
      if (!stopped) seen.active--;
      stopped = true;
      stop();
    };
  };
  return seen;
}

describe('a rank stops going on with a barrier that it has left', () => {
  test('when the others need it no more, though some have not come', async () => {
    const [[during, sum]] = await runTasks(
      4,
      async (comm) => {
        // Once they are connected, messages leave at once.
        await comm.barrier();
        // Rank 3 tells rank 0 that it is there; rank 0 tells rank 2, and then waits for rank 2, which comes late.
        if (comm.rank === 1 || comm.rank === 2) await comm.compute(1e5);
        if (comm.rank > 0) {
          await comm.barrier();
          return [0, await sumOf(comm)];
        }
        const seen = watchServed(comm);
        await leave(comm);
        const before = seen.active;
        for (let i = 0; i < 2; i++) await comm.compute(1000);
        const during = seen.active;
        await comm.compute(1e6);
        await comm.barrier();
        return [10 * before + during, await sumOf(comm)];
      },
      { fabric: FABRIC },
    );
    expect(during).toBe(10);
    expect(sum).toBe(4);
  });

  test('when a rank of the communicator has failed', async () => {
    const found: unknown[] = [];
    const run = runTasks(
      4,
      async (world) => {
        const comm = await world.dup();
        if (world.rank > 0) {
          await world.compute(1e5);
          await comm.barrier().catch((error) => found.push(error.code));
          return;
        }
        const seen = watchServed(comm);
        await leave(comm);
        found.push(seen.active);
        await world.compute(1e4);
        await comm.free().catch((error) => found.push(error.code));
        await world.compute(1e6);
        found.push(seen.active);
      },
      { fabric: FABRIC, faults: { deaths: [{ rank: 2, time: 5000 }] } },
    );
    await expect(run).rejects.toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
    // None of the others waits in it for ever.
    expect(found).toEqual([1, ...Array(3).fill('ERR_RMA_RANK_FAILED'), 0]);
  });

  test('when its turn came after the communicator could no longer be used', async () => {
    const [found] = await runTasks(
      3,
      async (world) => {
        const comm = await world.dup();
        if (world.rank > 0) return [];
        const seen = watchServed(comm);
        const controller = new AbortController();
        const sum = comm.allreduce(Int32Array.of(1), new Int32Array(1), Op.SUM, { signal: controller.signal });
        await leave(comm);
        const before = seen.active;
        controller.abort(new Error('no sum'));
        await expect(sum).rejects.toThrow('no sum');
        await world.compute(1000);
        return [before, seen.active];
      },
      { fabric: FABRIC },
    );
    expect(found).toEqual([1, 0]);
  });
});

test('a rank whose free has failed goes on with what it had called, and nobody sleeps for it', async () => {
  const results = await runTasks(
    3,
    async (world) => {
      const comm = await world.dup();
      if (world.rank > 0) {
        await world.compute(500);
        const sum = await sumOf(comm);
        await world.compute(50_000);
        await comm.barrier();
        await comm.barrier();
        return [sum];
      }
      const seen = watchServed(comm);
      const sum = sumOf(comm);
      const controller = new AbortController();
      const barriers = [1, 2].map(() => comm.barrier({ signal: controller.signal }));
      controller.abort(new Error('enough'));
      for (const barrier of barriers) await expect(barrier).rejects.toThrow('enough');
      await expect(comm.free({ timeout: 10 })).rejects.toMatchObject({ code: 'ERR_RMA_TIMEOUT' });
      const how = [seen.active, seen.how.at(-1)];
      // At the end of each, it looks.
      for (let i = 0; i < 10; i++) await world.compute(1e5);
      return [await sum, ...how, seen.active];
    },
    { fabric: FABRIC },
  );
  expect(results).toEqual([[3, 1, 'seldom', 0], [3], [3]]);
});

describe('what bringing messages in throws while a barrier that was left goes on', () => {
  const throwing = (): never => {
    throw new Error('a listener');
  };

  test('is told by the next wait, and the barrier goes on', async () => {
    const results = await runTasks(
      3,
      async (comm) => {
        const { messenger } = comm.job;
        if (comm.rank > 0) {
          await comm.compute(1000);
          await comm.barrier();
          return sumOf(comm);
        }
        const controller = new AbortController();
        const barrier = comm.barrier({ signal: controller.signal });
        const { poll } = messenger;
        messenger.poll = throwing;
        controller.abort(new Error('enough'));
        await expect(barrier).rejects.toThrow('enough');
        messenger.poll = poll;
        await expect(comm.barrier()).rejects.toThrow('a listener');
        await comm.barrier();
        return sumOf(comm);
      },
      { fabric: FABRIC },
    );
    expect(results).toEqual([3, 3, 3]);
  });

  test('is told also if this rank waits for nothing then', async () => {
    const SPACE = 2 ** 31;
    const results = await runTasks(
      3,
      async (comm) => {
        const { messenger } = comm.job;
        if (comm.rank === 0) {
          messenger.listen(SPACE, throwing);
          await leave(comm);
          await comm.compute(10_000);
          await expect(comm.barrier()).rejects.toThrow('a listener');
          await comm.barrier();
          return sumOf(comm);
        }
        await comm.compute(1000);
        if (comm.rank === 1) messenger.send(0, SPACE, Uint8Array.of(1));
        await comm.compute(1e5);
        await comm.barrier();
        return sumOf(comm);
      },
      { fabric: FABRIC },
    );
    expect(results).toEqual([3, 3, 3]);
  });
});

test('before each message of the last collective, barriers that were called go on', () => {
  const did: string[] = [];
  const channel = {
    rank: 0,
    size: 5,
    awaited: -1,
    processor: REAL_PROCESSOR,
    send: (target: number) => did.push(`to ${target}`),
    receive: () => new Uint8Array(0),
  };
  const any = anyOf(channel, true, () => did.push('before'));
  expect(any.next()).toEqual({ done: true, value: true });
  expect(did).toEqual(['before', 'to 1', 'before', 'to 2', 'before', 'to 4']);
});
