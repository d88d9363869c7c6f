/**
 * What orders ranks: their vector clocks, and what each has given that others have not taken yet.
 *
 * A rank that gives its clock away counts on, so that what it does later is not taken for what it did before.
 */
import type { Clock, Moment, RaceAccess } from './race-access.ts';
import { Meeting } from './race-events.ts';
import { RaceWords, type WordPlaces } from './race-words.ts';

interface Arrival {
  readonly size: number;
  /** A `Meeting`. */
  readonly meeting: number;
  readonly root: number;
  readonly place: number;
}

/** A collective that not all have left. */
interface Gathering {
  readonly all: Clock;
  meeting: number;
  root: number;
  readonly size: number;
  /** By place. Where everybody learns of everybody, they are not kept. */
  readonly clocks: Map<number, Clock>;
  readonly arrived: Set<number>;
  left: number;
}

interface Message {
  readonly clock: Clock;
  /** Accesses of which it says that they are complete. */
  readonly accesses: readonly RaceAccess[];
}

interface LockState {
  /** Of the last ones that had it exclusively, and of those that shared it since the last of them. */
  exclusive: Clock | undefined;
  readonly shared: Map<number, Clock>;
  /** Ranks that have it, and whether that is one that has it exclusively. */
  readonly holders: Set<number>;
  isExclusive: boolean;
}

interface Notified {
  readonly from: number;
  readonly message: Message;
}

/** By what a rank has heard from another one last. */
export type RaceEdge = 'collective' | 'fence' | 'message' | 'post' | 'complete' | 'notification' | 'lock' | 'word';
/** By their numbers; 0: it has heard nothing. */
const EDGES: readonly (RaceEdge | undefined)[] = [
  undefined,
  'collective',
  'fence',
  'message',
  'post',
  'complete',
  'notification',
  'lock',
  'word',
];

/** Fences of a window whose times are known. */
const FENCES = 8;
const NOTHING: readonly RaceAccess[] = [];

export class RaceOrder {
  readonly #clocks: Clock[];
  readonly #size: number;
  readonly #moments: Moment[];
  readonly #gatherings = new Map<string, Gathering>();
  /** By scope, then by sender and receiver. */
  readonly #messages = new Map<string, Message[]>();
  readonly #locks = new Map<string, LockState>();
  readonly words: RaceWords;
  readonly #notifications = new Map<string, Notified[]>();
  /** Fences that each rank has begun, by window. */
  readonly #fences = new Map<string, number>();
  /** The counts of the rank at the last ones. */
  readonly #fenceTimes = new Map<string, Float64Array>();
  /** What a rank has given last, if nothing has happened at it since that others could learn of. */
  readonly #given: (Clock | undefined)[];
  /** 1: operations were called since. */
  readonly #called: Uint8Array;
  /** By rank, then by the other one: the number of an edge. */
  readonly #heard: Uint8Array[];

  constructor(size: number) {
    this.#size = size;
    this.words = new RaceWords(size);
    this.#given = new Array<undefined>(size).fill(undefined);
    this.#called = new Uint8Array(size);
    this.#heard = Array.from({ length: size }, () => new Uint8Array(size));
    this.#clocks = Array.from({ length: size }, (_, rank) => {
      const clock = new Int32Array(size);
      clock[rank] = 1;
      return clock;
    });
    this.#moments = this.#clocks.map((clock) => ({
      clock,
      fenceOf: (window, rank, number) => this.#fenceOf(`${window} ${rank}`, number),
    }));
  }

  /** What a rank knows, and goes on to know. */
  momentOf(rank: number): Moment {
    return this.#moments[rank];
  }

  /** How many fences of a window a rank has called. */
  fencesOf(window: string, rank: number): number {
    return this.#fences.get(`${window} ${rank}`) ?? 0;
  }

  /** Fences long ago are known by the clocks of those who were in them. */
  #fenceOf(key: string, number: number): number {
    const begun = this.#fences.get(key) ?? 0;
    if (number > begun) return Number.POSITIVE_INFINITY;
    return number > begun - FENCES ? this.#fenceTimes.get(key)![number % FENCES] : 0;
  }

  clockOf(rank: number): Clock {
    return this.#clocks[rank];
  }

  /** The count of a rank: never 0. */
  now(rank: number): number {
    return this.#clocks[rank][rank];
  }

  /** What every rank has learned. */
  least(): Clock {
    const least = this.#clocks[0].slice();
    for (const clock of this.#clocks) for (let i = 0; i < this.#size; i++) if (clock[i] < least[i]) least[i] = clock[i];
    return least;
  }

  /** Something has happened at a rank at its present count: a load or store, or an operation was completed. */
  happened(rank: number): void {
    this.#given[rank] = undefined;
  }

  /** An operation was called: whoever is told of its rank next can be told apart from those who were told before. */
  called(rank: number): void {
    this.#called[rank] = 1;
  }

  /**
   * @param byWord words are given often, and the operations that give them need not be told apart
   * @returns the rank's clock, which nobody changes any more
   */
  #give(rank: number, byWord = false): Clock {
    const before = this.#given[rank];
    if (before !== undefined && (byWord || this.#called[rank] === 0)) return before;
    this.#called[rank] = 0;
    const given = this.#clocks[rank].slice();
    this.#clocks[rank][rank]++;
    this.#given[rank] = given;
    return given;
  }

  #take(rank: number, clock: Clock | undefined, edge: RaceEdge): void {
    if (clock === undefined) return;
    if (join(this.#clocks[rank], clock, this.#heard[rank], EDGES.indexOf(edge))) this.#given[rank] = undefined;
  }

  /** By what a rank has learned last what it knows of another one. */
  heardBy(rank: number, other: number): RaceEdge | undefined {
    return EDGES[this.#heard[rank][other]];
  }

  // ---- collectives --------------------------------------------------------------------------------------------------

  /**
   * A rank whose call was refused has said that it comes, and comes again by another call: what was said last counts.
   * What it gave the first time it gives the second time, too.
   */
  arrive(scope: string, number: number, rank: number, { size, meeting, root, place }: Arrival): void {
    const key = `${scope} ${number}`;
    let gathering = this.#gatherings.get(key);
    if (gathering === undefined) {
      const all = new Int32Array(this.#size);
      gathering = { all, meeting, root, size, clocks: new Map(), arrived: new Set(), left: 0 };
      this.#gatherings.set(key, gathering);
    }
    gathering.meeting = meeting;
    gathering.root = root;
    const clock = this.#give(rank);
    join(gathering.all, clock);
    if (meeting !== Meeting.ALL) gathering.clocks.set(place, clock);
    gathering.arrived.add(place);
  }

  /** Whether all have come of whom a rank at this place learns. */
  haveMet(scope: string, number: number, place: number): boolean {
    const gathering = this.#gatherings.get(`${scope} ${number}`);
    if (gathering === undefined) return true;
    const { meeting, root, size, arrived } = gathering;
    if (meeting === Meeting.FROM_ROOT) return arrived.has(root);
    if (meeting === Meeting.TO_ROOT && place !== root) return true;
    if (meeting !== Meeting.PREFIX) return arrived.size === size;
    for (let before = 0; before < place; before++) if (!arrived.has(before)) return false;
    return true;
  }

  leave(scope: string, number: number, rank: number, place: number, edge: RaceEdge = 'collective'): void {
    const key = `${scope} ${number}`;
    const gathering = this.#gatherings.get(key);
    if (gathering === undefined) return;
    const { meeting, root, size, clocks, all } = gathering;
    if (meeting === Meeting.FROM_ROOT) this.#take(rank, clocks.get(root), edge);
    else if (meeting === Meeting.PREFIX) {
      for (const [other, clock] of clocks) if (other <= place) this.#take(rank, clock, edge);
    } else if (meeting === Meeting.ALL || place === root) this.#take(rank, all, edge);
    if (++gathering.left >= size) this.#gatherings.delete(key);
  }

  fenceBegun(window: string, rank: number, size: number): void {
    const key = `${window} ${rank}`;
    const number = (this.#fences.get(key) ?? 0) + 1;
    this.#fences.set(key, number);
    const times = this.#fenceTimes.get(key) ?? new Float64Array(FENCES);
    this.#fenceTimes.set(key, times);
    times[number % FENCES] = this.now(rank);
    this.arrive(`fence ${window}`, number, rank, { size, meeting: Meeting.ALL, root: 0, place: rank });
  }

  haveFenced(window: string, rank: number): boolean {
    return this.haveMet(`fence ${window}`, this.#fences.get(`${window} ${rank}`) ?? 0, rank);
  }

  fenceEnded(window: string, rank: number): void {
    this.leave(`fence ${window}`, this.#fences.get(`${window} ${rank}`) ?? 0, rank, rank, 'fence');
  }

  // ---- messages -----------------------------------------------------------------------------------------------------

  send(scope: string, from: number, to: number, accesses: readonly RaceAccess[] | undefined): void {
    const key = `${scope} ${from} ${to}`;
    const message = { clock: this.#give(from), accesses: accesses ?? NOTHING };
    const line = this.#messages.get(key);
    if (line === undefined) this.#messages.set(key, [message]);
    else line.push(message);
  }

  hasSent(scope: string, from: number, to: number): boolean {
    return this.#messages.has(`${scope} ${from} ${to}`);
  }

  /** @returns accesses of which it says that they are complete */
  receive(scope: string, from: number, to: number, edge: RaceEdge = 'message'): readonly RaceAccess[] {
    const key = `${scope} ${from} ${to}`;
    const line = this.#messages.get(key);
    const message = line?.shift();
    if (line?.length === 0) this.#messages.delete(key);
    this.#take(to, message?.clock, edge);
    return message?.accesses ?? NOTHING;
  }

  notify(window: string, from: number, to: number, accesses: readonly RaceAccess[]): void {
    const key = `${window} ${to}`;
    const message = { clock: this.#give(from), accesses };
    const line = this.#notifications.get(key);
    if (line === undefined) this.#notifications.set(key, [{ from, message }]);
    else line.push({ from, message });
  }

  /** Whether any have come that were not taken. */
  hasNotified(window: string, rank: number): boolean {
    return this.#notifications.has(`${window} ${rank}`);
  }

  /**
   * Some were taken: nobody knows which. What has come so far may be among them, so all of it is learned.
   * @returns accesses that are complete
   */
  takeNotifications(window: string, rank: number): readonly RaceAccess[] {
    const key = `${window} ${rank}`;
    const line = this.#notifications.get(key);
    if (line === undefined) return NOTHING;
    this.#notifications.delete(key);
    for (const { message } of line) this.#take(rank, message.clock, 'notification');
    return line.flatMap(({ message }) => message.accesses);
  }

  // ---- locks and words ----------------------------------------------------------------------------------------------

  #lockState(lock: string): LockState {
    let state = this.#locks.get(lock);
    if (state === undefined) {
      state = { exclusive: undefined, shared: new Map(), holders: new Set(), isExclusive: false };
      this.#locks.set(lock, state);
    }
    return state;
  }

  /** Whether nobody has a lock who keeps others from having it in this way. */
  isFree(lock: string, exclusive: boolean): boolean {
    const { holders, isExclusive } = this.#lockState(lock);
    return holders.size === 0 || !(exclusive || isExclusive);
  }

  locked(lock: string, rank: number, exclusive: boolean): void {
    const state = this.#lockState(lock);
    state.holders.add(rank);
    state.isExclusive = exclusive;
    this.#take(rank, state.exclusive, 'lock');
    if (exclusive) for (const clock of state.shared.values()) this.#take(rank, clock, 'lock');
  }

  unlocked(lock: string, rank: number, exclusive: boolean): void {
    const state = this.#lockState(lock);
    state.holders.delete(rank);
    const clock = this.#give(rank);
    if (!exclusive) {
      state.shared.set(rank, clock);
      return;
    }
    // It had learned of all before.
    state.exclusive = clock;
    state.shared.clear();
  }

  giveWords(places: WordPlaces, rank: number): void {
    this.words.give(places, this.#give(rank, true));
  }

  takeWords(places: WordPlaces, rank: number): void {
    for (let i = 0; i < places.length; i += 2) this.#take(rank, this.words.clockOf(places[i], places[i + 1]), 'word');
  }
}

/** @param heard gets the edge where the first has changed @returns whether it has */
function join(clock: Clock, other: Clock, heard?: Uint8Array, edge = 0): boolean {
  let changed = false;
  for (let i = 0; i < clock.length; i++) {
    if (other[i] <= clock[i]) continue;
    clock[i] = other[i];
    if (heard !== undefined) heard[i] = edge;
    changed = true;
  }
  return changed;
}
