/**
 * The calls of a window that open and end epochs, and complete operations within them (MPI 4.1, 12.5): what they do is
 * in active-target.ts and passive-target.ts; what all of them share is which epochs are open (epochs.ts).
 */
import type { Group } from '../../collective/group.ts';
import type { TypedArray } from '../../datatype/base-types.ts';
import type { Lock } from '../../sync/lock/lock-scheme.ts';
import { memoryFence } from '../../transfer/loads/remote-part.ts';
import type { WaitOptions } from '../../wait/operation.ts';
import type { Epochs } from '../epochs/epochs.ts';
import { FLUSHES } from '../epochs/flush-kinds.ts';
import { ActiveTarget } from './active-target.ts';
import { Communication } from './communication.ts';
import type { PassiveTarget } from './passive-target.ts';
import type { WindowCore } from './window-core.ts';

export abstract class Synchronization<T extends TypedArray> extends Communication<T> {
  readonly #epochs: Epochs;
  readonly #active: ActiveTarget;
  readonly #passive: PassiveTarget;

  /** @internal */
  constructor(core: WindowCore) {
    super(core);
    this.#epochs = core.epochs;
    this.#active = new ActiveTarget(core.parts, core.epochs, core.paths);
    this.#passive = core.passive;
  }

  // ---- fence --------------------------------------------------------------------------------------------------------

  /**
   * Ends the current epoch and opens the next one, unless `Assert.NO_SUCCEED` is passed. Collective. Afterwards all
   * operations that any rank issued in the ended epoch are complete, at their origins and targets. MPI 4.1, 12.5.1.
   *
   * `Assert.NO_PRECEDE` and `NO_SUCCEED` skip the work that they make unnecessary: a fence with `NO_PRECEDE` waits for
   * no operations; a fence with `NO_SUCCEED` returns when this rank's part and this rank's operations are complete; a
   * fence with both does nothing.
   *
   * After a timeout or an abort the fence is still in progress: call it again to continue the wait.
   * Cost: a barrier if operations are complete when issued; otherwise see the fence schemes (docs/guide/schemes.md).
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_RMA_SYNC` (an epoch of another kind is open, or another synchronization of
   * the window is in progress), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`, `ERR_COLLECTIVE` (other ranks have called
   * something else: a collective, a barrier, the fence of another window).
   */
  fence(assert = 0, options?: WaitOptions): Promise<void> {
    return this.#active.fence(assert, options);
  }

  /** Blocks until the fence is complete; otherwise like `fence`. */
  fenceSync(assert = 0, options?: WaitOptions): void {
    this.#active.fenceSync(assert, options);
  }

  // ---- start, complete, post, wait ----------------------------------------------------------------------------------

  /**
   * Opens an access epoch to the members of `group`, and waits until each of them has posted to a group that contains
   * this rank. MPI 4.1, 12.5.2.
   *
   * Cost: one cache line from each target; on a device, one message that is received from each. `Assert.NO_CHECK`
   * asserts that all members have already posted; it is verified if posts are visible at once, in shared memory.
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_GROUP`, `ERR_RMA_SYNC` (an access epoch is open, or another synchronization
   * of the window is in progress), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (no epoch is open then, and no post is
   * consumed).
   */
  start(group: Group, assert = 0, options?: WaitOptions): Promise<void> {
    return this.#active.start(group, assert, options);
  }

  /** Blocks until all members of `group` have posted; otherwise like `start`. */
  startSync(group: Group, assert = 0, options?: WaitOptions): void {
    this.#active.startSync(group, assert, options);
  }

  /**
   * Ends the access epoch that `start` opened. All operations issued in it are complete at this rank, and complete at a
   * target once that target has called `wait`. After a timeout or an abort the call is still in progress: call it
   * again. MPI 4.1, 12.5.2.
   *
   * Cost: one store to each target, and no wait; on a device, one write without data to each target, and a wait until
   * the requests of this rank are complete.
   * Errors: `ERR_WIN`, `ERR_RMA_SYNC` (no such epoch is open, or another synchronization of the window is in progress),
   * `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
   */
  complete(options?: WaitOptions): Promise<void> {
    return this.#active.complete(options);
  }

  /** Blocks until the access epoch has ended; otherwise like `complete`. */
  completeSync(options?: WaitOptions): void {
    this.#active.completeSync(options);
  }

  /**
   * Opens an exposure epoch: the members of `group`, each of which calls `start` with a group that contains this rank,
   * may access this rank's part. Never waits. MPI 4.1, 12.5.2.
   *
   * Cost: one store to each origin; on a device, one message to each.
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_GROUP`, `ERR_RMA_SYNC` (this rank's part is exposed or locked by this rank,
   * operations of a fence epoch are not complete, or another synchronization of the window is in progress),
   * `ERR_RMA_RANK_FAILED`.
   */
  async post(group: Group, assert = 0): Promise<void> {
    this.#active.post(group, assert);
  }

  /** Opens an exposure epoch, like `post`. Never waits. */
  postSync(group: Group, assert = 0): void {
    this.#active.post(group, assert);
  }

  /**
   * Ends the exposure epoch that `post` opened: waits until all its origins have called `complete`. Afterwards `local`
   * holds what they put. After a timeout or an abort the epoch is still open: call `wait` again. MPI 4.1, 12.5.2.
   *
   * Cost: one cache line from each origin; on a device, one notification that is received from each. This rank sends
   * nothing.
   * Errors: `ERR_WIN`, `ERR_RMA_SYNC` (no such epoch is open, or another `wait` is in progress), `ERR_RMA_RANK_FAILED`,
   * `ERR_RMA_TIMEOUT`.
   */
  wait(options?: WaitOptions): Promise<void> {
    return this.#active.wait(options);
  }

  /** Blocks until the exposure epoch has ended; otherwise like `wait`. */
  waitSync(options?: WaitOptions): void {
    this.#active.waitSync(options);
  }

  /**
   * Ends the exposure epoch if all its origins have called `complete`, and returns whether it has ended. Never waits.
   * Cost and errors: as `wait`, except `ERR_RMA_TIMEOUT`.
   */
  test(): boolean {
    return this.#active.test();
  }

  // ---- locks --------------------------------------------------------------------------------------------------------

  /**
   * Opens a passive-target epoch to `target`. `Lock.EXCLUSIVE` excludes all other locks, `Lock.SHARED` only exclusive
   * ones. Locks are granted in the order of the requests, unless the hint `lock` selects another scheme. MPI 4.1,
   * 12.5.3.
   *
   * Cost: one compare-and-swap at the target if no rank holds the lock or waits for it, and one additional addition for
   * an exclusive lock; see the lock schemes (docs/guide/schemes.md).
   * Errors: `ERR_WIN`, `ERR_LOCKTYPE`, `ERR_RANK`, `ERR_ASSERT`, `ERR_RMA_SYNC` (this rank already holds the lock, is
   * in an epoch of `start` or `lockAll`, operations of a fence epoch are not complete, this rank exposes the part,
   * or the window has the hint `no_locks`), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (this rank does not hold the lock
   * then).
   */
  lock(target: number, type: Lock, assert = 0, options?: WaitOptions): Promise<void> {
    return this.#passive.lock(target, type as unknown as number, assert, options);
  }

  /** Blocks until this rank holds the lock; otherwise like `lock`. */
  lockSync(target: number, type: Lock, assert = 0, options?: WaitOptions): void {
    this.#passive.lockSync(target, type as unknown as number, assert, options);
  }

  /**
   * Ends the passive-target epoch that `lock` opened. All operations issued to `target` are complete, at this rank and
   * at the target. After a timeout or an abort this rank still holds the lock: call `unlock` again. With the hint
   * `lock_defer` it may have sent the lock back already; then nothing else is allowed. MPI 4.1, 12.5.3.
   *
   * Cost: one atomic subtraction, two for an exclusive lock; on a device, a `flush` and one atomic whose answer is not
   * waited for. See the lock schemes (docs/guide/schemes.md).
   * Errors: `ERR_WIN`, `ERR_RANK`, `ERR_RMA_SYNC` (this rank does not hold the lock, or another synchronization of the
   * window is in progress), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
   */
  unlock(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.unlock(target, options);
  }

  /** Blocks until the epoch has ended; otherwise like `unlock`. */
  unlockSync(target: number, options?: WaitOptions): void {
    this.#passive.unlockSync(target, options);
  }

  /**
   * Opens a passive-target epoch with shared locks to all ranks. While it waits for the lock of one rank it holds none
   * of the others, so ranks that lock several targets cannot block each other through it. MPI 4.1, 12.5.3.
   *
   * Cost: one atomic addition; one compare-and-swap per rank while a rank holds an exclusive lock or waits for one.
   * Errors: as `lock`.
   */
  lockAll(assert = 0, options?: WaitOptions): Promise<void> {
    return this.#passive.lockAll(assert, options);
  }

  /** Blocks until this rank holds the locks; otherwise like `lockAll`. */
  lockAllSync(assert = 0, options?: WaitOptions): void {
    this.#passive.lockAllSync(assert, options);
  }

  /**
   * Ends the epoch that `lockAll` opened. All operations issued in it are complete, at this rank and at the targets.
   * After a timeout or an abort this rank still holds the locks: call `unlockAll` again. MPI 4.1, 12.5.3.
   *
   * Cost: one atomic subtraction, or one per rank if `lockAll` took the lock of each; on a device, a `flushAll` before
   * it.
   * Errors: `ERR_WIN`, `ERR_RMA_SYNC` (no such epoch is open, or another synchronization of the window is in progress),
   * `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
   */
  unlockAll(options?: WaitOptions): Promise<void> {
    return this.#passive.unlockAll(options);
  }

  /** Blocks until the epoch has ended; otherwise like `unlockAll`. */
  unlockAllSync(options?: WaitOptions): void {
    this.#passive.unlockAllSync(options);
  }

  // ---- flush --------------------------------------------------------------------------------------------------------

  /**
   * Completes all operations issued to `target` so far, at this rank and at the target. Requires a passive-target
   * epoch. After a timeout or an abort nothing is lost: call `flush` again. MPI 4.1, 12.5.4.
   *
   * Cost: if operations are complete when issued, one fence instruction if there were puts; otherwise the wait for what
   * is under way to `target`, a round trip at most if the device is idle. Devices whose completions do not say that
   * data is in place take one more (a read behind the puts).
   * Errors: `ERR_WIN`, `ERR_RANK`, `ERR_RMA_SYNC` (this rank does not hold the target's lock, or another
   * synchronization of the window is in progress), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
   */
  flush(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.flush(FLUSHES.flush, target, options);
  }

  /** Blocks until the operations to `target` are complete; otherwise like `flush`. */
  flushSync(target: number, options?: WaitOptions): void {
    this.#passive.flushSync(FLUSHES.flush, target, options);
  }

  /**
   * Completes all operations issued to any rank so far, at this rank and at the targets. Requires `lockAll` or at least
   * one lock. Cost: one fence instruction, or the wait for what is under way to any rank. Errors: as `flush`, except
   * `ERR_RANK`.
   */
  flushAll(options?: WaitOptions): Promise<void> {
    return this.#passive.flushAll(FLUSHES.flushAll, options);
  }

  /** Blocks until all operations are complete; otherwise like `flushAll`. */
  flushAllSync(options?: WaitOptions): void {
    this.#passive.flushAllSync(FLUSHES.flushAll, options);
  }

  /**
   * Completes all operations issued to `target` so far at this rank only: origins may be reused, and results hold their
   * data. They may be incomplete at the target. MPI 4.1, 12.5.4. Cost: as `flush`, without the read behind the puts.
   * Errors: as `flush`.
   */
  flushLocal(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.flush(FLUSHES.flushLocal, target, options);
  }

  /** Blocks until the operations to `target` are complete at this rank; otherwise like `flushLocal`. */
  flushLocalSync(target: number, options?: WaitOptions): void {
    this.#passive.flushSync(FLUSHES.flushLocal, target, options);
  }

  /**
   * Completes all operations issued to any rank so far at this rank only. Cost: as `flushAll`, without reads behind the
   * puts. Errors: as `flushAll`.
   */
  flushLocalAll(options?: WaitOptions): Promise<void> {
    return this.#passive.flushAll(FLUSHES.flushLocalAll, options);
  }

  /** Blocks until all operations are complete at this rank; otherwise like `flushLocalAll`. */
  flushLocalAllSync(options?: WaitOptions): void {
    this.#passive.flushAllSync(FLUSHES.flushLocalAll, options);
  }

  /**
   * Synchronizes loads and stores with RMA operations in a passive-target epoch: later loads see what other ranks have
   * written to this rank's part and completed, and later operations see earlier stores. MPI 4.1, 12.5.4. Cost: one
   * fence instruction. Errors: `ERR_WIN`, `ERR_RMA_SYNC` (a synchronization of the window is in progress).
   */
  sync(): void {
    this.#epochs.checkUsable('sync');
    memoryFence();
  }
}
