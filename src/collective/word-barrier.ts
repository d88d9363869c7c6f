/**
 * Barriers on memory that all ranks can load and store.
 *
 * Dissemination (one core a rank or more): in round k, rank r raises a flag of rank r + 2^k and waits for its own,
 * ⌈log2 p⌉ rounds. Each flag is a 32-bit count of barriers on a cache line of its own, written by exactly one rank and
 * read by its owner. A writer can be at most one barrier ahead of the reader (it cannot complete the next barrier
 * before the reader enters it), so "count ≥ mine", compared in wrapping arithmetic, is exact. A rank's stores before
 * the barrier are visible to every rank that completes it: each flag is stored with sequential consistency after those
 * stores, and loaded with sequential consistency before anything that follows the barrier.
 *
 * Pair (two ranks): both counts stand on one cache line, so that the later rank finds the earlier one's count in the
 * line that it fetches to write its own. Where going to sleep makes others' plain stores visible, and the processor
 * keeps stores in order, the count is stored plainly: it does not wait for the line. 50 ns instead of 65 between two
 * cores that share a cache. If both ranks looked as often as they can, they could fall into step, each taking the line
 * from the other in the middle of its barrier, and stay so for seconds at 190 ns a barrier. So one of them looks less
 * often, and at uneven intervals.
 *
 * Central (more ranks than cores): all ranks count up one word of rank 0, and the last one releases all others. This
 * costs one sleep and one wake-up a rank, where dissemination costs a context switch a round.
 *
 * Which ranks are missing: a rank that enters also counts in a word of its own block. No other rank writes that word,
 * and it is read only where a message names the ranks that have not come. It orders nothing, so it is stored plainly.
 *
 * In a job that is traced, what ranks tell each other in a barrier is recorded (`traced-calls.ts`, `Signals`).
 *
 * `begin` after a wait that ended early (deadline, abort) goes on with the same barrier: it is not entered twice.
 */
import { loadAcquire, TOTAL_STORE_ORDER } from '../memory-model.ts';
import type { AdapterBarrierStatistics } from '../verbs/adapter-barrier.ts';
import type { Context } from '../verbs/device.ts';

/** 32-bit words from one flag to the next: two cache lines, since the prefetcher fetches lines in pairs. */
const STRIDE = 32;

const ARRIVED = 0;
const RELEASED = STRIDE;
/** Barriers that the block's owner has entered: on the second line of the first flag, which no other rank writes. */
const ENTERED = STRIDE / 2;
/** Ranks that a message names; the rest are counted. */
const NAMED = 8;

/** Words that each rank's block needs for a barrier of `size` ranks. */
export function barrierWords(size: number): number {
  return STRIDE * Math.max(2, Math.ceil(Math.log2(size)));
}

/** What the ranks of a communicator have found out about each other; the same at all of them. */
export interface BarrierTraits {
  /** There are more ranks than cores. */
  readonly central: boolean;
  /** All ranks see plain stores when they go to sleep (`Parking.seesPlainStores`). */
  readonly plainFlags: boolean;
}

/**
 * What records a barrier: it is told before a rank raises another's flag, and after a rank has seen its own flag
 * raised. Ranks are the communicator's.
 */
export interface Signals {
  sent(rank: number): void;
  seen(rank: number): void;
  /** The last rank that comes to the `count`-th central barrier releases the others. */
  released(rank: number, count: number): void;
  sawRelease(count: number): void;
}

/**
 * Chooses and makes the barrier.
 * @param signals what records it, in a job that is traced
 * @param block maps the block of a rank, which begins with `barrierWords(size)` zeroed words
 * @param members the contexts of all ranks
 */
export function makeBarrier(
  context: Context,
  rank: number,
  members: readonly number[],
  traits: BarrierTraits,
  block: (rank: number) => Int32Array,
  signals?: Signals,
): BarrierState {
  const size = members.length;
  const arrivals = new BarrierArrivals(rank, size, block);
  if (traits.central) return new CentralBarrier(context, rank, block(0), members, arrivals, signals);
  if (size === 2) {
    const pair = new PairBarrier(context, rank, block(0), members[1 - rank], traits.plainFlags && TOTAL_STORE_ORDER);
    return signals === undefined ? pair : new RecordedPair(pair, 1 - rank, signals);
  }
  const targets: number[] = [];
  for (let distance = 1; distance < size; distance *= 2) targets.push((rank + distance) % size);
  return new DisseminationBarrier(
    context,
    rank,
    size,
    block(rank),
    targets.map(block),
    targets.map((target) => members[target]),
    arrivals,
    signals,
  );
}

export interface BarrierState {
  begin(): void;
  advance(): boolean;
  /** Ranks (in the communicator) that are waited for, as far as it can be known. */
  waitsFor(): string;
  /**
   * Ranks that have perhaps not come, and that this one asks what they do instead. Not all of the ranks that wait for a
   * rank should ask it.
   */
  askedFor(): readonly number[];
  /**
   * Whether a rank in this barrier may wait for something that this one has yet to do when it goes on: if not, the
   * others come out of it without this one.
   */
  readonly owes: boolean;
  /** What an adapter has done, where one carries it out. */
  readonly statistics?: AdapterBarrierStatistics;
}

/** Which ranks have entered a barrier, as each says itself. */
class BarrierArrivals {
  readonly #rank: number;
  readonly #size: number;
  readonly #own: Int32Array;
  readonly #block: (rank: number) => Int32Array;

  constructor(rank: number, size: number, block: (rank: number) => Int32Array) {
    this.#rank = rank;
    this.#size = size;
    this.#own = block(rank);
    this.#block = block;
  }

  enter(count: number): void {
    this.#own[ENTERED] = count;
  }

  /**
   * In words, the ranks that have not entered the `count`-th barrier; undefined if all have. Maps their blocks, one
   * after the other.
   */
  missing(count: number, named = NAMED): string | undefined {
    const missing: number[] = [];
    for (let rank = 0; rank < this.#size; rank++)
      if (rank !== this.#rank && !this.#hasEntered(rank, count)) missing.push(rank);
    if (missing.length === 0) return undefined;
    const more = missing.length - named;
    return (
      `rank${missing.length === 1 ? '' : 's'} ` +
      `${missing.slice(0, named).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
    );
  }

  /** The ranks right before this one that have not entered the `count`-th barrier: no other rank finds them so. */
  missingBefore(count: number): readonly number[] {
    const missing: number[] = [];
    for (let distance = 1; distance < this.#size; distance++) {
      const rank = (this.#rank - distance + this.#size) % this.#size;
      if (this.#hasEntered(rank, count)) break;
      missing.push(rank);
    }
    return missing;
  }

  #hasEntered(rank: number, count: number): boolean {
    try {
      return ((this.#block(rank)[ENTERED] - count) | 0) >= 0;
    } catch {
      // Its process is gone, and its memory with it.
      return false;
    }
  }
}

class DisseminationBarrier implements BarrierState {
  #own: Int32Array;
  #targets: readonly Int32Array[];
  #targetMembers: readonly number[];
  #context: Context;
  #rank: number;
  #size: number;
  #rounds: number;
  #arrivals: BarrierArrivals;
  #signals: Signals | undefined;
  #round = 0;
  #count = 0;
  #active = false;

  /** @param targets in round k: the region of the rank 2^k further on, which is the context `targetMembers[k]` */
  constructor(
    context: Context,
    rank: number,
    size: number,
    own: Int32Array,
    targets: readonly Int32Array[],
    targetMembers: readonly number[],
    arrivals: BarrierArrivals,
    signals: Signals | undefined,
  ) {
    this.#context = context;
    this.#arrivals = arrivals;
    this.#signals = signals;
    this.#rank = rank;
    this.#size = size;
    this.#own = own;
    this.#targets = targets;
    this.#targetMembers = targetMembers;
    this.#rounds = targets.length;
  }

  begin(): void {
    if (this.#active) return;
    this.#active = true;
    this.#count = (this.#count + 1) | 0;
    this.#arrivals.enter(this.#count);
    this.#round = 0;
    if (this.#rounds > 0) this.#notify(0);
  }

  advance(): boolean {
    while (this.#round < this.#rounds) {
      if (((loadAcquire(this.#own, this.#round * STRIDE) - this.#count) | 0) < 0) return false;
      if (this.#signals !== undefined) this.#signals.seen(this.#before(this.#round));
      if (++this.#round < this.#rounds) this.#notify(this.#round);
    }
    this.#active = false;
    return true;
  }

  /** The rank whose flag is waited for may have come itself, and may wait for another rank. */
  waitsFor(): string {
    return this.#arrivals.missing(this.#count, namedIn(this.#signals)) ?? `rank ${this.#before(this.#round)}`;
  }

  askedFor(): readonly number[] {
    return this.#arrivals.missingBefore(this.#count);
  }

  /** Flags of later rounds, which it raises when its own of the rounds before are. */
  get owes(): boolean {
    return this.#active && this.#round + 1 < this.#rounds;
  }

  /** The rank whose flag is waited for in a round. */
  #before(round: number): number {
    return (this.#rank - 2 ** round + this.#size) % this.#size;
  }

  #notify(round: number): void {
    if (this.#signals !== undefined) this.#signals.sent((this.#rank + 2 ** round) % this.#size);
    Atomics.store(this.#targets[round], round * STRIDE, this.#count);
    this.#context.wake(this.#targetMembers[round]);
  }
}

class PairBarrier implements BarrierState {
  #words: Int32Array;
  #context: Context;
  #other: number;
  #otherMember: number;
  #self: number;
  #plain: boolean;
  #count = 0;
  #active = false;
  #paused = 1;

  constructor(context: Context, rank: number, words: Int32Array, otherMember: number, plain: boolean) {
    this.#context = context;
    this.#self = rank;
    this.#other = 1 - rank;
    this.#words = words;
    this.#otherMember = otherMember;
    this.#plain = plain;
  }

  begin(): void {
    if (this.#active) return;
    this.#active = true;
    const count = (this.#count + 1) | 0;
    this.#count = count;
    if (this.#plain) this.#words[this.#self] = count;
    else Atomics.store(this.#words, this.#self, count);
    this.#context.wake(this.#otherMember);
  }

  advance(): boolean {
    if (((loadAcquire(this.#words, this.#other) - this.#count) | 0) < 0) {
      if (this.#self === 1) this.#pause();
      return false;
    }
    this.#active = false;
    return true;
  }

  /** Lets 8 to 39 steps of about a nanosecond pass; each needs the result of the one before. */
  #pause(): void {
    let x = (Math.imul(this.#paused, 1664525) + 1013904223) | 0;
    for (let steps = 8 + (x >>> 27); steps > 0; steps--) x = (Math.imul(x, 5) + 1) | 0;
    this.#paused = x;
  }

  waitsFor(): string {
    return `rank ${this.#other}`;
  }

  askedFor(): readonly number[] {
    return [this.#other];
  }

  /** Its count is all that the other rank waits for. */
  readonly owes = false;
}

/** A pair's barrier in a job that is traced. */
class RecordedPair implements BarrierState {
  readonly #pair: PairBarrier;
  readonly #other: number;
  readonly #signals: Signals;
  #active = false;

  constructor(pair: PairBarrier, other: number, signals: Signals) {
    this.#pair = pair;
    this.#other = other;
    this.#signals = signals;
  }

  begin(): void {
    if (!this.#active) this.#signals.sent(this.#other);
    this.#active = true;
    this.#pair.begin();
  }

  advance(): boolean {
    if (!this.#pair.advance()) return false;
    if (this.#active) this.#signals.seen(this.#other);
    this.#active = false;
    return true;
  }

  waitsFor(): string {
    return this.#pair.waitsFor();
  }

  askedFor(): readonly number[] {
    return this.#pair.askedFor();
  }

  get owes(): boolean {
    return this.#pair.owes;
  }
}

class CentralBarrier implements BarrierState {
  #rank: number;
  #signals: Signals | undefined;
  #root: Int32Array;
  #context: Context;
  #arrivals: BarrierArrivals;
  #members: readonly number[];
  #count = 0;
  #active = false;

  /** @param root the region of rank 0; `members` the contexts of all ranks */
  constructor(
    context: Context,
    rank: number,
    root: Int32Array,
    members: readonly number[],
    arrivals: BarrierArrivals,
    signals: Signals | undefined,
  ) {
    this.#context = context;
    this.#arrivals = arrivals;
    this.#rank = rank;
    this.#signals = signals;
    this.#root = root;
    this.#members = members;
  }

  begin(): void {
    if (this.#active) return;
    this.#active = true;
    this.#count = (this.#count + 1) | 0;
    this.#arrivals.enter(this.#count);
    const arrived = (Atomics.add(this.#root, ARRIVED, 1) + 1) | 0;
    if (arrived !== Math.imul(this.#count, this.#members.length)) return;
    if (this.#signals !== undefined) this.#recordRelease(this.#signals);
    Atomics.store(this.#root, RELEASED, this.#count);
    for (const member of this.#members) if (member !== this.#context.member) this.#context.wake(member);
  }

  advance(): boolean {
    if (((loadAcquire(this.#root, RELEASED) - this.#count) | 0) < 0) return false;
    if (this.#signals !== undefined && this.#active) this.#signals.sawRelease(this.#count);
    this.#active = false;
    return true;
  }

  #recordRelease(signals: Signals): void {
    for (let rank = 0; rank < this.#members.length; rank++)
      if (rank !== this.#rank) signals.released(rank, this.#count);
  }

  waitsFor(): string {
    return this.#arrivals.missing(this.#count, namedIn(this.#signals)) ?? 'the last rank to release it';
  }

  askedFor(): readonly number[] {
    return this.#arrivals.missingBefore(this.#count);
  }

  /** It is counted when it enters; whoever comes last releases all. */
  readonly owes = false;
}

/** A trace keeps every text that differs from all others: there, one rank has to stand for those that are missing. */
function namedIn(signals: Signals | undefined): number {
  return signals === undefined ? NAMED : 1;
}
