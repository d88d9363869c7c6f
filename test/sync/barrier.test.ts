import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BarrierState, type BarrierTraits, barrierWords, makeBarrier } from '../../src/collective/word-barrier.ts';
import type { Context } from '../../src/verbs/device.ts';
import { randomBelow } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';
import { type Actor, interleave } from './preemption.ts';

const TRAITS: readonly BarrierTraits[] = [
  { central: false, plainFlags: false },
  { central: false, plainFlags: true },
  { central: true, plainFlags: false },
];

function makeBarriers(size: number, traits: BarrierTraits): { barriers: BarrierState[]; woken: Set<number> } {
  const blocks = Array.from({ length: size }, () => new Int32Array(barrierWords(size)));
  const woken = new Set<number>();
  const members = blocks.map((_, rank) => 100 + rank);
  const barriers = members.map((member, rank) => {
    const context = { member, wake: (other: number) => woken.add(other - 100) } as unknown as Context;
    return makeBarrier(context, rank, members, traits, (of) => blocks[of]);
  });
  return { barriers, woken };
}

/** Enters barriers, waits asleep or awake, and now and then gives up waiting and begins again. */
class Rank implements Actor {
  phase = 0;
  readonly #barrier: BarrierState;
  readonly #all: Rank[];
  readonly #woken: Set<number>;
  readonly #rank: number;
  readonly #phases: number;
  readonly #below: (n: number) => number;
  #inside = false;
  #asleep = false;

  constructor(
    rank: number,
    all: Rank[],
    barrier: BarrierState,
    woken: Set<number>,
    phases: number,
    below: (n: number) => number,
  ) {
    this.#rank = rank;
    this.#all = all;
    this.#barrier = barrier;
    this.#woken = woken;
    this.#phases = phases;
    this.#below = below;
  }

  ready(): boolean {
    if (!this.#inside) return this.phase < this.#phases;
    return !this.#asleep || this.#woken.has(this.#rank);
  }

  step(): void {
    if (!this.#inside) {
      this.phase++;
      this.#inside = true;
      this.#asleep = false;
      this.#barrier.begin();
      return;
    }
    // A wait that ended early is begun again: the same barrier.
    if (this.#below(6) === 0) this.#barrier.begin();
    this.#woken.delete(this.#rank);
    if (!this.#barrier.advance()) {
      this.#asleep = true;
      return;
    }
    this.#inside = false;
    for (const other of this.#all) {
      if (other.phase < this.phase)
        throw new Error(`rank ${this.#rank} left barrier ${this.phase}, rank ${other.#rank} is at ${other.phase}`);
    }
  }
}

describe('barriers on shared words', () => {
  test('nobody leaves before all have entered, and nobody sleeps for ever, wherever ranks are interrupted', () => {
    const property = fc.property(
      fc.integer({ min: 1, max: 9 }),
      fc.constantFrom(...TRAITS),
      fc.integer({ min: 2, max: 8 }),
      fc.integer(),
      (size, traits, odds, seed) => {
        const below = randomBelow(seed);
        const { barriers, woken } = makeBarriers(size, traits);
        const ranks: Rank[] = [];
        for (const [rank, barrier] of barriers.entries()) ranks.push(new Rank(rank, ranks, barrier, woken, 7, below));
        interleave(ranks, below, odds);
        expect(
          ranks.map((rank) => rank.phase),
          'some wait, asleep, for a barrier that all have entered',
        ).toEqual(new Array(size).fill(7));
        expect(ranks.some((rank) => rank.ready())).toBe(false);
      },
    );
    fc.assert(property, { numRuns: 1500, seed: seedOfRun() });
  });

  test('a rank that owes nothing need not go on: the others come out', () => {
    const property = fc.property(
      fc.integer({ min: 1, max: 9 }).chain((size) => fc.shuffledSubarray([...Array(size).keys()], { minLength: size })),
      fc.constantFrom(...TRAITS),
      fc.nat(),
      (order, traits, chosen) => {
        const { barriers } = makeBarriers(order.length, traits);
        const stays = chosen % order.length;
        let out = false;
        // One goes on until it is out; the others as long as they owe something, and not further.
        const goOn = (ranks: readonly number[]): void => {
          for (const rank of ranks) {
            if (rank === stays) out ||= barriers[rank].advance();
            else if (barriers[rank].owes) barriers[rank].advance();
          }
        };
        for (let entered = 1; entered <= order.length; entered++) {
          barriers[order[entered - 1]].begin();
          goOn(order.slice(0, entered));
        }
        for (let i = 0; i < order.length; i++) goOn(order);
        expect(out).toBe(true);
        for (const barrier of barriers) barrier.advance();
        expect(barriers.some((barrier) => barrier.owes || !barrier.advance())).toBe(false);
      },
    );
    fc.assert(property, { numRuns: 500, seed: seedOfRun() });
  });

  for (const traits of TRAITS) {
    test(`${JSON.stringify(traits)}: each rank names those that have not come, and no other`, () => {
      const { barriers } = makeBarriers(6, traits);
      const enter = (...ranks: number[]): void => {
        for (const rank of ranks) {
          barriers[rank].begin();
          barriers[rank].advance();
        }
      };
      for (let round = 0; round < 3; round++) {
        enter(0, 3, 4);
        for (const rank of [0, 3, 4]) expect(barriers[rank].waitsFor()).toBe('ranks 1, 2, 5');
        enter(1, 5);
        for (const rank of [0, 1, 3, 4, 5]) expect(barriers[rank].waitsFor()).toBe('rank 2');
        enter(2);
        for (let again = 0; again < 6; again++) for (const barrier of barriers) barrier.advance();
        for (const barrier of barriers) expect(barrier.advance()).toBe(true);
      }
    });
  }

  for (const traits of TRAITS) {
    test(`${JSON.stringify(traits)}: who is missing is known, and one more begin changes nothing`, () => {
      const { barriers } = makeBarriers(2, traits);
      barriers[0].begin();
      barriers[0].begin();
      expect(barriers[0].advance()).toBe(false);
      expect(barriers[0].waitsFor()).toBe('rank 1');
      barriers[1].begin();
      expect(barriers[1].advance()).toBe(true);
      expect(barriers[0].advance()).toBe(true);
      barriers[1].begin();
      expect(barriers[1].advance()).toBe(false);
    });
  }
});
