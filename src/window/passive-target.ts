import type { Job } from '../comm/job.ts';
import { type Operation, readWait, type WaitOptions } from '../comm/operation.ts';
import type { ProgressEngine } from '../comm/progress.ts';
import { RmaError, show } from '../errors.ts';
import type { AllLock } from '../sync/lock/all.ts';
import { type Attempt, LockBit, type TargetLock } from '../sync/lock/scheme.ts';
import { memoryFence } from '../transfer/remote-part.ts';
import { Assert, checkAssert } from './assert.ts';
import type { WindowParts } from './creation/parts.ts';
import type { Epochs } from './epochs.ts';
import type { Completion } from './path/path.ts';
import type { Paths } from './path/paths.ts';
import { type Target, UNCHECKED } from './target.ts';

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

/**
 * Locks that a `lockAll` waits for, one after the other, before it holds on to those that it has; then it does so for
 * this time at first, and at most.
 */
const GENEROUS = 3;
const FIRST_HOLD_MS = 1;
const LONGEST_HOLD_MS = 10_000;

type HeldAll = 'the locks of all ranks' | 'one lock for all' | 'no lock';

export class PassiveTarget {
  #epochs: Epochs;
  #job: Job;
  #progress: ProgressEngine;
  /** What completes operations that are not complete when they are issued. */
  readonly #completion: Completion | undefined;
  #makeLock: (rank: number) => TargetLock | undefined;
  readonly #makeAll: (() => AllLock) | undefined;
  #all: AllLock | undefined;
  readonly #serve: (() => void) | undefined;
  /** Nothing is ever outstanding, and nobody is to be served: a flush never waits. */
  readonly #short: boolean;
  /** What the `lockAll` epoch holds. */
  #heldAll: HeldAll = 'no lock';

  constructor(parts: WindowParts, epochs: Epochs, paths: Paths) {
    this.#epochs = epochs;
    this.#job = parts.comm.job;
    this.#progress = parts.comm.job.progress;
    this.#completion = paths.completion;
    this.#makeLock = parts.makeLock;
    this.#makeAll = parts.allLock;
    this.#serve = parts.serve;
    this.#short = this.#completion === undefined && parts.serve === undefined && parts.comm.job.tasks === undefined;
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
    this.#progress.waitSync(this.#acquire(t, type), wait);
    this.#epochs.locked(t, type);
  }

  #tryLock(t: Target, type: number, assert: number): boolean {
    if ((assert & Assert.NO_CHECK) !== 0) {
      this.#epochs.locked(t, type | UNCHECKED);
      return true;
    }
    if (!this.#tryAcquire(t.lock!, type === LockBit.EXCLUSIVE)) return false;
    this.#epochs.locked(t, type);
    return true;
  }

  #tryAcquire(lock: TargetLock, exclusive: boolean): boolean {
    try {
      return lock.tryAcquire(exclusive);
    } catch (error) {
      throw this.#job.explain(error);
    }
  }

  /** A deadline or a signal is for the lock, so it is waited for. */
  #deferLock(t: Target, type: number, wait: WaitOptions | undefined): boolean {
    if (wait !== undefined || t.lock!.defer?.(type === LockBit.EXCLUSIVE) !== true) return false;
    this.#epochs.locked(t, type);
    return true;
  }

  async #finishLock(t: Target, type: number, options: WaitOptions | undefined): Promise<void> {
    this.#epochs.lockWaits(t);
    try {
      await this.#progress.wait(this.#acquire(t, type), options);
      this.#epochs.locked(t, type);
    } finally {
      this.#epochs.lockWaitEnded(t);
    }
  }

  /** The lock's scheme does not know whose part of which window it is for: messages do. */
  #acquire(t: Target, type: number): Operation {
    const operation = t.lock!.acquire(type === LockBit.EXCLUSIVE);
    const name = `lock of rank ${t.rank} in ${this.#epochs.what}`;
    return {
      advance: () => operation.advance(),
      describe: () => operation.describe().replace(/^lock( of rank \d+)?/, name),
      abandon: () => operation.abandon?.(),
      isPolling: () => operation.isPolling?.() ?? false,
    };
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

  #lockOf(t: Target): TargetLock {
    t.lock ??= this.#epochs.attempt(() => this.#makeLock(t.rank));
    if (t.lock === undefined) {
      throw new RmaError(
        'ERR_RMA_SYNC',
        `lock of rank ${t.rank} in ${this.#epochs.what}: the window was created with the hint no_locks, so it has no locks`,
      );
    }
    return t.lock;
  }

  /**
   * Takes the lock of this rank's own part if nobody holds it, without waiting for other ranks. Errors: of a device.
   */
  acquireAtOnce(lock: TargetLock): boolean {
    const progress = this.#progress;
    const { processor } = this.#job;
    const deadline = progress.now() + (lock.attempt === undefined ? REFUSED_MS : RELEASE_MS);
    do {
      const attempt = lock.attempt?.(true);
      if (attempt === undefined) {
        if (this.#tryAcquire(lock, true)) return true;
        continue;
      }
      while (!progress.look(attempt)) processor?.letPass();
      if (attempt.acquired) return true;
    } while (progress.now() < deadline);
    return false;
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
    this.#flushRequests('unlock', t.rank, wait);
    this.#unlock(t);
  }

  async #flushAndUnlock(t: Target, options: WaitOptions | undefined): Promise<void> {
    const held = this.#epochs.unlockWaits(t);
    try {
      await this.#flushed('unlock', t, options);
    } finally {
      this.#epochs.unlockWaitEnded(t, held);
    }
    this.#unlock(t);
  }

  #unlock(t: Target): void {
    const held = this.#epochs.unlocked(t);
    // The release is itself an atomic read-modify-write: our stores are visible before the lock is seen free. Without a
    // lock, it is a fence.
    if ((held & UNCHECKED) === 0) this.#release(t.lock!, held === LockBit.EXCLUSIVE);
    else memoryFence();
    this.#epochs.keepMoving();
  }

  #release(lock: TargetLock, exclusive: boolean): void {
    try {
      lock.release(exclusive);
    } catch (error) {
      throw this.#job.explain(error);
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
    this.#progress.waitSync(this.#acquireAll(), wait);
    this.#lockedAll('the locks of all ranks');
  }

  /** Where this rank has no epoch, and needs no more than the one lock for all, which it has had before. */
  #tryAllShort(): boolean {
    if (!this.#short || !this.#epochs.isIdle || this.#all === undefined || !this.#all.tryAcquire()) return false;
    this.#lockedAll('one lock for all');
    return true;
  }

  #lockedAll(held: HeldAll): void {
    this.#heldAll = held;
    this.#epochs.lockedAll();
  }

  async #finishLockAll(options: WaitOptions | undefined): Promise<void> {
    this.#epochs.lockAllBegun();
    try {
      await this.#progress.wait(this.#acquireAll(), options);
    } finally {
      this.#epochs.lockAllEnded();
    }
    this.#lockedAll('the locks of all ranks');
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
    if ((assert & Assert.NO_CHECK) !== 0) this.#lockedAll('no lock');
    else if (this.#all?.tryAcquire() === true) this.#lockedAll('one lock for all');
    else if (this.#tryEach()) this.#lockedAll('the locks of all ranks');
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

  /**
   * The shared locks of all ranks, of which one may be waited for at a time. At first, it holds none of the others
   * meanwhile. That alone could go on for ever where parts are kept busy in turns: by the time that one is had, another
   * one has gone. So after some rounds it holds on to those of lower ranks while it waits for the next, for a time that
   * doubles.
   *
   * It comes to an end: ranks that hold one lock wait for no other, and those that lock all wait in the order of ranks,
   * so every line moves; once the time is longer than a line takes, it has one lock after the other. No deadlock: a
   * rank that does wait for one lock while it holds another can be in this one's way, and this one in its way; then the
   * time is over, and this one lets go of all that it has.
   */
  #acquireAll(): Operation {
    const { what } = this.#epochs;
    const targets = this.#epochs.allTargets();
    const progress = this.#progress;
    const have = new Set<Target>();
    let waiting: { target: Target; operation: Operation; until: number } | undefined;
    let trying: { target: Target; operation: Attempt } | undefined;
    let waits = 0;
    let holdMs = FIRST_HOLD_MS;
    const letGo = (from: number): void => {
      for (const t of have) {
        if (t.rank < from) continue;
        t.lock!.release(false);
        have.delete(t);
      }
    };
    const wait = (target: Target): void => {
      const holds = ++waits > GENEROUS;
      letGo(holds ? target.rank : 0);
      const until = have.size > 0 ? progress.now() + holdMs : Number.POSITIVE_INFINITY;
      waiting = { target, operation: target.lock!.acquire(false), until };
    };
    /** It holds on to nothing any more, and still stands in line. */
    const waitAlone = (): void => {
      letGo(0);
      holdMs = Math.min(2 * holdMs, LONGEST_HOLD_MS);
      waiting!.until = Number.POSITIVE_INFINITY;
    };
    return {
      advance: () => {
        for (;;) {
          if (waiting !== undefined) {
            if (!waiting.operation.advance()) {
              if (progress.now() >= waiting.until) waitAlone();
              return false;
            }
            have.add(waiting.target);
            waiting = undefined;
          }
          if (trying !== undefined) {
            const { target, operation } = trying;
            if (!operation.advance()) return false;
            trying = undefined;
            if (operation.acquired) have.add(target);
            else wait(target);
            continue;
          }
          const refused = targets.find((t) => !have.has(t) && !(t.lock!.tryAcquire(false) && have.add(t)));
          if (refused === undefined) return true;
          const operation = refused.lock!.attempt?.(false);
          if (operation === undefined) wait(refused);
          else trying = { target: refused, operation };
        }
      },
      describe: () =>
        `lockAll of ${what}${waiting ? ` (waiting for rank ${waiting.target.rank}: ${waiting.operation.describe()})` : ''}`,
      abandon: () => {
        (waiting ?? trying)?.operation.abandon?.();
        letGo(0);
      },
      isPolling: () => {
        const again = (waiting ?? trying)?.operation.isPolling?.() ?? false;
        if (waiting === undefined || waiting.until === Number.POSITIVE_INFINITY || again === true) return again;
        const left = Math.max(0, waiting.until - progress.now());
        return again === false ? left : Math.min(again, left);
      },
    };
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
    this.#flushRequests('unlockAll', undefined, wait);
    this.#unlockAll();
  }

  async #flushAndUnlockAll(options: WaitOptions | undefined): Promise<void> {
    const epochs = this.#epochs;
    epochs.unlockAllBegun();
    try {
      await this.#flushed('unlockAll', undefined, options);
    } finally {
      epochs.unlockAllEnded();
    }
    this.#unlockAll();
  }

  #unlockAll(): void {
    this.#epochs.unlockedAll();
    // A release is itself an atomic read-modify-write; where there are none, a fence orders our stores.
    if (this.#heldAll === 'no lock') memoryFence();
    else if (this.#heldAll === 'one lock for all') this.#all!.release();
    else for (const t of this.#epochs.allTargets()) this.#release(t.lock!, false);
    this.#epochs.keepMoving();
  }

  // ---- flush --------------------------------------------------------------------------------------------------------

  flush(call: string, target: number, options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait(call, options);
      const t = this.#checkFlush(call, target);
      if (this.#completion !== undefined && t !== undefined) return this.#flushed(call, t, wait);
      this.#epochs.settle(call, t);
      return this.#progress.done();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  flushSync(call: string, target: number, options: WaitOptions | undefined): void {
    const t = this.#epochs.known(target);
    if (this.#short && options === undefined && t !== undefined && this.#epochs.mayFlush(t))
      this.#epochs.settle(call, t);
    else this.#flushLongSync(call, target, options);
  }

  #flushLongSync(call: string, target: number, options: WaitOptions | undefined): void {
    this.#job.refuseSync(call);
    const wait = readWait(call, options);
    const t = this.#checkFlush(call, target);
    if (t !== undefined) this.#flushRequests(call, t.rank, wait);
    this.#epochs.settle(call, t);
  }

  flushAll(call: string, options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait(call, options);
      this.#checkFlushAll(call);
      if (this.#completion !== undefined) return this.#flushed(call, undefined, wait);
      this.#epochs.settle(call, undefined);
      return this.#progress.done();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  flushAllSync(call: string, options: WaitOptions | undefined): void {
    this.#job.refuseSync(call);
    const wait = readWait(call, options);
    this.#checkFlushAll(call);
    this.#flushRequests(call, undefined, wait);
    this.#epochs.settle(call, undefined);
  }

  /** Waits until nothing is outstanding to `rank`, or, without it, to any. */
  #flushRequests(call: string, rank: number | undefined, wait: WaitOptions | undefined): void {
    const completion = this.#completion;
    if (completion === undefined) return;
    if (wait === undefined && completion.tryFlush !== undefined) {
      try {
        if (completion.tryFlush(rank, isLocal(call) ? 'here' : 'in memory')) return;
      } catch (error) {
        completion.endHolding?.();
        throw this.#epochs.comm.job.explain(error);
      }
    }
    this.#progress.waitSync(flushOf(completion, call, rank), wait);
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

  async #flushed(call: string, t: Target | undefined, options: WaitOptions | undefined): Promise<void> {
    await this.#progress.wait(flushOf(this.#completion!, call, t?.rank), options);
    this.#epochs.settle(call, t);
  }
}

function isLocal(call: string): boolean {
  return call === 'flushLocal' || call === 'flushLocalAll';
}

function flushOf(completion: Completion, call: string, rank: number | undefined): Operation {
  if (isLocal(call) && completion.flushLocal !== undefined) return completion.flushLocal(rank);
  if (call.startsWith('unlock') && completion.flushLast !== undefined) return completion.flushLast(rank);
  return completion.flush(rank);
}
