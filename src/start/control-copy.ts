/**
 * One copy of the control memory of a job whose ranks are on several hosts, and what the copies say to each other so
 * that they become alike. There are no sockets here: what this copy says is given to `send`, and what others have said
 * comes to `receive`.
 *
 * The copies form a star: all are connected to that of rank 0, the hub, which passes messages on. Each connection keeps
 * the order of what is sent, and loses nothing until it ends.
 *
 * Who writes a copy: the rank itself writes its own slot and the connections that it offers; this object, in the rank's
 * worker thread, writes the rest. FAILED is set by compare-and-swap, as everywhere. Everything is read and written with
 * `Atomics`, and a rank's state is stored after what belongs to it.
 *
 * What is believed of which rank: a member speaks of itself only, except that it may say of any rank that it has
 * failed, since it may have found a broken connection that no other rank uses. A state goes forward only: absent,
 * joined, finalized. So neither a member that is wrong nor messages that are garbage make a rank seem to be where it
 * was not.
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

export class ControlCopy {
  readonly #control: Control;
  readonly #rank: number;
  readonly #send: (to: number, message: Message) => void;
  /** The ranks that are connected; for a member, rank 0 or none. */
  readonly #peers = new Set<number>();
  /** At the hub: what others have said to a rank that has not come yet, by that rank and theirs. */
  readonly #kept = new Map<number, Map<number, number>>();
  /** What was said of this rank's words. */
  readonly #told: { state: number; readonly connections: Int32Array; news: number; readonly failed: Set<number> };

  /** @param send to a rank that was `connected` and not `lost` since */
  constructor(control: Control, rank: number, send: (to: number, message: Message) => void) {
    this.#control = control;
    this.#rank = rank;
    this.#send = send;
    this.#told = { state: RankState.ABSENT, connections: new Int32Array(control.size), news: 0, failed: new Set() };
  }

  /** Whether a rank has left in agreement with all others. */
  isFinalized(rank: number): boolean {
    return this.#stateOf(rank) === RankState.FINALIZED;
  }

  /** Whether all others have left, in agreement or not. */
  get isLast(): boolean {
    return this.#peers.size === 0;
  }

  /**
   * At the hub: whether a process that says it is rank `other` may be that rank. A rank that has come already, has
   * left, or has failed does not come again.
   */
  mayCome(other: unknown): other is number {
    if (!this.#isRank(other) || other === 0 || this.#peers.has(other)) return false;
    return this.#stateOf(other) === RankState.ABSENT && this.#failKindOf(other) === FailKind.NONE;
  }

  /** There is a connection with `other`. The hub says what the others have said before. */
  connected(other: number): void {
    this.#peers.add(other);
    if (this.#rank !== 0) return;
    const { connections, size, slots } = this.#control;
    for (let from = 0; from < size; from++) {
      const state = this.#stateOf(from);
      if (from !== other && state !== RankState.ABSENT)
        this.#send(other, { from, state, pid: Atomics.load(slots, this.#slot(from) + Slot.PID) });
    }
    const own = Atomics.load(connections, this.#control.connectionAt(0, other));
    if (own !== 0) this.#send(other, { from: 0, to: other, connection: own });
    for (const [from, connection] of this.#kept.get(other) ?? []) this.#send(other, { from, to: other, connection });
    this.#kept.delete(other);
    for (const failed of this.#failed()) this.#send(other, this.#failureOf(failed));
  }

  /**
   * The connection with `other` has ended: a rank that has not left in agreement has failed. Without the hub, a member
   * hears of no failure any more, whichever other rank fails.
   */
  lost(other: number): void {
    this.#peers.delete(other);
    if (this.isFinalized(other)) return;
    if (this.#rank !== 0) Atomics.store(this.#control.header, Header.DEAF, 1);
    declareFailed(this.#control, other, FailKind.VANISHED, 0);
  }

  /** At the hub: a rank that is not connected, and never was, will not come any more. */
  expectAll(): void {
    for (let other = 1; other < this.#control.size; other++) if (this.mayCome(other)) this.lost(other);
  }

  /** Says what this rank has written, and which failure it has found, since the last time. */
  look(): void {
    if (this.#peers.size === 0 && this.#rank !== 0) return;
    const { connections, header, size, slots } = this.#control;
    const told = this.#told;
    const news = Atomics.load(header, Header.NEWS);
    if (news !== told.news) {
      told.news = news;
      for (const failed of this.#failed()) {
        if (told.failed.has(failed)) continue;
        told.failed.add(failed);
        this.#spread(this.#failureOf(failed));
      }
    }
    const state = this.#stateOf(this.#rank);
    if (state !== told.state) {
      told.state = state;
      this.#spread({ from: this.#rank, state, pid: Atomics.load(slots, this.#slot(this.#rank) + Slot.PID) });
    }
    for (let to = 0; to < size; to++) {
      const connection = Atomics.load(connections, this.#control.connectionAt(this.#rank, to));
      if (connection === told.connections[to]) continue;
      told.connections[to] = connection;
      this.#spread({ from: this.#rank, to, connection });
    }
  }

  /** What `other` says. Whatever is not a message is ignored. */
  receive(other: number, message: Message): void {
    const { failed, from } = message;
    if (this.#isRank(failed)) this.#applyFailure(failed, message);
    // Rank 0 speaks for all, the others for themselves.
    if (!this.#isRank(from) || from === this.#rank || (this.#rank === 0 && from !== other)) return;
    this.#applyState(from, message);
    this.#applyConnection(from, message);
  }

  #applyFailure(failed: number, { kind, value }: Message): void {
    if (!KINDS.has(kind) || this.isFinalized(failed)) return;
    declareFailed(this.#control, failed, kind as number, isWord(value) ? value : 0);
    // The hub passes it on when it looks; a member has it from there.
    if (this.#rank !== 0) this.#told.failed.add(failed);
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
    this.#passOn(from, { from, state, pid: number });
  }

  #applyConnection(from: number, { to, connection }: Message): void {
    if (!this.#isRank(to) || to === from || !isWord(connection) || connection === 0) return;
    const { connections, slots } = this.#control;
    if (to === this.#rank) {
      Atomics.store(connections, this.#control.connectionAt(from, to), connection);
      Atomics.store(slots, this.#slot(this.#rank) + Slot.CONNECT_BELL, 1);
    } else if (this.#rank !== 0) return;
    else if (this.#peers.has(to)) this.#send(to, { from, to, connection });
    else if (this.mayCome(to)) this.#keep(from, to, connection);
  }

  #keep(from: number, to: number, connection: number): void {
    if (!this.#kept.has(to)) this.#kept.set(to, new Map());
    this.#kept.get(to)!.set(from, connection);
  }

  /** Says something of this rank to those that it concerns: a member to the hub, the hub to one or all. */
  #spread(message: Message): void {
    const { to } = message;
    if (this.#rank === 0 && to !== undefined) {
      if (this.#peers.has(to)) this.#send(to, message);
    } else for (const other of this.#peers) this.#send(other, message);
  }

  #passOn(source: number, message: Message): void {
    if (this.#rank === 0) for (const other of this.#peers) if (other !== source) this.#send(other, message);
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
