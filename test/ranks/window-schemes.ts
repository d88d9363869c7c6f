/**
 * What is particular to fence and lock schemes that are chosen by hints, and what all lock schemes promise:
 * `--locks=JSON`, a list of hints.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Assert, type Communicator, Datatype, Lock, Op, Window, type WindowInfo } from 'onesided';
import { argument, caseOf, each, runCases } from './support/cases.ts';
import { FENCES_BY_HINT, type FenceSchemeName } from './support/kinds.ts';
import { allocated } from './support/windows.ts';

const LOCKS = JSON.parse(argument('locks') ?? '[{ "lock": "queue" }]') as WindowInfo[];
const DEVICE = (process.env['ONESIDED_DEBUG'] ?? '').includes('requests');

/**
 * Every call that communicates, with layouts, in every kind of passive epoch: what is fetched is there after a flush,
 * what is written after the unlock.
 */
async function everyCall(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const target = (rank + 1) % size;
  const before = (rank - 1 + size) % size;
  const every = Datatype.vector(3, 1, 2, Datatype.FLOAT64);
  await allocated(world, 24, info, async (win) => {
    for (const [round, epoch] of (['lock', 'lockAll', 'unchecked'] as const).entries()) {
      win.local.fill(0);
      await world.barrier();
      if (epoch === 'lock') await win.lock(target, Lock.EXCLUSIVE);
      else if (epoch === 'lockAll') await win.lockAll();
      else await win.lock(target, Lock.SHARED, Assert.NO_CHECK);
      const origin = Float64Array.of(1, 2, 3).map((value) => value + 10 * round);
      win.put(origin, target, 0);
      // The origin of a put may not be touched before it is complete; a copy of it is another one.
      win.put(Float64Array.from(origin), target, 8, { target: { type: every } });
      const request = win.rget(new Float64Array(3), target, 0);
      await request.wait();
      const [got, scattered] = [new Float64Array(3), new Float64Array(5)];
      win.get(got, target, 0);
      win.get(scattered, target, 0, { origin: { type: every } });
      await win.flush(target);
      assert.deepEqual([...got], [...origin]);
      assert.deepEqual([...scattered], [origin[0], 0, origin[1], 0, origin[2]]);
      win.accumulate(Float64Array.of(5, 5, 5), target, 0, Op.SUM);
      win.accumulate(Float64Array.of(7, 7, 7), target, 8, Op.MAX, { target: { type: every } });
      const fetched = new Float64Array(1);
      win.fetchAndOp(Float64Array.of(100), fetched, target, 1, Op.SUM);
      const all = new Float64Array(3);
      win.getAccumulate(null, all, target, 8, Op.NO_OP, { target: { type: every } });
      if (epoch === 'lockAll') win.flushAllSync();
      else win.flushSync(target);
      assert.equal(fetched[0], origin[1] + 5);
      assert.deepEqual(
        [...all],
        [...origin].map((value) => Math.max(value, 7)),
      );
      await win.raccumulate(Float64Array.of(1), target, 23, Op.SUM).wait();
      win.putNotify(Float64Array.of(rank), target, 22);
      if (epoch === 'lockAll') await win.unlockAll();
      else await win.unlock(target);
      await win.waitNotify();
      assert.equal(win.local[22], before);
      await world.barrier();
      const max = [...origin].map((value) => Math.max(value, 7));
      const expected = [origin[0] + 5, origin[1] + 105, origin[2] + 5, 0, 0, 0, 0, 0, max[0], 0, max[1], 0, max[2]];
      assert.deepEqual([...win.local.subarray(0, 13)], expected);
      assert.equal(win.local[23], 1);
      await world.barrier();
    }
    // Whole integers, swapped until they fit.
    const counter = await Window.create(world, world.allocMem(Int32Array, 2), { info });
    await counter.lockAll();
    const [seen, found] = [new Int32Array(1), new Int32Array(1)];
    for (let i = 0; i < 20; i++) {
      for (;;) {
        counter.compareAndSwap(Int32Array.of(seen[0] + 1), seen, found, 0, 1);
        counter.flushSync(0);
        if (found[0] === seen[0]) break;
        seen[0] = found[0];
      }
    }
    await counter.unlockAll();
    await world.barrier();
    if (rank === 0) assert.equal(counter.local[1], 20 * size);
    await world.barrier();
    await counter.free();
  });
}

/**
 * Some ranks take a lock again and again, shared and exclusive, until everybody has had it so many times: nobody is
 * kept out for good.
 */
async function nobodyStarves(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const wanted = 12;
  const done = await Window.allocate(world, Int32Array, 1);
  await done.lockAll();
  const finished = (by: number): number => {
    const before = new Int32Array(1);
    done.fetchAndOp(Int32Array.of(by), before, 0, 0, Op.SUM);
    done.flushSync(0);
    return before[0] + by;
  };
  await allocated(world, 1, info, async (win) => {
    const type = rank % 3 === 1 ? Lock.SHARED : Lock.EXCLUSIVE;
    const one = new Float64Array(1);
    let mine = 0;
    for (let i = 1; finished(0) < size; i++) {
      if (i % 2 === 0) await win.lock(0, type);
      else win.lockSync(0, type);
      win.get(one, 0, 0);
      win.flushSync(0);
      if (type === Lock.EXCLUSIVE) {
        mine++;
        win.put(Float64Array.of(one[0] + 1), 0, 0);
      }
      win.unlockSync(0);
      if (i === wanted) finished(1);
    }
    const [sum, all] = [new Float64Array(1), Float64Array.of(mine)];
    await world.allreduce(all, sum, Op.SUM);
    if (rank === 0) assert.equal(win.local[0], sum[0], 'increments under the lock');
  });
  await done.unlockAll();
  await done.free();
}

/** A target whose event loop turns, and that calls nothing of the library, is locked all the same. */
async function idleTarget(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  const window = await Window.allocate(world, Float64Array, 2, { info });
  const told = await Window.allocate(world, Int32Array, 1);
  await told.lockAll();
  await world.barrier();
  if (rank === 0) {
    // The program's own waiting.
    while (Atomics.load(told.local, 0) < size - 1) await sleep(1);
  } else {
    for (const type of [Lock.SHARED, Lock.EXCLUSIVE]) {
      await window.lock(0, type);
      window.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
      await window.unlock(0);
    }
    told.accumulate(Int32Array.of(1), 0, 0, Op.SUM);
    told.flushSync(0);
  }
  await world.barrier();
  if (rank === 0) assert.equal(window.local[0], 2 * (size - 1));
  await told.unlockAll();
  await told.free();
  await window.free();
}

/** A lock that is asked for and not waited for: what is done under it is done once it is had. */
async function deferredLock(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  await allocated(world, 1, { ...info, lock_defer: true }, async (win) => {
    // All connections are there, so messages arrive in the order in which they are sent.
    await win.lockAll();
    await win.unlockAll();
    await world.barrier();
    if (rank === 0) await win.lock(0, Lock.EXCLUSIVE);
    await world.barrier();
    if (rank !== 0) {
      await win.lock(0, Lock.EXCLUSIVE);
      win.accumulate(Float64Array.of(1), 0, 0, Op.SUM);
      await assert.rejects(win.flush(0, { timeout: 20 }), { code: 'ERR_RMA_TIMEOUT' });
      await assert.rejects(win.unlock(0, { timeout: 20 }), { code: 'ERR_RMA_TIMEOUT' });
    }
    await world.barrier();
    if (rank === 0) {
      assert.equal(win.local[0], 0, 'nobody has touched what is locked');
      win.unlockSync(0);
    } else await win.unlock(0);
    await world.barrier();
    if (rank === 0) assert.equal(win.local[0], size - 1);
    // An empty epoch waits for nothing; a deadline is for the lock, and is kept.
    if (rank === 0) await win.lock(0, Lock.EXCLUSIVE);
    await world.barrier();
    if (rank !== 0) {
      await win.lock(0, Lock.EXCLUSIVE);
      await win.unlock(0);
      await assert.rejects(win.lock(0, Lock.SHARED, 0, { timeout: 20 }), { code: 'ERR_RMA_TIMEOUT' });
      await assert.rejects(win.unlock(0), { code: 'ERR_RMA_SYNC' });
    }
    await world.barrier();
    if (rank === 0) await win.unlock(0);
  });
}

/** Ranks that take two locks, in the order of ranks, do not block each other; one of them in the blocking form. */
async function orderedLocks(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  const next = (rank + 1) % size;
  const order = [Math.min(rank, next), Math.max(rank, next)];
  const rounds = 20;
  await allocated(world, 1, info, async (win) => {
    const found = new Float64Array(1);
    for (let round = 0; round < rounds; round++) {
      for (const target of order) {
        if (rank === 1) win.lockSync(target, Lock.EXCLUSIVE);
        else await win.lock(target, Lock.EXCLUSIVE);
      }
      for (const target of order.toReversed()) {
        win.get(found, target, 0);
        await win.flush(target);
        found[0]++;
        win.put(found, target, 0);
        await win.flush(target);
      }
      for (const target of order) await win.unlock(target);
    }
    await world.barrier();
    await win.lock(rank, Lock.SHARED);
    assert.equal(win.local[0], 2 * rounds);
    await win.unlock(rank);
  });
}

/** Counts say what the schemes have done. */
async function statistics(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const next = (rank + 1) % size;
  const others = size - 1;
  // All of `notify-all` are one message to each; who puts to itself tells itself, too. What is not listed counts what
  // it likes.
  const known: Partial<Record<FenceSchemeName, object>> = {
    'remote-notify': {},
    deferred: { messages: size > 1 ? 3 : 0 },
    'immediate-naive': { finishes: 3, flags: 4 * others },
    'immediate-optimized': { finishes: 3 },
    'notify-all': { flags: size === 1 ? 3 : 5 * others },
  };
  for (const fence of FENCES_BY_HINT) {
    await allocated(world, 1, { fence }, async (win) => {
      await win.fence(Assert.NO_PRECEDE);
      for (let round = 0; round < 3; round++) {
        win.put(Float64Array.of(1), next, 0);
        await win.fence();
      }
      await win.fence(Assert.NO_SUCCEED);
      await win.fence(Assert.NO_PRECEDE | Assert.NO_SUCCEED);
      const { scheme, fences, ...counts } = win.statistics().fence;
      assert.deepEqual([scheme, fences], [fence, 6]);
      if (fence in known) assert.deepEqual(counts, { finishes: 0, flags: 0, messages: 0, ...known[fence] });
    });
  }
  if (size === 1) return;
  await allocated(world, 1, { lock: 'direct' }, async (win) => {
    win.lockSync(next, Lock.EXCLUSIVE);
    win.unlockSync(next);
    const { scheme, messages, atomics, misses } = win.statistics().lock;
    assert.deepEqual([scheme, messages, atomics, misses], ['direct', 0, 2, 0]);
  });
  for (const [info, migrations] of [
    [{ lock_migration: 'never' }, 0],
    [{ lock_migration: 'every-request' }, 2],
    [{ lock_migration: 'threshold:3' }, 1],
  ] as const) {
    await allocated(world, 1, { lock: 'hybrid', ...info }, async (win) => {
      // Where memory is shared all ranks are on one node, and the mode never changes.
      const expected = DEVICE ? migrations : 0;
      if (rank === 1) {
        for (let i = 0; i < 3; i++) {
          await win.lock(0, Lock.EXCLUSIVE);
          await win.unlock(0);
        }
      }
      await world.barrier();
      if (rank === 0) {
        await win.lock(0, Lock.EXCLUSIVE);
        await win.unlock(0);
        assert.equal(win.statistics().lock.migrations, expected);
      }
    });
  }
}

/**
 * More notifications than receives are posted, for a rank that does not look for long: it posts more, and none is lost.
 */
async function manyNotifications(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const each = Math.ceil(3000 / Math.max(1, size - 1));
  await allocated(world, 8, { fence: 'remote-notify' }, async (win) => {
    await win.fence();
    for (let i = 1; i <= each; i++) if (rank !== 0) win.put(Float64Array.of(i), 0, rank % 8);
    await win.fence();
    if (rank === 0) for (let source = 1; source < Math.min(8, size); source++) assert.equal(win.local[source], each);
  });
}

async function refusals(world: Communicator): Promise<void> {
  const wrong: readonly [object, RegExp][] = [
    [{ fence: 'immediately' }, /deferred, immediate-naive, immediate-optimized/],
    [{ lock: 'mutex' }, /queue, remote, two-sided, direct, hybrid/],
    [{ lock_mode: 'nic' }, /cpu, network/],
    [{ lock_cpu: 'two-words' }, /queue, one-word/],
    [{ lock_migration: 'threshold' }, /every-request, threshold:N, history, never/],
    [{ lock_migration: 'threshold:0' }, /threshold:N/],
    [{ lock_migration: 'threshold:1.5' }, /threshold:N/],
    [{ lock_migration: 7 }, /threshold:N/],
    [{ lock_defer: 'perhaps' }, /auto, false, true/],
    [{ schedule: 'puts-first' }, /issue-order, gets-first, interleave, aggregate, aggregate-gets/],
  ];
  for (const [info, message] of wrong) {
    await assert.rejects(Window.allocate(world, Float64Array, 1, { info: info as WindowInfo }), {
      code: 'ERR_INFO_VALUE',
      message,
    });
  }
  if (world.size > 1) {
    const info: WindowInfo = { lock: 'hybrid', lock_migration: world.rank === 0 ? 'threshold:3' : 'threshold:4' };
    await assert.rejects(Window.allocate(world, Float64Array, 1, { info }), { code: 'ERR_INFO_VALUE' });
  }
  // What a flavour of windows cannot follow has no effect, and getInfo says so.
  for (const info of [{ lock: 'direct' }, { fence: 'deferred' }, { lock: 'two-sided' }] as const) {
    const dynamic = await Window.createDynamic(world, { info });
    const { fence, lock } = dynamic.getInfo();
    const usual = await Window.createDynamic(world);
    assert.deepEqual([fence, lock], [usual.getInfo().fence, usual.getInfo().lock]);
    await dynamic.free();
    await usual.free();
  }
  await allocated(world, 1, { lock: 'hybrid', lock_mode: 'network', lock_migration: 'threshold:9' }, (win) => {
    const { lock, lock_mode, lock_migration, lock_defer } = win.getInfo();
    assert.deepEqual([lock, lock_mode, lock_migration, lock_defer], ['hybrid', 'network', 'threshold:9', 'auto']);
    win.setInfo({ lock_mode: 'cpu', fence: 'deferred', no_locks: true });
    assert.equal(win.getInfo().lock_mode, 'network');
    assert.throws(() => win.setInfo({ lock_mode: 'steam' as 'cpu' }), { code: 'ERR_INFO_VALUE' });
  });
}

await runCases([
  ...each(LOCKS, 'every call of a passive epoch, with layouts, moves what it says', everyCall),
  ...each(LOCKS, 'nobody is kept out for good', nobodyStarves),
  ...each(LOCKS, 'a target that calls nothing is locked', idleTarget),
  ...each(LOCKS, 'ranks that take two locks in order do not block each other', orderedLocks),
  caseOf('what is done under a deferred lock is done once it is had', (world) =>
    deferredLock(world, { lock: 'two-sided' }),
  ),
  // Only locks of other nodes are deferred, and only in CPU mode.
  caseOf('what is done under a deferred hybrid lock is done once it is had', (world) =>
    DEVICE ? deferredLock(world, { lock: 'hybrid', lock_migration: 'never' }) : undefined,
  ),
  caseOf('counts say what the schemes have done', statistics),
  caseOf('more notifications than receives wait, and none is lost', manyNotifications),
  caseOf('hints that cannot be are refused, or have no effect', refusals),
]);
