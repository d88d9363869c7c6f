/** The dissertation's lock by the processor: one word for all ranks of a node (src/sync/lock/one-word-lock.ts). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OneWordLock, oneWordLockWords } from '../../src/sync/lock/one-word-lock.ts';
import { seedOfRun } from '../support/ranks.ts';
import { fight, type Locks, makeLocks as makeWordLocks, testByHand } from './word-locks.ts';

function makeLocks(size: number): Locks {
  const words = new Int32Array(oneWordLockWords(size));
  return makeWordLocks((...of) => new OneWordLock(...of), words, size);
}

describe('by hand', () => {
  testByHand(makeLocks);

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
});

test('interrupted between any two atomic operations: nobody enters who must not, and nobody sleeps for ever', () => {
  let entries = 0;
  const property = fc.property(
    fc.integer({ min: 2, max: 6 }),
    fc.integer(),
    fc.integer({ min: 2, max: 12 }),
    (size, seed, odds) => {
      entries += fight(makeLocks(size), seed, odds);
    },
  );
  fc.assert(property, { numRuns: 4000, seed: seedOfRun() });
  expect(entries).toBeGreaterThan(4000);
});
