/**
 * The analysis of races: takes the events of all ranks in an order in which what gives comes before what takes it, and
 * finds accesses to common bytes that nothing orders (docs/decisions/050-races.md). No I/O, no clock.
 *
 * Memory: a vector clock for each rank, and for what was given and not taken yet; the shadow of windows. What can no
 * longer race is forgotten from time to time.
 */
import type { Clock, Pending, RaceAccess, RaceEpoch } from './race-access.ts';
import { OpKind, RaceEvent } from './race-events.ts';
import { Findings, type Race, type RaceReport } from './race-findings.ts';
import { RaceMemories } from './race-memories.ts';
import { RaceOrder } from './race-order.ts';
import { KeyOf, keyOf, RaceRecords } from './race-records.ts';
import type { WordPlaces } from './race-words.ts';

export interface AnalysisOptions {
  /** Atomic calls order nothing. */
  readonly strict?: boolean;
  /** Bytes that the shadow may take; default: 256 MiB. */
  readonly memory?: number;
  /** Told of each race as it is found. */
  readonly found?: (race: Race) => void;
}

/** Updates and puts of so many elements at most are taken for words that ranks synchronize by. */
const MOST_WORDS = 4;
/** Of the pairs of an operation's event. */
const FIRST_PLACE = 11;
/** Calls whose operations are completed one by one. */
const ALONE = /^(r|aggregate)/;

interface KnownWindow {
  readonly key: string;
  readonly name: string;
  /** Ranks of the world. */
  readonly ranks: readonly number[];
}

interface LastOperation {
  readonly target: number;
  /** Numbers of the rank's texts. */
  readonly site: number;
  readonly call: number;
  /** Its number, if it is completed alone; else −1. */
  readonly alone: number;
  /** By which its records are found again. */
  readonly count: number;
  readonly common: Omit<RaceAccess, 'side' | 'writes'>;
}

/** What a rank has told of itself. */
interface Teller {
  readonly texts: Map<number, string>;
  readonly epochs: Map<number, RaceEpoch>;
  /** By window: what is not complete. */
  readonly pending: Map<string, Pending[]>;
  /** The operation that `USE` belongs to. */
  last: LastOperation | undefined;
  /** By window: how often something was completed. */
  readonly completions: Map<string, number>;
  /** By what they have in common. */
  readonly records: RaceRecords;
  /** Of fences that have begun: what they complete. */
  readonly fenced: Map<string, Pending[]>;
}

export class RaceAnalysis {
  readonly #order: RaceOrder;
  readonly #memories: RaceMemories;
  readonly #findings = new Findings();
  readonly #tellers: Teller[];
  readonly #windows = new Map<string, KnownWindow>();
  readonly #communicators = new Map<string, readonly number[]>();
  readonly #strict: boolean;
  readonly #unseen = new Set<string>();
  readonly #found: ((race: Race) => void) | undefined;
  readonly #size: number;
  #events = 0;

  constructor(size: number, { strict = false, memory, found }: AnalysisOptions = {}) {
    this.#size = size;
    this.#strict = strict;
    this.#found = found;
    this.#order = new RaceOrder(size);
    this.#memories = new RaceMemories(memory, (a, b, memory, low, high) => this.#note(a, b, memory, low, high));
    this.#tellers = Array.from({ length: size }, () => ({
      texts: new Map(),
      epochs: new Map(),
      pending: new Map(),
      last: undefined,
      completions: new Map(),
      records: new RaceRecords(),
      fenced: new Map(),
    }));
  }

  get report(): RaceReport {
    return {
      races: this.#findings.races,
      strict: this.#strict,
      ranks: this.#size,
      events: this.#events,
      unseen: [...this.#unseen],
      shadow: this.#memories.size,
      forgotten: this.#memories.forgotten,
    };
  }

  text(rank: number, id: number, text: string): void {
    this.#tellers[rank].texts.set(id, text);
  }

  /**
   * Whether what an event takes was given; otherwise events of other ranks come first, if there are any.
   * @param several clocks told the times: then whatever can be known is looked at
   */
  isReady(rank: number, kind: number, d: Float64Array, length: number, several = false): boolean {
    if (kind === RaceEvent.LEFT) return this.#order.haveMet(this.#text(rank, d[0]), d[1], d[2]);
    if (kind === RaceEvent.FENCE_ENDED) return this.#order.haveFenced(this.#text(rank, d[0]), rank);
    if (kind === RaceEvent.RECEIVED) return this.#order.hasSent(this.#text(rank, d[0]), d[1], rank);
    return !several || this.#canTake(rank, kind, d, length);
  }

  #canTake(rank: number, kind: number, d: Float64Array, length: number): boolean {
    const order = this.#order;
    const scope = this.#text(rank, d[0]);
    const from = (edge: string): boolean =>
      d.subarray(1, length).every((place) => order.hasSent(`${edge} ${scope}`, this.#worldRank(scope, place), rank));
    if (kind === RaceEvent.STARTED) return from('post');
    if (kind === RaceEvent.WAITED) return from('complete');
    if (kind === RaceEvent.TOOK) return order.hasNotified(scope, rank);
    if (kind === RaceEvent.LOCKED) return order.isFree(`${scope}:${d[1]}`, d[2] === 1);
    if (kind === RaceEvent.OPERATION) {
      const owner = this.#worldRank(scope, d[1]);
      // Of one that has told nothing, nothing is to come.
      return this.#tellers[owner].texts.size === 0 || this.#memories.hasPart(scope, owner);
    }
    return true;
  }

  #worldRank(window: string, place: number): number {
    return this.#windows.get(window)?.ranks[place] ?? place;
  }

  event(rank: number, kind: number, d: Float64Array, length: number): void {
    this.#events++;
    switch (kind) {
      case RaceEvent.ACCESS:
        this.#access(rank, d, -1);
        break;
      case RaceEvent.ATOMIC:
        this.#atomic(rank, d);
        break;
      case RaceEvent.PART_ACCESS:
        this.#partAccess(rank, d);
        break;
      case RaceEvent.OPERATION:
        this.#operation(rank, d, length);
        break;
      case RaceEvent.USE:
        this.#use(rank, d, length);
        break;
      case RaceEvent.COMPLETED:
        this.#completed(rank, this.#text(rank, d[0]), d[1], d[2], d[3], d[4] === 1);
        break;
      case RaceEvent.EPOCH:
        this.#tellers[rank].epochs.set(d[0], { kind: this.#text(rank, d[1]), site: this.#text(rank, d[2]) });
        break;
      case RaceEvent.UNSEEN:
        this.#unseen.add(this.#text(rank, d[0]));
        break;
      default:
        this.#synchronize(rank, kind, d, length);
    }
  }

  #synchronize(rank: number, kind: number, d: Float64Array, length: number): void {
    const order = this.#order;
    const scope = this.#text(rank, d[0]);
    switch (kind) {
      case RaceEvent.ARRIVED:
        order.arrive(scope, d[1], rank, { size: d[2], meeting: d[3], root: d[4], place: d[5] });
        break;
      case RaceEvent.LEFT:
        order.leave(scope, d[1], rank, d[2]);
        this.#tidy();
        break;
      case RaceEvent.FENCE_BEGUN:
        this.#fenceBegun(rank, scope);
        break;
      case RaceEvent.FENCE_ENDED:
        this.#fenceEnded(rank, scope);
        break;
      case RaceEvent.SENT:
        order.send(scope, rank, d[1], undefined);
        break;
      case RaceEvent.RECEIVED:
        order.receive(scope, d[1], rank);
        break;
      case RaceEvent.LOCKED:
        order.locked(`${scope}:${d[1]}`, rank, d[2] === 1);
        break;
      case RaceEvent.UNLOCKED:
        order.unlocked(`${scope}:${d[1]}`, rank, d[2] === 1);
        break;
      default:
        this.#active(rank, kind, scope, d, length);
    }
  }

  /** Post, start, complete, wait, and notifications; and what windows and communicators are. */
  #active(rank: number, kind: number, scope: string, d: Float64Array, length: number): void {
    const order = this.#order;
    const members = (from: number): number[] => Array.from(d.subarray(from, length));
    const world = (place: number): number => this.#worldRank(scope, place);
    switch (kind) {
      case RaceEvent.POSTED:
        for (const origin of members(1)) order.send(`post ${scope}`, rank, world(origin), undefined);
        break;
      case RaceEvent.STARTED:
        for (const target of members(1)) order.receive(`post ${scope}`, world(target), rank, 'post');
        break;
      case RaceEvent.COMPLETE_BEGUN:
        this.#completed(rank, scope, -1, 0, Number.POSITIVE_INFINITY, false);
        break;
      case RaceEvent.TOLD:
        for (const target of members(1))
          order.send(`complete ${scope}`, rank, world(target), this.#takeFor(rank, scope, target));
        break;
      case RaceEvent.WAITED:
        for (const origin of members(1))
          this.#learn(rank, order.receive(`complete ${scope}`, world(origin), rank, 'complete'));
        break;
      case RaceEvent.NOTIFIED:
        order.notify(scope, rank, world(d[1]), this.#pendingFor(rank, scope, d[1]));
        break;
      case RaceEvent.TOOK:
        this.#learn(rank, order.takeNotifications(scope, rank));
        break;
      default:
        this.#describe(rank, kind, scope, d, length);
    }
  }

  #describe(rank: number, kind: number, scope: string, d: Float64Array, length: number): void {
    switch (kind) {
      case RaceEvent.COMMUNICATOR:
        if (!this.#communicators.has(scope)) this.#communicators.set(scope, Array.from(d.subarray(2, length)));
        break;
      case RaceEvent.WINDOW: {
        const name = this.#text(rank, d[1]);
        const ranks = this.#communicators.get(this.#text(rank, d[2])) ?? [];
        if (!this.#windows.has(scope)) this.#windows.set(scope, { key: scope, name, ranks });
        if (d[6] === 0) this.#memories.part(scope, rank, d[3], d[4], d[5], name);
        break;
      }
      case RaceEvent.ATTACH:
        this.#memories.attach(scope, rank, d[1], d[2], d[3], d[4], this.#windows.get(scope)?.name ?? scope);
        break;
      case RaceEvent.DETACH:
        this.#memories.detach(scope, rank, d[1], d[2]);
        break;
      case RaceEvent.FREED:
        this.#memories.freed(scope, rank);
        break;
      default:
        throw new Error(`unknown event ${kind}`);
    }
  }

  #text(rank: number, id: number): string {
    return this.#tellers[rank].texts.get(id) ?? '';
  }

  // ---- accesses -----------------------------------------------------------------------------------------------------

  #access(rank: number, d: Float64Array, atomic: number): void {
    const writes = d[3] !== 0;
    const size = atomic < 0 ? 1 : (d[2] - d[1]) | 0;
    const phase = atomic < 0 ? 0 : (d[1] % size) | 0;
    const key = keyOf(KeyOf.ACCESS, this.#order.now(rank), d[4], d[5], d[3], atomic, phase, 0, 0, 0, 0);
    const record = this.#tellers[rank].records.find(key, () => ({
      rank,
      time: this.#order.now(rank),
      site: this.#text(rank, d[4]),
      call: this.#text(rank, d[5]),
      side: undefined,
      writes,
      atomic,
      op: -1,
      size,
      phase,
      isAlone: false,
      isMarked: atomic >= 0,
      window: '',
      target: -1,
      epoch: undefined,
      fenced: '',
      fences: 0,
      done: true,
      completed: 0,
      known: 0,
      pending: undefined,
    }));
    this.#order.happened(rank);
    this.#memories.access(d[0], record, d[1], d[2], this.#order.momentOf(rank));
  }

  /** A load or store of another rank's part. */
  #partAccess(rank: number, d: Float64Array): void {
    const key = this.#text(rank, d[0]);
    const place = this.#memories.placeOf(key, this.#worldRank(key, d[1]), d[2], d[3]);
    if (place === undefined) return;
    const there = Float64Array.of(place.memory, place.low, place.high, d[4], d[5], d[6], d[7]);
    if (d[7] >= 0) this.#atomic(rank, there);
    else this.#access(rank, there, -1);
  }

  /** `Atomics` on memory of a window. */
  #atomic(rank: number, d: Float64Array): void {
    if (this.#strict) {
      this.#access(rank, d, -1);
      return;
    }
    const word = [d[0], d[1]];
    if (d[3] !== 0) {
      this.#order.giveWords(word, rank);
      this.#access(rank, d, d[6]);
      return;
    }
    this.#order.takeWords(word, rank);
    this.#learn(rank, this.#order.words.seen(d[0], d[1]));
    this.#access(rank, d, d[6]);
  }

  #operation(rank: number, d: Float64Array, length: number): void {
    const key = this.#text(rank, d[0]);
    // Whole numbers are half as long as others.
    const [target, kind, reads, base, size] = [d[1] | 0, d[2] | 0, d[3] | 0, d[4] | 0, d[5] | 0];
    const number = d[6];
    const [site, call, epoch, op] = [d[7] | 0, d[8] | 0, d[9], d[10] | 0];
    const owner = this.#worldRank(key, target);
    const isUpdate = kind === OpKind.UPDATE;
    const words = kind === OpKind.GET || this.#strict ? undefined : this.#wordsOf(key, owner, d, length, size);
    const time = this.#order.now(rank);
    // Before: who finds the word changed learns of what came before the operation.
    if (words !== undefined && reads === 0) this.#order.giveWords(words, rank);
    this.#order.called(rank);
    const within = this.#tellers[rank].epochs.get(epoch);
    const name = this.#text(rank, call);
    const common = {
      rank,
      time,
      site: this.#text(rank, site),
      call: name,
      isAlone: ALONE.test(name),
      window: this.#windows.get(key)?.name ?? key,
      target: owner,
      epoch: within,
      fenced: key,
      fences: within?.kind === 'fence' ? this.#order.fencesOf(key, rank) : 0,
      atomic: isUpdate ? base : -1,
      op: this.#strict ? op : -1,
      size,
      phase: 0,
      isMarked: false,
      done: false,
      completed: 0,
      known: 0,
      pending: undefined,
    };
    const teller = this.#tellers[rank];
    const { isAlone } = common;
    const takes = isUpdate && words !== undefined && !/accumulate$/.test(common.call) ? words : undefined;
    // Updates that bring nothing back and are under way are complete together, whatever has happened between them: a
    // record for all of them. Others of one count.
    const count = this.#countOf(rank, key, isUpdate && takes === undefined && !isAlone);
    teller.last = { target, site, call, alone: isAlone ? number : -1, count, common };
    for (let i = FIRST_PLACE; i + 1 < length; i += 2) {
      const place = this.#memories.placeOf(key, owner, d[i], d[i + 1]);
      if (place === undefined) continue;
      const phase = isUpdate ? (place.low % size) | 0 : 0;
      const alone = isAlone ? number : -1;
      const like = keyOf(KeyOf.TARGET, count, d[0], target, site, call, epoch, base * 8 + reads, phase, op, alone);
      const access = teller.records.find(like, () => ({
        ...common,
        side: 'target',
        writes: kind !== OpKind.GET && reads === 0,
        phase,
      }));
      const { isNew } = teller.records;
      access.time = time;
      this.#memories.access(place.memory, access, place.low, place.high, this.#order.momentOf(rank));
      if (words !== undefined && access.writes) this.#order.words.changedBy(access, words);
      if (isNew)
        this.#pend(rank, key, {
          ...{ access, number, target, endsHere: !access.writes, words: takes && [...takes], memory: -1 },
        });
      else if (takes !== undefined) this.#takesMore(access, takes);
    }
  }

  /**
   * What tells operations of a window apart that are not complete together, or, unless these are `together`, whose rank
   * has given its clock away between them.
   */
  #countOf(rank: number, key: string, together: boolean): number {
    const completions = this.#tellers[rank].completions.get(key) ?? 0;
    return together ? -1 - completions : this.#order.now(rank) * 2 ** 26 + completions;
  }

  #countCompletion(rank: number, key: string): void {
    const { completions } = this.#tellers[rank];
    completions.set(key, (completions.get(key) ?? 0) + 1);
  }

  /** The words of an operation that has the record of another one. */
  #takesMore(access: RaceAccess, words: WordPlaces): void {
    if (access.pending !== undefined) (access.pending.words ??= []).push(...words);
  }

  /** The words of an update of few elements, by their place. */
  #wordsOf(key: string, owner: number, d: Float64Array, length: number, size: number): WordPlaces | undefined {
    const words: number[] = [];
    for (let i = FIRST_PLACE; i + 1 < length; i += 2) {
      if (words.length / 2 + (d[i + 1] - d[i]) / size > MOST_WORDS) return undefined;
      const place = this.#memories.placeOf(key, owner, d[i], d[i + 1]);
      if (place === undefined) continue;
      for (let at = place.low; at < place.high; at += size) words.push(place.memory, at);
    }
    return words;
  }

  #use(rank: number, d: Float64Array, length: number): void {
    const key = this.#text(rank, d[0]);
    const number = d[1];
    const [memory, write, name] = [d[2], d[3] | 0, d[4] | 0];
    const teller = this.#tellers[rank];
    const { last } = teller;
    if (last === undefined) return;
    const side = this.#text(rank, name);
    const like = keyOf(KeyOf.USE, last.count, d[0], last.target, last.site, last.call, name, write, last.alone, 0, 0);
    const access = teller.records.find(like, () => ({
      ...last.common,
      atomic: -1,
      time: this.#order.now(rank),
      side,
      writes: write === 1,
    }));
    const { isNew } = teller.records;
    for (let i = 5; i + 1 < length; i += 2)
      this.#memories.access(memory, access, d[i], d[i + 1], this.#order.momentOf(rank));
    if (isNew) this.#pend(rank, key, { access, number, target: last.target, endsHere: true, words: undefined, memory });
    // Which memory is whose is known for the first only.
    else if (access.pending !== undefined && access.pending.memory !== memory) access.pending.memory = -1;
  }

  #pend(rank: number, key: string, pending: Pending): void {
    pending.access.pending = pending;
    const { pending: windows } = this.#tellers[rank];
    const list = windows.get(key);
    if (list === undefined) windows.set(key, [pending]);
    else list.push(pending);
  }

  // ---- completion ---------------------------------------------------------------------------------------------------

  #completed(rank: number, key: string, target: number, after: number, to: number, remote: boolean): void {
    const { pending } = this.#tellers[rank];
    const list = pending.get(key);
    if (list === undefined) return;
    this.#countCompletion(rank, key);
    const left: Pending[] = [];
    for (const one of list) {
      const isMeant = (target < 0 || one.target === target) && one.number > after && one.number <= to;
      if (!isMeant || !(remote || one.endsHere)) left.push(one);
      else this.#end(rank, one);
    }
    pending.set(key, left);
  }

  #end(rank: number, { access, words, memory }: Pending): void {
    access.done = true;
    access.pending = undefined;
    if (memory >= 0) this.#memories.ended(memory, access);
    this.#order.happened(rank);
    if (access.completed === 0) access.completed = this.#order.now(rank);
    if (words !== undefined) this.#order.takeWords(words, rank);
  }

  #pendingFor(rank: number, key: string, target: number): RaceAccess[] {
    const { pending } = this.#tellers[rank];
    this.#countCompletion(rank, key);
    const all = pending.get(key) ?? [];
    return all.filter((one) => one.target === target && one.access.side === 'target').map(({ access }) => access);
  }

  /** The same, of which this rank will not hear again. */
  #takeFor(rank: number, key: string, target: number): RaceAccess[] {
    const taken = this.#pendingFor(rank, key, target);
    const { pending } = this.#tellers[rank];
    const isTaken = (one: Pending): boolean => one.target === target && one.access.side === 'target';
    pending.set(
      key,
      (pending.get(key) ?? []).filter((one) => !isTaken(one)),
    );
    return taken;
  }

  /** A target learns that accesses to its part are complete. */
  #learn(rank: number, accesses: readonly RaceAccess[]): void {
    this.#order.happened(rank);
    for (const access of accesses) if (access.known === 0) access.known = this.#order.now(rank);
  }

  #fenceBegun(rank: number, key: string): void {
    const teller = this.#tellers[rank];
    const list = teller.pending.get(key) ?? [];
    teller.pending.delete(key);
    this.#countCompletion(rank, key);
    this.#order.happened(rank);
    // Those that come out of the fence know; this rank itself only when it does.
    for (const { access } of list) if (access.completed === 0) access.completed = this.#order.now(rank);
    teller.fenced.set(key, [...(teller.fenced.get(key) ?? []), ...list]);
    const ranks = this.#windows.get(key)?.ranks ?? [];
    this.#order.fenceBegun(key, rank, ranks.length);
  }

  #fenceEnded(rank: number, key: string): void {
    const teller = this.#tellers[rank];
    for (const one of teller.fenced.get(key) ?? []) this.#end(rank, one);
    teller.fenced.delete(key);
    this.#order.fenceEnded(key, rank);
    this.#tidy();
  }

  // ---- results ------------------------------------------------------------------------------------------------------

  /** Forgets what can no longer race, once there is much of it. */
  #tidy(): void {
    if (!this.#memories.isFull) return;
    const least: Clock = this.#order.least();
    this.#memories.sweep((access, isPrivate) => {
      if (access.side === undefined) return access.time <= least[access.rank];
      if (isPrivate) return access.done;
      if (access.known > 0 && access.known <= least[access.target]) return true;
      return access.done && access.completed > 0 && access.completed <= least[access.rank];
    });
  }

  #note(a: RaceAccess, b: RaceAccess, memory: number, low: number, high: number): void {
    const isMet = a.rank !== b.rank && a.time <= this.#order.clockOf(b.rank)[a.rank];
    const heard = isMet ? this.#order.heardBy(b.rank, a.rank) : undefined;
    const race = this.#findings.note(a, b, this.#memories.describe(memory, low, high), heard);
    if (race !== undefined) this.#found?.(race);
  }
}
