/**
 * That all who wait for a queue learn of its end, wherever ranks are interrupted: on words of this thread, by actors
 * that run in the midst of each other's calls.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BoundedQueue } from '../../src/structures/bounded-queue.ts';
import type { Operation } from '../../src/wait/operation.ts';
import { randomBelow } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';
import { type Actor, interleave } from '../sync/preemption.ts';

/** Words before the lists of those that wait (bounded-queue.ts). */
const [TAIL, LISTS] = [0, 64];

/** One queue, as each of some ranks has it. */
function makeQueues(size: number, capacity: number) {
  const ring = 2 ** Math.ceil(Math.log2(capacity));
  const sequences = LISTS + 2 * size;
  const words = new Int32Array(sequences + ring);
  for (let i = 0; i < ring; i++) words[sequences + i] = 2 * i;
  const entries = new Int32Array(ring);
  const woken = new Set<number>();
  /** What a call that waits is to be advanced by. */
  const waits: (Operation | undefined)[] = [];
  const queues = Array.from({ length: size }, (_, rank) => {
    const own = {
      comm: { rank, size },
      ...{ owner: 0, name: 'queue' },
      load: (word: number) => Atomics.load(words, word),
      add: (word: number, by: number) => Atomics.add(words, word, by),
      or: (word: number, bits: number) => Atomics.or(words, word, bits),
      exchange: (word: number, value: number) => Atomics.exchange(words, word, value),
      compareAndSwap: (word: number, from: number, to: number) => Atomics.compareExchange(words, word, from, to),
      wake: (other: number) => woken.add(other),
      wait: (operation: Operation) => {
        waits[rank] = operation;
        return new Promise<void>(() => {});
      },
    };
    const memory = {
      put: (entry: Int32Array, _: number, at: number) => Atomics.store(entries, at, entry[0]),
      get: (entry: Int32Array, _: number, at: number) => {
        entry[0] = Atomics.load(entries, at);
      },
      flushSync: () => {},
    };
    const shape = { capacity, length: 1, sequences, ring };
    return Reflect.construct(BoundedQueue, [own, memory, Int32Array, shape]) as BoundedQueue<Int32Array>;
  });
  return { queues, waits, woken, words };
}

type World = ReturnType<typeof makeQueues>;

/** Makes calls that wait, one after the other, until one says that the queue is closed. */
class Caller implements Actor {
  over = false;
  calls = 0;
  readonly #world: World;
  readonly #rank: number;
  readonly #call: (queue: BoundedQueue<Int32Array>) => Promise<unknown>;
  readonly #most: number;
  #asleep = false;

  constructor(
    world: World,
    rank: number,
    call: (queue: BoundedQueue<Int32Array>) => Promise<unknown>,
    most = Number.POSITIVE_INFINITY,
  ) {
    this.#world = world;
    this.#rank = rank;
    this.#call = call;
    this.#most = most;
  }

  ready(): boolean {
    return !this.over && (!this.#asleep || this.#world.woken.has(this.#rank));
  }

  step(): void {
    const { waits, woken, queues } = this.#world;
    this.#asleep = false;
    const operation = waits[this.#rank];
    if (operation === undefined) {
      if (this.calls >= this.#most) {
        this.over = true;
        return;
      }
      this.calls++;
      // What it does before it waits, it does here.
      this.#call(queues[this.#rank]).catch(() => {});
      if (queues[this.#rank].closed && waits[this.#rank] === undefined) this.over = true;
      return;
    }
    // Announces itself, looks, and sleeps: whoever wakes it in between is not missed.
    woken.delete(this.#rank);
    try {
      if (operation.advance()) waits[this.#rank] = undefined;
      else this.#asleep = true;
    } catch {
      operation.abandon?.();
      waits[this.#rank] = undefined;
      this.over = true;
    }
    if (waits[this.#rank] === undefined && queues[this.#rank].closed && queues[this.#rank].length === 0)
      this.over = true;
  }
}

describe('a queue that is closed', () => {
  test('ends the waits of all consumers, though an entry that was on its way has woken only one of them', () => {
    const world = makeQueues(4, 4);
    const { queues, waits, woken, words } = world;
    const consumers = [1, 2, 3].map((rank) => new Caller(world, rank, (queue) => queue.pop()));
    const settle = (): void => {
      for (let more = true; more; ) {
        more = false;
        for (const consumer of consumers) {
          if (!consumer.ready()) continue;
          consumer.step();
          more = true;
        }
      }
    };
    settle();
    expect(waits.slice(1).every((wait) => wait !== undefined)).toBe(true);
    // Rank 0 has the place of its entry and not written it when the queue is closed: all look, and find that one comes.
    const { store } = Atomics;
    let closed = false;
    Atomics.store = ((...args: Parameters<typeof store>) => {
      if (!closed) {
        closed = true;
        queues[0].close();
        expect(woken.size).toBe(3);
        settle();
        expect(consumers.some(({ over }) => over)).toBe(false);
        expect(Atomics.load(words, TAIL)).toBe(3);
      }
      return store(...args);
    }) as typeof store;
    try {
      expect(queues[0].tryPush(Int32Array.of(7))).toBe(true);
    } finally {
      Atomics.store = store;
    }
    // The push has woken one of them, and nobody comes any more who would wake the others.
    expect(woken.size).toBe(1);
    settle();
    expect(consumers.map(({ over }) => over)).toEqual([true, true, true]);
  });

  test('ends the waits of all, wherever ranks are interrupted', () => {
    const property = fc.property(
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 2, max: 8 }),
      fc.integer(),
      (consumers, producers, capacity, odds, seed) => {
        const below = randomBelow(seed);
        const size = consumers + producers + 1;
        const world = makeQueues(size, capacity);
        const callers: Caller[] = [];
        for (let rank = 0; rank < consumers; rank++) callers.push(new Caller(world, rank, (queue) => queue.pop()));
        for (let rank = consumers; rank < size - 1; rank++)
          callers.push(new Caller(world, rank, (queue) => queue.push(Int32Array.of(rank)), 3));
        let steps = below(20);
        const closer: Actor = {
          ready: () => steps >= 0,
          step: () => {
            if (steps-- === 0) world.queues[size - 1].close();
          },
        };
        interleave([...callers, closer], below, odds);
        expect(callers.map(({ over }) => over)).toEqual(new Array(size - 1).fill(true));
      },
    );
    fc.assert(property, { numRuns: 2000, seed: seedOfRun() });
  });
});
