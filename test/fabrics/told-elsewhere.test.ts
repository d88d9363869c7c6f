/** Failures that come up in another call than the one that waits for the operation, and what they must leave alone. */
import { Assert, type Communicator, Lock, Op, type Request, Window, type WindowInfo } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test, vi } from 'vitest';

// Against hanging only.
vi.setConfig({ testTimeout: 120_000 });

const fabric = 'infinihost-64';
const FENCES = ['remote-notify', 'immediate-naive', 'immediate-optimized', 'notify-all'] as const;

function giveAway({ buffer }: Float64Array | BigInt64Array): void {
  structuredClone(0, { transfer: [buffer as ArrayBuffer] });
}

async function outcome(call: () => unknown): Promise<string> {
  try {
    await call();
    return 'well';
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

/** Gets that take all registrations, so that what comes next waits for room. */
function fill(window: Window<Float64Array>, target: number): void {
  for (let i = 0; i < 65; i++) window.get(new Float64Array(3000), target, 0);
}

/** The device has no room for answers to requests of the library's own, so many times. */
function refuseAnswers({ job: { pd } }: Communicator, times = Number.POSITIVE_INFINITY): void {
  const register = pd.registerMemory.bind(pd);
  let refused = 0;
  vi.spyOn(pd, 'registerMemory').mockImplementation((memory, offset, bytes, access) => {
    if (memory.fromLibrary && bytes === 8192 && refused++ < times)
      throw Object.assign(new Error('no room for answers'), { code: 'ERR_VERBS' });
    return register(memory, offset, bytes, access);
  });
}

test('an update is not refused because an earlier one to its target has failed, which flush says', async () => {
  const [found] = await runTasks(
    3,
    async (world) => {
      const window = await Window.allocate(world, BigInt64Array, 100);
      const results: string[] = [];
      if (world.rank === 0) {
        await window.lockAll();
        window.getAccumulate(BigInt64Array.of(1n), new BigInt64Array(1), 1, 0, Op.SUM);
        const lost = BigInt64Array.of(5n);
        window.accumulate(lost, 1, 1, Op.SUM);
        giveAway(lost);
        await world.compute(1000);
        // Without room, completions are taken in, and no update goes on.
        for (let i = 0; i < 200; i++) window.put(new BigInt64Array(1), 2, 0);
        window.accumulate(BigInt64Array.of(7n), 1, 2, Op.SUM);
        for (let i = 0; i < 2; i++) results.push(await outcome(() => window.flush(1)));
        const there = new BigInt64Array(3);
        window.get(there, 1, 0);
        await window.unlockAll();
        results.push([...there].join(' '));
      }
      await world.barrier();
      await window.free();
      return results;
    },
    { fabric },
  );
  expect(found).toEqual(['ERR_BUFFER', 'well', '1 0 7']);
});

test.each([0, 50])('requests of a freed window are complete (writes are placed within %i µs)', async (placement) => {
  const found = await runTasks(
    2,
    async (world) => {
      const window = await Window.allocate(world, Float64Array, 64);
      const other = 1 - world.rank;
      await window.lockAll();
      const requests: Request[] = [];
      for (let i = 0; i < 40; i++) requests.push(window.rput(Float64Array.of(3), other, i));
      requests.push(window.raccumulate(Float64Array.of(3), other, 60, Op.SUM));
      requests.push(window.rgetAccumulate(Float64Array.of(3), new Float64Array(1), other, 61, Op.SUM));
      await window.unlockAll();
      await window.free();
      const results = [requests[0].test()];
      for (const request of requests) results.push(request.testRemote());
      for (const request of requests) await request.wait();
      return results;
    },
    { fabric, faults: { placement } },
  );
  for (const results of found) expect(new Set(results)).toEqual(new Set([true]));
});

describe('a request is not told of what fails that was issued after it', () => {
  type Ways = Readonly<
    Record<string, { info?: WindowInfo; before?: boolean; issue: (w: Window<Float64Array>) => Request; lose: Lose }>
  >;
  type Lose = (window: Window<Float64Array>, lost: Float64Array) => void;
  const put: Lose = (window, lost) => window.put(lost, 1, 500);
  const fetch: Lose = (window, lost) => window.getAccumulate(null, lost, 1, 500, Op.NO_OP);
  const get: Lose = (window, lost) => window.get(lost, 1, 500);
  const WAYS: Ways = {
    'puts that wait for room': { before: true, issue: (w) => w.rput(Float64Array.of(1), 1, 0), lose: put },
    'updates that take several requests': {
      before: true,
      issue: (w) => w.raccumulate(Float64Array.of(1), 1, 0, Op.SUM),
      lose: fetch,
    },
    'updates by the target': {
      info: { update: 'by-target' },
      issue: (w) => w.raccumulate(Float64Array.of(1), 1, 0, Op.SUM),
      lose: fetch,
    },
    'operations under a two-sided lock': {
      info: { lock: 'two-sided' },
      issue: (w) => w.rput(Float64Array.of(1), 1, 0),
      lose: get,
    },
    'held operations': { info: { schedule: 'gets-first' }, issue: (w) => w.rput(Float64Array.of(1), 1, 0), lose: get },
  };

  test.each(Object.entries(WAYS))('%s', async (_, { info = {}, before, issue, lose }) => {
    const [found] = await runTasks(
      3,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, 10_000, { info });
        const results: string[] = [];
        if (world.rank === 0) {
          await window.lock(1, Lock.EXCLUSIVE);
          if (before) fill(window, 1);
          const request = issue(window);
          request.test();
          const lost = new Float64Array(500);
          lose(window, lost);
          const later = issue(window);
          giveAway(lost);
          // All of it has come to an end before anybody is told.
          await window.lock(2, Lock.SHARED);
          for (let i = 0; i < 20; i++) {
            await world.compute(100);
            window.put(Float64Array.of(1), 2, 0);
            await window.flush(2);
          }
          await window.unlock(2);
          results.push(await outcome(() => request.wait()));
          results.push(await outcome(() => later.wait()));
          results.push(await outcome(() => window.flush(1)));
          await window.unlock(1);
        }
        await world.barrier();
        await window.free();
        return results;
      },
      { fabric },
    );
    expect(found).toEqual(['well', 'ERR_BUFFER', 'well']);
  });
});

describe('where the device has no room for answers', () => {
  test('a lock behind what waits for room is refused, and does not wait for ever', async () => {
    const [found] = await runTasks(
      2,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, 10_000);
        const results: string[] = [];
        if (world.rank === 0) {
          await window.lock(1, Lock.SHARED, Assert.NO_CHECK);
          refuseAnswers(world);
          fill(window, 1);
          results.push(await outcome(() => window.lock(0, Lock.EXCLUSIVE, 0, { timeout: 1000 })));
          results.push(await outcome(() => window.unlock(1)));
        }
        return results;
      },
      { fabric },
    );
    expect(found).toEqual(['ERR_VERBS', 'well']);
  });

  test.each(FENCES)('an update behind what waits for room leaves nobody in a %s fence', async (fence) => {
    const found = await runTasks(
      2,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, 10_000, { info: { fence } });
        await window.fence();
        const results: string[] = [];
        if (world.rank === 0) {
          refuseAnswers(world);
          fill(window, 1);
          results.push(await outcome(() => window.accumulate(Float64Array.of(1), 1, 0, Op.SUM)));
        }
        results.push(await outcome(() => window.fence(0, { timeout: 1000 })));
        return results;
      },
      { fabric },
    );
    expect(found[0]).toContain('ERR_VERBS');
    expect(found[0].at(-1)).not.toBe('ERR_RMA_TIMEOUT');
    expect(found[1]).toEqual(['well']);
  });

  test.each([
    ['remote', Lock.EXCLUSIVE],
    ['remote', Lock.SHARED],
    ['direct', Lock.EXCLUSIVE],
    ['hybrid', Lock.EXCLUSIVE],
  ] as const)('a %s lock (%i) whose first request is refused gives nothing back', async (lock, type) => {
    const found = await runTasks(
      2,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, 100, { info: { lock } });
        const results: string[] = [];
        if (world.rank === 0) {
          refuseAnswers(world, 1);
          results.push(await outcome(() => window.lock(1, type, 0, { timeout: 1000 })));
        }
        for (const turn of [0, 1]) {
          if (turn === world.rank) {
            results.push(await outcome(() => window.lock(1, Lock.EXCLUSIVE, 0, { timeout: 1000 })));
            results.push(await outcome(() => window.unlock(1)));
          }
          await world.barrier();
        }
        await window.free();
        return results;
      },
      { fabric },
    );
    expect(found).toEqual([
      ['ERR_VERBS', 'well', 'well'],
      ['well', 'well'],
    ]);
  });
});

describe('in a window with a schedule', () => {
  const SCHEDULES = ['gets-first', 'interleave'] as const;

  test.each(SCHEDULES)('%s: what a held operation has failed of, only its target’s flush says', async (schedule) => {
    const found = await runTasks(
      3,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, 1000, { info: { schedule } });
        const results: string[] = [];
        const one = Float64Array.of(1);
        const calls = {
          flush: async () => {
            window.put(one, 1, 0);
            await window.flush(1);
          },
          request: () => window.rput(one, 1, 0).wait(),
          putNotify: async () => window.putNotify(one, 1, 0),
        };
        if (world.rank === 0) {
          await window.lockAll();
          for (const call of Object.values(calls)) {
            const lost = new Float64Array(500);
            window.get(lost, 2, 0);
            giveAway(lost);
            results.push(await outcome(call));
            results.push(await outcome(() => window.flush(2)));
          }
          await window.unlockAll();
        }
        if (world.rank === 1) results.push(await outcome(() => window.waitNotify(1, { timeout: 1000 })));
        await world.barrier();
        await window.free();
        return results;
      },
      { fabric },
    );
    const told = ['well', 'ERR_BUFFER'];
    expect(found).toEqual([[...told, ...told, ...told], ['well'], []]);
  });

  test.each(SCHEDULES.flatMap((schedule) => FENCES.map((fence) => [schedule, fence] as const)))(
    '%s: it leaves nobody in a %s fence',
    async (schedule, fence) => {
      const found = await runTasks(
        2,
        async (world) => {
          const window = await Window.allocate(world, Float64Array, 1000, { info: { fence, schedule } });
          await window.fence();
          if (world.rank === 0) {
            const lost = new Float64Array(500);
            window.get(lost, 1, 0);
            giveAway(lost);
          }
          const results = [await outcome(() => window.fence())];
          results.push(await outcome(() => world.barrier()));
          return results;
        },
        { fabric },
      );
      expect(found).toEqual([
        ['ERR_BUFFER', 'well'],
        ['well', 'well'],
      ]);
    },
  );
});

test.each([
  ['a held get', 'gets-first'],
  ['an aggregate', 'issue-order'],
  ['behind others', 'issue-order'],
] as const)('targets are told of a complete that fails (%s), once', async (way, schedule) => {
  const found = await runTasks(
    2,
    async (world) => {
      const window = await Window.allocate(world, Float64Array, 10_000, { info: { schedule } });
      const results: string[] = [];
      for (let again = 0; again < 2; again++) {
        if (world.rank === 0) {
          await window.start(window.group.include([1]));
          const lost = new Float64Array(500);
          if (way === 'behind others') fill(window, 1);
          if (way === 'an aggregate') window.aggregate(1).get(lost, 0);
          else window.get(lost, 1, 0);
          giveAway(lost);
          results.push(await outcome(() => window.complete()));
          await world.barrier();
          results.push(await outcome(() => window.complete()));
        } else {
          window.post(window.group.include([0]));
          results.push(await outcome(() => window.wait()));
          await world.barrier();
        }
      }
      await window.free();
      return results;
    },
    { fabric },
  );
  expect(found).toEqual([
    ['ERR_BUFFER', 'well', 'ERR_BUFFER', 'well'],
    ['well', 'well'],
  ]);
});

test('a call that waits for answers by itself lets no deadline pass when they are in', async () => {
  const [found] = await runTasks(
    2,
    async (world) => {
      const window = await Window.createDynamic(world);
      const memory = world.allocMem(Float64Array, 16);
      const address = Float64Array.of(window.attach(memory));
      await world.broadcast(address, 1);
      await world.barrier();
      const began = world.now();
      let took = 0;
      if (world.rank === 0) {
        await window.lockAll();
        window.get(new Float64Array(2), 1, address[0]);
        took = world.now() - began;
        await window.unlockAll();
      }
      await world.barrier({ timeout: 1000 });
      window.detach(memory);
      await window.free();
      return took;
    },
    { fabric },
  );
  expect(found).toBeLessThan(1000);
});
