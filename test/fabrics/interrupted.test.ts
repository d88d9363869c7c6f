/** What goes on after something has failed, or ended early, on modelled fabrics. */
import { Lock, Window } from 'onesided';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test, vi } from 'vitest';

// Against hanging only.
vi.setConfig({ testTimeout: 120_000 });

const LENGTH = 100_000;
const fabric = 'infinihost-64';

/** The memory of an array is given away. */
function giveAway(array: Float64Array): void {
  structuredClone(array.buffer, { transfer: [array.buffer as ArrayBuffer] });
}

describe('an operation that has failed', () => {
  test.each(['deferred', 'remote-notify', 'immediate-naive', 'immediate-optimized', 'notify-all'] as const)(
    'fails a %s fence once; called again, it is complete, and so is the next one',
    async (fence) => {
      const results = await runTasks(
        3,
        async (world) => {
          const window = await Window.allocate(world, Float64Array, 1000, { info: { fence } });
          window.local.fill(world.rank + 1);
          await window.fence();
          const codes: string[] = [];
          const call = (): Promise<void> =>
            window.fence().then(
              () => void codes.push('complete'),
              ({ code }) => void codes.push(code),
            );
          const kept = new Float64Array(2);
          if (world.rank === 0) {
            const lost = new Float64Array(500);
            if (fence === 'deferred') window.get(lost, 1, 0);
            else window.aggregate(1, { limit: 8 }).get(lost, 0);
            window.put(Float64Array.of(9), 2, 0);
            giveAway(lost);
            await call();
          }
          await call();
          window.get(kept, 2, 0);
          await call();
          await window.free();
          return [...codes, ...kept];
        },
        { fabric },
      );
      const others = ['complete', 'complete', 9, 3];
      expect(results).toEqual([['ERR_BUFFER', ...others], others, others]);
    },
  );

  test('does not say that earlier ones to the same rank are complete', async () => {
    const [got] = await runTasks(
      2,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, LENGTH);
        window.local.fill(7);
        await world.barrier();
        const result = new Float64Array(LENGTH);
        if (world.rank === 0) {
          await window.lock(1, Lock.SHARED);
          const request = window.rget(result, 1, 0);
          const lost = new Float64Array(500);
          window.aggregate(1, { limit: 8 }).put(lost, 0);
          giveAway(lost);
          await request.wait();
          const [first, last] = [result[0], result[LENGTH - 1]];
          // What was issued behind the request is not the request's to say.
          await expect(window.unlock(1)).rejects.toMatchObject({ code: 'ERR_BUFFER' });
          await window.unlock(1);
          return [first, last];
        }
        return [];
      },
      { fabric },
    );
    expect(got).toEqual([7, 7]);
  });
});

describe('puts that are placed late', () => {
  test('are in memory when a remote form of a wait returns', async () => {
    const results = await runTasks(
      2,
      async (world) => {
        const window = await Window.allocate(world, Float64Array, 8);
        await window.lockAll();
        await world.barrier();
        if (world.rank === 0) {
          const request = window.rput(Float64Array.of(5), 1, 0);
          await request.wait();
          await request.waitRemote();
          const another = window.rput(Float64Array.of(6), 1, 1);
          while (!another.testRemote()) await world.compute(1);
        }
        await world.barrier();
        window.sync();
        const found = [...window.local.subarray(0, 2)];
        await window.unlockAll();
        await window.free();
        return found;
      },
      { fabric, faults: { placement: 500 } },
    );
    expect(results).toEqual([
      [0, 0],
      [5, 6],
    ]);
  });

  test('are not looked for after complete, which has told of them: their memory may be gone', async () => {
    const results = await runTasks(
      2,
      async (world) => {
        const window = await Window.createDynamic(world);
        const memory = world.allocMem(Float64Array, 64);
        const place = Float64Array.of(world.rank === 1 ? Number(window.attach(memory)) : 0);
        await world.broadcast(place, 1);
        const other = window.group.include([1 - world.rank]);
        if (world.rank === 0) {
          await window.start(other);
          window.put(Float64Array.of(3), 1, place[0]);
          await window.complete();
          await world.barrier();
          await window.lock(1, Lock.SHARED);
          await window.flush(1);
          await window.unlock(1);
        } else {
          await window.post(other);
          await window.wait();
          window.detach(memory);
          await world.barrier();
        }
        await window.free();
        return memory[0];
      },
      { fabric, faults: { placement: 5 } },
    );
    expect(results).toEqual([0, 3]);
  });
});

describe('a rank that dies', () => {
  test.each([100, 1e6])('while it computes %i µs is missed at once', async (microseconds) => {
    const learned: number[] = [];
    await runTasks(
      2,
      async (world) => {
        if (world.rank === 0) await world.compute(microseconds);
        await world.barrier().catch(() => void learned.push(world.now()));
      },
      { fabric, faults: { deaths: [{ rank: 0, time: 20 }] } },
    ).catch(() => {});
    expect(learned).toHaveLength(1);
    expect(learned[0]).toBeGreaterThanOrEqual(20);
    expect(learned[0]).toBeLessThan(50);
  });

  test('while it waits for something else may do what it likes: others go on', async () => {
    const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
    const steps: string[] = [];
    const run = runTasks(
      2,
      async (world) => {
        if (world.rank === 0) {
          await sleep(20);
          await world.compute(5);
          return;
        }
        await world.compute(50);
        await world.barrier().catch(({ code }) => void steps.push(code));
        await sleep(60);
        steps.push('went on');
      },
      { fabric, faults: { deaths: [{ rank: 0, time: 20 }] } },
    );
    await expect(run).rejects.toMatchObject({ code: 'ERR_RMA_RANK_FAILED' });
    expect(steps).toEqual(['ERR_RMA_RANK_FAILED', 'went on']);
  });
});

test('a deadlock is told when it is there, whatever deadlines there were before', async () => {
  const times: number[] = [];
  for (const timeout of [undefined, 100_000]) {
    const run = runTasks(
      2,
      async (world) => {
        const window = await Window.allocate(world, Int32Array, 1, { info: { lock: 'direct' } });
        await world.barrier(timeout === undefined ? undefined : { timeout });
        await window.lock(world.rank, Lock.EXCLUSIVE);
        await world.barrier();
        await window.lock(1 - world.rank, Lock.EXCLUSIVE);
      },
      { fabric },
    );
    const error = await run.catch((reason: Error) => reason);
    times.push(Number(/deadlock at (\d+)/.exec((error as Error).message)?.[1]));
  }
  expect(times[1]).toBe(times[0]);
});
