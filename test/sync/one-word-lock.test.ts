/** The dissertation's lock by the processor: one word for all ranks of a node (src/sync/lock/one-word.ts). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OneWordLock, oneWordLockWords } from '../../src/sync/lock/one-word.ts';
import type { Context } from '../../src/verbs/device.ts';
import { seedOfRun } from '../support/ranks.ts';
import { interleave } from './preemption.ts';
import { Rank, randomBelow, World } from './sleepers.ts';

/** The lock of one target, as `size` ranks see it, and whom they have woken. */
function makeLocks(size: number): { locks: OneWordLock[]; woken: Set<number> } {
  const words = new Int32Array(oneWordLockWords(size));
  const woken = new Set<number>();
  const context = { wake: (member: number) => woken.add(member - 100) } as unknown as Context;
  const members = Array.from({ length: size }, (_, rank) => 100 + rank);
  return { locks: members.map((_, rank) => new OneWordLock(words, rank, members, context)), woken };
}

describe('by hand', () => {
  test('exclusive keeps everybody out, shared only exclusive', () => {
    const { locks } = makeLocks(3);
    expect(locks[0].tryAcquire(true)).toBe(true);
    expect(locks[1].tryAcquire(true)).toBe(false);
    expect(locks[1].tryAcquire(false)).toBe(false);
    locks[0].release(true);
    expect(locks[1].tryAcquire(false)).toBe(true);
    expect(locks[2].tryAcquire(false)).toBe(true);
    expect(locks[0].tryAcquire(true)).toBe(false);
    locks[1].release(false);
    expect(locks[0].tryAcquire(true)).toBe(false);
    locks[2].release(false);
    expect(locks[0].tryAcquire(true)).toBe(true);
  });

  test('a release wakes all that wait, from the next rank on, and whoever looks first has it', () => {
    const { locks, woken } = makeLocks(40);
    locks[35].tryAcquire(true);
    const waits = [2, 34, 39].map((rank) => locks[rank].acquire(true));
    for (const wait of waits) expect(wait.advance()).toBe(false);
    locks[35].release(true);
    expect([...woken]).toEqual([39, 2, 34]);
    expect(waits.map((wait) => wait.advance())).toEqual([true, false, false]);
    woken.clear();
    locks[2].release(true);
    expect([...woken]).toEqual([34, 39]);
  });

  test('who comes at the right moment overtakes those that wait', () => {
    const { locks } = makeLocks(2);
    locks[0].tryAcquire(true);
    const wait = locks[1].acquire(true);
    wait.advance();
    locks[0].release(true);
    expect(locks[0].tryAcquire(true)).toBe(true);
    expect(wait.advance()).toBe(false);
  });

  test('readers that follow one another do not keep a writer out', () => {
    const { locks, woken } = makeLocks(4);
    locks[0].tryAcquire(false);
    const writer = locks[1].acquire(true);
    expect(writer.advance()).toBe(false);
    const reader = locks[2].acquire(false);
    expect(reader.advance()).toBe(false);
    locks[0].release(false);
    expect([...woken]).toEqual([1, 2]);
    expect(reader.advance()).toBe(false);
    expect(writer.advance()).toBe(true);
    locks[1].release(true);
    expect(reader.advance()).toBe(true);
  });

  test('a writer that gives up lets the readers behind it in', () => {
    const { locks, woken } = makeLocks(3);
    locks[0].tryAcquire(false);
    const writer = locks[1].acquire(true);
    const reader = locks[2].acquire(false);
    for (const wait of [writer, reader]) expect(wait.advance()).toBe(false);
    writer.abandon!();
    expect([...woken]).toEqual([2]);
    expect(reader.advance()).toBe(true);
  });

  test('who waits in vain is told who holds the lock', () => {
    const { locks } = makeLocks(3);
    locks[2].tryAcquire(true);
    const wait = locks[1].acquire(true);
    wait.advance();
    expect(wait.describe()).toContain('rank 2 holds it exclusively');
    locks[2].release(true);
    expect(wait.describe()).toContain('no rank holds it');
  });
});

test('interrupted between any two atomic operations: nobody enters who must not, and nobody sleeps for ever', () => {
  let entries = 0;
  const property = fc.property(
    fc.integer({ min: 2, max: 6 }),
    fc.integer(),
    fc.integer({ min: 2, max: 12 }),
    (size, seed, odds) => {
      const below = randomBelow(seed);
      const { locks, woken } = makeLocks(size);
      const world = new World(woken, below);
      const ranks = locks.map((lock, rank) => new Rank(world, rank, lock, 12));
      interleave(ranks, below, odds);
      entries += world.entries;
      const stuck = ranks.filter((rank) => !rank.done).map((rank) => rank.rank);
      expect(stuck, 'these ranks wait, asleep, for a lock that nobody holds').toEqual([]);
      for (const lock of locks) {
        expect(lock.acquire(true).advance()).toBe(true);
        lock.release(true);
      }
    },
  );
  fc.assert(property, { numRuns: 4000, seed: seedOfRun() });
  expect(entries).toBeGreaterThan(4000);
});
