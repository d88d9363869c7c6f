/**
 * The calls that fetch and combine many elements, those that return requests, and puts with a notification.
 * Each case leaves nothing behind, and the next one begins where it ended.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Assert, type Communicator, Lock, Op, Rank, Request, type TypedArray, Window, type WindowInfo } from 'onesided';
import { aggregates } from './support/aggregates.ts';
import { each, runCases } from './support/cases.ts';
import { SCHEDULES } from './support/kinds.ts';
import { allocated } from './support/windows.ts';

const FENCES = ['immediate', 'remote-notify'] as const;

const SYNC = { code: 'ERR_RMA_SYNC' };

/** All ranks fetch and add at one target: what each fetched, put in order, are all sums on the way. */
async function fetchAndAddMany(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const rounds = 50;
  const n = 20;
  const win = await Window.allocate(world, BigInt64Array, n, { info });
  await win.lockAll();
  const ones = new BigInt64Array(n).fill(1n);
  const seen = Array.from({ length: n }, () => [] as bigint[]);
  for (let i = 0; i < rounds; i++) {
    const before = new BigInt64Array(n);
    win.getAccumulate(ones, before, 0, 0, Op.SUM);
    win.flushSync(0);
    for (let k = 0; k < n; k++) seen[k].push(before[k]);
  }
  await win.unlockAll();
  await world.barrier();
  if (rank === 0) for (const value of win.local) assert.equal(value, BigInt(rounds * size));
  // Every number was fetched once, by somebody: the sum of all is that of 0 … rounds · size − 1.
  const sums = Float64Array.from(seen, (values) => Number(values.reduce((a, b) => a + b, 0n)));
  const all = new Float64Array(n);
  await world.allreduce(sums, all, Op.SUM);
  for (const sum of all) assert.equal(sum, (rounds * size * (rounds * size - 1)) / 2);
  for (const values of seen) assert.ok(values.every((value, i) => i === 0 || value > values[i - 1]));
  await win.free();
}

async function fetchOnly(world: Communicator, info: WindowInfo): Promise<void> {
  const target = (world.rank + 1) % world.size;
  await allocated(world, 10, info, async (win) => {
    win.local.set(Array.from({ length: 10 }, (_, i) => 10 * world.rank + i));
    await win.fence();
    const got = new Float64Array(4);
    win.getAccumulate(null, got, target, 3, Op.NO_OP);
    const same = new Float64Array(4);
    win.getAccumulate(Float64Array.of(9, 9, 9, 9), same, target, 3, Op.NO_OP);
    await win.fence();
    assert.deepEqual(
      [...got],
      [3, 4, 5, 6].map((i) => 10 * target + i),
    );
    assert.deepEqual(same, got);
    const before = new Float64Array(2);
    win.getAccumulate(Float64Array.of(-1, -2), before, target, 0, Op.REPLACE);
    await win.fence();
    assert.deepEqual([...before], [10 * target, 10 * target + 1]);
    assert.deepEqual([...win.local.subarray(0, 3)], [-1, -2, 10 * world.rank + 2]);
    await win.fence(Assert.NO_SUCCEED);
  });
}

async function refusals(world: Communicator, info: WindowInfo): Promise<void> {
  await allocated(world, 4, info, async (win) => {
    const two = new Float64Array(2);
    const get = (origin: unknown, result: unknown, target = 0, disp = 0, op: unknown = Op.SUM) =>
      win.getAccumulate(origin as Float64Array, result as Float64Array, target, disp, op as typeof Op.SUM);
    assert.throws(() => get(two, new Float64Array(2)), SYNC);
    await win.lockAll();
    win.local.fill(7);
    await world.barrier();
    assert.throws(() => get(null, two), { code: 'ERR_BUFFER' });
    assert.throws(() => get(two, null), { code: 'ERR_BUFFER' });
    assert.throws(() => get(two, two), { code: 'ERR_BUFFER' });
    assert.throws(() => get(two, new Float64Array(3)), { code: 'ERR_BUFFER' });
    assert.throws(() => get(two, new Float64Array(1)), { code: 'ERR_BUFFER' });
    assert.throws(() => get(two, new Float32Array(4)), { code: 'ERR_TYPE' });
    assert.throws(() => get(two, new Float64Array(2), 0, 3), { code: 'ERR_RMA_RANGE' });
    assert.throws(() => get(two, new Float64Array(2), world.size), { code: 'ERR_RANK' });
    assert.throws(() => get(two, new Float64Array(2), 0, 0, 'SUM'), { code: 'ERR_OP' });
    assert.throws(() => get(two, new Float64Array(2), 0, 0, Op.BAND), { code: 'ERR_OP' });
    assert.throws(() => get(win.local.subarray(0, 2), two, world.rank), { code: 'ERR_RMA_CONFLICT' });
    assert.throws(() => get(two, win.local.subarray(1, 3), world.rank), { code: 'ERR_RMA_CONFLICT' });
    await world.barrier();
    assert.deepEqual([...win.local], [7, 7, 7, 7]);
    // What the window remembers of good calls lets no bad one through.
    const good = Float64Array.of(0);
    const sink = new Float64Array(1);
    for (let i = 0; i < 2; i++) get(good, sink);
    for (const call of [
      () => get(good, good),
      () => get(undefined, sink),
      () => (win as Window).compareAndSwap(good as TypedArray, undefined as unknown as TypedArray, sink, 0, 0),
      () => win.fetchAndOp(undefined as unknown as Float64Array, sink, 0, 0, Op.SUM),
    ]) {
      assert.throws(call, { code: 'ERR_BUFFER' });
    }
    get(new Float64Array(0), new Float64Array(0));
    get(two, new Float64Array(2), Rank.NULL);
    await win.unlockAll();
  });
}

async function requests(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const target = (rank + 1) % size;
  const source = (rank - 1 + size) % size;
  const n = 1000;
  await allocated(world, 4 * n, info, async (win) => {
    const origin = Float64Array.from({ length: n }, (_, i) => rank * n + i);
    assert.throws(() => win.rput(origin, target, 0), SYNC);
    await win.fence();
    assert.throws(() => win.rput(origin, target, 0), { ...SYNC, message: /rput.*passive/ });
    await win.fence(Assert.NO_SUCCEED);
    await win.lock(target, Lock.SHARED);
    const put = win.rput(origin, target, 0);
    assert.ok(put instanceof Request);
    await put.wait();
    assert.equal(put.test(), true);
    origin.fill(-1);
    const accumulate = win.raccumulate(Float64Array.of(5), target, n, Op.SUM);
    accumulate.waitSync();
    await accumulate.waitRemote();
    const got = new Float64Array(n);
    const get = win.rget(got, target, 0);
    while (!get.test());
    assert.deepEqual([got[0], got[n - 1]], [rank * n, rank * n + n - 1]);
    const before = new Float64Array(1);
    await win.rgetAccumulate(Float64Array.of(2), before, target, n, Op.SUM).wait();
    assert.equal(before[0], 5);
    const nothing = win.rput(origin, Rank.NULL, 0);
    assert.equal(nothing.test(), true);
    const many = Array.from({ length: 300 }, (_, i) => win.rput(Float64Array.of(i), target, 2 * n + i));
    assert.ok((await Request.waitAny(many)) >= 0);
    assert.ok(Request.waitAnySync(many.slice(5)) >= 0);
    await Request.waitAll(many);
    Request.waitAllSync(many);
    assert.equal(Request.testAll(many), true);
    await Request.waitAll([]);
    assert.equal(await Request.waitAny([]), Rank.UNDEFINED);
    await assert.rejects(Request.waitAny([undefined as never]), { code: 'ERR_ARG' });
    await assert.rejects(Request.waitAll([put, {} as Request]), { name: 'TypeError' });
    await assert.rejects(Request.waitAll(put as unknown as Request[]), { name: 'TypeError' });
    await assert.rejects(put.wait({ timeout: -1 }), { name: 'RangeError' });
    await win.unlock(target);
    await world.barrier();
    assert.deepEqual([win.local[0], win.local[n], win.local[2 * n + 299]], [source * n, 7, 299]);
  });
}

/** What a notification says is true when it is taken: rank 0 tells the next one, which tells the next one … */
async function notifications(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const target = (rank + 1) % size;
  await allocated(world, 512, info, async (win) => {
    await win.lockAll();
    const data = new Float64Array(100);
    for (let round = 1; round <= 100; round++) {
      if (rank !== 0) {
        if (round % 2 === 0) await win.waitNotify();
        else win.waitNotifySync(1);
        for (let i = 0; i < 100; i++) assert.equal(win.local[i], round);
        assert.equal(win.local[200], -round);
      }
      win.put(Float64Array.of(-round), target, 200);
      win.putNotify(data.fill(round), target, 0);
      if (rank === 0) {
        await win.waitNotify();
        assert.equal(win.local[99], round);
      }
    }
    assert.equal(win.testNotify(), false);
    await win.unlockAll();
    await world.barrier();
  });
}

/** Many origins, one target, which takes them by the handful; it is in no epoch of its own. */
async function notificationsOfAll(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const each = 60;
  await allocated(world, each * size, info, async (win) => {
    await win.fence();
    for (let i = 0; i < each; i++) win.putNotify(Float64Array.of(rank + 1), 0, each * rank + i);
    if (rank === 0) {
      await win.waitNotify(each * size - 20);
      win.waitNotifySync(20);
      assert.ok(win.local.every((value, i) => value === Math.floor(i / each) + 1));
      assert.equal(win.testNotify(), false);
      await assert.rejects(win.waitNotify(1, { timeout: 20 }), { code: 'ERR_RMA_TIMEOUT', message: /0 of 1/ });
      for (const wrong of [0, -1, 0.5, Number.NaN, 2 ** 31]) {
        await assert.rejects(win.waitNotify(wrong), { name: 'RangeError' });
        assert.throws(() => win.testNotify(wrong), { name: 'RangeError' });
      }
      await assert.rejects(win.waitNotify('1' as unknown as number), { name: 'TypeError' });
    }
    // Notified or not, they are what the fence ends.
    await win.fence();
    win.putNotify(Float64Array.of(rank), 0, each * rank);
    win.putNotify(new Float64Array(0), 0, 0);
    win.putNotify(Float64Array.of(1), Rank.NULL, 0);
    await win.fence(Assert.NO_SUCCEED);
    if (rank === 0) {
      for (let o = 0; o < size; o++) assert.equal(win.local[each * o], o);
      while (!win.testNotify(2 * size)) await sleep(1);
    }
    assert.throws(() => win.putNotify(Float64Array.of(1), 0, 0), SYNC);
    assert.equal(win.testNotify(), false);
  });
}

/** Handles and separate operations: the same programs leave the same. */
async function aggregateHandles(world: Communicator, info: WindowInfo): Promise<void> {
  const target = (world.rank + 1) % world.size;
  await allocated(world, 100, info, async (win) => {
    await win.lockAll();
    {
      await using batch = win.aggregate(target, { limit: 3 });
      for (let i = 0; i < 10; i++) batch.put(Float64Array.of(i), i);
    }
    const found = new Float64Array(10);
    const batch = win.aggregate(target);
    batch.get(found, 0);
    batch.accumulate(Float64Array.of(2), 20, Op.SUM);
    batch.waitSync();
    assert.deepEqual([...found], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await win.unlockAll();
    await world.barrier();
    assert.equal(win.local[20], 2);
  });
  for (let seed = 1; seed <= 3; seed++) {
    const separate = await aggregates(world, { seed, info, aggregated: false });
    assert.deepEqual(await aggregates(world, { seed, info, aggregated: true }), separate);
  }
}

const INFOS: readonly WindowInfo[] = [
  ...FENCES.map((fence) => ({ fence })),
  ...SCHEDULES.slice(1).map((schedule) => ({ fence: 'remote-notify' as const, schedule })),
];

await runCases([
  ...each(INFOS, 'operations of a handle leave what separate ones leave', aggregateHandles, ['handles']),
  ...each(INFOS, 'what ranks fetch and add at one target are all sums on the way', fetchAndAddMany, ['fetching']),
  ...each(INFOS, 'NO_OP fetches and changes nothing', fetchOnly, ['fetching']),
  ...each(INFOS, 'calls that return requests are refused in the wrong epoch, or with wrong arguments', refusals, [
    'refusals',
  ]),
  ...each(INFOS, 'a request is complete when it says so', requests, ['requests']),
  ...each(INFOS, 'what a notification says is true when it is taken', notifications, ['notifications of some']),
  ...each(INFOS, 'a target takes the notifications of many origins', notificationsOfAll, ['notifications of all']),
]);
