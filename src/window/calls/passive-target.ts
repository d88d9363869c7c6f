/** The calls of passive-target epochs (MPI 4.1, 12.5.3, 12.5.4): lock, unlock, lockAll, unlockAll and the flushes. */

import { POISON } from '../../datatype/poison.ts';
import { RmaError, show } from '../../errors.ts';
import type { Job } from '../../job/job.ts';
import type { Members } from '../../job/members.ts';
import type { RankLocks } from '../../job/rank-locks.ts';
import type { AllLock } from '../../sync/lock/lock-of-all.ts';
import { LockBit, type TargetLock } from '../../sync/lock/lock-scheme.ts';
import { memoryFence } from '../../transfer/loads/remote-part.ts';
import { abandonQuietly, type Operation, readWait, type WaitOptions } from '../../wait/operation.ts';
import { DONE, type ProgressEngine } from '../../wait/progress.ts';
import type { WindowParts } from '../creation/window-parts.ts';
import { Assert, checkAssert } from '../epochs/assertions.ts';
import type { Epochs } from '../epochs/epochs.ts';
import { FLUSHES, type FlushKind } from '../epochs/flush-kinds.ts';
import type { Completion } from '../path/path.ts';
import type { Paths } from '../path/paths.ts';
import { type Target, UNCHECKED } from '../path/target.ts';
import { acquireAll } from './lock-all.ts';
import type { PartLock } from './part-lock.ts';

/**
 * Milliseconds for which the release of a lock can be under way after its unlock has returned and its holder has told
 * of it: requests of different connections overtake each other, by as much as it takes to send one again.
 */
const RELEASE_MS = 200;
/**
 * Milliseconds for which a rank that was refused the locks of all ranks can be counted as one that holds them, if
 * nothing interrupts it.
 */
const REFUSED_MS = 1;

/** What a `lockAll` epoch holds: nothing, the lock of each rank, or one lock for all. */
const HeldAll = Object.freeze({ NOTHING: 0, EACH: 1, ONE: 2 });

export class PassiveTarget {
  #epochs: Epochs;
  #job: Job;
  #locks: RankLocks;
  readonly #members: Members;
  #progress: ProgressEngine;
  /** What completes operations that are not complete when they are issued. */
  readonly #completion: Completion | undefined;
  #makeLock: (rank: number) => TargetLock | undefined;
  readonly #makeAll: (() => AllLock) | undefined;
  #all: AllLock | undefined;
  readonly #serve: (() => void) | undefined;
  /** Nothing is ever outstanding, and there is no rank to serve: a flush never waits. */
  readonly #short: boolean;
  /** A `HeldAll`. */
  #heldAll: number = HeldAll.NOTHING;

  constructor(parts: WindowParts, epochs: Epochs, paths: Paths) {
    this.#epochs = epochs;
    this.#job = parts.comm.job;
    this.#locks = parts.comm.job.locks;
    this.#members = parts.comm.members;
    this.#progress = parts.comm.job.progress;
    this.#completion = paths.completion;
    this.#makeLock = parts.makeLock;
    this.#makeAll = parts.allLock;
    this.#serve = parts.serve;
    this.#short = this.#completion === undefined && parts.serve === undefined && parts.comm.job.tasks === undefined;
    if (this.#short) epochs.completesAtOnce();
  }

  // ---- lock ---------------------------------------------------------------------------------------------------------

  /** @param type a `LockBit` */
  lock(target: number, type: number, assert: number, options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait('lock', options);
      const t = this.#checkLock(target, type, assert);
      if (t === undefined || this.#tryLock(t, type, assert) || this.#deferLock(t, type, wait))
        return this.#progress.done();
      return this.#finishLock(t, type, wait);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  lockSync(target: number, type: number, assert: number, options: WaitOptions | undefined): void {
    this.#job.refuseSync('lock');
    const wait = readWait('lock', options);
    const t = this.#checkLock(target, type, assert);
    if (t === undefined || this.#tryLock(t, type, assert) || this.#deferLock(t, type, wait)) return;
    this.#members.waitSync(this.#acquire(t, type), wait);
    this.#epochs.locked(t, type);
  }

  #tryLock(t: Target, type: number, assert: number): boolean {
    if ((assert & Assert.NO_CHECK) !== 0) {
      this.#epochs.locked(t, type | UNCHECKED);
      return true;
    }
    if (!this.#locks.mayAsk || !this.#tryAcquire(t.lock!, type === LockBit.EXCLUSIVE)) return false;
    this.#epochs.locked(t, type);
    return true;
  }

  #tryAcquire(lock: TargetLock, exclusive: boolean): boolean {
    try {
      return lock.tryAcquire(exclusive);
    } catch (error) {
      throw this.#members.explain(error);
    }
  }

  /** A deadline or a signal is for the lock, so it is waited for. */
  #deferLock(t: Target, type: number, wait: WaitOptions | undefined): boolean {
    const lock = t.lock!;
    if (wait !== undefined || lock.defer === undefined || !this.#locks.mayDefer) return false;
    if (!lock.defer(type === LockBit.EXCLUSIVE)) return false;
    this.#locks.defer(lock, this.#members);
    this.#epochs.locked(t, type);
    return true;
  }

  async #finishLock(t: Target, type: number, options: WaitOptions | undefined): Promise<void> {
    this.#epochs.lockWaits(t);
    try {
      await this.#members.wait(this.#acquire(t, type), options);
      this.#epochs.locked(t, type);
    } finally {
      this.#epochs.lockWaitEnded(t);
    }
  }

  /** The lock's scheme does not know whose part of which window the lock is for: messages do. */
  #acquire(t: Target, type: number): Operation {
    const name = `lock of rank ${t.rank} in ${this.#epochs.what}`;
    return this.#locks.behindDeferred(name, () => {
      const operation = t.lock!.acquire(type === LockBit.EXCLUSIVE);
      return {
        advance: () => operation.advance(),
        describe: () => operation.describe().replace(/^lock( of rank \d+)?/, name),
        abandon: () => operation.abandon?.(),
        isPolling: () => operation.isPolling?.() ?? false,
      };
    });
  }

  #checkLock(target: number, type: number, assert: number): Target | undefined {
    const epochs = this.#epochs;
    this.#serveOthers();
    if (assert !== 0) checkAssert('lock', assert, Assert.NO_CHECK);
    if (type !== LockBit.SHARED && type !== LockBit.EXCLUSIVE) {
      throw new RmaError(
        'ERR_LOCKTYPE',
        `lock of ${epochs.what}: the lock type must be Lock.SHARED or Lock.EXCLUSIVE, not ${show(type)}`,
      );
    }
    const known = epochs.mayLock(target);
    if (known !== undefined) return known;
    const t = epochs.checkLock(target);
    if (t !== undefined) this.#lockOf(t);
    return t;
  }

  /** The exclusive lock of a rank's part, in the window's books as any other: only no epoch is asked for. */
  partLock(call: string, rank: number): PartLock {
    const epochs = this.#epochs;
    const t = epochs.target(call, rank);
    const lock = this.#lockOf(t);
    return {
      name: `lock of rank ${rank} in ${epochs.what}`,
      checkAlive: (caller) => epochs.checkAlive(caller),
      tryAcquire: () => {
        if (!this.#locks.mayAsk || !this.#tryAtOnce(lock, true)) return false;
        epochs.locked(t, LockBit.EXCLUSIVE);
        return true;
      },
      acquire: () => this.#acquirePart(t),
      release: (caller) => {
        epochs.checkAlive(caller);
        this.#unlock(t);
      },
    };
  }

  #acquirePart(t: Target): Operation {
    const epochs = this.#epochs;
    const operation = this.#acquire(t, LockBit.EXCLUSIVE);
    epochs.lockWaits(t);
    return {
      ...operation,
      advance: () => {
        if (!operation.advance()) return false;
        epochs.lockWaitEnded(t);
        epochs.locked(t, LockBit.EXCLUSIVE);
        return true;
      },
      abandon: () => {
        epochs.lockWaitEnded(t);
        operation.abandon?.();
      },
    };
  }

  #lockOf(t: Target): TargetLock {
    t.lock ??= this.#epochs.attempt(() => this.#makeLock(t.rank));
    if (t.lock === undefined) {
      throw new RmaError(
        'ERR_RMA_SYNC',
        `lock of rank ${t.rank} in ${this.#epochs.what}: the window was created with the hint ` +
          'no_locks, so it has no locks',
      );
    }
    return t.lock;
  }

  /**
   * Takes the lock of this rank's own part if no other rank has it exclusively, without waiting for other ranks: beside
   * those that share it, also while one waits for them. Where it cannot be shared it may be free nevertheless, and
   * marked for one that has given up since. Errors: of a device.
   * @returns what gives it back; `undefined` if a rank has it exclusively, or no rank has it and one is next
   */
  holdAtOnce(lock: TargetLock): (() => void) | undefined {
    const progress = this.#progress;
    const deadline = progress.now() + (lock.attempt === undefined ? REFUSED_MS : RELEASE_MS);
    do {
      for (const exclusive of [false, true]) if (this.#tryAtOnce(lock, exclusive)) return () => lock.release(exclusive);
    } while (progress.now() < deadline);
    return undefined;
  }

  /** Takes a lock exclusively, or joins those that share it, without waiting for other ranks. Errors: of a device. */
  #tryAtOnce(lock: TargetLock, exclusive: boolean): boolean {
    const attempt = lock.attempt?.(exclusive, true);
    if (attempt === undefined) return exclusive ? this.#tryAcquire(lock, true) : this.#tryJoin(lock);
    try {
      while (!this.#members.look(attempt)) this.#job.processor.letPass();
    } catch (error) {
      abandonQuietly(attempt);
      throw error;
    }
    return attempt.acquired === true;
  }

  #tryJoin(lock: TargetLock): boolean {
    try {
      return lock.tryJoin!();
    } catch (error) {
      throw this.#members.explain(error);
    }
  }

  // ---- unlock -------------------------------------------------------------------------------------------------------

  unlock(target: number, options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait('unlock', options);
      const t = this.#epochs.checkUnlock(target);
      if (t === undefined) return this.#progress.done();
      if (this.#completion !== undefined) return this.#flushAndUnlock(t, wait);
      this.#unlock(t);
      return this.#progress.done();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  unlockSync(target: number, options: WaitOptions | undefined): void {
    this.#job.refuseSync('unlock');
    const wait = readWait('unlock', options);
    const t = this.#epochs.checkUnlock(target);
    if (t === undefined) return;
    try {
      this.#flushRequests(FLUSHES.unlock, t.rank, wait);
    } catch (error) {
      this.#epochs.unlockFailed(t, this.#epochs.unlockWaits(t));
      throw error;
    }
    this.#unlock(t);
  }

  async #flushAndUnlock(t: Target, options: WaitOptions | undefined): Promise<void> {
    const held = this.#epochs.unlockWaits(t);
    try {
      await this.#flushed(FLUSHES.unlock, t, options);
    } catch (error) {
      this.#epochs.unlockFailed(t, held);
      throw error;
    }
    this.#epochs.unlockWaitEnded(t, held);
    this.#unlock(t);
  }

  #unlock(t: Target): void {
    const held = this.#epochs.unlocked(t);
    // The release is itself an atomic read-modify-write: our stores are visible before the lock is seen free. Without a
    // lock, it is a fence.
    if ((held & UNCHECKED) === 0) this.#release(t.lock!, held === LockBit.EXCLUSIVE);
    else memoryFence();
    this.#epochs.keepMoving();
    this.#epochs.complain();
  }

  #release(lock: TargetLock, exclusive: boolean): void {
    try {
      lock.release(exclusive);
    } catch (error) {
      throw this.#members.explain(error);
    }
  }

  // ---- lockAll ------------------------------------------------------------------------------------------------------

  lockAll(assert: number, options: WaitOptions | undefined): Promise<void> {
    if (assert === 0 && options === undefined && this.#tryAllShort()) return this.#progress.done();
    try {
      const wait = readWait('lockAll', options);
      this.#checkLockAll(assert);
      if (this.#tryAll(assert)) return this.#progress.done();
      return this.#finishLockAll(wait);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  lockAllSync(assert: number, options: WaitOptions | undefined): void {
    if (assert === 0 && options === undefined && this.#tryAllShort()) return;
    this.#job.refuseSync('lockAll');
    const wait = readWait('lockAll', options);
    this.#checkLockAll(assert);
    if (this.#tryAll(assert)) return;
    this.#members.waitSync(this.#acquireAll(), wait);
    this.#lockedAll(HeldAll.EACH);
  }

  /** Where this rank has no epoch, and needs no more than the one lock for all, which it has had before. */
  #tryAllShort(): boolean {
    if (!this.#short || !this.#epochs.isIdle || !this.#locks.isClear) return false;
    if (this.#all === undefined || !this.#all.tryAcquire()) return false;
    this.#lockedAll(HeldAll.ONE);
    return true;
  }

  #lockedAll(held: number): void {
    this.#heldAll = held;
    this.#epochs.lockedAll();
  }

  async #finishLockAll(options: WaitOptions | undefined): Promise<void> {
    this.#epochs.lockAllBegun();
    try {
      await this.#members.wait(this.#acquireAll(), options);
    } finally {
      this.#epochs.lockAllEnded();
    }
    this.#lockedAll(HeldAll.EACH);
  }

  #checkLockAll(assert: number): void {
    const epochs = this.#epochs;
    if (assert !== 0) checkAssert('lockAll', assert, Assert.NO_CHECK);
    epochs.checkLockAll();
    if (this.#makeAll === undefined) this.#makeLocks();
    else this.#all ??= epochs.attempt(this.#makeAll);
  }

  #makeLocks(): void {
    for (const t of this.#epochs.allTargets()) if (t.lock === undefined) this.#lockOf(t);
  }

  #tryAll(assert: number): boolean {
    if ((assert & Assert.NO_CHECK) !== 0) this.#lockedAll(HeldAll.NOTHING);
    else if (!this.#locks.mayAsk) return false;
    else if (this.#all?.tryAcquire() === true) this.#lockedAll(HeldAll.ONE);
    else if (this.#tryEach()) this.#lockedAll(HeldAll.EACH);
    else return false;
    return true;
  }

  /** Takes the locks of all ranks if all are free at once, else none. */
  #tryEach(): boolean {
    this.#makeLocks();
    const targets = this.#epochs.allTargets();
    for (let i = 0; i < targets.length; i++) {
      if (this.#tryAcquire(targets[i].lock!, false)) continue;
      while (--i >= 0) this.#release(targets[i].lock!, false);
      return false;
    }
    return true;
  }

  #acquireAll(): Operation {
    const what = `lockAll of ${this.#epochs.what}`;
    return this.#locks.behindDeferred(what, () => acquireAll(this.#epochs.allTargets(), this.#progress, what));
  }

  unlockAll(options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait('unlockAll', options);
      this.#epochs.checkUnlockAll();
      if (this.#completion !== undefined) return this.#flushAndUnlockAll(wait);
      this.#unlockAll();
      return this.#progress.done();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  unlockAllSync(options: WaitOptions | undefined): void {
    if (this.#short && options === undefined && this.#epochs.mayUnlockAll) {
      this.#unlockAll();
      return;
    }
    this.#job.refuseSync('unlockAll');
    const wait = readWait('unlockAll', options);
    this.#epochs.checkUnlockAll();
    this.#flushRequests(FLUSHES.unlockAll, undefined, wait);
    this.#unlockAll();
  }

  async #flushAndUnlockAll(options: WaitOptions | undefined): Promise<void> {
    const epochs = this.#epochs;
    epochs.unlockAllBegun();
    try {
      await this.#flushed(FLUSHES.unlockAll, undefined, options);
    } finally {
      epochs.unlockAllEnded();
    }
    this.#unlockAll();
  }

  #unlockAll(): void {
    this.#epochs.unlockedAll();
    // A release is itself an atomic read-modify-write; where there are none, a fence orders our stores.
    if (this.#heldAll === HeldAll.NOTHING) memoryFence();
    else if (this.#heldAll === HeldAll.ONE) this.#all!.release();
    else for (const t of this.#epochs.allTargets()) this.#release(t.lock!, false);
    this.#epochs.keepMoving();
    this.#epochs.complain();
  }

  // ---- flush --------------------------------------------------------------------------------------------------------

  flush(kind: FlushKind, target: number, options: WaitOptions | undefined): Promise<void> {
    if (options === undefined && this.#epochs.tryFlush(kind, target)) return DONE;
    return this.#flushLong(kind, target, options);
  }

  #flushLong(kind: FlushKind, target: number, options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait(kind.call, options);
      const t = this.#checkFlush(kind.call, target);
      if (this.#completion !== undefined && t !== undefined) return this.#flushed(kind, t, wait);
      this.#epochs.settle(kind, t);
      return this.#progress.done();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  flushSync(kind: FlushKind, target: number, options: WaitOptions | undefined): void {
    if (options !== undefined || !this.#epochs.tryFlush(kind, target)) this.#flushLongSync(kind, target, options);
  }

  #flushLongSync(kind: FlushKind, target: number, options: WaitOptions | undefined): void {
    this.#job.refuseSync(kind.call);
    const wait = readWait(kind.call, options);
    const t = this.#checkFlush(kind.call, target);
    if (t !== undefined) this.#flushRequests(kind, t.rank, wait);
    this.#epochs.settle(kind, t);
  }

  flushAll(kind: FlushKind, options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait(kind.call, options);
      this.#checkFlushAll(kind.call);
      if (this.#completion !== undefined) return this.#flushed(kind, undefined, wait);
      this.#epochs.settle(kind, undefined);
      return this.#progress.done();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  flushAllSync(kind: FlushKind, options: WaitOptions | undefined): void {
    this.#job.refuseSync(kind.call);
    const wait = readWait(kind.call, options);
    this.#checkFlushAll(kind.call);
    this.#flushRequests(kind, undefined, wait);
    this.#epochs.settle(kind, undefined);
  }

  /** Waits until nothing is outstanding to `rank`, or, without it, to any. */
  #flushRequests(kind: FlushKind, rank: number | undefined, wait: WaitOptions | undefined): void {
    const completion = this.#completion;
    if (completion === undefined) return;
    if (wait === undefined && completion.tryFlush !== undefined) {
      try {
        if (completion.tryFlush(rank, kind.extent)) return;
      } catch (error) {
        completion.endHolding?.();
        throw this.#epochs.comm.members.explain(error);
      }
    }
    this.#members.waitSync(flushOf(completion, kind, rank), wait);
  }

  #checkFlush(call: string, target: number): Target | undefined {
    this.#serveOthers();
    return this.#epochs.checkFlush(call, target);
  }

  /** Refuses what needs a passive epoch to the target. */
  check(call: string, target: number): void {
    this.#checkFlush(call, target);
  }

  #checkFlushAll(call: string): void {
    this.#serveOthers();
    this.#epochs.checkFlushAll(call);
  }

  #serveOthers(): void {
    if (this.#serve !== undefined) this.#epochs.attempt(this.#serve);
  }

  async #flushed(kind: FlushKind, t: Target | undefined, options: WaitOptions | undefined): Promise<void> {
    await this.#members.wait(flushOf(this.#completion!, kind, t?.rank), options);
    this.#epochs.settle(kind, t);
  }
}

function flushOf(completion: Completion, { extent, last }: FlushKind, rank: number | undefined): Operation {
  if (extent === 'here' && completion.flushLocal !== undefined) return completion.flushLocal(rank);
  // For debugging: a lock that is given back behind the operations would be so before their results are delivered.
  if (last && !POISON && completion.flushLast !== undefined) return completion.flushLast(rank);
  return completion.flush(rank);
}
