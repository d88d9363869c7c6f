/**
 * Which epochs are open on a window at this rank, what they allow, and the words for it where something is not allowed.
 */

import { Rank, showRank } from '../../collective/group.ts';
import { Op } from '../../datatype/op.ts';
import type { Side } from '../../datatype/sides.ts';
import { RmaError } from '../../errors.ts';
import { LockBit } from '../../sync/lock/lock-scheme.ts';
import { memoryFence } from '../../transfer/loads/remote-part.ts';
import type { LocksAtRank } from '../../wait/deadlock.ts';
import type { WindowParts } from '../creation/window-parts.ts';
import { LOCKED, STARTED, type Target } from '../path/target.ts';
import { AccessLog, LOG_ACCESSES } from './access-log.ts';
import type { Accesses } from './accesses.ts';
import { type EpochCall, FENCE, LOCK_ALL, REMEDIES, type Resumed, STORED, USED } from './epoch-calls.ts';
import { Exposure } from './exposure.ts';
import type { FlushKind } from './flush-kinds.ts';
import { type Opening, Openings } from './openings.ts';
import { WindowScope } from './window-scope.ts';

/** A lock is the rank's, whichever of its tasks has called; the tasks take turns with a mutex. */
const TURNS = ', or, if another task of this rank called it, use a Mutex (onesided/sync)';

/**
 * The epochs of a window at this rank. Each call that synchronizes is a check, which refuses what is not allowed now,
 * and the transitions that follow, when its scheme has done its part. No other code changes this state, nor
 * `Target.held` and `Target.waiting`.
 */
export class Epochs extends WindowScope {
  /** For debugging only. */
  readonly accesses: Accesses | undefined;
  /** What `post` opens. */
  readonly exposure = new Exposure(this);
  /** For the message of a deadlock. */
  readonly locks: LocksAtRank;
  /** `FENCE`, `LOCK_ALL`, or 0; single targets are opened by `Target.held`. */
  #open = 0;
  /** `USED`, `STORED`, or 0: a number, since a field that is true or false costs each flush more. */
  #issued = 0;
  /** `LOCKED` if flushes never wait, else 0. */
  #quick = 0;
  /** Targets of the access epoch that `start` has opened. */
  #started: readonly number[] | undefined;
  /** Targets whose lock this rank holds. */
  #held = 0;
  /** Locks of `Rank.NULL`: they open an epoch in which nothing can be accessed, and that is no error. */
  #nullLocks = 0;
  /** Locks and unlocks that are being waited for. */
  #waiting = 0;
  /** The call that is under way: nothing may be issued meanwhile. */
  #busy: EpochCall | undefined;
  /** Its wait ended early. */
  #interrupted = false;
  readonly #openings = new Openings();

  constructor(parts: WindowParts) {
    super(parts);
    const { races } = this.comm.job;
    if (LOG_ACCESSES) this.accesses = new AccessLog(() => this.comm.members.failure() !== undefined);
    else if (races !== undefined) this.accesses = races.accesses(parts) as Accesses;
    const { worldRanks } = this.group;
    const world = (holds: (t: Target) => boolean): readonly number[] => this.#ranks(holds).map((r) => worldRanks[r]);
    this.locks = {
      key: parts.trace,
      what: () => this.what,
      exclusive: () => world((t) => t.held === LockBit.EXCLUSIVE && t.lock?.pending === undefined),
      shared: () =>
        world((t) => this.#open === LOCK_ALL || (t.held === LockBit.SHARED && t.lock?.pending === undefined)),
      wanted: () => world((t) => (t.waiting && t.ending === 0) || t.lock?.pending === 'asked for'),
      wantsAll: () => this.#busy === 'lockAll',
      isOpen: () =>
        this.#held + this.#waiting > 0 ||
        this.#open === LOCK_ALL ||
        this.#busy === 'lockAll' ||
        this.#busy === 'unlockAll',
    };
  }

  // ---- what is open -------------------------------------------------------------------------------------------------

  /** Whether an epoch gives access to the target. */
  allows(t: Target): boolean {
    return (this.#open | t.held) !== 0;
  }

  /** A target by rank, if it was asked for before and an epoch gives access to it. For fast paths. */
  opened(target: number): Target | undefined {
    const t = this.known(target);
    return t !== undefined && (this.#open | t.held) !== 0 ? t : undefined;
  }

  /** Something was issued that is complete, or that its path completes. */
  noteUse(): void {
    this.#issued |= USED;
  }

  /** Plain stores were made. */
  noteStores(): void {
    this.#issued = USED | STORED;
  }

  /** Whether the next fence completes what is issued now. */
  get isFenced(): boolean {
    return this.#open === FENCE;
  }

  get #isUsed(): boolean {
    return (this.#issued & USED) !== 0;
  }

  /** Whether a passive epoch is open to the target. */
  isPassive(t: Target): boolean {
    return ((this.#open | t.held) & LOCKED) !== 0;
  }

  describe(): string {
    return this.#described()[0];
  }

  /** What is open, in words, and which openings are meant. */
  #described(): readonly [words: string, openings: readonly Opening[]] {
    if (this.#busy !== undefined) return [`a ${this.#underWay()} is in progress`, []];
    if (this.#open === LOCK_ALL) return ['a lockAll epoch is open', ['lockAll']];
    if (this.#waiting > 0) {
      const [ending] = this.#ranks((t) => t.ending !== 0);
      return ending === undefined
        ? [`a lock or unlock of rank ${this.#ranks((t) => t.waiting).join(', ')} is in progress`, []]
        : [`an unlock of rank ${ending} whose wait ended early is in progress; call unlock(${ending}) again`, []];
    }
    if (this.#held > 0) {
      const held = this.#ranks((t) => (t.held & LOCKED) !== 0);
      return [`this rank holds the lock of rank ${held.join(', ')}`, held];
    }
    if (this.#started !== undefined)
      return [`an access epoch to rank ${this.#started.join(', ')} is open (start)`, ['start']];
    if (this.exposure.origins !== undefined)
      return [`an exposure epoch to rank ${this.exposure.origins.join(', ')} is open (post)`, ['post']];
    if (this.#open === FENCE)
      return [this.#isUsed ? 'a fence epoch has operations that are not complete' : 'a fence epoch is open', ['fence']];
    return ['no epoch is open', []];
  }

  #ranks(holds: (t: Target) => boolean): readonly number[] {
    return this.made.filter((t): t is Target => t !== undefined && holds(t)).map((t) => t.rank);
  }

  /** Whether this rank holds the lock of its own part, as far as it knows itself. */
  get #ownLocked(): boolean {
    return this.#open === LOCK_ALL || ((this.known(this.comm.rank)?.held ?? 0) & LOCKED) !== 0;
  }

  /** Whether this rank's part is exposed to any rank. */
  get #isExposed(): boolean {
    return (this.exposure.origins?.length ?? 0) > 0;
  }

  /** Whether an access epoch is open that a synchronization call has to end. */
  get #accessing(): boolean {
    return (
      this.#held + this.#waiting > 0 ||
      this.#open === LOCK_ALL ||
      this.#started !== undefined ||
      (this.#open === FENCE && this.#isUsed)
    );
  }

  /** Why `call`, which comes outside of all epochs, is too early; or undefined. */
  refusalOfOpen(call: string): RmaError | undefined {
    return this.#accessing || this.exposure.origins !== undefined ? this.#tooEarly(call) : undefined;
  }

  #tooEarly(call: string, remedy = 'end that epoch first'): RmaError {
    const [words, openings] = this.#described();
    return this.refused(`${call} of`, `${words}; ${remedy}${this.#openings.tell(openings)}`);
  }

  /** The same, and while a synchronization call is under way. */
  checkUsable(call: string): void {
    this.checkAlive(call);
    if (this.#busy === undefined) return;
    const remedy = this.#interrupted ? REMEDIES[this.#busy as Resumed] : 'await it first';
    throw new RmaError('ERR_RMA_SYNC', `${call} on ${this.what}: a ${this.#underWay()} is in progress; ${remedy}`);
  }

  #underWay(): string {
    return this.#interrupted ? `${this.#busy} whose wait ended early` : `${this.#busy}`;
  }

  // ---- fence --------------------------------------------------------------------------------------------------------

  /** Refuses a fence, unless it is one whose wait ended early: that goes on. */
  checkFence(noPrecede: boolean): void {
    const passive = this.#held + this.#waiting > 0 || this.#open === LOCK_ALL;
    const general = this.#started !== undefined || this.exposure.origins !== undefined;
    if (this.isFreed || this.#busy !== undefined || passive || general) this.#refuseFence();
    if (noPrecede && this.#isUsed && this.#open === FENCE) {
      throw new RmaError(
        'ERR_ASSERT',
        `fence of ${this.what}: Assert.NO_PRECEDE was passed, but this rank has issued operations since the last fence`,
      );
    }
  }

  #refuseFence(): void {
    if (this.#isInterrupted('fence')) {
      this.checkAlive('fence');
      return;
    }
    this.checkUsable('fence');
    throw this.#tooEarly('fence');
  }

  #isInterrupted(call: Resumed): boolean {
    return this.#busy === call && this.#interrupted;
  }

  /** Nothing more is issued before it ends. */
  fenceBegun(): void {
    this.#busy = 'fence';
    this.#interrupted = false;
    this.#open = 0;
  }

  /** @param opens whether the next epoch is open now */
  fenceEnded(opens: boolean): void {
    this.#busy = undefined;
    this.#issued = 0;
    this.accesses?.fenceEnds();
    this.#open = opens ? FENCE : 0;
    this.#openings.note('fence');
    this.keepMoving();
    this.complain();
  }

  /** The wait of a call that goes on when it is called again has ended early. @returns why, for the caller */
  interrupted(call: Resumed, error: unknown): unknown {
    // For debugging: the call has ended, and says what it has found.
    if (LOG_ACCESSES && this.#busy === undefined) return error;
    this.#busy = call;
    this.#interrupted = true;
    return this.comm.members.explain(error);
  }

  // ---- start and complete -------------------------------------------------------------------------------------------

  checkStart(): void {
    this.checkUsable('start');
    if (this.#accessing) throw this.#tooEarly('start');
  }

  startBegun(): void {
    this.#begin('start');
  }

  startEnded(): void {
    this.#busy = undefined;
  }

  /** Whether the access epoch of `start` is open. */
  get isStarted(): boolean {
    return this.#started !== undefined;
  }

  started(targets: readonly number[]): void {
    this.#open = 0;
    this.#issued &= ~USED;
    this.#started = targets;
    for (let i = 0; i < targets.length; i++) this.find(targets[i])!.held = STARTED;
    this.#openings.note('start');
    this.keepMoving();
  }

  /** @returns the targets of the epoch */
  checkComplete(): readonly number[] {
    if (this.#isInterrupted('complete')) this.checkAlive('complete');
    else this.checkUsable('complete');
    if (this.#started !== undefined) return this.#started;
    throw this.refused('complete of', `${this.describe()}; complete() ends only an epoch that start() has opened`);
  }

  /** Nothing more is issued in the epoch, since its targets may be told from now on. */
  completeBegun(): void {
    this.#begin('complete');
    this.#closeStarted();
  }

  completed(): void {
    this.#closeStarted();
    this.#busy = undefined;
    this.#started = undefined;
    this.#issued &= ~USED;
    this.accesses?.accessEnds();
    this.keepMoving();
    this.complain();
  }

  #closeStarted(): void {
    const targets = this.#started!;
    for (let i = 0; i < targets.length; i++) this.find(targets[i])!.held = 0;
  }

  #begin(call: EpochCall): void {
    this.#busy = call;
    this.#interrupted = false;
  }

  // ---- post and wait ------------------------------------------------------------------------------------------------

  checkPost(): void {
    this.checkUsable('post');
    if (this.exposure.origins !== undefined) {
      const origins = this.exposure.origins.join(', ');
      throw this.refused('post of', `this rank's part is already exposed to rank ${origins}; call wait() first`);
    }
    if (this.#open === FENCE && this.#isUsed) throw this.#tooEarly('post');
    if (this.#ownLocked)
      throw this.#tooEarly('post', 'a part cannot be locked and exposed at the same time; unlock it first');
  }

  posted(origins: readonly number[]): void {
    this.#open &= ~FENCE;
    this.exposure.begun(origins);
    this.#openings.note('post');
  }

  // ---- locks --------------------------------------------------------------------------------------------------------

  /** The target, if this rank may lock it and has done so before: a fast path of `checkLock`. */
  mayLock(target: number): Target | undefined {
    const t = this.known(target);
    const own = this.exposure.origins !== undefined && target === this.comm.rank;
    const free = this.#busy === undefined && this.#started === undefined && !own;
    return t !== undefined && !this.allows(t) && free && !t.waiting && t.lock !== undefined ? t : undefined;
  }

  /** `undefined` for `Rank.NULL`, of which nothing is accessed. */
  checkLock(target: number): Target | undefined {
    this.checkUsable('lock');
    if (target === Rank.NULL) {
      this.#nullLocks++;
      return undefined;
    }
    const t = this.target('lock', target);
    const why = this.#refusalOfLock(t);
    if (why !== undefined) throw this.refused(`lock of rank ${target} in`, why);
    return t;
  }

  #refusalOfLock(t: Target): string | undefined {
    if (t.ending !== 0) return `an unlock of it whose wait ended early is in progress; call unlock(${t.rank}) again`;
    if (t.waiting) return `another lock or unlock of this target is in progress on this rank; await it first${TURNS}`;
    if ((t.held & LOCKED) !== 0) return `this rank already holds this lock; call unlock(${t.rank}) first${TURNS}`;
    if (this.#started !== undefined) return `${this.describe()}; call complete() first`;
    if (this.#open === LOCK_ALL) return 'a lockAll epoch is open; call unlockAll() first';
    if (this.#open === FENCE && this.#isUsed)
      return 'operations of a fence epoch are not complete; call fence(Assert.NO_SUCCEED) first';
    if (this.#isExposed && t.rank === this.comm.rank)
      return 'this part is exposed (post), and a part cannot be locked and exposed at the same time; call wait() first';
    return undefined;
  }

  /** A promise waits for the lock, or for what its unlock completes. */
  lockWaits(t: Target): void {
    t.waiting = true;
    this.#waiting++;
  }

  lockWaitEnded(t: Target): void {
    t.waiting = false;
    this.#waiting--;
  }

  /** @param held the bits of the `Lock` type, perhaps with `UNCHECKED` */
  locked(t: Target, held: number): void {
    t.held = held;
    this.#held++;
    this.#open = 0;
    this.#openings.note(t.rank);
  }

  /** `undefined` for `Rank.NULL`. */
  checkUnlock(target: number): Target | undefined {
    const t = this.known(target);
    if (t !== undefined && ((t.held | t.ending) & LOCKED) !== 0 && this.#busy === undefined) return t;
    this.checkUsable('unlock');
    if (target === Rank.NULL) {
      if (this.#nullLocks > 0) this.#nullLocks--;
      return undefined;
    }
    this.target('unlock', target);
    throw this.refused(`unlock of rank ${target} in`, 'this rank does not hold this lock');
  }

  /**
   * The epoch is closed while the unlock waits: nothing more is issued in it, and it cannot be unlocked twice.
   * @returns what `unlockWaitEnded` gives back
   */
  unlockWaits(t: Target): number {
    const held = t.held | t.ending;
    if (t.ending === 0) this.lockWaits(t);
    t.held = 0;
    t.ending = 0;
    return held;
  }

  /** The wait has ended early. The epoch is open again; but not without its lock, if that was given back already. */
  unlockFailed(t: Target, held: number): void {
    if (t.lock?.isGivenBack === true) t.ending = held;
    else this.unlockWaitEnded(t, held);
  }

  unlockWaitEnded(t: Target, held: number): void {
    t.held = held;
    this.lockWaitEnded(t);
  }

  /** @returns what was held */
  unlocked(t: Target): number {
    const held = t.held | t.ending;
    if (t.ending !== 0) {
      t.ending = 0;
      this.lockWaitEnded(t);
    }
    t.held = 0;
    this.#held--;
    this.#issued &= ~USED;
    this.accesses?.completed(t.rank);
    return held;
  }

  // ---- locks of all ranks -------------------------------------------------------------------------------------------

  /**
   * Whether nothing at all is open or under way: a fast path of `checkLockAll`. A window that was freed has no targets.
   */
  get isIdle(): boolean {
    return (
      (this.#open | this.#held | this.#waiting) === 0 &&
      this.exposure.origins === undefined &&
      this.#busy === undefined &&
      this.#started === undefined &&
      !this.isFreed
    );
  }

  checkLockAll(): void {
    this.checkUsable('lockAll');
    if (this.#accessing) throw this.#tooEarly('lockAll');
    if (this.#isExposed)
      throw this.#tooEarly('lockAll', 'a part cannot be locked and exposed at the same time; call wait() first');
  }

  lockAllBegun(): void {
    this.#begin('lockAll');
  }

  lockAllEnded(): void {
    this.#busy = undefined;
  }

  lockedAll(): void {
    this.#open = LOCK_ALL;
    this.#openings.note('lockAll');
  }

  /** A fast path of `checkUnlockAll`. */
  get mayUnlockAll(): boolean {
    return this.#open === LOCK_ALL && this.#busy === undefined;
  }

  checkUnlockAll(): void {
    this.checkUsable('unlockAll');
    if (this.#open !== LOCK_ALL) throw this.refused('unlockAll of', 'no lockAll epoch is open');
  }

  /** The epoch is closed while the unlock waits. */
  unlockAllBegun(): void {
    this.#open = 0;
    this.#begin('unlockAll');
  }

  unlockAllEnded(): void {
    this.#open = LOCK_ALL;
    this.#busy = undefined;
  }

  unlockedAll(): void {
    this.#open = 0;
    this.#issued &= ~USED;
    this.accesses?.completed(undefined);
  }

  // ---- flush --------------------------------------------------------------------------------------------------------

  /** From now on flushes have nothing to wait for: all is complete when it is issued, and there is no rank to serve. */
  completesAtOnce(): void {
    // For debugging, each flush completes arrays.
    if (this.accesses === undefined) this.#quick = LOCKED;
  }

  /**
   * A flush of one target that has nothing to wait for: a fast path of `checkFlush` and `settle`. No call is under way
   * while a passive epoch is open: those that end one close it first.
   * @returns false if it has done nothing
   */
  tryFlush(kind: FlushKind, target: number): boolean {
    const t = this.known(target);
    if (t === undefined || ((this.#open | t.held) & this.#quick) === 0) return false;
    this.settle(kind, t);
    return true;
  }

  /** What needs a passive epoch to the target. `undefined` for `Rank.NULL`. */
  checkFlush(call: string, target: number): Target | undefined {
    const t = this.find(target);
    if (t !== undefined && this.isPassive(t)) return t;
    this.checkUsable(call);
    if (target === Rank.NULL) return undefined;
    this.target(call, target);
    throw this.#noPassiveEpoch(`${call} of rank ${target} in`);
  }

  checkFlushAll(call: string): void {
    this.checkUsable(call);
    if (this.#open !== LOCK_ALL && this.#held === 0) throw this.#noPassiveEpoch(`${call} of`);
  }

  #noPassiveEpoch(call: string): RmaError {
    return this.refused(call, `the call requires a passive-target epoch (lock or lockAll), but ${this.describe()}`);
  }

  // ---- free ---------------------------------------------------------------------------------------------------------

  /**
   * A fence that cannot end any more, because a rank has failed, must not keep this rank from giving back what it
   * holds.
   */
  checkFree(): void {
    if (this.#isInterrupted('fence')) this.checkAlive('free');
    else this.checkUsable('free');
    const refusal = this.refusalOfOpen('free');
    if (refusal !== undefined) throw refusal;
  }

  /** Nothing can be done with the window any more. */
  freed(): void {
    this.#open = 0;
    this.close();
  }

  // ---- targets and accesses -----------------------------------------------------------------------------------------

  /** The target, if the caller may access it now; `undefined` for `Rank.NULL`. */
  access(call: string, target: number): Target | undefined {
    if (target === Rank.NULL) {
      const none = this.#open === 0 && this.#held === 0 && this.#nullLocks === 0 && this.#started === undefined;
      if (none) this.#refuseAccess(call, target);
      return undefined;
    }
    const t = this.target(call, target);
    if (!this.allows(t)) this.#refuseAccess(call, target);
    return t;
  }

  #refuseAccess(call: string, target: number): never {
    const whom = target === Rank.NULL ? 'Rank.NULL' : `rank ${target}`;
    throw new RmaError(
      'ERR_RMA_SYNC',
      `${call} to ${whom} in ${this.what}: no epoch gives access to it (${this.describe()}); ` +
        `call fence(), start(group), lock(${showRank(target)}, …) or lockAll() first`,
    );
  }

  /**
   * Orders our stores before our next loads, if there were any. In two parts, since a flush after a get needs only one.
   * @param kind what has completed accesses, to `target` or to all; `undefined` if nothing has
   */
  settle(kind: FlushKind | undefined, target: Target | undefined): void {
    this.keepMoving();
    if ((this.#issued & STORED) !== 0) this.#order(kind, target);
  }

  #order(kind: FlushKind | undefined, target: Target | undefined): void {
    this.#issued &= ~STORED;
    memoryFence();
    if (this.accesses !== undefined) this.#log(kind, target);
  }

  #log(kind: FlushKind | undefined, target: Target | undefined): void {
    const accesses = this.accesses!;
    if (kind !== undefined && (kind.all || target !== undefined)) {
      const rank = kind.all ? undefined : target?.rank;
      if (kind.extent === 'here') accesses.completedHere(rank);
      else accesses.completed(rank);
    }
    if (accesses.pending) this.#issued |= STORED;
    // An unlock gives the lock back first.
    if (kind?.last !== true) this.complain();
  }

  /** For debugging: at the end of a call that completes operations. Errors: `ERR_RMA_CONFLICT`. */
  complain(): void {
    if (this.accesses !== undefined) this.accesses.buffers?.complain();
  }

  /** An access that was checked is about to be made. @param op of an accumulate */
  note(call: string, kind: 'put' | 'get' | 'accumulate', t: Target, at: number, to: Side, op?: Op): void {
    this.#issued |= USED;
    if (this.accesses === undefined) return;
    const reads = kind === 'get' || op === Op.NO_OP;
    this.accesses.note(call, kind, reads, `${call} to rank ${t.rank} in ${this.what}`, t.rank, at, to, op);
    this.#issued |= STORED;
  }
}
