/**
 * The structures of `onesided/sync`, by force: more ranks than cores, waits that are given up, callers of one rank
 * beside each other.
 *
 * `--seed=N`
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Communicator, Lock, Op, Window } from 'onesided';
import { BoundedQueue, Counter, Mutex, type MutexHold } from 'onesided/sync';
import { argument, runCases } from './support/cases.ts';
import { assertRejected, noCommunicators, noOptions } from './support/hostile.ts';
import { Random } from './support/random.ts';

const seed = Number(argument('seed') ?? 1);

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

async function sum(world: Communicator, mine: number): Promise<number> {
  const total = new Float64Array(1);
  await world.allreduce(Float64Array.of(mine), total, Op.SUM);
  return total[0];
}

/** All numbers of all ranks. */
async function collect(world: Communicator, mine: readonly number[]): Promise<number[]> {
  const counts = new Int32Array(world.size);
  await world.allgather(Int32Array.of(mine.length), counts);
  const most = Math.max(...counts, 1);
  const padded = new Float64Array(most);
  padded.set(mine);
  const all = new Float64Array(most * world.size);
  await world.allgather(padded, all);
  return Array.from(counts).flatMap((count, rank) => Array.from(all.subarray(rank * most, rank * most + count)));
}

const ascending = (numbers: number[]) => numbers.sort((a, b) => a - b);
const upTo = (n: number) => Array.from({ length: n }, (_, i) => i);

async function tickets(world: Communicator): Promise<void> {
  const counter = await Counter.create(world, { owner: world.size - 1, name: 'tickets' });
  const mine: number[] = [];
  for (let i = 0; i < 300; i++) mine.push(counter.add());
  assert.deepEqual(mine, ascending([...mine]), 'the count only grows');
  assert.deepEqual(ascending(await collect(world, mine)), upTo(300 * world.size));
  assert.equal(counter.value, 300 * world.size);
  await world.barrier();
  counter.add(-300);
  await world.barrier();
  assert.equal(counter.value, 0);
  await world.barrier();
  if (world.rank === 0) {
    counter.add(0x7fffffff);
    assert.equal(counter.add(1), 0x7fffffff);
    assert.equal(counter.value, -0x80000000, 'wraps around');
    for (const wrong of [0.5, 2 ** 31, '1', null, Number.NaN]) {
      assert.throws(() => counter.add(wrong as number), { name: 'TypeError', code: 'ERR_ARG' });
    }
  }
  await counter.free();
  assert.throws(() => counter.add(), { code: 'ERR_WIN' });
}

/** Something that only one may do at a time: a plain read, a pause, a plain write, in memory that all share. */
class Shared {
  readonly window: Window<Int32Array>;
  readonly words: Int32Array;
  inside = 0;

  static async create(world: Communicator): Promise<Shared> {
    return new Shared(await Window.allocateShared(world, Int32Array, world.rank === 0 ? 4 : 0));
  }

  constructor(window: Window<Int32Array>) {
    this.window = window;
    window.lockAllSync();
    this.words = window.sharedQuery(0);
  }

  /** With the mutex held. */
  async step(random: Random): Promise<void> {
    const { window, words } = this;
    window.sync();
    assert.equal(words[1], 0, 'somebody else has the mutex as well');
    words[1] = 1;
    const before = words[0];
    if (random.below(4) === 0) await turn();
    words[0] = before + 1;
    words[1] = 0;
    window.sync();
  }

  async free(): Promise<void> {
    this.window.unlockAllSync();
    await this.window.free();
  }
}

async function mutualExclusion(world: Communicator): Promise<void> {
  const mutex = await Mutex.create(world, { name: 'the mutex' });
  const shared = await Shared.create(world);
  const random = new Random(seed * 1000 + world.rank);
  let done = 0;
  /** One task of this rank; each takes the mutex in all ways. */
  const task = async () => {
    for (let i = 0; i < 60; i++) {
      const how = random.below(4);
      if (how === 0) {
        const held = mutex.tryLock();
        if (held === undefined) continue;
        await shared.step(random);
        held[Symbol.dispose]();
      } else if (how === 1) {
        await mutex.withLock(() => shared.step(random));
      } else if (how === 2) {
        // Given up if it takes too long, or at once.
        let held: MutexHold | undefined;
        try {
          held = await mutex.lock(random.below(2) === 0 ? { timeout: 0.05 } : { signal: AbortSignal.timeout(0) });
        } catch (error) {
          const { name, code } = error as { name: string; code: unknown };
          assert.ok(code === 'ERR_RMA_TIMEOUT' || name === 'TimeoutError', String(error));
          continue;
        }
        await shared.step(random);
        held.release();
      } else {
        const held = await mutex.lock();
        await shared.step(random);
        held.release();
        held.release(); // does nothing
      }
      done++;
    }
  };
  await Promise.all([task(), task(), task()]);
  const total = await sum(world, done);
  shared.window.sync();
  assert.equal(shared.words[0], total);
  await world.barrier();
  // And in the form that blocks.
  for (let i = 0; i < 100; i++) {
    const held = mutex.lockSync();
    shared.window.sync();
    shared.words[2] += 1;
    shared.window.sync();
    held.release();
  }
  await world.barrier();
  shared.window.sync();
  assert.equal(shared.words[2], 100 * world.size);
  await world.barrier();
  await shared.free();
  await mutex.free();
}

async function firstComeFirstServed(world: Communicator): Promise<void> {
  const mutex = await Mutex.create(world);
  const counter = await Counter.create(world);
  // Rank 0 holds; the others line up one after the other, and are served in this order.
  const held = world.rank === 0 ? await mutex.lock() : undefined;
  await world.barrier();
  const order: number[] = [];
  let waits: Promise<void> | undefined;
  for (let r = 1; r < world.size; r++) {
    if (world.rank === r) {
      waits = mutex.withLock(() => {
        order.push(counter.add());
      });
    }
    await world.barrier();
    if (world.rank === 0) assert.equal(mutex.tryLock(), undefined);
  }
  // Somebody who goes away is passed over, and keeps its place if it comes back in time.
  if (world.rank === 0) {
    assert.throws(() => mutex.lockSync(), { code: 'ERR_RMA_WOULD_DEADLOCK' });
    await assert.rejects(mutex.lock({ timeout: 1 }), { code: 'ERR_RMA_TIMEOUT', message: /lock of Mutex by rank 0/ });
    await assert.rejects(mutex.free(), { code: 'ERR_RMA_SYNC', message: /rank 0 holds Mutex/ });
    held!.release();
  }
  await waits;
  await world.barrier();
  assert.equal(counter.value, world.size - 1);
  if (world.rank > 0) assert.deepEqual(order, [world.rank - 1]);
  if (world.rank === 0) {
    const again = mutex.tryLock();
    assert.ok(again, 'nobody has it now');
    assert.equal(mutex.tryLock(), undefined);
    again.release();
  }
  await world.barrier();
  // A body that throws lets the next one in.
  await assert.rejects(
    mutex.withLock(() => {
      throw new Error('of the body');
    }),
    /of the body/,
  );
  await assert.rejects(mutex.withLock(undefined as never), { name: 'TypeError' });
  await world.barrier();
  await mutex.free();
  await counter.free();
}

/** A communicator is not finalized while this rank holds a mutex on it, or waits for one; then the mutex is gone. */
async function finalizedWhileHeld(world: Communicator): Promise<void> {
  const dup = await world.dup();
  const mutex = await Mutex.create(dup, { name: 'held' });
  const last = world.size - 1;
  const held = world.rank === last ? await mutex.lock() : undefined;
  await world.barrier();
  if (world.size > 1 && world.rank === 0) {
    const waits = mutex.lock({ timeout: 50 });
    await assert.rejects(dup.free(), { code: 'ERR_RMA_SYNC', message: /lock of rank 0/ });
    await assert.rejects(waits, { code: 'ERR_RMA_TIMEOUT' });
  }
  if (held !== undefined)
    await assert.rejects(dup.free(), { code: 'ERR_RMA_SYNC', message: /holds the lock of rank 0/ });
  await world.barrier();
  held?.release();
  await dup.free();
  assert.throws(() => mutex.tryLock(), { code: 'ERR_WIN' });
  held?.release();
}

/** Two ranks take a lock that can be deferred, then the mutex: in one order, so they do not block each other. */
async function behindDeferredLock(world: Communicator): Promise<void> {
  const mutex = await Mutex.create(world);
  const info = { lock: 'two-sided', lock_defer: true } as const;
  const window = await Window.allocate(world, Int32Array, 4, { info });
  if (world.size > 2 && world.rank < 2) {
    // Rank 1 has the lock while it waits for the mutex.
    if (world.rank === 1) await sleep(20);
    await window.lock(2, Lock.EXCLUSIVE);
    if (world.rank === 1) {
      window.put(Int32Array.of(1), 2, 0);
      await window.flush(2);
      await sleep(40);
    }
    const held = await mutex.lock();
    if (world.rank === 0) await sleep(60);
    window.put(Int32Array.of(2), 2, 0);
    await window.flush(2);
    held.release();
    await window.unlock(2);
  }
  await world.barrier();
  await window.free();
  await mutex.free();
}

/** Those that gave up and those that come back, one after the other, with a holder that does not move. */
async function givingUp(world: Communicator): Promise<void> {
  const mutex = await Mutex.create(world);
  for (let round = 0; round < 20; round++) {
    const holder = round % world.size;
    const held = world.rank === holder ? await mutex.lock() : undefined;
    await world.barrier();
    if (held === undefined) {
      for (let i = 0; i < 3; i++) await assert.rejects(mutex.lock({ timeout: 0.2 }), { code: 'ERR_RMA_TIMEOUT' });
      assert.equal(mutex.tryLock(), undefined);
    }
    await world.barrier();
    held?.release();
    // Half of them come back.
    if ((world.rank + round) % 2 === 0) await mutex.withLock(() => {});
    await world.barrier();
    if (world.rank === holder) {
      const now = mutex.tryLock();
      assert.ok(now, 'who gave up does not keep the mutex');
      now.release();
    }
    await world.barrier();
  }
  await mutex.free();
}

async function everyEntryOnce(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const random = new Random(seed * 7919 + rank);
  for (const capacity of [1, 3, 8]) {
    const queue = await BoundedQueue.create(world, Float64Array, capacity, {
      length: 2,
      owner: capacity % size,
      name: `queue of ${capacity}`,
    });
    assert.equal(queue.capacity, capacity);
    const each = 120;
    const popped: number[] = [];
    let refused = 0;
    const last = new Map<number, number>();
    const take = (entry: Float64Array | undefined): boolean => {
      if (entry === undefined) return false;
      const [from, number] = entry;
      assert.ok(number > (last.get(from) ?? -1), 'one producer, one consumer: first in, first out');
      last.set(from, number);
      popped.push(from * each + number);
      return true;
    };
    const produce = async () => {
      const entry = new Float64Array(2);
      for (let i = 0; i < each; i++) {
        entry[0] = rank;
        entry[1] = i;
        const how = random.below(3);
        if (how === 0) while (!queue.tryPush(entry)) await turn();
        else if (how === 1) {
          const pushed = queue.push(entry);
          entry.fill(-1); // it was copied
          await pushed;
        } else {
          for (;;) {
            try {
              await queue.push(entry, { timeout: 0.3 });
              break;
            } catch (error) {
              assert.equal((error as { code: unknown }).code, 'ERR_RMA_TIMEOUT');
              refused++;
            }
          }
        }
      }
    };
    const consume = async () => {
      for (;;) {
        const how = random.below(3);
        if (how === 0) take(queue.tryPop());
        else if (how === 1) {
          if (!take(await queue.pop())) return;
        } else {
          try {
            if (!take(await queue.pop({ timeout: 0.3 }))) return;
          } catch (error) {
            assert.equal((error as { code: unknown }).code, 'ERR_RMA_TIMEOUT');
          }
        }
        if (random.below(5) === 0) await turn();
        assert.ok(queue.length <= capacity);
      }
    };
    // Everybody consumes; everybody produces; whoever is last to have produced closes.
    const finished = await Counter.create(world);
    const producing = produce().then(() => {
      if (finished.add() === size - 1) queue.close();
    });
    await Promise.all([producing, consume()]);
    const all = ascending(await collect(world, popped));
    assert.deepEqual(all, upTo(size * each), `of ${size * each}; given up ${refused} times`);
    assert.equal(queue.closed, true);
    assert.equal(queue.length, 0);
    assert.equal(await queue.pop(), undefined);
    assert.equal(queue.popSync(), undefined);
    await assert.rejects(queue.push(Float64Array.of(1, 2)), { code: 'ERR_RMA_SYNC', message: /queue of \d is closed/ });
    assert.throws(() => queue.pushSync(Float64Array.of(1, 2)), { code: 'ERR_RMA_SYNC' });
    assert.throws(() => queue.tryPush(Float64Array.of(1, 2)), { code: 'ERR_RMA_SYNC' });
    await world.barrier();
    await finished.free();
    await queue.free();
  }
}

/** The last entry comes when the queue is closed already: one takes it, and all others learn that there are no more. */
async function closedBehindThePush(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const queue = await BoundedQueue.create(world, Int32Array, 4);
  const ends = [queue.pop({ timeout: 60_000 }), queue.pop({ timeout: 60_000 })];
  await world.barrier();
  if (rank === 0) await queue.push(Int32Array.of(7)).catch(() => {});
  if (rank === size - 1) queue.close();
  const got = (await Promise.all(ends)).filter((entry) => entry !== undefined);
  const counts = new Int32Array(1);
  await world.allreduce(Int32Array.of(got.length), counts, Op.SUM);
  assert.ok(counts[0] <= 1, `one entry went to ${counts[0]}`);
  await queue.free();
}

/** Several consumers of one rank sleep, and those of others; each entry wakes one that takes it. */
async function sleepersAreServed(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const queue = await BoundedQueue.create(world, Int32Array, 64);
  for (let round = 0; round < 15; round++) {
    const waiting = [queue.pop(), queue.pop(), queue.pop()];
    await world.barrier();
    if (rank === round % size) for (let i = 0; i < 3 * size; i++) queue.pushSync(Int32Array.of(i));
    const mine = (await Promise.all(waiting)).map((entry) => entry![0]);
    assert.deepEqual(ascending(await collect(world, mine)), upTo(3 * size));
  }
  // The other way round: producers sleep.
  const small = await BoundedQueue.create(world, Int32Array, 2);
  for (let round = 0; round < 15; round++) {
    const waiting = [0, 1, 2].map((i) => small.push(Int32Array.of(3 * rank + i)));
    await world.barrier();
    const got: number[] = [];
    if (rank === round % size) for (let i = 0; i < 3 * size; i++) got.push((await small.pop())![0]);
    await Promise.all(waiting);
    assert.deepEqual(ascending(await collect(world, got)), upTo(3 * size));
  }
  // Close wakes all; nobody frees it before.
  const ends = [queue.pop(), queue.pop()];
  await assert.rejects(queue.free(), { code: 'ERR_RMA_SYNC', message: /a pop of rank \d waits for BoundedQueue/ });
  await world.barrier();
  if (rank === size - 1) queue.close();
  assert.deepEqual(await Promise.all(ends), [undefined, undefined]);
  for (let round = 0; round < 40; round++) await closedBehindThePush(world);
  const entries: number[] = [];
  for await (const entry of queue) entries.push(entry[0]);
  assert.deepEqual(entries, []);
  await world.barrier();
  await queue.free();
  await small.free();
}

async function refusals(world: Communicator): Promise<void> {
  const wrong: readonly unknown[] = [0, -1, 1.5, Number.NaN, 2 ** 25, '4', undefined, null, {}];
  for (const capacity of wrong) {
    await assert.rejects(BoundedQueue.create(world, Int32Array, capacity as number), { code: 'ERR_ARG' });
  }
  await assert.rejects(BoundedQueue.create(world, Array as never, 4), { code: 'ERR_TYPE' });
  await assert.rejects(BoundedQueue.create(world, Int32Array, 4, { length: 0 }), { code: 'ERR_ARG' });
  for (const create of [Counter.create, Mutex.create] as const) {
    await assert.rejects(create(world, { owner: world.size }), { name: 'RangeError', code: 'ERR_RANK' });
    await assert.rejects(create(world, { owner: '0' as never }), { name: 'TypeError', code: 'ERR_RANK' });
    await assert.rejects(create(world, { name: 1 as never }), { name: 'TypeError', code: 'ERR_ARG' });
    for (const [, options] of noOptions()) await assert.rejects(create(world, options as never));
  }
  // One rank that is wrong, or gives something else than the others.
  if (world.size > 1) {
    const odd = world.rank === 1;
    await assert.rejects(BoundedQueue.create(world, Int32Array, odd ? -1 : 4), {
      message: odd ? /capacity must be/ : /rank 1 gave invalid arguments/,
    });
    await assert.rejects(Mutex.create(world, { owner: odd ? 1 : 0 }), {
      message: /rank [01] gave owner [01], this/,
    });
    await assert.rejects(odd ? Mutex.create(world) : BoundedQueue.create(world, Int32Array, 4), { code: 'ERR_ARG' });
  }
  for (const [name, none] of noCommunicators(world)) {
    const comm = none as Communicator;
    await assertRejected('Counter.create', name, () => Counter.create(comm));
    await assertRejected('Mutex.create', name, () => Mutex.create(comm));
    await assertRejected('BoundedQueue.create', name, () => BoundedQueue.create(comm, Int32Array, 4));
  }
  const queue = await BoundedQueue.create(world, Int32Array, 4, { length: 2 });
  for (const entry of [Int32Array.of(1), Int32Array.of(1, 2, 3), new Float64Array(2), [1, 2], null]) {
    await assert.rejects(queue.push(entry as never), { code: /^ERR_(SIZE|TYPE|BUFFER)$/ });
    assert.throws(() => queue.pushSync(entry as never));
    assert.throws(() => queue.tryPush(entry as never));
  }
  await assert.rejects(queue.pop({ timeout: -1 }), { name: 'RangeError' });
  await assert.rejects(queue.pop({ signal: AbortSignal.abort(new Error('no more')) }), /no more/);
  assert.throws(() => queue.popSync({ timeout: 1 }), {
    code: 'ERR_RMA_TIMEOUT',
    message: /pop from BoundedQueue by rank/,
  });
  await world.barrier();
  assert.equal(queue.length, 0);
  await queue.free();
  assert.throws(() => queue.tryPop(), { code: 'ERR_WIN' });
}

await runCases({
  'each ticket of a counter is had once, and the count only grows': tickets,
  'one rank at a time holds a mutex, and nothing of what it does is lost': mutualExclusion,
  'a mutex goes to ranks in the order in which they came': firstComeFirstServed,
  'a communicator is not finalized while a mutex on it is held or waited for': finalizedWhileHeld,
  'a mutex behind a deferred lock blocks nobody': behindDeferredLock,
  'whoever gives up a mutex leaves it to those behind': givingUp,
  'each entry of a queue is popped once': everyEntryOnce,
  'each entry of a queue wakes one who sleeps for it': sleepersAreServed,
  'wrong numbers, ranks and options are refused': refusals,
});
