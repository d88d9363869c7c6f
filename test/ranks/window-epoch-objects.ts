/** Epochs as objects: each call reaches the window, the end of the block ends the epoch, and what has ended refuses. */
import assert from 'node:assert/strict';
import { Assert, type Communicator, Lock, Op, Window, type WindowInfo } from 'onesided';
import { each, runCases } from './support/cases.ts';

const INFOS = [{ fence: 'immediate' }, { fence: 'remote-notify' }] as const;
const SYNC = { code: 'ERR_RMA_SYNC' };

async function windows(
  world: Communicator,
  info: WindowInfo,
  body: (win: Window<BigInt64Array>, next: number, previous: number) => unknown,
): Promise<void> {
  const win = await Window.allocate(world, BigInt64Array, 16, { info });
  await body(win, (world.rank + 1) % world.size, (world.rank - 1 + world.size) % world.size);
  await win.free();
}

const one = (value: number): BigInt64Array => BigInt64Array.of(BigInt(value));

async function lock(world: Communicator, info: WindowInfo): Promise<void> {
  await windows(world, info, async (win, next, previous) => {
    const stale = await win.locked(next, Lock.SHARED);
    await stale.end();
    await stale.end();
    {
      await using epoch = await win.locked(next);
      assert.throws(() => stale.put(one(1), 0), { ...SYNC, message: /this lock epoch of window .* has ended/ });
      assert.equal(epoch.target, next);
      epoch.put(one(world.rank), 0);
      await epoch.flush();
      const got = one(-1);
      epoch.get(got, 0);
      epoch.flushSync();
      assert.equal(got[0], BigInt(world.rank));
      epoch.accumulate(one(5), 1, Op.SUM);
      epoch.fetchAndOp(one(5), got, 1, Op.SUM);
      assert.equal(got[0], 5n);
      epoch.compareAndSwap(one(3), one(10), got, 1);
      epoch.getAccumulate(one(4), got, 1, Op.SUM);
      assert.equal(got[0], 3n);
      await epoch.rput(one(8), 2).wait();
      epoch.rget(got, 2).waitSync();
      assert.equal(got[0], 8n);
      await epoch.raccumulate(one(1), 5, Op.SUM).wait();
      await epoch.rgetAccumulate(one(1), got, 5, Op.SUM).wait();
      assert.equal(got[0], 1n);
      await epoch.flushLocal();
      epoch.flushLocalSync();
      epoch.sync();
      epoch.putNotify(one(9), 3);
    }
    await win.waitNotify();
    await world.barrier();
    assert.deepEqual([...win.local.subarray(0, 4)], [previous, 7, 8, 9].map(BigInt));
    using again = win.lockedSync(next);
    again.put(one(1), 4);
  });
}

async function lockAll(world: Communicator, info: WindowInfo): Promise<void> {
  await windows(world, info, async (win, next, previous) => {
    {
      await using epoch = await win.lockedAll();
      epoch.put(one(world.rank), next, 0);
      await epoch.flush(next);
      epoch.flushSync(next);
      await epoch.flushAll();
      epoch.flushAllSync();
      const got = one(0);
      await epoch.rput(one(1), next, 1).wait();
      await epoch.rget(got, next, 1).wait();
      assert.equal(got[0], 1n);
      await epoch.raccumulate(one(1), next, 2, Op.SUM).wait();
      await epoch.rgetAccumulate(one(1), got, next, 2, Op.SUM).wait();
      assert.equal(got[0], 1n);
      await epoch.flushLocal(next);
      epoch.flushLocalSync(next);
      await epoch.flushLocalAll();
      epoch.flushLocalAllSync();
      epoch.sync();
    }
    await world.barrier();
    assert.equal(win.local[0], BigInt(previous));
    win.lockedAllSync().endSync();
  });
}

async function fence(world: Communicator, info: WindowInfo): Promise<void> {
  await windows(world, info, async (win, next, previous) => {
    {
      await using epoch = await win.fenced();
      epoch.accumulate(one(2), next, 0, Op.SUM);
      const got = one(-1);
      epoch.fetchAndOp(one(1), got, next, 5, Op.SUM);
      epoch.compareAndSwap(one(7), one(0), got, next, 6);
      epoch.getAccumulate(null, got, next, 7, Op.NO_OP);
      epoch.putNotify(one(world.rank), next, 1);
    }
    assert.deepEqual([...win.local.subarray(0, 2)], [2n, BigInt(previous)]);
    assert.deepEqual([...win.local.subarray(5, 8)], [1n, 7n, 0n]);
    assert.throws(() => win.put(one(1), next, 0), SYNC);
    await assert.rejects(win.fenced(Assert.NO_SUCCEED), { code: 'ERR_ASSERT' });
    using epoch = win.fencedSync();
    epoch.get(one(0), next, 0);
  });
}

async function general(world: Communicator, info: WindowInfo): Promise<void> {
  await windows(world, info, async (win, next, previous) => {
    const origins = world.group.include([previous]);
    const targets = world.group.include([next]);
    {
      await using _exposure = await win.posted(origins);
      await using epoch = await win.started(targets);
      epoch.put(one(world.rank + 1), next, 0);
    }
    assert.equal(win.local[0], BigInt(previous + 1));
    {
      using _exposure = win.postedSync(origins);
      using epoch = win.startedSync(targets);
      epoch.put(one(world.rank + 2), next, 0);
    }
    assert.equal(win.local[0], BigInt(previous + 2));
    const exposure = await win.posted(origins);
    // It is still open after a deadline.
    await assert.rejects(exposure.end({ timeout: 20 }), { code: 'ERR_RMA_TIMEOUT' });
    await world.barrier();
    assert.equal(exposure.test(), false);
    await world.barrier();
    await (await win.started(targets)).end();
    await world.barrier();
    while (!exposure.test());
    assert.equal(exposure.test(), true);
    exposure.endSync();
  });
}

await runCases([
  ...each(INFOS, 'an object of one lock ends with its block', lock),
  ...each(INFOS, 'an object of all locks ends with its block', lockAll),
  ...each(INFOS, 'an object of a fence epoch ends with its block', fence),
  ...each(INFOS, 'objects of accesses and exposures end with their blocks', general),
]);
