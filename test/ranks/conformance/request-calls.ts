/** MPI 4.1, 12.3.5: calls that return requests; and what is beyond the chapter. */
import assert from 'node:assert/strict';
import { Assert, Datatype, Lock, Op, Rank, Request } from 'onesided';
import { eachStateOnce, lockedAll, type Numbers } from './epochs-and-arrays.ts';
import { collector, iota, peek, refused } from './requirement.ts';

const { requirements, requirement } = collector();
export const requestCalls = requirements;

const { INT32 } = Datatype;

// ---- 12.3.5: requests -----------------------------------------------------------------------------------------------

requirement(
  '12.3.5',
  'when the request of an rput is complete, its origin may be used again',
  'mpich/rput_local_comp mpich/reqops',
  (t) =>
    t.window(Int32Array, 4, async (win) => {
      await win.lockAll();
      const origin = Int32Array.of(t.rank + 1);
      const request = win.rput(origin, t.next, 1);
      await request.wait();
      origin[0] = -1;
      await win.flush(t.next);
      await t.barrier();
      assert.equal(await peek(win, t.rank, 1), t.previous + 1);
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.3.5',
  'when the request of an rget is complete, its result is there',
  'mpich/reqops mpich/req_example',
  (t) =>
    t.window(Int32Array, 4, async (win) => {
      await win.fence();
      win.local.set([1, 2, 3, t.rank]);
      await win.fence(Assert.NO_SUCCEED);
      await win.lockAll();
      const into = new Int32Array(2);
      const second = win.rget(into, t.next, 2);
      if (t.blocks) second.waitSync();
      else await second.wait();
      assert.deepEqual([...into], [3, t.next]);
      await win.unlockAll();
      await t.barrier();
    }),
);
requirement(
  '12.3.5',
  'when the request of an raccumulate is complete, its origin may be used again',
  'mpich/racc_local_comp mpich/reqops',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      await lockedAll(t, win, async () => {
        const origin = Int32Array.of(0);
        for (let i = 1; i <= 5; i++) {
          origin[0] = i;
          await win.raccumulate(origin, 0, 0, Op.SUM).wait();
        }
      });
      if (t.rank === 0) assert.equal(win.local[0], 15 * t.size);
    }),
);
requirement('12.3.5', 'when the request of an rgetAccumulate is complete, its result is there', 'mpich/reqops', (t) =>
  t.window(Int32Array, 3, async (win) => {
    const fetched: Numbers[] = [];
    await lockedAll(t, win, async () => {
      for (let i = 0; i < 5; i++) {
        const result = Int32Array.of(-1, -1, -1);
        await win.rgetAccumulate(Int32Array.of(1, 10, 2), result, 0, 0, Op.SUM).wait();
        fetched.push(result.slice());
      }
    });
    await eachStateOnce(t, fetched);
    if (t.rank === 0) assert.deepEqual([...win.local], [5 * t.size, 50 * t.size, 10 * t.size]);
  }),
);
requirement('12.3.5', 'test of a request becomes true, and stays true', 'mpich/rget_testall', (t) =>
  t.window(Int32Array, 64, async (win) => {
    await win.lockAll();
    const into = t.ranks.map(() => new Int32Array(64));
    const requests = t.ranks.map((target) => win.rget(into[target], target, 0));
    for (const request of requests) {
      while (!request.test()) await new Promise((resolve) => setImmediate(resolve));
      assert.equal(request.test(), true);
      await request.wait();
    }
    await win.unlockAll();
    await t.barrier();
  }),
);
requirement('12.3.5', 'waitAll waits for requests of every kind', 'mpich/reqops mpich/req_example', (t) =>
  t.window(Int32Array, 4 * t.size, async (win) => {
    await lockedAll(t, win, async () => {
      const requests: Request[] = [];
      for (const target of t.ranks) {
        requests.push(win.rput(Int32Array.of(t.rank + 1), target, 4 * t.rank));
        requests.push(win.raccumulate(Int32Array.of(1), target, 4 * t.rank + 1, Op.SUM));
      }
      await Request.waitAll(requests);
      await Request.waitAll([]);
      await win.flushAll();
      const into = new Int32Array(2);
      await Request.waitAll([win.rget(into, t.next, 4 * t.rank)]);
      assert.deepEqual([...into], [t.rank + 1, 1]);
    });
    assert.deepEqual(
      [...win.local],
      t.ranks.flatMap((rank) => [rank + 1, 1, 0, 0]),
    );
  }),
);
requirement('12.3.5', 'waitAny in a loop returns each request once, if those returned are replaced by null', '', (t) =>
  t.window(Int32Array, 4, async (win) => {
    await lockedAll(t, win, async () => {
      const requests: (Request | null)[] = iota(4).map((i) => win.rput(Int32Array.of(i + 1), t.next, i));
      const named = new Set<number>();
      for (;;) {
        const index = await Request.waitAny(requests);
        if (index === Rank.UNDEFINED) break;
        named.add(index);
        requests[index] = null;
      }
      assert.deepEqual([...named].sort(), iota(4));
      assert.equal(Request.testAll(requests), true);
      await Request.waitAll([null]);
      if (t.blocks) assert.equal(Request.waitAnySync([]), Rank.UNDEFINED);
    });
    assert.deepEqual([...win.local], [1, 2, 3, 4]);
  }),
);
requirement('12.3.5', 'waitAny returns a request that is complete', 'mpich/reqops', (t) =>
  t.window(Int32Array, 4, async (win) => {
    await lockedAll(t, win, async () => {
      const requests = [win.rput(Int32Array.of(1), t.next, 0), win.rput(Int32Array.of(2), t.next, 1)];
      const index = await Request.waitAny(requests);
      assert.ok(index === 0 || index === 1);
      assert.equal(requests[index].test(), true);
      await Request.waitAll(requests);
    });
    assert.deepEqual([...win.local], [1, 2, 0, 0]);
  }),
);
requirement('12.3.5', 'a request may be waited for after the epoch has ended', 'mpich/rget_unlock', (t) =>
  t.window(Int32Array, 2, async (win) => {
    win.local[0] = t.rank;
    await t.barrier();
    await win.lock(t.next, Lock.SHARED);
    const into = Int32Array.of(-1, -1);
    const request = win.rget(into, t.next, 0);
    await win.unlock(t.next);
    assert.equal(into[0], t.next);
    await request.wait();
    assert.equal(request.test(), true);
    await t.barrier();
  }),
);
requirement(
  '12.3.5',
  'request-based calls belong to passive target epochs: in a fence epoch they are refused',
  'mpich/reqops',
  (t) =>
    t.window(Int32Array, 1, async (win) => {
      refused('ERR_RMA_SYNC', () => win.rput(Int32Array.of(1), t.next, 0));
      await win.fence();
      refused('ERR_RMA_SYNC', () => win.rput(Int32Array.of(1), t.next, 0));
      refused('ERR_RMA_SYNC', () => win.rget(Int32Array.of(1), t.next, 0));
      refused('ERR_RMA_SYNC', () => win.raccumulate(Int32Array.of(1), t.next, 0, Op.SUM));
      await win.fence(Assert.NO_SUCCEED);
    }),
);
requirement('12.3.5', 'request-based calls accept layouts', 'mpich/rget_testall', (t) =>
  t.window(Int32Array, 8, async (win) => {
    const target = { type: Datatype.vector(2, 1, 3, INT32), count: 1 };
    await lockedAll(t, win, async () => {
      await win.rput(Int32Array.of(5, 6), t.next, 1, { target }).wait();
      await win.flush(t.next);
      const into = new Int32Array(2);
      await win.rget(into, t.next, 1, { target }).wait();
      assert.deepEqual([...into], [5, 6]);
    });
    assert.deepEqual([...win.local], [0, 5, 0, 0, 6, 0, 0, 0]);
  }),
);
requirement('12.3.5', 'all ranks compute pi with request-based calls', 'mpich/ircpi mpich/req_example_shm', (t) =>
  t.window(Float64Array, 1, async (win) => {
    let sum = 0;
    for (let i = t.rank; i < 2000; i += t.size) sum += 4 / (1 + ((i + 0.5) / 2000) ** 2) / 2000;
    await lockedAll(t, win, () => win.raccumulate(Float64Array.of(sum), 0, 0, Op.SUM).wait());
    if (t.rank === 0) assert.ok(Math.abs(win.local[0] - Math.PI) < 1e-6);
  }),
);

// ---- beyond the chapter ---------------------------------------------------------------------------------------------

requirement('beyond', 'putNotify increments a counter at the target after its data is visible', '', (t) =>
  t.window(Int32Array, 8, async (win) => {
    await win.lockAll();
    for (let i = 1; i <= 5; i++) {
      win.putNotify(Int32Array.of(100 * t.rank + i), t.next, i);
      await win.waitNotify(1);
      assert.equal(win.local[i], 100 * t.previous + i);
    }
    win.putNotify(Int32Array.of(1), t.next, 6);
    win.putNotify(Int32Array.of(2), t.next, 7);
    await win.waitNotify(2);
    assert.equal(win.testNotify(1), false);
    assert.deepEqual([...win.local.subarray(6)], [1, 2]);
    await win.unlockAll();
    await t.barrier();
  }),
);
requirement('beyond', 'additions of all ranks to one floating-point element are exact', 'mpich/test3_am', (t) =>
  t.window(Float64Array, 1, async (win) => {
    await lockedAll(t, win, () => {
      for (let i = 0; i < 50; i++) win.accumulate(Float64Array.of(0.5), 0, 0, Op.SUM);
    });
    if (t.rank === 0) assert.equal(win.local[0], 25 * t.size);
  }),
);
