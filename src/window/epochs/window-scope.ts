/** What all calls of a window need of it: its name in messages, its targets, and what becomes of errors. */
import type { Communicator } from '../../collective/communicator.ts';
import { type Group, showRank } from '../../collective/group.ts';
import { argumentRangeError, argumentTypeError, RmaError } from '../../errors.ts';
import type { Messenger } from '../../message/messenger.ts';
import type { WindowParts } from '../creation/window-parts.ts';
import type { Target, Targets } from '../path/target.ts';

export class WindowScope {
  readonly comm: Communicator;
  readonly group: Group;
  /** The name of the window in messages. */
  name: string;
  /** The targets that were made, by rank. Emptied when the window is freed, which closes the fast path. */
  protected made: readonly (Target | undefined)[];
  readonly #targets: Targets;
  protected readonly messenger: Messenger;
  #freed = false;

  constructor({ comm, name, targets }: WindowParts) {
    this.comm = comm;
    this.group = comm.group;
    this.name = name;
    this.messenger = comm.job.messenger;
    this.#targets = targets;
    this.made = targets.made;
  }

  /** The window, in messages. */
  get what(): string {
    return `window ${this.name}`;
  }

  /** A target by rank, if something has been asked of it before; `undefined` on a freed window. For fast paths. */
  known(target: number): Target | undefined {
    return typeof target === 'number' ? this.made[target] : undefined;
  }

  /** @param call with a preposition, such as `post of` */
  refused(call: string, why: string): RmaError {
    return new RmaError('ERR_RMA_SYNC', `${call} ${this.what}: ${why}`);
  }

  get isFreed(): boolean {
    return this.#freed;
  }

  /** Nothing can be done with the window any more. */
  protected close(): void {
    this.#freed = true;
    this.made = [];
  }

  /** Refuses on a freed window, and in a job that has ended or lost a rank. */
  checkAlive(call: string): void {
    if (this.#freed) throw new RmaError('ERR_WIN', `${call}: ${this.what} was freed`);
    const refusal = this.comm.refusal(call);
    if (refusal !== undefined) throw refusal;
  }

  /** The target of this rank; `undefined` for what is no rank, and on a freed window. */
  find(target: number): Target | undefined {
    return typeof target === 'number' && !this.#freed ? this.#targets.of(target) : undefined;
  }

  /** Those of all ranks; none on a freed window. */
  allTargets(): readonly Target[] {
    return this.#freed ? [] : this.#targets.all();
  }

  /** Errors: `ERR_RANK`. */
  target(call: string, target: number): Target {
    const t = this.find(target);
    if (t !== undefined) return t;
    const message =
      `${call} on ${this.what}: ${showRank(target)} is not a rank of the window (0 … ` +
      `${this.group.size - 1}, or Rank.NULL)`;
    throw typeof target === 'number' ? argumentRangeError(message, 'ERR_RANK') : argumentTypeError(message, 'ERR_RANK');
  }

  /** Runs what uses other ranks' memory or connections. If it fails because a process is gone, the error says so. */
  attempt<T>(body: () => T): T {
    try {
      return body();
    } catch (error) {
      throw this.comm.members.explain(error);
    }
  }

  /**
   * Sends the messages that wait for room: a rank that polls by calls that are complete at once is in the library all
   * the time, and never sleeps, which is when it would send them (MPI 4.1, 12.7.3). Each call that ends an epoch,
   * flushes or tests does so. One load when there are none.
   */
  keepMoving(): void {
    if (this.messenger.idle !== true) this.#move();
  }

  #move(): void {
    this.attempt(() => this.messenger.poll());
  }
}
