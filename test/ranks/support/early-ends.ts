/**
 * Waits of every kind that end early, by a deadline or a signal: what is left of them, and how they go on. Cases of
 * window-epochs.ts.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Assert, type Communicator, Lock, Op, type WaitOptions, Window, type WindowInfo } from 'onesided';
import { next, othersBeforeZero, zeroBeforeOthers } from './turns.ts';
import { allocated } from './windows.ts';

const LATE = { code: 'ERR_RMA_TIMEOUT' };
const SYNC = { code: 'ERR_RMA_SYNC' };
const SOON: WaitOptions = { timeout: 30 };

const throwsSync = (call: () => unknown): void => assert.throws(call, SYNC);

/** The forms in which a wait can end early. */
const ENDINGS: readonly { name: string; sync: boolean; options: () => WaitOptions; error: object }[] = [
  { name: 'promise, deadline', sync: false, options: () => SOON, error: LATE },
  { name: 'Sync, deadline', sync: true, options: () => SOON, error: LATE },
  {
    name: 'promise, abort',
    sync: false,
    options: () => ({ signal: AbortSignal.timeout(30) }),
    error: { name: 'TimeoutError' },
  },
  {
    name: 'promise, aborted before',
    sync: false,
    options: () => ({ signal: AbortSignal.abort(new RangeError('enough')) }),
    error: { message: 'enough' },
  },
  {
    name: 'Sync, aborted before',
    sync: true,
    options: () => ({ signal: AbortSignal.abort(new RangeError('enough')) }),
    error: { message: 'enough' },
  },
];

/** Whether a call ends with an error, in one of its forms. */
async function endsEarly(
  ending: (typeof ENDINGS)[number],
  promise: (o: WaitOptions) => Promise<unknown>,
  sync: (o: WaitOptions) => unknown,
): Promise<void> {
  if (ending.sync) assert.throws(() => sync(ending.options()), ending.error);
  else await assert.rejects(promise(ending.options()), ending.error);
}

/** A fence that ended early is still under way, and goes on. */
export async function fencesThatEndEarly(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  await allocated(world, 2, info, async (win) => {
    await win.fence();
    for (const [i, ending] of ENDINGS.entries()) {
      win.put(Float64Array.of(i + 10), next(world), 0);
      if (rank !== 0) {
        for (let times = 0; times < 2; times++) {
          await endsEarly(
            ending,
            (options) => win.fence(0, options),
            (options) => win.fenceSync(0, options),
          );
          throwsSync(() => win.put(Float64Array.of(1), next(world), 0));
          throwsSync(() => win.lockSync(next(world), Lock.SHARED));
        }
      }
      await othersBeforeZero(world);
      if (i % 2 === 0) await win.fence();
      else win.fenceSync();
      assert.equal(win.local[0], i + 10, ending.name);
      await win.fence();
    }
    await win.fence(Assert.NO_SUCCEED);
  });
}

/** A lock that was not got is not held, and whoever stood behind in the line gets it. */
export async function locksThatEndEarly(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  await allocated(world, 2, info, async (win) => {
    const target = size - 1;
    for (const type of [Lock.EXCLUSIVE, Lock.SHARED]) {
      for (const ending of ENDINGS) {
        if (rank === 0) win.lockSync(target, Lock.EXCLUSIVE);
        await world.barrier();
        if (rank !== 0) {
          await endsEarly(
            ending,
            (options) => win.lock(target, type, 0, options),
            (options) => win.lockSync(target, type, 0, options),
          );
          await assert.rejects(win.unlock(target), SYNC);
          throwsSync(() => win.put(Float64Array.of(1), target, 0));
          await endsEarly(
            ending,
            (options) => win.lockAll(0, options),
            (options) => win.lockAllSync(0, options),
          );
          throwsSync(() => win.unlockAllSync());
        }
        await othersBeforeZero(world);
        if (rank === 0) {
          // Nobody else holds anything: with all locks of all targets in one hand this would wait for ever.
          for (let other = 0; other < size; other++) {
            if (other === target) continue;
            win.lockSync(other, Lock.EXCLUSIVE, 0, { timeout: 60_000 });
            win.unlockSync(other);
          }
          win.unlockSync(target);
        }
        await win.lock(target, type, 0, { timeout: 60_000 });
        win.accumulate(Float64Array.of(1), target, 0, Op.SUM);
        await win.unlock(target);
        await world.barrier();
      }
    }
    if (rank === target) assert.equal(win.local[0], 2 * ENDINGS.length * size);
  });
}

/** One gives up in the midst of the line; those before and behind it get the lock in their order. */
export async function leavingTheLine(world: Communicator): Promise<void> {
  const { rank, size } = world;
  if (size < 4) return;
  await allocated(world, 1 + size, {}, async (win) => {
    const ticket = (): number => {
      const result = new Float64Array(1);
      win.fetchAndOp(Float64Array.of(1), result, 0, 0, Op.SUM);
      win.flushSync(0);
      return result[0];
    };
    // Rank 0 holds it; 1, 2, 3, … line up in this order, and 2 leaves.
    if (rank === 0) win.lockSync(0, Lock.EXCLUSIVE);
    await world.barrier();
    const token = new Uint8Array(1);
    const leave = new AbortController();
    let waits: Promise<void> | undefined;
    if (rank > 0) {
      if (rank > 1) await world.receive(token, rank - 1);
      waits = win.lock(0, Lock.EXCLUSIVE, 0, { signal: leave.signal });
      waits.catch(() => {});
      await sleep(1);
      if (rank + 1 < size) world.send(token, rank + 1);
      else world.send(token, 0);
    } else await world.receive(token, size - 1);
    await world.barrier();
    if (rank === 2) {
      leave.abort(new Error('I leave'));
      await assert.rejects(waits!, { message: 'I leave' });
      await assert.rejects(win.unlock(0), SYNC);
    }
    await world.barrier();
    if (rank === 0) {
      ticket();
      win.unlockSync(0);
    } else if (rank !== 2) {
      await waits;
      win.put(Float64Array.of(ticket()), 0, 1 + rank);
      win.unlockSync(0);
    }
    await world.barrier();
    if (rank === 0) {
      const order = [...win.local].slice(1);
      assert.deepEqual(
        order.map((place, r) => (r === 0 || r === 2 ? 0 : place)),
        Array.from({ length: size }, (_, r) => (r === 0 || r === 2 ? 0 : r < 2 ? r : r - 1)),
      );
    }
    await win.lock(0, Lock.SHARED, 0, { timeout: 60_000 });
    win.unlockSync(0);
    await world.barrier();
  });
}

export async function barriersThatEndEarly(world: Communicator): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  for (const ending of ENDINGS) {
    if (rank !== 0) {
      for (let times = 0; times < 2; times++) {
        await endsEarly(
          ending,
          (options) => world.barrier(options),
          (options) => world.barrierSync(options),
        );
      }
    }
    await othersBeforeZero(world);
    await world.barrier();
    await world.barrier();
  }
  const token = new Uint8Array(1);
  for (const ending of ENDINGS) {
    if (rank !== 0) {
      await endsEarly(
        ending,
        (options) => world.receive(token, 0, options),
        (options) => world.receiveSync(token, 0, options),
      );
    }
    await othersBeforeZero(world);
    // The message that nobody waits for any more is the next one's.
    if (rank === 0) for (let target = 1; target < size; target++) world.send(Uint8Array.of(7), target);
    else {
      world.receiveSync(token, 0);
      assert.equal(token[0], 7);
    }
  }
}

/**
 * A collective that some have left cannot be completed by the others: the communicator says so from then on; others go
 * on working.
 */
export async function collectivesThatEndEarly(world: Communicator): Promise<void> {
  const { rank, size } = world;
  if (size === 1) return;
  type Call = (comm: Communicator, o: WaitOptions) => [Promise<unknown>, undefined] | [undefined, () => unknown];
  const [one, all] = [new Int32Array(1), new Int32Array(size)];
  const counts = new Array<number>(size).fill(1);
  const calls: Call[] = [
    (comm, o) => [comm.allreduce(one, new Int32Array(1), Op.SUM, o), undefined],
    (comm, o) => [undefined, () => comm.allreduceSync(one, new Int32Array(1), Op.SUM, o)],
    (comm, o) => [comm.broadcast(one, 0, o), undefined],
    (comm, o) => [undefined, () => comm.broadcastSync(one, 0, o)],
    (comm, o) => [comm.reduceScatter(all, one, Op.SUM, undefined, o), undefined],
    (comm, o) => [comm.allgather(one, all, o), undefined],
    (comm, o) => [comm.alltoall(all, new Int32Array(size), o), undefined],
    (comm, o) => [comm.alltoallv(all, counts, new Int32Array(size), counts, o), undefined],
    (comm, o) => [comm.split(0, 0, o), undefined],
    (comm, o) => [Window.allocate(comm, Int32Array, 1, o), undefined],
  ];
  for (const call of calls) {
    const comm = await world.dup();
    if (rank !== 0) {
      const [promise, sync] = call(comm, SOON);
      if (promise !== undefined) await assert.rejects(promise, LATE);
      else assert.throws(sync, LATE);
      await assert.rejects(comm.barrier(), { code: 'ERR_COMM' });
    }
    await world.barrier();
  }
}

export async function optionsAreChecked(world: Communicator): Promise<void> {
  await allocated(world, 1, {}, async (win) => {
    await win.fence(Assert.NO_SUCCEED);
    for (const wrong of [
      { timeout: '1' },
      { timeout: -1 },
      { timeout: Number.NaN },
      { signal: {} },
      { signal: 5 },
      5,
      'soon',
    ] as unknown as WaitOptions[]) {
      const refused = (error: unknown): boolean =>
        (error instanceof TypeError || error instanceof RangeError) && (error as { code?: string }).code === 'ERR_ARG';
      const calls: [(() => Promise<unknown>) | undefined, (() => unknown) | undefined][] = [
        [() => win.fence(0, wrong), () => win.fenceSync(0, wrong)],
        [() => win.lock(0, Lock.SHARED, 0, wrong), () => win.lockSync(0, Lock.SHARED, 0, wrong)],
        [() => win.lockAll(0, wrong), () => win.lockAllSync(0, wrong)],
        [() => world.barrier(wrong), () => world.barrierSync(wrong)],
        [() => world.broadcast(new Int8Array(1), 0, wrong), () => world.broadcastSync(new Int8Array(1), 0, wrong)],
        [() => world.receive(new Int8Array(1), 0, wrong), () => world.receiveSync(new Int8Array(1), 0, wrong)],
        [() => world.split(0, 0, wrong), undefined],
      ];
      for (const [promise, sync] of calls) {
        if (promise !== undefined) await assert.rejects(promise(), refused);
        if (sync !== undefined) assert.throws(sync, refused);
      }
    }
    // Nothing was begun by any of them.
    await world.barrier();
    await win.fence();
    win.put(Float64Array.of(4), next(world), 0);
    await win.fence(Assert.NO_SUCCEED);
    assert.equal(win.local[0], 4);
    await zeroBeforeOthers(world);
  });
}
