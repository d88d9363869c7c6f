/** Active target synchronization of a window: fence, and start/complete/post/wait (MPI 4.1, 12.5.1 and 12.5.2). */
import { Group } from '../../collective/group.ts';
import { argumentTypeError, RmaError, show } from '../../errors.ts';
import { DeliveringFence } from '../../sync/fence/delivering-fence.ts';
import { fenceNamed } from '../../sync/fence/fence-kinds.ts';
import type { FenceScheme } from '../../sync/fence/fence-scheme.ts';
import type { GeneralActiveTarget } from '../../sync/pscw/pscw-scheme.ts';
import type { HeldOperations } from '../../transfer/schedule/held-operations.ts';
import { type Operation, readWait, type WaitOptions } from '../../wait/operation.ts';
import type { WindowParts } from '../creation/window-parts.ts';
import type { Accesses } from '../epochs/accesses.ts';
import { Assert, checkAssert } from '../epochs/assertions.ts';
import type { Epochs } from '../epochs/epochs.ts';
import type { Paths } from '../path/paths.ts';

/** Looks at a fence before the promise form sleeps: some microseconds, as long as a rank that awaits may be behind. */
const ASYNC_SPIN = 1500;

const FENCE_ASSERTIONS = Assert.NO_STORE | Assert.NO_PUT | Assert.NO_PRECEDE | Assert.NO_SUCCEED;

export class ActiveTarget {
  #epochs: Epochs;
  #fence: FenceScheme;
  readonly #fenceWait: Operation;
  /** Operations of fence epochs are complete when their calls return. */
  readonly #completeAtIssue: boolean;
  #spin: number;
  #asyncSpin: number;
  #general: GeneralActiveTarget;
  /** Operations that wait to be posted; whatever completes an epoch posts them. */
  readonly #held: HeldOperations | undefined;
  /** Completes what is not complete when it is issued. */
  readonly #drain: Paths['drain'];
  /** Why an operation of the access epoch has failed, until `complete` says so. */
  #failure: { readonly error: unknown } | undefined;
  /** Targets that know of the end of the epoch, though `complete` has thrown. */
  #told: readonly number[] | undefined;
  /**
   * The groups that start and post saw last, and their members as ranks of the window: programs use the same ones again
   * and again.
   */
  #lastStarted: Members | undefined;
  #lastPosted: Members | undefined;

  constructor(parts: WindowParts, epochs: Epochs, paths: Paths) {
    this.#epochs = epochs;
    this.#fence = parts.fence;
    this.#fenceWait = parts.fenceWait;
    this.#completeAtIssue = fenceNamed(parts.hints.fence).moves === 'immediately';
    this.#spin = parts.comm.spin;
    this.#asyncSpin = Math.min(this.#spin, ASYNC_SPIN);
    this.#general = parts.general;
    this.#held = parts.held;
    this.#drain = paths.drain;
    if (this.#fence instanceof DeliveringFence) this.#fence.deliver = () => epochs.accesses?.completed(undefined);
  }

  // ---- fence --------------------------------------------------------------------------------------------------------

  fence(assert: number, options: WaitOptions | undefined): Promise<void> {
    let wait: WaitOptions | undefined;
    try {
      wait = readWait('fence', options);
      this.#begin(assert);
    } catch (error) {
      return Promise.reject(error);
    }
    if (wait === undefined) {
      try {
        if (this.#spun(this.#asyncSpin, assert)) return this.#epochs.comm.job.progress.done();
      } catch (error) {
        return Promise.reject(this.#epochs.interrupted('fence', error));
      }
    }
    return this.#finish(assert, wait);
  }

  fenceSync(assert: number, options: WaitOptions | undefined): void {
    this.#epochs.comm.job.refuseSync('fence');
    const wait = readWait('fence', options);
    this.#begin(assert);
    try {
      if (this.#spun(this.#spin, assert)) return;
      this.#epochs.comm.members.waitSync(this.#fenceWait, wait);
    } catch (error) {
      throw this.#epochs.interrupted('fence', error);
    }
    this.#end(assert);
  }

  #begin(assert: number): void {
    const epochs = this.#epochs;
    if (assert !== 0) checkAssert('fence', assert, FENCE_ASSERTIONS);
    epochs.checkFence((assert & Assert.NO_PRECEDE) !== 0);
    try {
      this.#held?.post();
      // Before others learn of it: they may change these bytes then.
      epochs.accesses?.fenceBegins(this.#completeAtIssue);
      this.#fence.begin((assert & Assert.NO_PRECEDE) === 0, (assert & Assert.NO_SUCCEED) === 0);
    } catch (error) {
      throw epochs.comm.members.explain(error);
    }
    epochs.fenceBegun();
  }

  #spun(looks: number, assert: number): boolean {
    const fence = this.#fence;
    for (let i = 0; i < looks; i++) {
      if (!fence.advance()) continue;
      this.#end(assert);
      return true;
    }
    return false;
  }

  #end(assert: number): void {
    this.#epochs.fenceEnded((assert & Assert.NO_SUCCEED) === 0);
  }

  async #finish(assert: number, options: WaitOptions | undefined): Promise<void> {
    try {
      await this.#epochs.comm.members.wait(this.#fenceWait, options);
    } catch (error) {
      throw this.#epochs.interrupted('fence', error);
    }
    this.#end(assert);
  }

  // ---- start and complete -------------------------------------------------------------------------------------------

  start(group: Group, assert: number, options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait('start', options);
      const targets = this.#beginStart(group, assert);
      if (this.#started(targets, wait === undefined ? this.#asyncSpin : 1))
        return this.#epochs.comm.job.progress.done();
      return this.#finishStart(targets, wait);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  startSync(group: Group, assert: number, options: WaitOptions | undefined): void {
    this.#epochs.comm.job.refuseSync('start');
    const wait = readWait('start', options);
    const targets = this.#beginStart(group, assert);
    if (this.#started(targets, this.#spin)) return;
    this.#epochs.comm.members.waitSync(this.#general.start(targets), wait);
    this.#epochs.started(targets);
  }

  #beginStart(group: Group, assert: number): readonly number[] {
    const epochs = this.#epochs;
    if (assert !== 0) checkAssert('start', assert, Assert.NO_CHECK);
    epochs.checkStart();
    if (this.#lastStarted === undefined || group !== this.#lastStarted.group)
      this.#lastStarted = this.#members('start', group);
    const targets = this.#lastStarted.ranks;
    const unchecked = (assert & Assert.NO_CHECK) !== 0;
    if (unchecked && this.#general.seesPostsAtOnce && !this.#started(targets, 1)) {
      throw new RmaError(
        'ERR_ASSERT',
        `start of ${epochs.what}: Assert.NO_CHECK was passed, but not all targets (${targets.join(', ')}) ` +
          'have posted yet; post first or omit the assertion',
      );
    }
    return targets;
  }

  /** Looks so many times whether all have posted; opens the epoch if so. */
  #started(targets: readonly number[], looks: number): boolean {
    if (this.#epochs.isStarted) return true;
    try {
      while (!this.#general.tryStart(targets)) if (--looks <= 0) return false;
    } catch (error) {
      throw this.#epochs.comm.members.explain(error);
    }
    this.#epochs.started(targets);
    return true;
  }

  async #finishStart(targets: readonly number[], options: WaitOptions | undefined): Promise<void> {
    const epochs = this.#epochs;
    epochs.startBegun();
    try {
      await epochs.comm.members.wait(this.#general.start(targets), options);
    } finally {
      epochs.startEnded();
    }
    epochs.started(targets);
  }

  complete(options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait('complete', options);
      const targets = this.#checkComplete();
      if (this.#drain !== undefined) return this.#finishComplete(targets, wait);
      this.#completed(targets);
      return this.#epochs.comm.job.progress.done();
    } catch (error) {
      return Promise.reject(error);
    }
  }

  completeSync(options: WaitOptions | undefined): void {
    this.#epochs.comm.job.refuseSync('complete');
    const wait = readWait('complete', options);
    const targets = this.#checkComplete();
    if (this.#drain !== undefined) {
      try {
        this.#epochs.comm.members.waitSync(this.#completing(targets), wait);
        this.#completed(targets);
      } catch (error) {
        throw this.#epochs.interrupted('complete', error);
      }
      return;
    }
    this.#completed(targets);
  }

  #checkComplete(): readonly number[] {
    const targets = this.#epochs.checkComplete();
    const held = this.#held;
    if (held !== undefined) this.#epochs.attempt(() => this.#postHeld(held, targets));
    return targets;
  }

  #postHeld(held: HeldOperations, targets: readonly number[]): void {
    const { folds } = this.#general;
    // For debugging: what travels with the message that tells the target would be compared when it knows.
    if (folds === undefined || this.#epochs.accesses?.buffers !== undefined) held.post();
    else
      folds.send(
        held.postAllBut((operation) => folds.takes(operation)),
        targets,
      );
  }

  async #finishComplete(targets: readonly number[], options: WaitOptions | undefined): Promise<void> {
    try {
      await this.#epochs.comm.members.wait(this.#completing(targets), options);
      this.#completed(targets);
    } catch (error) {
      throw this.#epochs.interrupted('complete', error);
    }
  }

  #completing(targets: readonly number[]): Operation {
    this.#epochs.completeBegun();
    const completing = this.#general.completing?.(targets) ?? this.#drained(targets);
    const { accesses } = this.#epochs;
    return accesses?.buffers === undefined ? completing : this.#delivered(accesses, completing);
  }

  /** For debugging: no target is told before results are delivered and origins compared, as in a fence. */
  #delivered(accesses: Accesses, completing: Operation): Operation {
    const drain = this.#drain!((error) => {
      this.#failure ??= { error };
    });
    let isDelivered = false;
    return {
      ...completing,
      advance: () => {
        if (!isDelivered) {
          if (!drain.advance()) return false;
          isDelivered = true;
          accesses.completed(undefined);
        }
        if (!completing.advance()) return false;
        const failure = this.#failure;
        this.#failure = undefined;
        if (failure !== undefined) throw failure.error;
        return true;
      },
      describe: () => (isDelivered ? completing : drain).describe(),
    };
  }

  /** What has failed keeps no target waiting: it is told first. */
  #drained(targets: readonly number[]): Operation {
    const drain = this.#drain!((error) => {
      this.#failure ??= { error };
    });
    return {
      advance: () => {
        if (!drain.advance()) return false;
        const failure = this.#failure;
        if (failure === undefined) return true;
        this.#tell(targets);
        this.#told = targets;
        this.#failure = undefined;
        throw failure.error;
      },
      describe: () => drain.describe(),
      abandon: () => drain.abandon?.(),
      isPolling: () => drain.isPolling?.() ?? false,
    };
  }

  #tell(targets: readonly number[]): void {
    if (this.#told !== targets) this.#general.complete(targets);
    this.#told = undefined;
  }

  #completed(targets: readonly number[]): void {
    const epochs = this.#epochs;
    // Before others learn of it: they may change these bytes then.
    epochs.accesses?.accessEnds();
    try {
      this.#tell(targets);
    } catch (error) {
      throw epochs.comm.members.explain(error);
    }
    epochs.completed();
  }

  // ---- post and wait ------------------------------------------------------------------------------------------------

  post(group: Group, assert: number): void {
    const epochs = this.#epochs;
    if (assert !== 0) checkAssert('post', assert, Assert.NO_CHECK | Assert.NO_STORE | Assert.NO_PUT);
    epochs.checkPost();
    if (this.#lastPosted === undefined || group !== this.#lastPosted.group)
      this.#lastPosted = this.#members('post', group);
    const origins = this.#lastPosted.ranks;
    try {
      this.#general.post(origins);
    } catch (error) {
      throw epochs.comm.members.explain(error);
    }
    epochs.posted(origins);
  }

  wait(options: WaitOptions | undefined): Promise<void> {
    try {
      const wait = readWait('wait', options);
      const origins = this.#epochs.exposure.checkWait('wait');
      if (this.#ended(origins, wait === undefined ? this.#asyncSpin : 1)) return this.#epochs.comm.job.progress.done();
      return this.#finishWait(origins, wait);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  waitSync(options: WaitOptions | undefined): void {
    this.#epochs.comm.job.refuseSync('wait');
    const wait = readWait('wait', options);
    const origins = this.#epochs.exposure.checkWait('wait');
    if (this.#ended(origins, this.#spin)) return;
    this.#epochs.comm.members.waitSync(this.#general.wait(origins), wait);
    this.#epochs.exposure.ended();
  }

  test(): boolean {
    const origins = this.#epochs.exposure.checkWait('test');
    if (this.#ended(origins, 1)) return true;
    // In vain: a program that only tests and computes never waits, so what this rank has under way, a long message for
    // one, goes on here.
    const look: Operation = {
      advance: () => this.#general.tryWait(origins),
      describe: () => `test of ${this.#epochs.what}`,
    };
    if (!this.#epochs.comm.members.look(look)) return false;
    this.#epochs.exposure.ended();
    return true;
  }

  #ended(origins: readonly number[], looks: number): boolean {
    this.#epochs.keepMoving();
    try {
      while (!this.#general.tryWait(origins)) if (--looks <= 0) return false;
    } catch (error) {
      throw this.#epochs.comm.members.explain(error);
    }
    this.#epochs.exposure.ended();
    return true;
  }

  async #finishWait(origins: readonly number[], options: WaitOptions | undefined): Promise<void> {
    this.#epochs.exposure.waitBegun();
    try {
      await this.#epochs.comm.members.wait(this.#general.wait(origins), options);
    } finally {
      this.#epochs.exposure.waitEnded();
    }
    this.#epochs.exposure.ended();
  }

  /** The members of a group as ranks of the window. */
  #members(call: string, group: Group): Members {
    const { what, group: all } = this.#epochs;
    if (!Group.is(group)) {
      throw argumentTypeError(
        `${call} of ${what}: the group must be a Group, such as win.group.include([0]), not ${show(group)}`,
        'ERR_GROUP',
      );
    }
    const ranks = group.worldRanks.map((member) => all.worldRanks.indexOf(member));
    const stranger = ranks.indexOf(-1);
    if (stranger >= 0) {
      throw new RmaError(
        'ERR_GROUP',
        `${call} of ${what}: rank ${group.worldRanks[stranger]} of the world is not in the window's group`,
      );
    }
    return { group, ranks };
  }
}

/** A group, and its members as ranks of the window. */
interface Members {
  readonly group: Group;
  readonly ranks: readonly number[];
}
