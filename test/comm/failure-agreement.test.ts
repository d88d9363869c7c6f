/**
 * Agreements whose ranks die between any two messages: whatever the order in which ranks go on and messages come, all
 * that end have the same, and the flags of all that live are in it.
 */
import { describe, expect, it } from 'vitest';
import { type Agreed, type Agreeing, Agreement } from '../../src/collective/failure-agreement.ts';
import { REAL_PROCESSOR } from '../../src/verbs/processor.ts';
import { randomBelow } from '../support/random-below.ts';
import { seedOfRun } from '../support/ranks.ts';

class Died extends Error {}

interface Mail {
  readonly message: Uint8Array;
  /** Looks of the receiver until it arrives. */
  delay: number;
}

/** Ranks of a world that takes its decisions by `below`. */
class World {
  readonly size: number;
  readonly dead = new Set<number>();
  /** Sends that each rank has left before it dies. */
  readonly life: number[];
  readonly ended: (Agreed | undefined)[];
  readonly #below: (n: number) => number;
  readonly #mail: Mail[][][];
  readonly #seenDead: Set<number>[];

  constructor(size: number, life: number[], below: (n: number) => number) {
    this.size = size;
    this.life = life;
    this.#below = below;
    this.ended = new Array(size).fill(undefined);
    this.#mail = Array.from({ length: size }, () => Array.from({ length: size }, () => []));
    this.#seenDead = Array.from({ length: size }, () => new Set());
  }

  #agreeing(rank: number): Agreeing {
    return {
      channel: {
        rank,
        size: this.size,
        awaited: -1,
        processor: REAL_PROCESSOR,
        send: (target, message) => {
          if (this.life[rank]-- === 0) {
            this.dead.add(rank);
            throw new Died();
          }
          this.#mail[target][rank].push({ message: message.slice(), delay: this.#below(4) });
        },
        give: () => {},
        receive: (source) => {
          const [next] = this.#mail[rank][source];
          // What a dead rank has sent may be lost, once its death is known.
          if (next === undefined || (this.#seenDead[rank].has(source) && this.#below(3) === 0)) return undefined;
          if (next.delay-- > 0 && !this.dead.has(source)) return undefined;
          this.#mail[rank][source].shift();
          return next.message;
        },
      },
      isGone: (other) => {
        const seen = this.#seenDead[rank];
        // A death is known later here than there.
        if (this.dead.has(other) && this.#below(3) === 0) seen.add(other);
        return seen.has(other);
      },
    };
  }

  /** @param flags of each rank */
  run(flags: readonly number[]): void {
    const runs = flags.map((flag, rank) => {
      let steps: Generator<void, Agreed> | undefined;
      return () => {
        steps ??= new Agreement(this.#agreeing(rank), 0, flag, 100 + rank).steps();
        const step = steps.next();
        if (step.done === true) this.ended[rank] = step.value;
        return step.done === true;
      };
    });
    let going = flags.map((_, rank) => rank);
    for (let looks = 0; going.length > 0; looks++) {
      if (looks > 100_000) throw new Error(`ranks ${going} wait for ever`);
      const rank = going[this.#below(going.length)];
      let over: boolean;
      try {
        over = runs[rank]();
      } catch (error) {
        if (!(error instanceof Died)) throw error;
        over = true;
      }
      if (over) going = going.filter((other) => other !== rank);
    }
  }
}

describe('an agreement', () => {
  it('is the same at all ranks that end it, whichever die, and wherever', () => {
    const below = randomBelow(seedOfRun());
    for (let round = 0; round < 1500; round++) {
      const size = 1 + below(5);
      const most = 2 * (size - 1);
      const life = Array.from({ length: size }, () => (below(2) === 0 ? below(most + 1) : Number.POSITIVE_INFINITY));
      const world = new World(size, life, below);
      const flags = Array.from({ length: size }, () => -1 ^ (below(2) << below(4)));
      world.run(flags);
      const ended = world.ended.filter((agreed) => agreed !== undefined);
      for (const agreed of ended) expect(agreed, `round ${round}, life ${life}`).toEqual(ended[0]);
      const living = flags.map((_, rank) => rank).filter((rank) => !world.dead.has(rank));
      expect(ended.length).toBeGreaterThanOrEqual(living.length);
      if (ended.length === 0) continue;
      const { flags: all, failed, number } = ended[0]!;
      for (const rank of living) expect(all & ~flags[rank]).toBe(0);
      // Every flag that is missing was somebody's.
      expect(flags.reduce((and, flag) => and & flag, -1) & ~all).toBe(0);
      expect(failed.filter((rank) => !world.dead.has(rank))).toEqual([]);
      expect(number - 100).toBeLessThan(size);
    }
  });

  it('leaves out all that died before it began', () => {
    const below = randomBelow(1);
    const world = new World(5, [0, Number.POSITIVE_INFINITY, 0, Number.POSITIVE_INFINITY, 0].map(Number), below);
    for (const rank of [0, 2, 4]) world.dead.add(rank);
    world.run([-1, 6, -1, 3, -1].map(Number));
    expect(world.ended[1]).toMatchObject({ flags: 2, failed: [0, 2, 4] });
    expect(world.ended[3]).toEqual(world.ended[1]);
  });
});
