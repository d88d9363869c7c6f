/**
 * The calls of a window that open and end epochs, and complete operations within them (MPI 4.1, 12.5): what they do is
 * in active-target.ts and passive-target.ts; what all of them share is which epochs are open (epochs.ts).
 */
import type { Group } from '../comm/group.ts';
import type { WaitOptions } from '../comm/operation.ts';
import type { TypedArray } from '../datatype/base.ts';
import type { Lock } from '../sync/lock/scheme.ts';
import { memoryFence } from '../transfer/remote-part.ts';
import { ActiveTarget } from './active-target.ts';
import { Communication } from './communication.ts';
import type { WindowCore } from './core.ts';
import type { Epochs } from './epochs.ts';
import type { PassiveTarget } from './passive-target.ts';

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
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_RMA_SYNC` (a lock is held), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
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
   * Cost: one cache line from each target. `Assert.NO_CHECK` asserts that all members have already posted; it is
   * verified if posts are visible at once, in shared memory.
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_GROUP`, `ERR_RMA_SYNC` (an access epoch is open), `ERR_RMA_RANK_FAILED`,
   * `ERR_RMA_TIMEOUT` (no epoch is open then, and no post is consumed).
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
   * target once that target has called `wait`. Cost: one store to each target. Errors: `ERR_WIN`, `ERR_RMA_SYNC` (no
   * such epoch is open), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
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
   * may access this rank's part. Never waits. MPI 4.1, 12.5.2. Cost: one store to each origin.
   * Errors: `ERR_WIN`, `ERR_ASSERT`, `ERR_GROUP`, `ERR_RMA_SYNC` (an exposure epoch is open).
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
   * holds what they put. After a timeout or an abort the epoch is still open: call `wait` again. Errors: `ERR_WIN`,
   * `ERR_RMA_SYNC` (no such epoch is open), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
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
   * Errors: `ERR_WIN`, `ERR_LOCKTYPE`, `ERR_RANK`, `ERR_ASSERT`, `ERR_RMA_SYNC` (this rank already holds the lock, or
   * is in a fence epoch), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT` (this rank does not hold the lock then).
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
   * at the target. Cost: one atomic subtraction; two for an exclusive lock. Errors: `ERR_WIN`, `ERR_RANK`,
   * `ERR_RMA_SYNC` (this rank does not hold the lock), `ERR_RMA_RANK_FAILED`, `ERR_RMA_TIMEOUT`.
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

  /** Ends the epoch that `lockAll` opened. All operations issued in it are complete. Errors: as `unlock`. */
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
   * epoch. MPI 4.1, 12.5.4.
   * Cost: if operations are complete when issued, one fence instruction if there were puts.
   */
  flush(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.flush('flush', target, options);
  }

  /** Blocks until the operations to `target` are complete; otherwise like `flush`. */
  flushSync(target: number, options?: WaitOptions): void {
    this.#passive.flushSync('flush', target, options);
  }

  /** Completes all operations issued to any rank so far, at this rank and at the targets. Otherwise like `flush`. */
  flushAll(options?: WaitOptions): Promise<void> {
    return this.#passive.flushAll('flushAll', options);
  }

  /** Blocks until all operations are complete; otherwise like `flushAll`. */
  flushAllSync(options?: WaitOptions): void {
    this.#passive.flushAllSync('flushAll', options);
  }

  /**
   * Completes all operations issued to `target` so far at this rank only: origins may be reused, and results hold their
   * data. They may be incomplete at the target.
   */
  flushLocal(target: number, options?: WaitOptions): Promise<void> {
    return this.#passive.flush('flushLocal', target, options);
  }

  /** Blocks until the operations to `target` are complete at this rank; otherwise like `flushLocal`. */
  flushLocalSync(target: number, options?: WaitOptions): void {
    this.#passive.flushSync('flushLocal', target, options);
  }

  /** Completes all operations issued to any rank so far at this rank only. Otherwise like `flushLocal`. */
  flushLocalAll(options?: WaitOptions): Promise<void> {
    return this.#passive.flushAll('flushLocalAll', options);
  }

  /** Blocks until all operations are complete at this rank; otherwise like `flushLocalAll`. */
  flushLocalAllSync(options?: WaitOptions): void {
    this.#passive.flushAllSync('flushLocalAll', options);
  }

  /**
   * Synchronizes loads and stores with RMA operations in a passive-target epoch: later loads see what other ranks have
   * written to this rank's part and completed, and later operations see earlier stores.
   */
  sync(): void {
    this.#epochs.checkUsable('sync');
    memoryFence();
  }
}
