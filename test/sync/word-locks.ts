/** Locks that are words which all ranks map (src/sync/lock/queue-lock.ts, one-word-lock.ts): what must hold of each of them. */
import { expect, test } from 'vitest';
import type { TargetLock } from '../../src/sync/lock/lock-scheme.ts';
import type { Context } from '../../src/verbs/device.ts';
import { interleave } from './preemption.ts';
import { Rank, randomBelow, World } from './sleepers.ts';

/** The lock of one target, as each rank sees it, and whom they have woken. */
export interface Locks {
  readonly locks: readonly TargetLock[];
  readonly woken: Set<number>;
}

type MakeLock = (words: Int32Array, rank: number, members: readonly number[], context: Context) => TargetLock;

export function makeLocks(make: MakeLock, words: Int32Array, size: number): Locks {
  const woken = new Set<number>();
  const context = { wake: (member: number) => woken.add(member - 100) } as unknown as Context;
  const members = Array.from({ length: size }, (_, rank) => 100 + rank);
  return { locks: members.map((_, rank) => make(words, rank, members, context)), woken };
}

/** Adds tests. */
export function testByHand(makeLocks: (size: number) => Locks): void {
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

  test('who waits in vain is told who holds the lock', () => {
    const { locks } = makeLocks(3);
    locks[2].tryAcquire(true);
    const wait = locks[1].acquire(true);
    wait.advance();
    expect(wait.describe()).toContain('rank 2 holds it exclusively');
    locks[2].release(true);
    expect(wait.describe()).toContain('no rank holds it');
  });
}

/**
 * Ranks that fight for the lock, interrupted between any two atomic operations: nobody enters who must not, nobody
 * sleeps for ever, and in the end the lock is free, whatever was given up.
 * @returns how often one of them has held it
 */
export function fight({ locks, woken }: Locks, seed: number, odds: number): number {
  const below = randomBelow(seed);
  const world = new World(woken, below);
  const ranks = locks.map((lock, rank) => new Rank(world, rank, lock, 12));
  interleave(ranks, below, odds);
  const stuck = ranks.filter((rank) => !rank.done).map((rank) => rank.rank);
  expect(stuck, 'these ranks wait, asleep, for a lock that nobody holds').toEqual([]);
  for (const lock of locks) {
    expect(lock.acquire(true).advance()).toBe(true);
    lock.release(true);
  }
  return world.entries;
}
