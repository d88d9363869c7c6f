/**
 * One copy of the control memory of a job whose ranks are on several hosts, and what the copies say to each other so
 * that they become alike. There are no sockets here: what this copy says is given to `send`, and what others have said
 * comes to `receive`.
 *
 * A copy is that of a place: of one rank, or of several that share memory. It bears the number of the first of them,
 * its leader. The copies form a star: all are connected to that of rank 0, the hub, which passes messages on. Each
 * connection keeps the order of what is sent, and loses nothing until it ends.
 *
 * Who writes a copy: a rank of the place writes its own slot and the connections that it offers; this object, in one
 * thread, writes the rest. FAILED is set by compare-and-swap, as everywhere. Everything is read and written with
 * `Atomics`, and a rank's state is stored after what belongs to it.
 *
 * What is believed of which rank: a copy speaks of its own ranks only, except that it may say of any rank that it has
 * failed, since one of its ranks may have found a broken connection that no other rank uses. A state goes forward only:
 * absent, joined, finalized. So neither a member that is wrong nor messages that are garbage make a rank seem to be
 * where it was not.
 */
import { type Control, declareFailed, FailKind, Header, RankState, Slot } from '../job/control-region.ts';

/**
 * What copies say to each other: a rank's state; the number of a queue pair that `from` has made for `to`; that a rank
 * has failed.
 */
export interface Message {
  readonly from?: number;
  readonly state?: number;
  readonly pid?: number;
  readonly to?: number;
  readonly connection?: number;
  readonly failed?: number;
  readonly kind?: number;
  readonly value?: number;
}

const KINDS: ReadonlySet<unknown> = new Set(Object.values(FailKind).filter((kind) => kind !== FailKind.NONE));

/** What was said of one of this copy's ranks. */
interface Told {
  state: number;
  readonly connections: Int32Array;
}

export class ControlCopy {
  readonly #control: Control;
  readonly #leader: number;
  readonly #leaderOf: readonly number[];
  readonly #own: readonly number[];
  readonly #send: (to: number, message: Message) => void;
  /** The copies that are connected; for a member, the hub's or none. */
  readonly #peers = new Set<number>();
  /** Those that were, or were given up. */
  readonly #came = new Set<number>();
  /** At the hub: what ranks have said to one whose copy has not come yet, by that rank and theirs. */
  readonly #kept = new Map<number, Map<number, number>>();
  readonly #told: ReadonlyMap<number, Told>;
  #news = 0;
  readonly #failures = new Set<number>();

  /**
   * @param leader this copy's
   * @param send to a copy that was `connected` and not `lost` since
   * @param leaderOf the leader of each rank's copy; each rank has one of its own unless this says otherwise
   */
  constructor(
    control: Control,
    leader: number,
    send: (to: number, message: Message) => void,
    leaderOf: readonly number[] = Array.from({ length: control.size }, (_, rank) => rank),
  ) {
    this.#control = control;
    this.#leader = leader;
    this.#leaderOf = leaderOf;
    this.#own = this.#ranksOf(leader);
    this.#send = send;
    this.#told = new Map(
      this.#own.map((rank) => [rank, { state: RankState.ABSENT, connections: new Int32Array(control.size) }]),
    );
  }

  /** Whether all ranks of a copy have left in agreement with all others. */
  isFinalized(leader: number): boolean {
    return this.#ranksOf(leader).every((rank) => this.#stateOf(rank) === RankState.FINALIZED);
  }

  /** Whether all others have left, in agreement or not. */
  get isLast(): boolean {
    return this.#peers.size === 0;
  }

  /**
   * At the hub: whether who says that it is copy `other` may be that. One that has come already, or all of whose ranks
   * have left or failed, does not come.
   */
  mayCome(other: unknown): other is number {
    if (!this.#isRank(other) || other === 0 || this.#leaderOf[other] !== other || this.#came.has(other)) return false;
    return this.#ranksOf(other).some(
      (rank) => this.#stateOf(rank) === RankState.ABSENT && this.#failKindOf(rank) === FailKind.NONE,
    );
  }

  /** There is a connection with `other`. The hub says what the others have said before. */
  connected(other: number): void {
    this.#peers.add(other);
    this.#came.add(other);
    if (this.#leader !== 0) return;
    const { connections, size, slots } = this.#control;
    const theirs = this.#ranksOf(other);
    for (let from = 0; from < size; from++) {
      const state = this.#stateOf(from);
      if (this.#leaderOf[from] !== other && state !== RankState.ABSENT)
        this.#send(other, { from, state, pid: Atomics.load(slots, this.#slot(from) + Slot.PID) });
    }
    for (const to of theirs) {
      for (const from of this.#own) {
        const connection = Atomics.load(connections, this.#control.connectionAt(from, to));
        if (connection !== 0) this.#send(other, { from, to, connection });
      }
      for (const [from, connection] of this.#kept.get(to) ?? []) this.#send(other, { from, to, connection });
      this.#kept.delete(to);
    }
    for (const failed of this.#failed()) this.#send(other, this.#failureOf(failed));
  }

  /**
   * The connection with `other` has ended: its ranks that have not left in agreement have failed. Without the hub, a
   * member hears of no failure any more, whichever other rank fails.
   */
  lost(other: number): void {
    this.#peers.delete(other);
    this.#came.add(other);
    const failed = this.#ranksOf(other).filter((rank) => this.#stateOf(rank) !== RankState.FINALIZED);
    if (failed.length === 0) return;
    if (this.#leader !== 0) Atomics.store(this.#control.header, Header.DEAF, 1);
    for (const rank of failed) declareFailed(this.#control, rank, FailKind.VANISHED, 0);
  }

  /** At the hub: a copy that is not connected, and never was, will not come any more. */
  expectAll(): void {
    for (let other = 1; other < this.#control.size; other++) if (this.mayCome(other)) this.lost(other);
  }

  /** Says what this copy's ranks have written, and which failures they have found, since the last time. */
  look(): void {
    if (this.#peers.size === 0 && this.#leader !== 0) return;
    const { header, slots } = this.#control;
    const news = Atomics.load(header, Header.NEWS);
    if (news !== this.#news) {
      this.#news = news;
      for (const failed of this.#failed()) {
        if (this.#failures.has(failed)) continue;
        this.#failures.add(failed);
        this.#spread(this.#failureOf(failed));
      }
    }
    for (const [rank, told] of this.#told) {
      const state = this.#stateOf(rank);
      if (state !== told.state) {
        told.state = state;
        this.#spread({ from: rank, state, pid: Atomics.load(slots, this.#slot(rank) + Slot.PID) });
      }
      this.#lookAtConnections(rank, told.connections);
    }
  }

  #lookAtConnections(from: number, told: Int32Array): void {
    const { connections, size } = this.#control;
    for (let to = 0; to < size; to++) {
      const connection = Atomics.load(connections, this.#control.connectionAt(from, to));
      if (connection === told[to]) continue;
      told[to] = connection;
      // Those of one place read it themselves.
      if (this.#leaderOf[to] !== this.#leader) this.#spread({ from, to, connection });
    }
  }

  /** What `other` says. Whatever is not a message is ignored. */
  receive(other: number, message: Message): void {
    const { failed, from } = message;
    if (this.#isRank(failed)) this.#applyFailure(failed, message);
    // The hub speaks for all, the others for themselves.
    if (!this.#isRank(from) || this.#leaderOf[from] === this.#leader) return;
    if (this.#leader === 0 && this.#leaderOf[from] !== other) return;
    this.#applyState(from, message);
    this.#applyConnection(from, message);
  }

  #applyFailure(failed: number, { kind, value }: Message): void {
    if (!KINDS.has(kind) || this.#stateOf(failed) === RankState.FINALIZED) return;
    declareFailed(this.#control, failed, kind as number, isWord(value) ? value : 0);
    // The hub passes it on when it looks; a member has it from there.
    if (this.#leader !== 0) this.#failures.add(failed);
  }

  #applyState(from: number, { state, pid }: Message): void {
    const before = this.#stateOf(from);
    if ((state !== RankState.JOINED && state !== RankState.FINALIZED) || state <= before) return;
    const { header, slots } = this.#control;
    const slot = this.#slot(from);
    const number = isWord(pid) ? pid : 0;
    Atomics.store(slots, slot + Slot.PID, number);
    Atomics.store(slots, slot + Slot.STATE, state);
    if (before === RankState.ABSENT) Atomics.add(header, Header.JOINED, 1);
    if (state === RankState.FINALIZED) Atomics.add(header, Header.FINALIZED, 1);
    this.#passOn(this.#leaderOf[from], { from, state, pid: number });
  }

  #applyConnection(from: number, { to, connection }: Message): void {
    if (!this.#isRank(to) || to === from || !isWord(connection) || connection === 0) return;
    const { connections, slots } = this.#control;
    const leader = this.#leaderOf[to];
    if (leader === this.#leader) {
      Atomics.store(connections, this.#control.connectionAt(from, to), connection);
      Atomics.store(slots, this.#slot(to) + Slot.CONNECT_BELL, 1);
    } else if (this.#leader !== 0) return;
    else if (this.#peers.has(leader)) this.#send(leader, { from, to, connection });
    else if (this.mayCome(leader)) this.#keep(from, to, connection);
  }

  #keep(from: number, to: number, connection: number): void {
    if (!this.#kept.has(to)) this.#kept.set(to, new Map());
    this.#kept.get(to)!.set(from, connection);
  }

  /** Says something of an own rank to those that it concerns: a member to the hub, the hub to one or all. */
  #spread(message: Message): void {
    const { to } = message;
    if (this.#leader === 0 && to !== undefined) {
      const leader = this.#leaderOf[to];
      if (this.#peers.has(leader)) this.#send(leader, message);
    } else for (const other of this.#peers) this.#send(other, message);
  }

  #passOn(source: number, message: Message): void {
    if (this.#leader === 0) for (const other of this.#peers) if (other !== source) this.#send(other, message);
  }

  /** Those that have failed, the first of the job before the others. */
  #failed(): number[] {
    const { header, size, slots } = this.#control;
    const first = Atomics.load(header, Header.FAILED) - 1;
    const isFailed = (rank: number): boolean => Atomics.load(slots, this.#slot(rank) + Slot.FAILED) !== 0;
    const others = Array.from({ length: size }, (_, rank) => rank).filter((rank) => rank !== first && isFailed(rank));
    return first < 0 ? others : [first, ...others];
  }

  #failureOf(failed: number): Message {
    const { slots } = this.#control;
    const slot = this.#slot(failed);
    const kind = this.#failKindOf(failed);
    return { failed, kind, value: Atomics.load(slots, slot + Slot.FAIL_VALUE) };
  }

  #failKindOf(rank: number): number {
    return Atomics.load(this.#control.slots, this.#slot(rank) + Slot.FAIL_KIND);
  }

  #ranksOf(leader: number): number[] {
    return [...this.#leaderOf.keys()].filter((rank) => this.#leaderOf[rank] === leader);
  }

  #stateOf(rank: number): number {
    return Atomics.load(this.#control.slots, this.#slot(rank) + Slot.STATE);
  }

  #slot(rank: number): number {
    return rank * this.#control.slotWords;
  }

  #isRank(value: unknown): value is number {
    return Number.isInteger(value) && (value as number) >= 0 && (value as number) < this.#control.size;
  }
}

function isWord(value: unknown): value is number {
  return typeof value === 'number' && (value | 0) === value;
}
