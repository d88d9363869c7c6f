/**
 * Start, complete, post, wait and test (MPI 4.1, 12.5.2): which epochs they open and end, in every order that is
 * allowed, and what is refused. Each case leaves nothing behind, and the next one begins where it ended.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Assert, type Communicator, type Group, Lock, Op, Window, type WindowInfo } from 'onesided';
import { each, runCases } from './support/cases.ts';
import { SCHEDULES } from './support/kinds.ts';
import { BY_REQUESTS } from './support/provider.ts';
import { allocated } from './support/windows.ts';

const FENCES = ['immediate', 'remote-notify'] as const;
type Info = WindowInfo & { readonly fence: (typeof FENCES)[number] };

const SYNC = { code: 'ERR_RMA_SYNC' };
const SOON = { timeout: 30 };

function ring({ rank, size, group }: Communicator): {
  next: number;
  previous: number;
  toNext: Group;
  toPrevious: Group;
} {
  const next = (rank + 1) % size;
  const previous = (rank - 1 + size) % size;
  return { next, previous, toNext: group.include([next]), toPrevious: group.include([previous]) };
}

function others({ rank, group }: Communicator): Group {
  return group.exclude([rank]);
}

/** Each rank puts to its right-hand neighbour, many epochs in a row, without anything between them. */
async function backToBack(world: Communicator, info: Info): Promise<void> {
  const { next, previous, toNext, toPrevious } = ring(world);
  await allocated(world, 2, info, async (win) => {
    const value = new Float64Array(1);
    for (let i = 1; i <= 200; i++) {
      value[0] = 1000 * world.rank + i;
      if (i % 2 === 0) {
        win.postSync(toPrevious);
        win.startSync(toNext);
        win.put(value, next, 0);
        win.completeSync();
        win.waitSync();
      } else {
        await win.post(toPrevious);
        await win.start(toNext);
        win.put(value, next, 0);
        await win.complete();
        await win.wait();
      }
      assert.equal(win.local[0], 1000 * previous + i);
    }
  });
}

/** All ranks write into all others' parts; each sees exactly what was written in this epoch. */
async function everybody(world: Communicator, info: Info): Promise<void> {
  const group = others(world);
  await allocated(world, world.size, info, async (win) => {
    for (let i = 1; i <= 20; i++) {
      win.local.fill(-1);
      await win.post(group);
      await win.start(group);
      for (let t = 0; t < world.size; t++)
        if (t !== world.rank) win.put(Float64Array.of(i * world.rank), t, world.rank);
      await win.complete();
      await win.wait();
      for (let o = 0; o < world.size; o++) assert.equal(win.local[o], o === world.rank ? -1 : i * o);
    }
  });
}

/** Origins that are ahead of their target, which posts late, again and again: each post admits one start. */
async function targetBehind(world: Communicator, info: Info): Promise<void> {
  const { rank, size, group } = world;
  const origins = group.exclude([0]);
  await allocated(world, size, info, async (win) => {
    for (let i = 1; i <= 5; i++) {
      if (rank === 0) {
        await sleep(5);
        for (let o = 1; o < size; o++) assert.equal(win.local[o], i - 1, 'nobody writes before the post');
        await win.post(origins, Assert.NO_STORE);
        await win.wait();
        for (let o = 1; o < size; o++) assert.equal(win.local[o], i);
      } else {
        await win.start(group.include([0]));
        win.accumulate(Float64Array.of(1), 0, rank, Op.SUM);
        await win.complete();
      }
    }
  });
}

/** A target that is ahead: it posts before its origins start, and tests until they have completed. */
async function targetAhead(world: Communicator, info: Info): Promise<void> {
  const { rank, size, group } = world;
  await allocated(world, size, info, async (win) => {
    if (rank === 0) {
      await win.post(group.exclude([0]));
      assert.equal(win.test(), size === 1);
      if (size === 1) return;
      await world.barrier();
      let looks = 0;
      while (!win.test()) {
        assert.ok(looks++ < 20_000);
        await sleep(0);
      }
      for (let o = 1; o < size; o++) assert.equal(win.local[o], o);
      assert.throws(() => win.test(), SYNC);
    } else {
      await world.barrier();
      win.startSync(group.include([0]), Assert.NO_CHECK);
      win.put(Float64Array.of(rank), 0, rank);
      win.completeSync();
    }
  });
}

async function gets(world: Communicator, info: Info): Promise<void> {
  const { next, previous, toNext, toPrevious } = ring(world);
  await allocated(world, 1, info, async (win) => {
    const got = new Float64Array(1);
    for (let i = 0; i < 50; i++) {
      // Plain stores before the post are what origins get.
      win.local[0] = 100 * world.rank + i;
      win.postSync(toPrevious);
      win.startSync(toNext);
      win.get(got, next, 0);
      win.completeSync();
      assert.equal(got[0], 100 * next + i);
      win.waitSync();
    }
    assert.ok(previous >= 0);
  });
}

/** This rank in its own group; groups that are empty; exposure without access and the other way round. */
async function oddGroups(world: Communicator, info: Info): Promise<void> {
  const { rank, group } = world;
  const self = group.include([rank]);
  const nobody = group.include([]);
  await allocated(world, 1, info, async (win) => {
    await win.post(self);
    await win.start(self);
    win.put(Float64Array.of(rank + 0.5), rank, 0);
    await win.complete();
    await win.wait();
    assert.equal(win.local[0], rank + 0.5);
    await win.post(nobody);
    assert.equal(win.test(), true);
    await win.start(nobody);
    assert.throws(() => win.put(Float64Array.of(1), rank, 0), SYNC);
    await win.complete();
  });
}

/** A message between post and wait; access to two windows at once. */
async function mixed(world: Communicator, info: Info): Promise<void> {
  const { next, previous, toNext, toPrevious } = ring(world);
  await allocated(world, 1, info, async (one) => {
    await allocated(world, 1, info, async (two) => {
      await one.post(toPrevious);
      await two.post(toPrevious);
      world.send(Int32Array.of(world.rank), next);
      const from = new Int32Array(1);
      await world.receive(from, previous);
      assert.equal(from[0], previous);
      await two.start(toNext);
      await one.start(toNext);
      one.put(Float64Array.of(1), next, 0);
      two.put(Float64Array.of(2), next, 0);
      await one.complete();
      await two.complete();
      await two.wait();
      await one.wait();
      assert.deepEqual([one.local[0], two.local[0]], [1, 2]);
    });
  });
}

/** Between other kinds of epochs. */
async function amongOthers(world: Communicator, info: Info): Promise<void> {
  const { next, previous, toNext, toPrevious } = ring(world);
  await allocated(world, 1, info, async (win) => {
    await win.fence();
    win.put(Float64Array.of(1), next, 0);
    await assert.rejects(win.start(toNext), SYNC);
    await assert.rejects(win.post(toPrevious), SYNC);
    await win.fence(Assert.NO_SUCCEED);
    await win.post(toPrevious);
    await assert.rejects(win.post(toPrevious), SYNC);
    assert.throws(() => win.fenceSync(), SYNC);
    await win.start(toNext);
    await assert.rejects(win.start(toNext), SYNC);
    await assert.rejects(win.lock(next, Lock.SHARED), SYNC);
    await assert.rejects(win.lockAll(), SYNC);
    await assert.rejects(win.flush(next), SYNC);
    await assert.rejects(win.unlock(next), SYNC);
    await assert.rejects(win.free(), { ...SYNC, message: /start/ });
    await assert.rejects(world.finalize(), {
      ...SYNC,
      message: /finalize of window .* \(start\).*ONESIDED_DEBUG=epochs/,
    });
    win.put(Float64Array.of(2), next, 0);
    if (world.size > 2) assert.throws(() => win.put(Float64Array.of(2), previous, 0), SYNC);
    await win.complete();
    assert.throws(() => win.put(Float64Array.of(3), next, 0), SYNC);
    await assert.rejects(win.complete(), SYNC);
    await assert.rejects(win.free(), { ...SYNC, message: /exposure/ });
    await win.wait();
    await assert.rejects(win.wait(), SYNC);
    assert.equal(win.local[0], 2);
    await world.barrier();
    await win.lock(next, Lock.EXCLUSIVE);
    win.put(Float64Array.of(4), next, 0);
    await win.unlock(next);
    await world.barrier();
    // While its own part is exposed, a rank may have access epochs of any kind to others.
    const half = world.rank % 2 === 0;
    if (half) await win.post(world.group.include([]));
    await win.lock(next, Lock.SHARED);
    await win.unlock(next);
    if (half) await win.wait();
    await win.fence();
    await win.fence(Assert.NO_SUCCEED);
  });
}

/** A start or a wait that ends early uses nothing up. */
async function deadlines(world: Communicator, info: Info): Promise<void> {
  const { next, previous, toNext, toPrevious } = ring(world);
  await allocated(world, 1, info, async (win) => {
    await assert.rejects(win.start(toNext, 0, SOON), { code: 'ERR_RMA_TIMEOUT', message: new RegExp(`rank ${next}`) });
    assert.throws(() => win.startSync(toNext, 0, SOON), { code: 'ERR_RMA_TIMEOUT' });
    await assert.rejects(win.start(toNext, 0, { signal: AbortSignal.timeout(10) }), { name: 'TimeoutError' });
    // Where a message says that there was a post, it may be on its way.
    if (!BY_REQUESTS) await assert.rejects(win.start(toNext, Assert.NO_CHECK), { code: 'ERR_ASSERT' });
    else await assert.rejects(win.start(toNext, Assert.NO_CHECK, SOON), { code: 'ERR_RMA_TIMEOUT' });
    assert.throws(() => win.put(Float64Array.of(1), next, 0), SYNC);
    await world.barrier();
    await win.post(toPrevious);
    await assert.rejects(win.wait(SOON), { code: 'ERR_RMA_TIMEOUT', message: new RegExp(`rank ${previous}`) });
    assert.throws(() => win.waitSync(SOON), { code: 'ERR_RMA_TIMEOUT' });
    await world.barrier();
    const waiting = win.wait();
    await assert.rejects(win.wait(), SYNC);
    assert.throws(() => win.test(), SYNC);
    await win.start(toNext);
    win.put(Float64Array.of(world.rank), next, 0);
    if (info.fence === 'remote-notify') {
      // Requests are waited for, and targets may be told before they are all answered: the epoch stays closed.
      const aborted = { signal: AbortSignal.abort() };
      await assert.rejects(win.complete(aborted), { name: 'AbortError' });
      assert.throws(() => win.put(Float64Array.of(-1), next, 0), {
        ...SYNC,
        message: /complete whose wait ended early/,
      });
      await assert.rejects(win.fence(), { ...SYNC, message: /call complete again/ });
      assert.throws(() => win.completeSync(aborted), { name: 'AbortError' });
    }
    await win.complete();
    await waiting;
    assert.equal(win.local[0], previous);
  });
}

async function wrongArguments(world: Communicator, info: Info): Promise<void> {
  const { group } = world;
  await allocated(world, 1, info, async (win) => {
    for (const wrong of [undefined, null, 0, [0], { worldRanks: [0] }, new Proxy(group, {}), Object.create(group)]) {
      const refused = { name: 'TypeError', code: 'ERR_GROUP' };
      await assert.rejects(win.start(wrong as Group), refused);
      assert.throws(() => win.startSync(wrong as Group), refused);
      await assert.rejects(win.post(wrong as Group), refused);
      assert.throws(() => win.postSync(wrong as Group), refused);
    }
    for (const wrong of [Assert.NO_SUCCEED, -1, 0.5, Number.NaN, 1e9]) {
      await assert.rejects(win.start(group, wrong), { code: 'ERR_ASSERT' });
      await assert.rejects(win.post(group, wrong), { code: 'ERR_ASSERT' });
    }
    await assert.rejects(win.start(group, Assert.NO_STORE), { code: 'ERR_ASSERT' });
  });
  const mine = await world.split(world.rank % 2, world.rank);
  assert.ok(mine);
  const win = await Window.allocate(mine, Float64Array, 1);
  if (world.size > 1) await assert.rejects(win.start(world.group), { code: 'ERR_GROUP' });
  await win.free();
  await win.free();
  await assert.rejects(win.start(mine.group), { code: 'ERR_WIN' });
  assert.throws(() => win.test(), { code: 'ERR_WIN' });
}

/** Who has posted does not wait for who completes an operation that fails: that one is told, once. */
async function failing(world: Communicator, info: Info): Promise<void> {
  const { rank, size } = world;
  // A get fails after its call where it is held, as all are that are put in order.
  if (size === 1 || !/gets-first|interleave/.test(info.schedule ?? '')) return;
  await allocated(world, 600, info, async (win) => {
    for (let again = 0; again < 2; again++) {
      if (rank === 0) {
        await win.start(win.group.include([1]));
        win.put(Float64Array.of(3 + again), 1, 0);
        const lost = new Float64Array(500);
        win.get(lost, 1, 1);
        structuredClone(0, { transfer: [lost.buffer] });
        await assert.rejects(win.complete(), { code: 'ERR_BUFFER' });
      } else if (rank === 1) {
        await win.post(win.group.include([0]));
        await win.wait();
        assert.equal(win.local[0], 3 + again);
      }
      await world.barrier();
      if (rank === 0) await win.complete();
    }
  });
}

const INFOS: readonly Info[] = [
  ...FENCES.map((fence) => ({ fence })),
  ...SCHEDULES.slice(1).map((schedule) => ({ fence: 'remote-notify' as const, schedule })),
];

await runCases([
  ...each(INFOS, 'an exposure ends though an operation fails, which its origin alone is told, once', failing, [
    'failures',
  ]),
  ...each(INFOS, 'epochs follow each other without anything between them', backToBack, ['order']),
  ...each(INFOS, 'each rank sees what all others have put in this epoch', everybody, ['everybody']),
  ...each(INFOS, 'each post of a late target admits one start', targetBehind, ['order']),
  ...each(INFOS, 'a target that posts early tests until its origins have completed', targetAhead, ['order']),
  ...each(INFOS, 'complete brings what was gotten', gets, ['gets']),
  ...each(INFOS, 'groups may be empty, or have this rank', oddGroups, ['groups']),
  ...each(INFOS, 'messages and other windows go between post and wait', mixed, ['order']),
  ...each(INFOS, 'these epochs stand between fences and locks', amongOthers, ['order']),
  ...each(INFOS, 'a start or a wait that ends early uses nothing up', deadlines, ['leaving']),
  ...each(INFOS, 'wrong groups, assertions and orders are refused', wrongArguments, ['refusals']),
]);
