/** Which epochs are open on a window at this rank, what they allow, and the words for it where something is not allowed. */
import type { Communicator } from '../comm/communicator.ts';
import type { LocksAtRank } from '../comm/deadlock.ts';
import { type Group, Rank, showRank } from '../comm/group.ts';
import type { Messenger } from '../comm/messages.ts';
import type { Side } from '../datatype/layout.ts';
import { debugs } from '../debug.ts';
import { argumentRangeError, argumentTypeError, RmaError } from '../errors.ts';
import { LockBit } from '../sync/lock/scheme.ts';
import { memoryFence } from '../transfer/remote-part.ts';
import { AccessLog, LOG_ACCESSES } from './access-log.ts';
import type { WindowParts } from './creation/parts.ts';
import { LOCKED, type Target, type Targets } from './target.ts';

/** `Epochs.open`: epochs that open all targets at once. */
export const FENCE = 1;
export const LOCK_ALL = 2;

/** What `Epochs.busy` says when the wait of a fence or of a complete ended early: each goes on when it is called again. */
export const INTERRUPTED = 'fence whose wait ended early';
export const INTERRUPTED_COMPLETE = 'complete whose wait ended early';
const REMEDIES: Readonly<Record<string, string>> = {
  [INTERRUPTED]: 'call fence again',
  [INTERRUPTED_COMPLETE]: 'call complete again',
};

/** For debugging: error messages about an epoch that was left open say where that was. Takes some microseconds an epoch. */
const NOTE_OPENINGS = debugs('epochs');

/** The rank whose lock was taken, or the call that has opened an epoch. */
type Opening = number | 'fence' | 'lockAll' | 'start' | 'post';

export class Epochs {
  readonly comm: Communicator;
  readonly group: Group;
  name: string;
  /** Those that were made, by rank. Emptied when the window is freed, which closes the fast path. */
  targets: readonly (Target | undefined)[];
  readonly #targets: Targets;
  /** `FENCE`, `LOCK_ALL`, or 0; single targets are opened by `Target.held`. */
  open = 0;
  /** Something was issued in the epoch that the last fence opened. */
  used = false;
  /** Plain stores were made that no fence instruction has followed. */
  dirty = false;
  /** Targets of the access epoch that `start` has opened, or is about to. */
  started: readonly number[] | undefined;
  /** Origins of the exposure epoch that `post` has opened. */
  exposed: readonly number[] | undefined;
  /** Targets whose lock this rank holds. */
  held = 0;
  /** Locks of `Rank.NULL`: they open an epoch in which nothing can be accessed, and that is no error. */
  nullLocks = 0;
  /** Locks that are being waited for. */
  waiting = 0;
  /** The synchronization call that is under way: nothing may be issued meanwhile. */
  busy: string | undefined;
  freed = false;
  /** For debugging only. */
  readonly accesses = LOG_ACCESSES ? new AccessLog() : undefined;
  /** Where each epoch was last opened, if that is noted: by its target, or by the call. */
  readonly #openedAt = new Map<Opening, string | undefined>();
  /** For the message of a deadlock. */
  readonly locks: LocksAtRank;
  readonly #messenger: Messenger;
  readonly #poll = (): void => this.#messenger.poll();

  constructor(parts: WindowParts) {
    this.comm = parts.comm;
    this.group = parts.comm.group;
    this.name = parts.name;
    this.#messenger = parts.comm.job.messenger;
    this.#targets = parts.targets;
    this.targets = parts.targets.made;
    const { worldRanks } = this.group;
    const world = (holds: (t: Target) => boolean): readonly number[] => this.#ranks(holds).map((r) => worldRanks[r]);
    this.locks = {
      key: parts.trace,
      what: () => this.what,
      exclusive: () => world((t) => t.held === LockBit.EXCLUSIVE),
      shared: () => world((t) => this.open === LOCK_ALL || t.held === LockBit.SHARED),
      wanted: () => world((t) => t.waiting),
      wantsAll: () => this.busy === 'lockAll',
    };
  }

  /** The window, in messages. */
  get what(): string {
    return `window ${this.name}`;
  }

  describe(): string {
    return this.#described()[0];
  }

  /** What is open, in words, and which openings are meant. */
  #described(): readonly [words: string, openings: readonly Opening[]] {
    if (this.busy !== undefined) return [`a ${this.busy} is in progress`, []];
    if (this.open === LOCK_ALL) return ['a lockAll epoch is open', ['lockAll']];
    if (this.waiting > 0)
      return [`a lock or unlock of rank ${this.#ranks((t) => t.waiting).join(', ')} is in progress`, []];
    if (this.held > 0) {
      const held = this.#ranks((t) => (t.held & LOCKED) !== 0);
      return [`this rank holds the lock of rank ${held.join(', ')}`, held];
    }
    if (this.started !== undefined)
      return [`an access epoch to rank ${this.started.join(', ')} is open (start)`, ['start']];
    if (this.exposed !== undefined)
      return [`an exposure epoch to rank ${this.exposed.join(', ')} is open (post)`, ['post']];
    if (this.open === FENCE)
      return [this.used ? 'a fence epoch has operations that are not complete' : 'a fence epoch is open', ['fence']];
    return ['no epoch is open', []];
  }

  #ranks(holds: (t: Target) => boolean): readonly number[] {
    return this.targets.filter((t): t is Target => t !== undefined && holds(t)).map((t) => t.rank);
  }

  /** Whether this rank holds the lock of its own part, as far as it knows itself. */
  get ownLocked(): boolean {
    return this.open === LOCK_ALL || ((this.targets[this.comm.rank]?.held ?? 0) & LOCKED) !== 0;
  }

  /** Whether this rank's part is exposed to somebody. */
  get isExposed(): boolean {
    return this.exposed !== undefined && this.exposed.length > 0;
  }

  /** Whether an access epoch is open that a synchronization call has to end. */
  get accessing(): boolean {
    return (
      this.held + this.waiting > 0 ||
      this.open === LOCK_ALL ||
      this.started !== undefined ||
      (this.open === FENCE && this.used)
    );
  }

  /** Why `call`, which comes outside of all epochs, is too early; or undefined. */
  refusalOfOpen(call: string): RmaError | undefined {
    return this.accessing || this.exposed !== undefined ? this.tooEarly(call) : undefined;
  }

  tooEarly(call: string, remedy = 'end that epoch first'): RmaError {
    return new RmaError('ERR_RMA_SYNC', `${call} of ${this.what}: ${this.describe()}; ${remedy}${this.#opened()}`);
  }

  /** Notes where an epoch is opened, if the program is run so. Called when it is. */
  noteOpening(what: Opening): void {
    if (NOTE_OPENINGS) this.#openedAt.set(what, new Error().stack);
  }

  #opened(): string {
    const [, openings] = this.#described();
    if (openings.length === 0) return '';
    if (!NOTE_OPENINGS) return ' (set ONESIDED_DEBUG=epochs to see where it was opened)';
    return openings
      .map((what) => {
        // The first line is the error's.
        const frames = (this.#openedAt.get(what) ?? '').split('\n').slice(1);
        const which = typeof what === 'number' ? `The lock of rank ${what} was taken` : `The ${what} epoch was opened`;
        return `\n${which}\n${frames.join('\n')}`;
      })
      .join('');
  }

  /** Refuses on a freed window, and in a job that has ended or lost a rank. */
  checkAlive(call: string): void {
    if (this.freed) throw new RmaError('ERR_WIN', `${call}: ${this.what} was freed`);
    const refusal = this.comm.refusal(call);
    if (refusal !== undefined) throw refusal;
  }

  /** The same, and while a synchronization call is under way. */
  checkUsable(call: string): void {
    this.checkAlive(call);
    if (this.busy === undefined) return;
    const remedy = REMEDIES[this.busy] ?? 'await it first';
    throw new RmaError('ERR_RMA_SYNC', `${call} on ${this.what}: a ${this.busy} is in progress; ${remedy}`);
  }

  /** The target of this rank; `undefined` for what is no rank, and on a freed window. */
  find(target: number): Target | undefined {
    return typeof target === 'number' && !this.freed ? this.#targets.of(target) : undefined;
  }

  /** Those of all ranks; none on a freed window. */
  allTargets(): readonly Target[] {
    return this.freed ? [] : this.#targets.all();
  }

  /** Errors: `ERR_RANK`. */
  target(call: string, target: number): Target {
    const t = this.find(target);
    if (t !== undefined) return t;
    const message = `${call} on ${this.what}: ${showRank(target)} is not a rank of its group (0 … ${this.group.size - 1}, or Rank.NULL)`;
    throw typeof target === 'number' ? argumentRangeError(message, 'ERR_RANK') : argumentTypeError(message, 'ERR_RANK');
  }

  /** The target, if the caller may access it now; `undefined` for `Rank.NULL`. */
  access(call: string, target: number): Target | undefined {
    if (target === Rank.NULL) {
      const none = this.open === 0 && this.held === 0 && this.nullLocks === 0 && this.started === undefined;
      if (none) this.#refuseAccess(call, target);
      return undefined;
    }
    const t = this.target(call, target);
    if ((this.open | t.held) === 0) this.#refuseAccess(call, target);
    return t;
  }

  #refuseAccess(call: string, target: number): never {
    const whom = target === Rank.NULL ? 'Rank.NULL' : `rank ${target}`;
    throw new RmaError(
      'ERR_RMA_SYNC',
      `${call} to ${whom} in ${this.what}: no epoch gives access to it (${this.describe()}); call fence(), start(group), lock(${showRank(target)}, …) or lockAll() first`,
    );
  }

  /** Runs what uses other ranks' memory or connections. If it fails because a process is gone, the error says so. */
  attempt<T>(body: () => T): T {
    try {
      return body();
    } catch (error) {
      throw this.comm.job.explain(error);
    }
  }

  /**
   * Sends the messages that wait for room: a rank that polls by calls that are complete at once is in the library all the time, and never sleeps, which is
   * when it would send them (MPI 4.1, 12.7.3). Each call that ends an epoch, flushes or tests does so. One load when there are none.
   */
  keepMoving(): void {
    if (!this.#messenger.idle) this.attempt(this.#poll);
  }

  /** Orders our stores before our next loads, if there were any. @param call `flush` and `flushAll` complete accesses, of `target` or of all, `flushLocal` and `flushLocalAll` at this rank only */
  settle(call: string, target: Target | undefined): void {
    this.keepMoving();
    if (!this.dirty) return;
    this.dirty = false;
    memoryFence();
    if (this.accesses !== undefined) this.#log(call, target, this.accesses);
  }

  #log(call: string, target: Target | undefined, accesses: AccessLog): void {
    if (call === 'flushAll') accesses.completed(undefined);
    else if (call === 'flush' && target !== undefined) accesses.completed(target.rank);
    else if (call === 'flushLocalAll') accesses.completedHere(undefined);
    else if (call === 'flushLocal' && target !== undefined) accesses.completedHere(target.rank);
    this.dirty = accesses.pending;
  }

  /** An access that was checked is about to be made. @param reads it writes nothing at the target */
  note(
    call: string,
    kind: 'put' | 'get' | 'accumulate',
    t: Target,
    at: number,
    to: Side,
    reads: boolean = kind === 'get',
  ): void {
    this.used = true;
    if (this.accesses === undefined) return;
    this.accesses.note(call, kind, reads, `${call} to rank ${t.rank} in ${this.what}`, t.rank, at, to);
    this.dirty = true;
  }
}
