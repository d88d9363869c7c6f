/**
 * How fast packets leave in a superstep: as given, as measured, or as was best of what was tried.
 *
 * The time E that the network takes for a packet is not known. What is known: in an unpaced superstep of a kind the
 * network has carried all packets in the time T. If it carries one at a time (a bus), it needs at most T / (packets
 * of all) for each. If it carries those of different processes at once (a switch), it needs at most T / (packets of
 * the busiest process). So the slots that are tried are the first with a cycle of as many slots as processes send,
 * and the second with a cycle of one. Either way the cycles of the busiest process last no longer than the unpaced
 * superstep did, on both networks. (With one E for both, slots for a bus would take a switch as many times as long as
 * processes send.)
 *
 * Supersteps are of one kind if the packets of their busiest process, and the processes that send, are the same powers
 * of two, rounded down. Times are compared by the packet of the busiest process.
 *
 * All processes know the same totals of each superstep (totals.ts), and how long the slowest took in the one before.
 * All choose by these numbers alone, so all choose alike, and need not be told.
 */
import { type Pace, UNPACED } from './slots.ts';
import type { Totals } from './totals.ts';

export interface Pacer {
  /** For a superstep with these totals, which also say how long the last one took. */
  choose(totals: Totals): Pace;
  /** Whether the last choice was a try. */
  readonly isTrying: boolean;
}

/** The same slots in each superstep. */
export class FixedPace implements Pacer {
  readonly isTrying = false;
  readonly #slot: number;
  readonly #slots: number | undefined;

  /** @param slots of a cycle; absent: as many as processes send */
  constructor(slot: number, slots: number | undefined) {
    this.#slot = slot;
    this.#slots = slots;
  }

  choose({ senders }: Totals): Pace {
    return this.#slot === 0 ? UNPACED : { slots: this.#slots ?? senders, slot: this.#slot };
  }
}

const TRIES = 3;
/** Supersteps by which a way is judged: three may have been lucky. */
const REMEMBERED = 16;
/** The first superstep of a kind makes connections, and its memory grows: it is not measured. */
const UNMEASURED = 1;
/** Of E, which has in it what collisions cost: those tried for cycles of as many slots as processes send. */
const FACTORS = [0.7, 0.85, 1];
/** Unpaced, cycles of one slot, and these. */
const WAYS = 2 + FACTORS.length;
/** A way is worth another pace than those before it if it takes less than so much of their time. */
const BETTER = 0.98;
/** So many supersteps in a row that take so many times what was expected: another network, or another load. */
const SLOW = 3;
const TOO_LONG = 1.5;

/** What is known of a kind of supersteps. */
class Kind {
  /** Least microseconds of an unpaced one: by the packet of all, and of the busiest process. */
  ofAll = Number.POSITIVE_INFINITY;
  ofOne = Number.POSITIVE_INFINITY;
  /** Supersteps that were given a pace as a try. */
  tried = 0;
  /** What the last supersteps of each way have taken: microseconds by the packet of the busiest process. */
  times: number[][] = [];
  chosen: number | undefined;
  /** What it is expected to take at most. */
  expected = 0;
  /** What the last supersteps took, if all of them took too long: until one did not, they may be another network's. */
  lately: number[] = [];

  measure(way: number, time: number, totals: Totals): void {
    if (way === 0) {
      this.ofAll = Math.min(this.ofAll, time / totals.packets);
      this.ofOne = Math.min(this.ofOne, time / totals.most);
    }
    this.times[way] ??= [];
    this.times[way].push(time / totals.most);
  }

  /** Forgets what it has tried. */
  again(): void {
    this.tried = UNMEASURED;
    this.times = [];
    this.chosen = undefined;
    this.lately = [];
    this.ofAll = this.ofOne = Number.POSITIVE_INFINITY;
  }
}

/** Of a superstep. */
interface Chosen {
  readonly kind: Kind;
  /** The number of the way; −1: it is not measured. */
  readonly way: number;
  readonly totals: Totals;
}

/** Chooses by what supersteps of the same kind have taken. */
abstract class ByKind implements Pacer {
  isTrying = false;
  readonly #kinds = new Map<number, Kind>();
  #last: Chosen | undefined;

  choose(totals: Totals): Pace {
    if (this.#last !== undefined) {
      const { kind, way, totals: before } = this.#last;
      this.#last = undefined;
      if (way >= 0) this.learn(kind, way, totals.longest, before);
    }
    this.isTrying = false;
    if (totals.most === 0) return UNPACED;
    const kind = this.#kindOf(totals);
    let way = kind.chosen;
    if (way === undefined) {
      way = kind.tried < UNMEASURED ? -1 : Math.floor((kind.tried - UNMEASURED) / TRIES);
      kind.tried++;
      this.isTrying = true;
    }
    this.#last = { kind, way, totals };
    return this.paceOf(kind, Math.max(0, way), totals);
  }

  /** @param way 0: unpaced */
  protected abstract paceOf(kind: Kind, way: number, totals: Totals): Pace;
  protected abstract learn(kind: Kind, way: number, time: number, totals: Totals): void;

  #kindOf({ most, senders }: Totals): Kind {
    const name = 32 * Math.floor(Math.log2(most)) + Math.floor(Math.log2(senders));
    let kind = this.#kinds.get(name);
    if (kind === undefined) this.#kinds.set(name, (kind = new Kind()));
    return kind;
  }
}

/**
 * As many slots as processes send, of E, when unpaced supersteps have told that. The paper has slots of a frame and a
 * quarter, since a bus carries four fifths of what is offered; E has in it already what collisions have cost.
 */
export class PacedByRule extends ByKind {
  protected paceOf(kind: Kind, way: number, { senders }: Totals): Pace {
    return way === 0 ? UNPACED : { slots: senders, slot: kind.ofAll };
  }

  protected learn(kind: Kind, way: number, time: number, totals: Totals): void {
    if (kind.chosen !== undefined) return;
    kind.measure(way, time, totals);
    if (kind.times[0].length === TRIES) kind.chosen = 1;
  }
}

/** Tries all, and keeps the best as long as it is as good as the others were; tries again if that lasts too long. */
export class PacedByTrial extends ByKind {
  protected paceOf(kind: Kind, way: number, { senders }: Totals): Pace {
    if (way === 0) return UNPACED;
    if (way === 1) return { slots: 1, slot: kind.ofOne };
    return { slots: senders, slot: FACTORS[way - 2] * kind.ofAll };
  }

  protected learn(kind: Kind, way: number, time: number, totals: Totals): void {
    if (kind.chosen === undefined) {
      kind.measure(way, time, totals);
      if (kind.times.length === WAYS && kind.times[way].length === TRIES) decide(kind);
      return;
    }
    kind.lately.push(time / totals.most);
    if (kind.lately.at(-1)! <= TOO_LONG * kind.expected) {
      kind.times[way] = [...kind.times[way], ...kind.lately].slice(-REMEMBERED);
      kind.lately = [];
      decide(kind);
    } else if (kind.lately.length === SLOW) kind.again();
  }
}

/** Takes the way with the least mean and two deviations; of those that are about as good, the first. */
function decide(kind: Kind): void {
  kind.expected = Number.POSITIVE_INFINITY;
  for (const [way, times] of kind.times.entries()) {
    const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
    const squares = times.reduce((sum, time) => sum + (time - mean) ** 2, 0);
    const worst = mean + 2 * Math.sqrt(squares / (times.length - 1));
    if (worst >= BETTER * kind.expected) continue;
    kind.expected = worst;
    kind.chosen = way;
  }
}
