import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ALL_LOCK_WORDS, AllLock } from '../../src/sync/lock/lock-of-all.ts';
import type { TargetLock } from '../../src/sync/lock/lock-scheme.ts';
import { QueueLock, queueLockWords } from '../../src/sync/lock/queue-lock.ts';
import type { Context } from '../../src/verbs/device.ts';
import type { Operation } from '../../src/wait/operation.ts';
import { randomBelow } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';
import { type Actor, interleave } from './preemption.ts';

/** What one rank has: the lock of all parts, and that of each. */
interface Locks {
  readonly all: AllLock;
  readonly each: readonly TargetLock[];
}

function makeLocks(size: number, targets: number): { ranks: Locks[]; words: Int32Array; woken: Set<number> } {
  const words = new Int32Array(ALL_LOCK_WORDS);
  const parts = Array.from({ length: targets }, () => new Int32Array(queueLockWords(size)));
  const woken = new Set<number>();
  const context = { wake: (member: number) => woken.add(member - 100) } as unknown as Context;
  const members = Array.from({ length: size }, (_, rank) => 100 + rank);
  const ranks = members.map((_, rank) => {
    const all = new AllLock(words, rank, members, context);
    return { all, each: parts.map((part) => all.beside(new QueueLock(part, rank, members, context))) };
  });
  return { ranks, words, woken };
}

describe('by hand', () => {
  test('all parts are shared by any number of ranks, beside shared locks of single parts', () => {
    const { ranks } = makeLocks(4, 2);
    expect(ranks.slice(0, 3).map(({ all }) => all.tryAcquire())).toEqual([true, true, true]);
    expect(ranks[3].each[1].tryAcquire(false)).toBe(true);
  });

  test('who has one part for itself keeps those out who want all, and they it', () => {
    const { ranks, words } = makeLocks(3, 2);
    expect(ranks[0].each[1].tryAcquire(true)).toBe(true);
    expect(ranks[1].all.tryAcquire()).toBe(false);
    ranks[0].each[1].release(true);
    expect(ranks[1].all.tryAcquire()).toBe(true);
    expect(ranks[0].each[0].tryAcquire(true)).toBe(false);
    expect(ranks[0].each[1].tryAcquire(true)).toBe(false);
    ranks[1].all.release();
    expect(ranks[0].each[0].tryAcquire(true)).toBe(true);
    expect(ranks[2].each[1].tryAcquire(true)).toBe(true);
    ranks[0].each[0].release(true);
    ranks[2].each[1].release(true);
    expect([...words].every((word) => word === 0)).toBe(true);
  });

  test('who waits for one part keeps out who wants all from then on, and is woken by the last of them', () => {
    const { ranks, woken } = makeLocks(4, 2);
    for (const { all } of ranks.slice(0, 2)) all.tryAcquire();
    const wait = ranks[2].each[1].acquire(true);
    expect(wait.advance()).toBe(false);
    expect(wait.describe()).toContain('2 ranks hold it by lockAll');
    expect(ranks[3].all.tryAcquire()).toBe(false);
    // It stands in line behind the one that waits.
    const behind = ranks[3].each[1].acquire(false);
    expect(behind.advance()).toBe(false);
    ranks[0].all.release();
    expect(woken.has(2)).toBe(false);
    expect(wait.advance()).toBe(false);
    ranks[1].all.release();
    expect(woken.has(2)).toBe(true);
    expect(wait.advance()).toBe(true);
    expect(behind.advance()).toBe(false);
    ranks[2].each[1].release(true);
    expect(behind.advance()).toBe(true);
  });

  test('who joins those that share comes in beside them while one waits, and not when they are gone', () => {
    const { ranks, words, woken } = makeLocks(4, 2);
    ranks[0].all.tryAcquire();
    const wait = ranks[1].each[0].acquire(true);
    expect(wait.advance()).toBe(false);
    const [lock] = ranks[2].each;
    expect(lock.tryAcquire(false)).toBe(false);
    expect(lock.tryJoin!()).toBe(true);
    ranks[0].all.release();
    expect(wait.advance()).toBe(false);
    woken.clear();
    lock.release(false);
    expect(woken.has(1)).toBe(true);
    expect(wait.advance()).toBe(true);
    expect(lock.tryJoin!()).toBe(false);
    ranks[1].each[0].release(true);
    expect([...words].every((word) => word === 0)).toBe(true);
    // Those of one part.
    expect(ranks[0].each[0].tryAcquire(false)).toBe(true);
    const next = ranks[1].each[0].acquire(true);
    expect(next.advance()).toBe(false);
    expect(lock.tryAcquire(false)).toBe(false);
    expect(lock.tryJoin!()).toBe(true);
    ranks[0].each[0].release(false);
    expect(next.advance()).toBe(false);
    lock.release(false);
    expect(lock.tryJoin!()).toBe(false);
    expect(next.advance()).toBe(true);
  });

  test('nobody who comes to lock all overtakes one that stands in line', () => {
    const { ranks } = makeLocks(4, 2);
    ranks[0].each[0].tryAcquire(false);
    const wait = ranks[1].each[0].acquire(true);
    expect(wait.advance()).toBe(false);
    expect(ranks[2].all.tryAcquire()).toBe(false);
    ranks[0].each[0].release(false);
    expect(wait.advance()).toBe(true);
  });

  test('a rank that waits for several parts is counted once, until it has given back the last', () => {
    const { ranks, words } = makeLocks(3, 3);
    ranks[0].all.tryAcquire();
    const waits = [0, 1, 2].map((part) => ranks[1].each[part].acquire(true));
    for (const wait of waits) expect(wait.advance()).toBe(false);
    expect(Math.max(...words)).toBe((1 << 15) + 1);
    waits[2].abandon!();
    ranks[0].all.release();
    for (const wait of waits.slice(0, 2)) expect(wait.advance()).toBe(true);
    ranks[1].each[0].release(true);
    expect(ranks[2].all.tryAcquire()).toBe(false);
    ranks[1].each[1].release(true);
    expect(ranks[2].all.tryAcquire()).toBe(true);
  });

  test.each([['before the line is entered'], ['in the line'], ['at its head']])(
    'who gives up %s leaves nothing behind',
    (where) => {
      const { ranks } = makeLocks(3, 1);
      if (where === 'in the line') ranks[0].each[0].tryAcquire(true);
      else ranks[0].all.tryAcquire();
      const wait = ranks[1].each[0].acquire(true);
      if (where !== 'before the line is entered') expect(wait.advance()).toBe(false);
      wait.abandon!();
      if (where === 'in the line') ranks[0].each[0].release(true);
      else ranks[0].all.release();
      expect(ranks[2].all.tryAcquire()).toBe(true);
      ranks[2].all.release();
      expect(ranks[2].each[0].acquire(true).advance()).toBe(true);
    },
  );
});

/** What must hold whatever the order. */
class World {
  readonly woken: Set<number>;
  readonly below: (n: number) => number;
  readonly #holders: Map<number, boolean>[];
  entries = 0;
  byWord = 0;
  joined = 0;

  constructor(targets: number, woken: Set<number>, below: (n: number) => number) {
    this.woken = woken;
    this.below = below;
    this.#holders = Array.from({ length: targets }, () => new Map());
  }

  enter(rank: number, target: number, exclusive: boolean): void {
    this.entries++;
    const holders = this.#holders[target];
    for (const [other, alone] of holders) {
      if (exclusive || alone) throw new Error(`rank ${rank} entered part ${target} while rank ${other} was there`);
    }
    holders.set(rank, exclusive);
  }

  leave(rank: number, target: number): void {
    this.#holders[target].delete(rank);
  }
}

/**
 * A rank that takes the lock of all, by the word or one by one, or that of one part, or joins those that have it; that
 * waits, gives up, sleeps, and is woken.
 */
class Rank implements Actor {
  readonly #rank: number;
  readonly #world: World;
  readonly #locks: Locks;
  #left: number;
  #state: 'idle' | 'waiting' | 'holding' = 'idle';
  #operation: Operation | undefined;
  #exclusive = false;
  /** Parts that it has, and those that it wants as well. */
  #have: number[] = [];
  #want: number[] = [];
  #byWord = false;
  #asleep = false;
  #impatient = false;

  constructor(world: World, rank: number, locks: Locks, times: number) {
    this.#world = world;
    this.#rank = rank;
    this.#locks = locks;
    this.#left = times;
  }

  get done(): boolean {
    return this.#state === 'idle' && this.#left === 0;
  }

  ready(): boolean {
    if (this.#state !== 'waiting') return !this.done;
    return !this.#asleep || this.#impatient || this.#world.woken.has(this.#rank);
  }

  step(): void {
    if (this.#state === 'idle') this.#begin();
    else if (this.#state === 'waiting') {
      if (this.#impatient) this.#giveUp();
      else this.#look();
    } else this.#end();
  }

  #begin(): void {
    const { below } = this.#world;
    const { all, each } = this.#locks;
    this.#left--;
    const kind = below(4);
    this.#exclusive = kind === 1;
    this.#want = kind === 0 ? each.map((_, target) => target) : [below(each.length)];
    if (kind === 0 && all.tryAcquire()) {
      this.#byWord = true;
      this.#world.byWord++;
      for (const target of this.#want.splice(0)) this.#has(target);
    } else if (kind === 3) {
      const [target] = this.#want.splice(0);
      if (each[target].tryJoin!()) {
        this.#world.joined++;
        this.#has(target);
      }
    } else if (kind > 0 && below(2) === 0 && each[this.#want[0]].tryAcquire(this.#exclusive)) {
      this.#has(this.#want.pop()!);
    }
    this.#goOn();
  }

  #has(target: number): void {
    this.#have.push(target);
    this.#world.enter(this.#rank, target, this.#exclusive);
  }

  /** The next part that it wants. They are in order, so that ranks which share all do not wait for each other. */
  #goOn(): void {
    if (this.#want.length === 0) {
      this.#state = 'holding';
      return;
    }
    this.#operation = this.#locks.each[this.#want[0]].acquire(this.#exclusive);
    this.#state = 'waiting';
    this.#look();
  }

  /** As it is before a sleep: whoever wakes this rank from now on is heard. */
  #look(): void {
    this.#world.woken.delete(this.#rank);
    this.#asleep = false;
    if (this.#operation!.advance()) {
      this.#has(this.#want.shift()!);
      this.#goOn();
    } else {
      this.#asleep = true;
      this.#impatient = this.#world.below(5) === 0;
    }
  }

  #giveUp(): void {
    this.#impatient = false;
    this.#operation!.abandon!();
    this.#want = [];
    this.#end();
  }

  #end(): void {
    this.#state = 'idle';
    const { all, each } = this.#locks;
    for (const target of this.#have) this.#world.leave(this.#rank, target);
    if (this.#byWord) all.release();
    else for (const target of this.#have) each[target].release(this.#exclusive);
    this.#have = [];
    this.#byWord = false;
  }
}

describe('interrupted between any two atomic operations', () => {
  test('nobody enters who must not, and nobody sleeps for ever', () => {
    let [entries, byWord, joined] = [0, 0, 0];
    const property = fc.property(
      fc.integer({ min: 2, max: 6 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer(),
      fc.integer({ min: 2, max: 12 }),
      (size, targets, seed, odds) => {
        const below = randomBelow(seed);
        const { ranks: locks, words, woken } = makeLocks(size, targets);
        const world = new World(targets, woken, below);
        const ranks = locks.map((lock, rank) => new Rank(world, rank, lock, 12));
        interleave(ranks, below, odds);
        entries += world.entries;
        byWord += world.byWord;
        joined += world.joined;
        const stuck = ranks.flatMap(({ done }, rank) => (done ? [] : [rank]));
        expect(stuck, 'these ranks wait, asleep, for a lock that nobody holds').toEqual([]);
        // In the end all are free, whatever was given up.
        expect([...words].every((word) => word === 0)).toBe(true);
        for (const { each } of locks) {
          for (const lock of each) {
            expect(lock.acquire(true).advance()).toBe(true);
            lock.release(true);
          }
        }
      },
    );
    fc.assert(property, { numRuns: 4000, seed: seedOfRun() });
    expect(entries).toBeGreaterThan(4000);
    expect(byWord).toBeGreaterThan(1000);
    expect(joined).toBeGreaterThan(1000);
  });
});
