/**
 * Which ranks have failed, as one rank of the job sees it; what an error of the device says of that; and the checks
 * whether ranks still live.
 *
 * The first look is one load of the header's FAILED, which is 0 while no rank has failed. Only when it is not 0 does a
 * rank ask which ranks have failed: NEWS rises with each declaration, after the slot of that rank says FAILED. So a
 * rank that reads NEWS and then the slots has at least all failures of that number, and reads the slots again only when
 * NEWS has risen.
 */
import { LostConnectionError, LostQueueError, RankFailedError, RmaError } from '../errors.ts';
import { type Control, declareFailed, FailKind, Header, RankState, Slot } from './control-region.ts';
import type { Membership } from './membership.ts';

/** How long after an error of the device the failure that explains it may still come to light. */
const EXPLAIN_WITHIN_MS = 500;
/** Where no launcher watches the ranks, a rank looks at one in so many peers each time that it wakes. */
const SHARE_INSPECTED = 16;
/** How long the launcher has to say how a rank ended before its peers say that it is gone. */
const WATCHER_MS = 300;

/** What the failures of ranks mean for the rest of the job at this rank. */
export interface Consequences {
  /** A rank is known to have failed: it sends and takes nothing any more. */
  failed(rank: number): void;
  /** A rank has called `abort`: this one ends, too. */
  exit(code: number): never;
  /** Whether this rank has left the job. */
  isFinalized(): boolean;
}

/** Ranks whose failures are asked for, and what `RankFailures` keeps of the answer. */
export interface AskedAbout {
  /** @param rank of the job */
  has(rank: number): boolean;
  /** The one that has failed, or −1, as of what was read then. */
  failed: number;
  failuresRead: number;
}

export class RankFailures {
  readonly #membership: Membership;
  readonly #control: Control;
  readonly #rank: number;
  readonly #size: number;
  readonly #consequences: Consequences;
  /** Those that are known, the first of the job before the others. */
  #failed: number[] = [];
  /** NEWS when they were read. */
  #read = -1;
  /** The error of a rank that has failed, to be told again and again. */
  readonly #errors = new Map<number, RankFailedError>();
  /** Errors that no failure was found behind: what is lost says the same each time. */
  readonly #unexplained = new WeakSet<RmaError>();
  /** When a rank was first found gone. */
  readonly #missed = new Map<number, number>();
  /** The peer that was looked at last. */
  #inspected: number;

  constructor(membership: Membership, consequences: Consequences) {
    this.#membership = membership;
    this.#control = membership.control;
    this.#rank = membership.rank;
    this.#size = membership.size;
    this.#inspected = membership.rank;
    this.#consequences = consequences;
  }

  /**
   * The failure of one of these ranks, if there is one; that of this rank, if the others say that it has failed: then
   * they have gone on without it. A new error each time, so that its stack shows the call that asked.
   */
  among(members: AskedAbout): RankFailedError | undefined {
    const first = Atomics.load(this.#control.header, Header.FAILED);
    return first === 0 ? undefined : this.#amongThose(members, first - 1);
  }

  /** Whether a rank has been declared failed. One load. */
  hasFailed(rank: number): boolean {
    return isFailed(this.#control, rank);
  }

  /** Whether a rank takes part in nothing any more: it has failed, or it has left the job. Two loads. */
  isGone(rank: number): boolean {
    return isFailed(this.#control, rank) || this.#stateOf(rank) === RankState.FINALIZED;
  }

  #amongThose(members: AskedAbout, first: number): RankFailedError | undefined {
    const news = Atomics.load(this.#control.header, Header.NEWS);
    if (news !== this.#read) {
      this.#readSlots(first);
      this.#read = news;
    }
    if (members.failuresRead !== this.#read) {
      members.failed = this.#failed.find((rank) => members.has(rank)) ?? -1;
      members.failuresRead = this.#read;
    }
    const { failed } = members;
    if (failed >= 0) return this.#errorOf(failed);
    // A rank that hears of no failures any more cannot know that these live.
    return Atomics.load(this.#control.header, Header.DEAF) === 0 ? undefined : this.#errorOf(first);
  }

  #readSlots(first: number): void {
    const { slots, slotWords } = this.#control;
    const failed: number[] = [];
    for (let rank = 0; rank < this.#size; rank++) {
      if (!isFailed(this.#control, rank)) continue;
      const kind = Atomics.load(slots, rank * slotWords + Slot.FAIL_KIND);
      if (rank === this.#rank) {
        if (kind === FailKind.UNREACHABLE || kind === FailKind.VANISHED) failed.push(rank);
        continue;
      }
      if (kind === FailKind.ABORTED) this.#consequences.exit(Atomics.load(slots, rank * slotWords + Slot.FAIL_VALUE));
      if (!this.#failed.includes(rank)) this.#consequences.failed(rank);
      if (rank === first) failed.unshift(rank);
      else failed.push(rank);
    }
    this.#failed = failed;
  }

  #errorOf(rank: number): RankFailedError {
    let error = this.#errors.get(rank);
    if (error === undefined) this.#errors.set(rank, (error = new RankFailedError(rank, this.#describe(rank))));
    return error.again();
  }

  /**
   * The failure of one of these ranks, if that is what is behind an error of the device; else the error itself. A
   * rank's memory and connections can be gone before those that watch it know of its end, so this waits a moment for
   * the news.
   *
   * A rank on another host whose device does not answer any more has failed as far as this one is concerned, whatever
   * has become of it: its host, the network, or what ends here. If nothing better is known soon, this rank says so.
   *
   * A message of the wrong size, or of another call, can result from a failure, too. A rank that has learnt of the
   * failure ends its collective call and goes on to the next one; a rank that has not learnt of it takes the messages
   * of the next call for those of the first. The failure is known by then.
   */
  explain(error: unknown, members: AskedAbout): unknown {
    if (!(error instanceof RmaError) || this.#size === 1 || this.#consequences.isFinalized()) return error;
    if (error.code === 'ERR_TRUNCATE' || error.code === 'ERR_COLLECTIVE') return this.among(members) ?? error;
    if (error.code !== 'ERR_VERBS') return error;
    // What is lost here, no other rank explains.
    if (error instanceof LostQueueError) return this.among(members) ?? error.again();
    const { context, tasks } = this.#membership;
    // In virtual time nothing is learnt later than it happens.
    if (tasks !== undefined || this.#unexplained.has(error)) return this.among(members) ?? this.#again(error);
    const { parking } = context;
    const deadline = performance.now() + EXPLAIN_WITHIN_MS;
    for (;;) {
      const token = parking.arm();
      try {
        this.inspectAll();
        const failure = this.among(members);
        if (failure !== undefined) return failure;
        const left = deadline - performance.now();
        if (left <= 0) {
          this.#unexplained.add(error);
          return this.#unreachable(error) ?? this.#again(error);
        }
        parking.sleepSync(token, Math.min(left, 20));
      } finally {
        parking.disarm();
      }
    }
  }

  /**
   * A lost connection is kept, and told to every call that comes after: each gets an error of its own, whose stack
   * shows it.
   */
  #again(error: RmaError): RmaError {
    if (!(error instanceof LostConnectionError)) return error;
    const own = error.again();
    this.#unexplained.add(own);
    return own;
  }

  /** The failure of the rank that a connection was lost with, if nothing else can tell whether it lives. */
  #unreachable(error: RmaError): RmaError | undefined {
    if (!(error instanceof LostConnectionError) || !this.#membership.distant) return undefined;
    // A request can fail before the port that it was to leave by is known to be down.
    const trouble = error.unreachable ? undefined : this.#membership.context.trouble?.();
    if (!error.unreachable && trouble === undefined) return undefined;
    // What was still under way to one that has left in agreement was not needed any more.
    if (this.#stateOf(error.rank) === RankState.FINALIZED) return undefined;
    declareFailed(this.#control, error.rank, FailKind.UNREACHABLE, this.#rank);
    const why = trouble === undefined ? error.message : `${error.message} (${trouble})`;
    const failure = new RankFailedError(error.rank, `${this.#describe(error.rank)}; ${why}`, { cause: error });
    this.#errors.set(error.rank, failure);
    return failure.again();
  }

  #describe(rank: number): string {
    const { slots, slotWords } = this.#control;
    const slot = rank * slotWords;
    const value = Atomics.load(slots, slot + Slot.FAIL_VALUE);
    const itself = rank === this.#rank ? ', this one' : '';
    const who = `rank ${rank} (${this.#membership.describe(rank)}${itself})`;
    switch (Atomics.load(slots, slot + Slot.FAIL_KIND)) {
      case FailKind.EXIT_CODE:
        return `${who} exited with code ${value}`;
      case FailKind.SIGNAL:
        return `${who} was killed by signal ${value}`;
      case FailKind.NO_FINALIZE:
        return `${who} ended without finalize() while other ranks still wait for it${this.#behind(rank)}`;
      case FailKind.GAVE_UP:
        return `${who} gave up waiting in init()`;
      case FailKind.ABORTED:
        return `${who} called abort(${value})`;
      case FailKind.LAUNCHER_GONE:
        return `the launcher of the job is gone`;
      case FailKind.UNREACHABLE:
        return (
          `${who} can no longer be reached from rank ${value}: its host, ` +
          'its device or the network between them is down'
        );
      default:
        return `${who} is gone`;
    }
  }

  /** A rank often ends so because another one has failed before. */
  #behind(rank: number): string {
    const first = Atomics.load(this.#control.header, Header.FAILED) - 1;
    return first < 0 || first === rank ? '' : `, after ${this.#describe(first)}`;
  }

  // ---- looks at processes -------------------------------------------------------------------------------------------

  /** Some system calls a rank. */
  inspectAll(): void {
    for (let rank = 0; rank < this.#size; rank++) this.#inspect(rank);
  }

  /**
   * Looks at some peers, and the next time at the next ones. Ranks begin behind their own number, so where all ranks
   * wait, each is looked at by the same number of others. A launcher knows of a rank's end before its peers do, so
   * under a launcher one peer at a time is enough: that is for the case that the launcher is gone, too.
   */
  inspectSome(): void {
    const count = this.#membership.watched ? 1 : Math.ceil(this.#size / SHARE_INSPECTED);
    for (let i = 0; i < count; i++) {
      this.#inspected = (this.#inspected + 1) % this.#size;
      this.#inspect(this.#inspected);
    }
    for (const rank of this.#missed.keys()) this.#inspect(rank);
  }

  #inspect(rank: number): void {
    if (rank === this.#rank || this.#stateOf(rank) === RankState.FINALIZED || isFailed(this.#control, rank)) return;
    if (this.#membership.alive(rank)) return;
    // It may have finalized and exited between the two looks.
    if (this.#stateOf(rank) === RankState.FINALIZED) return;
    if (this.#membership.watched && !this.#missedFor(rank, WATCHER_MS)) return;
    if (!declareFailed(this.#control, rank, FailKind.VANISHED, 0)) return;
    for (let other = 0; other < this.#size; other++) this.#membership.context.wake(other);
  }

  /** Whether the rank has been found gone for that long. */
  #missedFor(rank: number, ms: number): boolean {
    const now = performance.now();
    const since = this.#missed.get(rank) ?? now;
    this.#missed.set(rank, since);
    return now - since >= ms;
  }

  #stateOf(rank: number): number {
    return Atomics.load(this.#control.slots, rank * this.#control.slotWords + Slot.STATE);
  }
}

function isFailed({ slots, slotWords }: Control, rank: number): boolean {
  return Atomics.load(slots, rank * slotWords + Slot.FAILED) !== 0;
}
