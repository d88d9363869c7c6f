import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_OVERTAKING, type Overtaking } from '../../src/sync/lock/lock-overtaking.ts';
import { QueueLock, queueLockWords } from '../../src/sync/lock/queue-lock.ts';
import { seedOfRun } from '../support/ranks.ts';
import { fight, type Locks, makeLocks as makeWordLocks, testByHand } from './word-locks.ts';

/** Where queue-lock.ts has the two counts of its line. */
const NEXT = 32;
const SERVING = 33;

function makeLocks(size: number, firstTicket = 0, overtaking: Overtaking = NO_OVERTAKING): Locks {
  const words = new Int32Array(queueLockWords(size));
  words[NEXT] = firstTicket;
  words[SERVING] = firstTicket;
  return makeWordLocks((...of) => new QueueLock(...of, overtaking), words, size);
}

/** A clock that the test moves on. */
class Clock implements Overtaking {
  readonly ms = 1;
  time = 1000;
  now = (): number => this.time;
}

describe('by hand', () => {
  testByHand(makeLocks);

  test('the mark of a head that has given up keeps nobody from the lock', () => {
    const { locks } = makeLocks(3);
    locks[0].tryAcquire(true);
    const wait = locks[1].acquire(true);
    expect(wait.advance()).toBe(false);
    wait.abandon!();
    locks[0].release(true);
    expect(locks[2].tryAcquire(true)).toBe(true);
    // Who comes now marks it again, and is woken.
    const next = locks[1].acquire(false);
    expect(next.advance()).toBe(false);
    locks[2].release(true);
    expect(locks[0].tryAcquire(true)).toBe(false);
    expect(next.advance()).toBe(true);
    locks[1].release(false);
    expect(locks[0].tryAcquire(true)).toBe(true);
  });

  test('first come, first served: whoever comes later does not overtake the line', () => {
    const { locks, woken } = makeLocks(4);
    locks[0].tryAcquire(true);
    const waits = [1, 2, 3].map((rank) => locks[rank].acquire(rank === 2));
    for (const wait of waits) expect(wait.advance()).toBe(false);
    locks[0].release(true);
    expect([...woken]).toEqual([1]);
    // Rank 0 comes back at once: the fast path is closed.
    expect(locks[0].tryAcquire(false)).toBe(false);
    expect(locks[0].tryAcquire(true)).toBe(false);
    // A later one does not pass, though it is awake.
    expect(waits[2].advance()).toBe(false);
    expect(waits[0].advance()).toBe(true);
    expect(waits[1].advance()).toBe(false);
    expect(waits[2].advance()).toBe(false);
    locks[1].release(false);
    expect(waits[1].advance()).toBe(true);
    locks[2].release(true);
    expect(waits[2].advance()).toBe(true);
    locks[3].release(false);
    expect(locks[0].tryAcquire(true)).toBe(true);
  });

  test('readers that stand next to each other enter together, those behind a writer after it', () => {
    const { locks, woken } = makeLocks(6);
    locks[0].tryAcquire(true);
    const kinds = [false, false, true, false, false];
    const waits = kinds.map((exclusive, i) => locks[i + 1].acquire(exclusive));
    for (const wait of waits) wait.advance();
    locks[0].release(true);
    expect(waits.map((wait) => wait.advance())).toEqual([true, true, false, false, false]);
    expect(woken.has(2)).toBe(true);
    locks[1].release(false);
    expect(waits[2].advance()).toBe(false);
    woken.clear();
    locks[2].release(false);
    expect([...woken]).toEqual([3]);
    expect(waits.slice(2).map((wait) => wait.advance())).toEqual([true, false, false]);
    locks[3].release(true);
    expect(waits.slice(3).map((wait) => wait.advance())).toEqual([true, true]);
  });

  test('the head of the line gives up: the next one is woken and enters', () => {
    const { locks, woken } = makeLocks(3);
    locks[0].tryAcquire(true);
    const [head, next] = [locks[1].acquire(true), locks[2].acquire(true)];
    head.advance();
    next.advance();
    head.abandon!();
    expect([...woken]).toEqual([2]);
    expect(next.advance()).toBe(false);
    locks[0].release(true);
    expect(next.advance()).toBe(true);
    locks[2].release(true);
    expect(locks[0].acquire(true).advance()).toBe(true);
  });

  test('one in the midst of the line gives up and is passed over', () => {
    const { locks, woken } = makeLocks(4);
    locks[0].tryAcquire(true);
    const waits = [1, 2, 3].map((rank) => locks[rank].acquire(true));
    for (const wait of waits) wait.advance();
    waits[1].abandon!();
    locks[0].release(true);
    expect(waits[0].advance()).toBe(true);
    woken.clear();
    locks[1].release(true);
    expect([...woken]).toEqual([3]);
    expect(waits[2].advance()).toBe(true);
  });

  test('a rank that comes back takes up the ticket that it gave up, and stands where it stood', () => {
    const { locks } = makeLocks(4);
    locks[0].tryAcquire(true);
    const waits = [1, 2, 3].map((rank) => locks[rank].acquire(true));
    for (const wait of waits) wait.advance();
    waits[1].abandon!();
    const again = locks[2].acquire(true);
    expect(again.advance()).toBe(false);
    locks[0].release(true);
    expect(waits[0].advance()).toBe(true);
    locks[1].release(true);
    expect(waits[2].advance()).toBe(false);
    expect(again.advance()).toBe(true);
    locks[2].release(true);
    expect(waits[2].advance()).toBe(true);
  });

  test('giving up again and again takes no more places in line than there are ranks', () => {
    const { locks } = makeLocks(3);
    locks[0].tryAcquire(true);
    for (let i = 0; i < 100; i++) {
      for (const rank of [1, 2]) {
        const wait = locks[rank].acquire(i % 2 === 0);
        expect(wait.advance()).toBe(false);
        wait.abandon!();
      }
    }
    locks[0].release(true);
    const wait = locks[1].acquire(true);
    expect(wait.advance()).toBe(true);
    locks[1].release(true);
    const shared = [0, 1, 2].map((rank) => locks[rank].acquire(false).advance());
    expect(shared).toEqual([true, true, true]);
  });
});

describe('by hand, where ranks that run overtake those that sleep', () => {
  testByHand((size) => makeLocks(size, 0, new Clock()));

  test('a free lock whose next in line sleeps is taken by a rank that runs, until its time is over', () => {
    const clock = new Clock();
    const { locks, woken } = makeLocks(3, 0, clock);
    locks[0].tryAcquire(true);
    const head = locks[1].acquire(true);
    expect(head.advance()).toBe(false);
    for (let i = 0; i < 5; i++) {
      locks[0].release(true);
      // It has been woken once for all of them, until it looks.
      expect([...woken]).toEqual(i === 0 ? [1] : []);
      woken.clear();
      expect(locks[0].tryAcquire(true)).toBe(true);
    }
    clock.time += 0.9;
    expect(head.advance()).toBe(false);
    locks[0].release(true);
    expect([...woken]).toEqual([1]);
    expect(locks[2].tryAcquire(false)).toBe(true);
    clock.time += 0.1;
    expect(head.advance()).toBe(false);
    // Now it is closed, to readers as well.
    expect(locks[0].tryAcquire(false)).toBe(false);
    locks[2].release(false);
    expect(locks[0].tryAcquire(true)).toBe(false);
    expect(head.advance()).toBe(true);
    locks[1].release(true);
    expect(locks[0].tryAcquire(true)).toBe(true);
  });

  test('readers that follow one another let a writer in after its time, though no release ever wakes it', () => {
    const clock = new Clock();
    const { locks, woken } = makeLocks(3, 0, clock);
    locks[0].tryAcquire(false);
    const writer = locks[2].acquire(true);
    expect(writer.advance()).toBe(false);
    expect(writer.isPolling!()).toBe(1);
    clock.time += 0.4;
    expect(locks[1].tryAcquire(false)).toBe(true);
    locks[0].release(false);
    expect(writer.advance()).toBe(false);
    expect(writer.isPolling!()).toBeCloseTo(0.6);
    clock.time += 0.6;
    expect(writer.advance()).toBe(false);
    expect(writer.isPolling!()).toBe(false);
    expect(locks[0].tryAcquire(false)).toBe(false);
    expect([...woken]).toEqual([]);
    locks[1].release(false);
    expect([...woken]).toEqual([2]);
    expect(writer.advance()).toBe(true);
  });

  test('the time of each head begins when it comes to the head of the line', () => {
    const clock = new Clock();
    const { locks } = makeLocks(4, 0, clock);
    locks[0].tryAcquire(true);
    const [first, second] = [locks[1].acquire(true), locks[2].acquire(true)];
    expect([first.advance(), second.advance()]).toEqual([false, false]);
    clock.time += 5;
    locks[0].release(true);
    expect(first.advance()).toBe(true);
    expect(second.advance()).toBe(false);
    locks[1].release(true);
    expect(locks[3].tryAcquire(true)).toBe(true);
    expect(second.advance()).toBe(false);
    locks[3].release(true);
    expect(locks[3].tryAcquire(true)).toBe(true);
    clock.time += 1;
    locks[3].release(true);
    expect(locks[3].tryAcquire(true)).toBe(true);
    expect(second.advance()).toBe(false);
    locks[3].release(true);
    expect(locks[3].tryAcquire(true)).toBe(false);
    expect(second.advance()).toBe(true);
  });

  test('a head that has closed the lock and gives up leaves it to all', () => {
    const clock = new Clock();
    const { locks } = makeLocks(3, 0, clock);
    locks[0].tryAcquire(true);
    const head = locks[1].acquire(true);
    head.advance();
    clock.time += 2;
    locks[0].release(true);
    locks[0].tryAcquire(true);
    expect(head.advance()).toBe(false);
    head.abandon!();
    locks[0].release(true);
    expect(locks[2].tryAcquire(true)).toBe(true);
    locks[2].release(true);
    expect(locks[0].tryAcquire(false)).toBe(true);
  });
});

describe('interrupted between any two atomic operations', () => {
  test('nobody enters who must not, and nobody sleeps for ever', () => {
    let entries = 0;
    const property = fc.property(
      fc.integer({ min: 2, max: 6 }),
      fc.integer(),
      fc.integer({ min: 2, max: 12 }),
      // Tickets that are about to wrap around: 32 bits, signed 32 bits, the 17 bits that a slot keeps.
      fc.constantFrom(0, -3, 2 ** 31 - 3, 2 ** 17 - 3, 12345),
      // Nobody overtakes, or for as many looks at the clock.
      fc.constantFrom(0, 3, 20, 1000),
      (size, seed, odds, firstTicket, ms) => {
        let time = 0;
        entries += fight(makeLocks(size, firstTicket | 0, { ms, now: () => ++time }), seed, odds);
      },
    );
    fc.assert(property, { numRuns: 4000, seed: seedOfRun() });
    expect(entries).toBeGreaterThan(4000);
  });
});
