/**
 * What a wait does before it sleeps: it looks on for a while, then hands its core to another rank a few times. How long
 * this pays off depends on the machine, and changes while the program runs, so a rank learns it from its waits.
 *
 * - A wait of a few microseconds is over sooner if the rank does not sleep, since a wake-up takes up to 0.1 ms.
 * - If other programs want the core, each look is taken off the rank's share of it. A rank that sleeps at once, on the
 *   other hand, has its core back as soon as it is woken. And a core that is handed on goes to any process that wants
 *   it: to a rank, which gives it back within microseconds, or to another program, which keeps it for milliseconds.
 *
 * So the time halves when a wait has looked in vain. It is the longest again when several sleeps in a row have been so
 * short that looking on would have been enough. If a core was away for long, while the rank looked on or had handed it
 * on, other programs want it: then the rank gives up at once, and tries again only after some waits, twice as many each
 * time.
 */
import type { Operation } from './operation.ts';

/**
 * Milliseconds that a rank looks again and again before it sleeps in the kernel (the promise form: in turns of the
 * event loop), if it has a core of its own. Waking a sleeping rank takes up to 0.1 ms. A rank that waits for it must be
 * patient for longer than that: else it falls asleep too, the two wake each other at every step, and never get out of
 * it.
 */
const LONGEST_MS = 0.3;
/** The shortest time, below which a look at the clock counts. */
const SHORTEST_MS = 0.01;
/** Looks between two looks at the clock. */
export const BATCH = 200;
/** A core that did not come back for so many milliseconds was used by another program. */
const AWAY_MS = 0.5;
/** Waits after which a rank tries again what was in vain, at first and at most. */
const FIRST_WAITS = 4;
const MOST_WAITS = 256;
/**
 * With more ranks than cores: times that the `Sync` form hands its core to another rank before it sleeps (a tenth of it
 * otherwise, for cores that other ranks use). A switch by `sched_yield` costs about a microsecond, a sleep and its
 * wake-up several. But each yield also gives up the rest of a time slice, in the scheduler's account: after a thousand
 * of them a rank is so far behind that the others run for seconds before it does.
 */
const YIELDS = 60;
/**
 * How often, and for how long at most, the promise form hands its core on before it goes to the event loop and sleeps,
 * where ranks share cores. Putting eight ranks to sleep there and waking them takes a millisecond; letting them take
 * turns takes a twentieth of that. A rank whose neighbours compute gives up after the first yield, which takes longer.
 */
const ASYNC_YIELDS = 200;
const ASYNC_YIELD_MS = 0.5;

/** How long something that is in vain is left alone. */
class Trial {
  #next = FIRST_WAITS;
  #left = 0;

  /** Whether it is left alone in this wait. */
  passes(): boolean {
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }

  failed(): void {
    this.#left = this.#next;
    this.#next = Math.min(MOST_WAITS, 2 * this.#next);
  }

  worked(): void {
    this.#next = FIRST_WAITS;
  }
}

export class Spinning {
  readonly #longest: number;
  readonly #yield: (() => void) | undefined;
  readonly #yields: number;
  readonly #takesTurns: boolean;
  readonly #now: () => number;
  readonly #yielding = new Trial();
  #ms: number;
  /** Sleeps in turn that were shorter than the longest time; after how many it is tried again. */
  #short = 0;
  #needed = FIRST_WAITS;

  /**
   * @param oversubscribed there are more ranks than cores, so no rank has a core of its own
   * @param now a clock in milliseconds
   */
  constructor(oversubscribed: boolean, schedYield: (() => void) | undefined, now = () => performance.now()) {
    this.#longest = oversubscribed ? 0 : LONGEST_MS;
    this.#ms = this.#longest;
    this.#yield = schedYield;
    this.#yields = schedYield === undefined ? 0 : oversubscribed ? YIELDS : YIELDS / 10;
    this.#takesTurns = oversubscribed && schedYield !== undefined;
    this.#now = now;
  }

  /** Milliseconds that a wait looks on before it sleeps. */
  get ms(): number {
    return this.#ms;
  }

  /**
   * Looks on, and hands the core on.
   * @param since when the wait began
   * @returns whether the operation is complete
   */
  waits(operation: Operation, since: number): boolean {
    return this.#looksOn(operation, since) || this.#handsOn(operation, this.#yields, Number.POSITIVE_INFINITY);
  }

  #looksOn(operation: Operation, since: number): boolean {
    let last = since;
    for (let now = since; now - since < this.#ms; ) {
      for (let i = 0; i < BATCH; i++) {
        if (!operation.advance()) continue;
        this.worked();
        return true;
      }
      now = this.#now();
      if (now - last > AWAY_MS) this.#shortest();
      last = now;
    }
    this.inVain();
    return false;
  }

  /** Looking on was enough. */
  worked(): void {
    if (this.#ms < this.#longest) this.#ms = Math.min(this.#longest, 2 * this.#ms);
    this.#needed = FIRST_WAITS;
  }

  /** The rank goes to sleep though it has looked on. */
  inVain(): void {
    if (this.#ms > SHORTEST_MS) this.#shorter(this.#ms / 2);
  }

  #shortest(): void {
    this.#shorter(SHORTEST_MS);
  }

  #shorter(ms: number): void {
    this.#ms = Math.min(this.#longest, Math.max(SHORTEST_MS, ms));
    this.#short = 0;
  }

  /** A wait in which the rank slept is over. @param ms since it began */
  slept(ms: number): void {
    if (this.#ms >= this.#longest) return;
    if (ms >= LONGEST_MS) this.#short = 0;
    else if (++this.#short >= this.#needed) {
      this.#ms = this.#longest;
      this.#needed = Math.min(MOST_WAITS, 2 * this.#needed);
    }
  }

  /** Whether the promise form lets others run before it goes to the event loop. */
  get takesTurns(): boolean {
    return this.#takesTurns;
  }

  /** The promise form, where ranks share cores. Whether that completed the operation. */
  takesTurn(operation: Operation): boolean {
    return this.#handsOn(operation, ASYNC_YIELDS, ASYNC_YIELD_MS);
  }

  #handsOn(operation: Operation, times: number, mostMs: number): boolean {
    if (times === 0 || this.#yielding.passes()) return false;
    const begun = this.#now();
    let last = begun;
    for (let i = 0; i < times && last - begun <= mostMs; i++) {
      this.#yield!();
      const now = this.#now();
      const wasAway = now - last > AWAY_MS;
      last = now;
      if (wasAway) this.#yielding.failed();
      if (operation.advance()) {
        if (!wasAway) this.#yielding.worked();
        return true;
      }
      if (wasAway) return false;
    }
    return false;
  }
}
