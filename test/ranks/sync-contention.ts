/**
 * Many ranks on few cores want the same thing at the same time. What comes out is exact: counters, sums, invariants.
 * Nothing here measures time.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Communicator, Datatype, Lock, Op, Window, type WindowInfo } from 'onesided';
import { argument, caseOf, each, runCases } from './support/cases.ts';
import { Random } from './support/random.ts';
import { allocated } from './support/windows.ts';

const seed = Number(argument('seed') ?? 1);

/** Adds one by reading and writing: exact only if nobody else is between the two. */
function increment(win: Window<Float64Array>, target: number, disp: number, buffer: Float64Array): void {
  win.get(buffer, target, disp);
  win.flushSync(target);
  buffer[0]++;
  win.put(buffer, target, disp);
}

async function total(world: Communicator, mine: number): Promise<number> {
  const sum = new Float64Array(1);
  await world.allreduce(Float64Array.of(mine), sum, Op.SUM);
  return sum[0];
}

async function exclusive(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const rounds = 150;
  await allocated(world, 2, info, async (win) => {
    const buffer = new Float64Array(1);
    for (let i = 0; i < rounds; i++) {
      // Two targets, in another order at each rank; two cells.
      for (const target of rank % 2 === 0 ? [0, size - 1] : [size - 1, 0]) {
        if ((i + rank) % 3 === 0) await win.lock(target, Lock.EXCLUSIVE);
        else win.lockSync(target, Lock.EXCLUSIVE);
        increment(win, target, i % 2, buffer);
        if ((i + rank) % 2 === 0) await win.unlock(target);
        else win.unlockSync(target);
      }
    }
    await world.barrier();
    const expected = (size === 1 ? 2 : 1) * size * (rounds / 2);
    if (rank === 0 || rank === size - 1) assert.deepEqual([...win.local], [expected, expected]);
  });
}

/**
 * Accumulates by every way at once: one element here, many in native code, scattered, fetched, from several ranks, from
 * fence and lock epochs.
 */
async function sums(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const cells = 24;
  const rounds = 60;
  for (const type of [Int32Array, BigInt64Array, Float64Array, Float32Array, Uint8Array, Int16Array] as const) {
    const win = await Window.allocate(world, type as Float64ArrayConstructor, cells);
    const one = (n: number): Float64Array => {
      const array = new (type as Float64ArrayConstructor)(cells);
      const value = (type as unknown) === BigInt64Array ? BigInt(n) : n;
      return array.fill(value as number);
    };
    const base = Object.values(Datatype).find(
      (t): t is Datatype => t instanceof Datatype && t.toString() === nameOf(type),
    )!;
    const everyOther = Datatype.indexedBlock(
      1,
      Int32Array.from({ length: cells / 2 }, (_, i) => 2 * i),
      base,
    );
    const everyOtherPair = Datatype.vector(cells / 4, 2, 4, base);
    const result = one(0).subarray(0, 1);
    await win.lockAll();
    for (let i = 0; i < rounds; i++) {
      const target = (rank + i) % size;
      win.accumulate(one(1), target, 0, Op.SUM);
      for (let cell = 0; cell < cells; cell++) win.accumulate(one(1).subarray(0, 1), target, cell, Op.SUM);
      for (let cell = 0; cell < cells; cell++) win.fetchAndOp(one(1).subarray(0, 1), result, target, cell, Op.SUM);
      win.accumulate(one(1).subarray(0, cells / 2), target, 0, Op.SUM, { target: { type: everyOther } });
      win.accumulate(one(1).subarray(0, cells / 2), target, 0, Op.SUM, { target: { type: everyOtherPair } });
      win.accumulate(one(1).subarray(0, 5), target, 3, Op.SUM);
    }
    await win.unlockAll();
    await world.barrier();
    // Each part got `rounds` rounds in all, if the ranks divide them evenly; else count them.
    let arrived = 0;
    for (let source = 0; source < size; source++)
      for (let i = 0; i < rounds; i++) if ((source + i) % size === rank) arrived++;
    const times = (cell: number): number =>
      3 + (cell % 2 === 0 ? 1 : 0) + (cell % 4 < 2 ? 1 : 0) + (cell >= 3 && cell < 8 ? 1 : 0);
    for (let cell = 0; cell < cells; cell++) {
      const expected = arrived * times(cell);
      const wrapped = type === Uint8Array ? expected % 256 : expected;
      assert.equal(Number(win.local[cell]), wrapped, `cell ${cell} of ${nameOf(type)}`);
    }
    await world.barrier();
    await win.free();
  }
}

function nameOf(type: { readonly name: string }): string {
  return type.name.replace('Array', '').replace('Big', '').toUpperCase();
}

/** The best of all values, and a counter that compare-and-swap makes exact. */
async function compareAndSwaps(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Int32Array, 3);
  await win.lockAll();
  const [seen, found] = [new Int32Array(1), new Int32Array(1)];
  for (let i = 0; i < 200; i++) {
    for (;;) {
      win.compareAndSwap(Int32Array.of(seen[0] + 1), seen, found, 0, 0);
      win.flushSync(0);
      if (found[0] === seen[0]) break;
      seen[0] = found[0];
    }
    win.accumulate(Int32Array.of(1000 * rank + i), 0, 1, Op.MAX);
    win.accumulate(Int32Array.of(1 << (i % 31)), 0, 2, Op.BXOR);
  }
  await win.unlockAll();
  await world.barrier();
  if (rank === 0) {
    const odd = Array.from({ length: 31 }, (_, bit) => (Math.ceil((200 - bit) / 31) * size) % 2);
    assert.deepEqual(
      [...win.local],
      [200 * size, 1000 * (size - 1) + 199, odd.reduce((bits, set, bit) => bits | (set << bit), 0)],
    );
  }
  await world.barrier();
  await win.free();
}

/** Writers leave all cells equal; readers never see them otherwise, and never meet a writer. */
async function readersAndWriters(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const cells = 40;
  await allocated(world, cells + 1, {}, async (win) => {
    const random = new Random(seed, rank);
    const all = new Float64Array(cells);
    const inside = new Float64Array(1);
    let written = 0;
    for (let i = 0; i < 150; i++) {
      if (random.chance(0.3)) {
        await win.lock(0, Lock.EXCLUSIVE);
        win.fetchAndOp(Float64Array.of(1), inside, 0, cells, Op.SUM);
        win.flushSync(0);
        assert.equal(inside[0], 0, 'a writer met somebody');
        win.get(all, 0, 0);
        win.flushSync(0);
        assert.ok(
          all.every((value) => value === all[0]),
          'a writer found the work of another half done',
        );
        // One by one, and now and then away in the midst of it.
        for (let cell = 0; cell < cells; cell++) win.put(Float64Array.of(all[0] + 1), 0, cell);
        if (random.chance(0.1)) await sleep(1);
        win.fetchAndOp(Float64Array.of(-1), inside, 0, cells, Op.SUM);
        win.flushSync(0);
        assert.equal(inside[0], 1, 'somebody met a writer');
        win.unlockSync(0);
        written++;
      } else {
        if (random.chance(0.5)) await win.lock(0, Lock.SHARED);
        else win.lockSync(0, Lock.SHARED);
        win.fetchAndOp(Float64Array.of(0), inside, 0, cells, Op.NO_OP);
        win.flushSync(0);
        assert.equal(inside[0], 0, 'a reader met a writer');
        win.get(all, 0, 0);
        await win.unlock(0);
        assert.ok(
          all.every((value) => value === all[0]),
          'a reader found a half-written state',
        );
      }
    }
    const writes = await total(world, written);
    if (rank === 0) assert.deepEqual([...win.local], [...new Array<number>(cells).fill(writes), 0]);
    assert.ok(size >= 1);
  });
}

/**
 * Many give up waiting. Whoever got the lock has it alone; whoever did not has no part in it; in the end it is free.
 */
async function givingUp(world: Communicator): Promise<void> {
  const { rank, size } = world;
  await allocated(world, 1, {}, async (win) => {
    const random = new Random(seed, rank, 9);
    const buffer = new Float64Array(1);
    let got = 0;
    let gaveUp = 0;
    for (let i = 0; i < 120; i++) {
      const form = random.below(4);
      const type = random.chance(0.25) ? Lock.SHARED : Lock.EXCLUSIVE;
      try {
        if (form === 0) win.lockSync(0, type, 0, { timeout: 0.05 + random.below(20) / 10 });
        else if (form === 1) await win.lock(0, type, 0, { timeout: 0.05 + random.below(20) / 10 });
        else if (form === 2) {
          const controller = new AbortController();
          setTimeout(() => controller.abort(new Error('given up')), random.below(3));
          await win.lock(0, type, 0, { signal: controller.signal });
        } else await win.lock(0, type);
      } catch (error) {
        const { code, message } = error as { code?: string; message: string };
        assert.ok(code === 'ERR_RMA_TIMEOUT' || message === 'given up', String(error));
        assert.throws(() => win.unlockSync(0), { code: 'ERR_RMA_SYNC' });
        gaveUp++;
        continue;
      }
      if (type === Lock.EXCLUSIVE) {
        increment(win, 0, 0, buffer);
        if (random.chance(0.15)) await sleep(1);
        got++;
      }
      await win.unlock(0);
    }
    const exact = await total(world, got);
    const misses = await total(world, gaveUp);
    if (rank === 0) assert.equal(win.local[0], exact, `${misses} attempts were given up`);
    // One after the other through an empty line.
    await world.barrier();
    await win.lock(0, Lock.EXCLUSIVE, 0, { timeout: 60_000 });
    increment(win, 0, 0, buffer);
    await win.unlock(0);
    await world.barrier();
    if (rank === 0) assert.equal(win.local[0], exact + size);
  });
}

/** The same with all targets at once: `lockAll` gives up in the midst of collecting, and keeps nothing. */
async function givingUpAll(world: Communicator): Promise<void> {
  const { rank, size } = world;
  await allocated(world, 1, {}, async (win) => {
    const random = new Random(seed, rank, 11);
    const buffer = new Float64Array(1);
    const counts = new Array<number>(size).fill(0);
    for (let i = 0; i < 60; i++) {
      const target = random.below(size);
      if (random.chance(0.5)) {
        await win.lock(target, Lock.EXCLUSIVE);
        increment(win, target, 0, buffer);
        if (random.chance(0.2)) await sleep(1);
        await win.unlock(target);
        counts[target]++;
        continue;
      }
      try {
        if (random.chance(0.5)) win.lockAllSync(0, { timeout: 0.05 + random.below(10) / 10 });
        else await win.lockAll(0, { timeout: 0.05 + random.below(10) / 10 });
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'ERR_RMA_TIMEOUT');
        assert.throws(() => win.unlockAllSync(), { code: 'ERR_RMA_SYNC' });
        continue;
      }
      win.get(buffer, target, 0);
      await win.unlockAll();
    }
    const sum = new Float64Array(size);
    await world.allreduce(Float64Array.from(counts), sum, Op.SUM);
    assert.equal(win.local[0], sum[rank]);
    for (let target = 0; target < size; target++) {
      win.lockSync(target, Lock.EXCLUSIVE, 0, { timeout: 60_000 });
      win.unlockSync(target);
    }
  });
}

/**
 * Who has one part for itself writes it in two steps; who shares all parts never sees one between the two, and nobody
 * waits for ever.
 */
async function wholeParts(world: Communicator): Promise<void> {
  const { rank, size } = world;
  await allocated(world, 2, {}, async (win) => {
    const random = new Random(seed, rank, 12);
    const [one, both] = [new Float64Array(1), new Float64Array(2)];
    let written = 0;
    for (let i = 0; i < 400; i++) {
      const target = random.below(size);
      if (random.chance(0.4)) {
        if (random.chance(0.5)) win.lockSync(target, Lock.EXCLUSIVE);
        else await win.lock(target, Lock.EXCLUSIVE);
        win.get(both, target, 0);
        await win.flush(target);
        assert.equal(both[0], both[1], `part ${target}, by its exclusive holder`);
        one[0] = both[0] + 1;
        win.put(one, target, 0);
        if (random.chance(0.1)) await sleep(1);
        win.put(one, target, 1);
        win.unlockSync(target);
        written++;
        continue;
      }
      if (random.chance(0.5)) win.lockAllSync();
      else await win.lockAll();
      for (let other = 0; other < size; other++) {
        win.get(both, (target + other) % size, 0);
        win.flushSync((target + other) % size);
        assert.equal(both[0], both[1], `part ${other}, by one that shares all`);
      }
      if (random.chance(0.1)) await sleep(1);
      win.unlockAllSync();
    }
    const sum = new Float64Array(1);
    await world.allreduce(Float64Array.of(written), sum, Op.SUM);
    const found = new Float64Array(1);
    await world.allreduce(win.local.slice(0, 1), found, Op.SUM);
    assert.equal(found[0], sum[0]);
  });
}

/**
 * First come, first served: between the time that a rank stands in line and the time that it gets the lock, each other
 * rank gets it at most once. A rank that has no time on a processor just when it is about to stand in line is the
 * exception, so there may be a few.
 */
async function fairness(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const rounds = 40;
  const grants = await Window.allocate(world, Int32Array, 1);
  await grants.lockAll();
  const count = (by: number): number => {
    const result = new Int32Array(1);
    grants.fetchAndOp(Int32Array.of(by), result, size - 1, 0, Op.SUM);
    grants.flushSync(size - 1);
    return result[0];
  };
  let overtaken = 0;
  await allocated(world, 1, {}, async (win) => {
    await world.barrier();
    for (let i = 0; i < rounds; i++) {
      // Once the promise is there, this rank stands in line, or has the lock.
      const wait = win.lock(0, rank % 4 === 3 ? Lock.SHARED : Lock.EXCLUSIVE);
      const before = count(0);
      await wait;
      if (count(1) - before > size - 1) overtaken++;
      win.unlockSync(0);
    }
  });
  assert.ok(overtaken <= rounds / 10, `in ${overtaken} of ${rounds} rounds rank ${rank} was overtaken`);
  await grants.unlockAll();
  await grants.free();
}

/** No rank leaves a barrier before all have entered it, whatever each does before. */
async function barriers(world: Communicator): Promise<void> {
  const { rank, size } = world;
  const win = await Window.allocate(world, Int32Array, size);
  const random = new Random(seed, rank, 13);
  await win.lockAll();
  const everybody = new Int32Array(size);
  for (let phase = 1; phase <= 120; phase++) {
    if (random.chance(0.05)) await sleep(random.below(4));
    if (random.chance(0.1)) for (const until = performance.now() + 0.3; performance.now() < until; );
    win.accumulate(Int32Array.of(phase), 0, rank, Op.REPLACE);
    win.flushSync(0);
    if (random.chance(0.5)) world.barrierSync();
    else await world.barrier();
    for (let other = 0; other < size; other++)
      win.fetchAndOp(Int32Array.of(0), everybody.subarray(other, other + 1), 0, other, Op.NO_OP);
    win.flushSync(0);
    assert.ok(
      everybody.every((at) => at === phase || at === phase + 1),
      `rank ${rank} left barrier ${phase} when the others were at ${everybody}`,
    );
  }
  await win.unlockAll();
  await win.free();
}

/** Fences of one window while the locks of another are fought for: the two have nothing to do with each other. */
async function fencesBesideLocks(world: Communicator, info: WindowInfo): Promise<void> {
  const { rank, size } = world;
  const table = await Window.allocate(world, Float64Array, 4 * size, { info });
  const counter = await Window.allocate(world, Float64Array, 1);
  const buffer = new Float64Array(1);
  const random = new Random(seed, rank, 17);
  let done = 0;
  await table.fence();
  for (let round = 1; round <= 25; round++) {
    for (let target = 0; target < size; target++)
      table.put(new Float64Array(4).fill(round * 100 + rank), target, 4 * rank);
    const fenced = random.chance(0.5) ? table.fence() : undefined;
    for (let i = random.below(3); i > 0; i--) {
      await counter.lock(size - 1, Lock.EXCLUSIVE);
      increment(counter, size - 1, 0, buffer);
      await counter.unlock(size - 1);
      done++;
    }
    if (fenced !== undefined) await fenced;
    else if (random.chance(0.5)) table.fenceSync();
    else await table.fence();
    for (let source = 0; source < size; source++) {
      for (let i = 0; i < 4; i++) assert.equal(table.local[4 * source + i], round * 100 + source);
    }
    table.fenceSync();
  }
  const exact = await total(world, done);
  if (rank === size - 1) assert.equal(counter.local[0], exact);
  await world.barrier();
  await counter.free();
  await table.free();
}

const FENCES = [{ fence: 'immediate' }, { fence: 'remote-notify' }] as const;

await runCases([
  ...each(FENCES, 'what is read and written under an exclusive lock is exact', exclusive, ['exclusive']),
  caseOf('accumulates by every way at once are all there', sums, ['updates']),
  caseOf('a counter by compare-and-swap is exact', compareAndSwaps, ['updates']),
  caseOf('readers never see what a writer has half written', readersAndWriters, ['readers']),
  caseOf('a rank that gives up has no part in the lock, and it is free in the end', givingUp, ['giving up']),
  caseOf('a rank that gives up lockAll keeps none of its locks', givingUpAll, ['giving up']),
  caseOf('locks of one part and of all parts exclude each other, and nobody waits for ever', wholeParts, ['all parts']),
  caseOf('the lock goes to ranks in the order in which they came', fairness, ['order']),
  caseOf('no rank leaves a barrier before all have entered it', barriers, ['barriers']),
  ...each(FENCES, 'fences of a window do not mind locks of another', fencesBesideLocks, ['fences']),
]);
