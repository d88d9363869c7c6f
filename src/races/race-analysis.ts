/**
 * The analysis of races: takes the events of all ranks in an order in which what gives comes before what takes it, and
 * finds accesses to common bytes that nothing orders (docs/decisions/050-races.md). No I/O, no clock.
 *
 * Memory: a vector clock for each rank, and for what was given and not taken yet; the shadow of windows. What can no
 * longer race is forgotten from time to time.
 */
import type { Clock, RaceAccess } from './race-access.ts';
import { RaceAccesses } from './race-accesses.ts';
import { RaceCompletions } from './race-completions.ts';
import { RaceEvent } from './race-events.ts';
import { Findings, type Race, type RaceReport } from './race-findings.ts';
import { RaceMemories } from './race-memories.ts';
import { RaceOrder } from './race-order.ts';
import { RaceTellers } from './race-tellers.ts';

export interface AnalysisOptions {
  /** Atomic calls order nothing. */
  readonly strict?: boolean;
  /** Bytes for what was accessed; default: six times the windows, at least 64 MiB and at most 1 GiB. */
  readonly memory?: number;
  /** Told of each race as it is found. */
  readonly found?: (race: Race) => void;
}

export class RaceAnalysis {
  readonly #order: RaceOrder;
  readonly #memories: RaceMemories;
  readonly #findings = new Findings();
  readonly #tellers: RaceTellers;
  readonly #completions: RaceCompletions;
  readonly #accesses: RaceAccesses;
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
    this.#tellers = new RaceTellers(size);
    this.#memories = new RaceMemories(this.#order.words, memory, (...found) => this.#note(...found));
    this.#completions = new RaceCompletions(this.#tellers, this.#order, this.#memories);
    this.#accesses = new RaceAccesses(this.#tellers, this.#order, this.#memories, this.#completions, strict);
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
    this.#tellers.of(rank).texts.set(id, text);
  }

  /**
   * Whether what an event takes was given; otherwise events of other ranks come first, if there are any.
   * @param several clocks told the times: then whatever can be known is looked at
   */
  isReady(rank: number, kind: number, d: Float64Array, length: number, several = false): boolean {
    if (kind === RaceEvent.LEFT) return this.#order.haveMet(this.#tellers.text(rank, d[0]), d[1], d[2]);
    if (kind === RaceEvent.FENCE_ENDED) return this.#order.haveFenced(this.#tellers.text(rank, d[0]), rank);
    if (kind === RaceEvent.RECEIVED) return this.#order.hasSent(this.#tellers.text(rank, d[0]), d[1], rank);
    return !several || this.#canTake(rank, kind, d, length);
  }

  #canTake(rank: number, kind: number, d: Float64Array, length: number): boolean {
    const order = this.#order;
    const scope = this.#tellers.text(rank, d[0]);
    const from = (edge: string): boolean =>
      d
        .subarray(1, length)
        .every((place) => order.hasSent(`${edge} ${scope}`, this.#tellers.worldRank(scope, place), rank));
    if (kind === RaceEvent.STARTED) return from('post');
    if (kind === RaceEvent.WAITED) return from('complete');
    if (kind === RaceEvent.TOOK) return order.hasNotified(scope, rank);
    if (kind === RaceEvent.LOCKED) return order.isFree(`${scope}:${d[1]}`, d[2] === 1);
    if (kind === RaceEvent.OPERATION) {
      const owner = this.#tellers.worldRank(scope, d[1]);
      // Of one that has told nothing, nothing is to come.
      return this.#tellers.of(owner).texts.size === 0 || this.#memories.hasPart(scope, owner);
    }
    return true;
  }

  event(rank: number, kind: number, d: Float64Array, length: number): void {
    this.#events++;
    switch (kind) {
      case RaceEvent.ACCESS:
        this.#accesses.access(rank, d, -1);
        break;
      case RaceEvent.ATOMIC:
        this.#accesses.atomic(rank, d);
        break;
      case RaceEvent.PART_ACCESS:
        this.#accesses.partAccess(rank, d);
        break;
      case RaceEvent.OPERATION:
        this.#accesses.operation(rank, d, length);
        break;
      case RaceEvent.USE:
        this.#accesses.use(rank, d, length);
        break;
      case RaceEvent.COMPLETED:
        this.#completions.completed(rank, this.#tellers.text(rank, d[0]), d[1], d[2], d[3], d[4] === 1);
        break;
      case RaceEvent.EPOCH:
        this.#tellers
          .of(rank)
          .epochs.set(d[0], { kind: this.#tellers.text(rank, d[1]), site: this.#tellers.text(rank, d[2]) });
        break;
      case RaceEvent.UNSEEN:
        this.#unseen.add(this.#tellers.text(rank, d[0]));
        break;
      default:
        this.#synchronize(rank, kind, d, length);
    }
  }

  #synchronize(rank: number, kind: number, d: Float64Array, length: number): void {
    const order = this.#order;
    const scope = this.#tellers.text(rank, d[0]);
    switch (kind) {
      case RaceEvent.ARRIVED:
        order.arrive(scope, d[1], rank, { size: d[2], meeting: d[3], root: d[4], place: d[5] });
        break;
      case RaceEvent.LEFT:
        order.leave(scope, d[1], rank, d[2]);
        this.#tidy();
        break;
      case RaceEvent.FENCE_BEGUN:
        this.#completions.fenceBegun(rank, scope);
        break;
      case RaceEvent.FENCE_ENDED:
        this.#completions.fenceEnded(rank, scope);
        this.#tidy();
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
    const world = (place: number): number => this.#tellers.worldRank(scope, place);
    switch (kind) {
      case RaceEvent.POSTED:
        for (const origin of members(1)) order.send(`post ${scope}`, rank, world(origin), undefined);
        break;
      case RaceEvent.STARTED:
        for (const target of members(1)) order.receive(`post ${scope}`, world(target), rank, 'post');
        break;
      case RaceEvent.COMPLETE_BEGUN:
        this.#completions.completed(rank, scope, -1, 0, Number.POSITIVE_INFINITY, false);
        break;
      case RaceEvent.TOLD:
        for (const target of members(1))
          order.send(`complete ${scope}`, rank, world(target), this.#completions.takeFor(rank, scope, target));
        break;
      case RaceEvent.WAITED:
        for (const origin of members(1))
          this.#completions.learn(rank, order.receive(`complete ${scope}`, world(origin), rank, 'complete'));
        break;
      case RaceEvent.NOTIFIED:
        order.notify(scope, rank, world(d[1]), this.#completions.pendingFor(rank, scope, d[1]));
        break;
      case RaceEvent.TOOK:
        this.#completions.learn(rank, order.takeNotifications(scope, rank));
        break;
      default:
        this.#describe(rank, kind, scope, d, length);
    }
  }

  #describe(rank: number, kind: number, scope: string, d: Float64Array, length: number): void {
    switch (kind) {
      case RaceEvent.COMMUNICATOR:
        if (!this.#tellers.communicators.has(scope))
          this.#tellers.communicators.set(
            scope,
            Array.from(d.subarray(2, length), (member) => member | 0),
          );
        break;
      case RaceEvent.WINDOW: {
        const name = this.#tellers.text(rank, d[1]);
        const ranks = this.#tellers.communicators.get(this.#tellers.text(rank, d[2])) ?? [];
        if (!this.#tellers.windows.has(scope)) this.#tellers.windows.set(scope, { key: scope, name, ranks });
        if (d[6] === 0) this.#memories.part(scope, rank, d[3], d[4], d[5], name);
        break;
      }
      case RaceEvent.ATTACH:
        this.#memories.attach(scope, rank, d[1], d[2], d[3], d[4], this.#tellers.windows.get(scope)?.name ?? scope);
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
