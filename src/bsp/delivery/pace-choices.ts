/**
 * How fast packets leave in a superstep: as given, as measured, or as was best of what was tried.
 *
 * The time E that the network takes for a packet is not known. What is known: in an unpaced superstep of a kind the
 * network has carried all packets in the time T. If it carries one at a time (a bus), it needs at most T / (packets
 * of all) for each. If it carries those of different processes at once (a switch), it needs at most T / (packets of
 * the busiest process). So slots are tried first with a cycle of as many slots as processes send, and with a cycle of
 * one. Either way the cycles of the busiest process last no longer than the unpaced superstep did, on both networks.
 * (With one E for both, slots for a bus would take a switch as many times as long as processes send.)
 *
 * E is too long, by what collisions have cost, or what the ports of a switch have lost: TCP waits for hundreds of
 * milliseconds then. So shorter slots are tried for either cycle, as long as each takes less time than the one before
 * it; then, between the best and the one that was too short, one more.
 *
 * Chunks that are not cut into packets are tried, too, where they can be sent, since each packet has headers. They are
 * tried first: they are what is sent without a pace, and packets of a total exchange that leave as soon as they can
 * fill the ports of a switch, which slows down the supersteps after them.
 *
 * Supersteps are of one kind if the packets of their busiest process, and the processes that send, are the same powers
 * of two, rounded down. Times are compared by the packet of the busiest process.
 *
 * All processes know the same totals of each superstep (totals.ts), and how long the slowest took in the one before.
 * All choose by these numbers alone, so all choose alike, and need not be told.
 */
import { type Pace, UNPACED, WHOLE } from './slots.ts';
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
    return this.#slot === 0 ? UNPACED : { slots: this.#slots ?? senders, slot: this.#slot, whole: false };
  }
}

const TRIES = 3;
/** Supersteps by which a way is judged: three may have been lucky. */
const REMEMBERED = 16;
/** The next slots that are tried are so much of the last ones. */
const SHORTER = 0.7;
/** At last, between the best ones and those that were too short. */
const BETWEEN = 0.85;
/** Slots of a cycle that are tried so, at most: E may be twelve times too long. */
const MOST_SHORTER = 8;
/** A way is worth another pace than those before it if it takes less than so much of their time. */
const BETTER = 0.98;
/** So many supersteps in a row that take so many times what was expected: another network, or another load. */
const SLOW = 3;
const TOO_LONG = 1.5;

type Cycle = 'whole' | 'packets' | 'one' | 'senders';
const PACED = ['one', 'senders'] as const;

/** A way to send the packets of a superstep. */
class Way {
  readonly cycle: Cycle;
  /** Its slots, as a part of E. */
  readonly factor: number;
  /** What the last supersteps have taken: microseconds by the packet of the busiest process. */
  times: number[] = [];

  constructor(cycle: Cycle, factor = 1) {
    this.cycle = cycle;
    this.factor = factor;
  }

  get isPaced(): boolean {
    return this.cycle === 'one' || this.cycle === 'senders';
  }

  /** The mean and two deviations. */
  get worst(): number {
    const { times } = this;
    const mean = times.reduce((sum, time) => sum + time, 0) / times.length;
    const squares = times.reduce((sum, time) => sum + (time - mean) ** 2, 0);
    return mean + 2 * Math.sqrt(squares / (times.length - 1));
  }
}

/** What is known of a kind of supersteps. */
class Kind {
  /** The first superstep of a kind makes connections, and its memory grows: it is not measured. */
  isNew = true;
  /** Least microseconds of one without a pace: by the packet of all, and of the busiest process. */
  ofAll = Number.POSITIVE_INFINITY;
  ofOne = Number.POSITIVE_INFINITY;
  ways: Way[];
  chosen: Way | undefined;
  /** What it is expected to take at most. */
  expected = 0;
  /** What the last supersteps took, if all of them took too long: until one did not, they may be another network's. */
  lately: number[] = [];

  constructor(ways: Way[]) {
    this.ways = ways;
  }

  measure(way: Way, time: number, totals: Totals): void {
    if (!way.isPaced) {
      this.ofAll = Math.min(this.ofAll, time / totals.packets);
      this.ofOne = Math.min(this.ofOne, time / totals.most);
    }
    way.times.push(time / totals.most);
  }

  /** The first way that has not been tried often enough. */
  get untried(): Way | undefined {
    return this.ways.find(({ times }) => times.length < TRIES);
  }

  paceOf({ cycle, factor }: Way, senders: number): Pace {
    if (cycle === 'whole') return WHOLE;
    if (cycle === 'packets') return UNPACED;
    return cycle === 'one'
      ? { slots: 1, slot: factor * this.ofOne, whole: false }
      : { slots: senders, slot: factor * this.ofAll, whole: false };
  }

  /** Takes the way with the least mean and two deviations; of those that are about as good, the first. */
  decide(): void {
    this.expected = Number.POSITIVE_INFINITY;
    for (const way of this.ways) {
      const { worst } = way;
      if (worst >= BETTER * this.expected) continue;
      this.expected = worst;
      this.chosen = way;
    }
  }
}

/** Of a superstep. */
interface Chosen {
  readonly kind: Kind;
  /** Absent: it is not measured. */
  readonly way: Way | undefined;
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
      if (way !== undefined) this.learn(kind, way, totals.longest, before);
    }
    this.isTrying = false;
    if (totals.most === 0) return UNPACED;
    const kind = this.#kindOf(totals);
    this.isTrying = kind.chosen === undefined;
    const way = kind.chosen ?? kind.untried!;
    this.#last = { kind, way: kind.isNew ? undefined : way, totals };
    kind.isNew = false;
    return kind.paceOf(way, totals.senders);
  }

  /** What is tried first. */
  protected abstract first(): Way[];
  protected abstract learn(kind: Kind, way: Way, time: number, totals: Totals): void;

  #kindOf({ most, senders }: Totals): Kind {
    const name = 32 * Math.floor(Math.log2(most)) + Math.floor(Math.log2(senders));
    let kind = this.#kinds.get(name);
    if (kind === undefined) this.#kinds.set(name, (kind = new Kind(this.first())));
    return kind;
  }
}

/**
 * As many slots as processes send, of E, when unpaced supersteps have told that. The paper has slots of a frame and a
 * quarter, since a bus carries four fifths of what is offered; E has in it already what collisions have cost.
 */
export class PacedByRule extends ByKind {
  protected first(): Way[] {
    return [new Way('packets')];
  }

  protected learn(kind: Kind, way: Way, time: number, totals: Totals): void {
    if (kind.chosen !== undefined) return;
    kind.measure(way, time, totals);
    if (kind.untried === undefined) kind.chosen = new Way('senders');
  }
}

/** Tries all, and keeps the best as long as it is as good as the others were; tries again if that lasts too long. */
export class PacedByTrial extends ByKind {
  readonly #mayBeWhole: boolean;

  /** @param mayBeWhole chunks can leave without being cut */
  constructor(mayBeWhole: boolean) {
    super();
    this.#mayBeWhole = mayBeWhole;
  }

  protected first(): Way[] {
    const unpaced: Cycle[] = this.#mayBeWhole ? ['whole', 'packets'] : ['packets'];
    return [...unpaced, ...PACED].map((cycle) => new Way(cycle));
  }

  protected learn(kind: Kind, way: Way, time: number, totals: Totals): void {
    if (kind.chosen === undefined) {
      kind.measure(way, time, totals);
      if (kind.untried !== undefined) return;
      for (const cycle of PACED) {
        const factor = nextFactor(kind.ways.filter((tried) => tried.cycle === cycle));
        if (factor !== undefined) kind.ways.push(new Way(cycle, factor));
      }
      if (kind.untried === undefined) kind.decide();
      return;
    }
    kind.lately.push(time / totals.most);
    if (kind.lately.at(-1)! <= TOO_LONG * kind.expected) {
      way.times = [...way.times, ...kind.lately].slice(-REMEMBERED);
      kind.lately = [];
      kind.decide();
    } else if (kind.lately.length === SLOW) this.#again(kind);
  }

  /** Forgets what it has tried. */
  #again(kind: Kind): void {
    kind.ways = this.first();
    kind.chosen = undefined;
    kind.lately = [];
    kind.ofAll = kind.ofOne = Number.POSITIVE_INFINITY;
  }
}

/** What is to be tried after these ways of one cycle, in the order in which they were tried. Undefined: nothing. */
function nextFactor(tried: readonly Way[]): number | undefined {
  const last = tried.at(-1)!;
  const before = tried.at(-2);
  if (before === undefined) return SHORTER * last.factor;
  // The last one was between two others.
  if (last.factor > SHORTER * before.factor) return undefined;
  const isBetter = last.worst < BETTER * before.worst;
  if (!isBetter) return BETWEEN * before.factor;
  return tried.length < MOST_SHORTER ? SHORTER * last.factor : undefined;
}
