/**
 * The wait of a fence that has not been complete after some looks. If it becomes long, the ranks that have not come are
 * told where this one stands: they may wait in another call, for ever (collective/fence-order.ts). A fence that is
 * complete before comes to none of this.
 */
import type { Communicator } from '../../collective/communicator.ts';
import type { FenceOrder } from '../../collective/fence-order.ts';
import type { Operation } from '../../wait/operation.ts';
import type { FenceScheme } from './fence-scheme.ts';

/** How often a wait has to be found long before others are told: most end before. */
const LONG = 2;

export class FenceWait implements Operation {
  readonly #fence: FenceScheme;
  readonly #comm: Communicator;
  readonly #order: FenceOrder;
  readonly #window: number;
  /** The fence that was last found to wait long, and how often. */
  #lingering = 0;
  #times = 0;

  /** @param window which one of its communicator, from 1 */
  constructor(fence: FenceScheme, comm: Communicator, window: number) {
    this.#fence = fence;
    this.#comm = comm;
    this.#order = comm.fenceOrder;
    this.#window = window;
  }

  /** Errors: `ERR_COLLECTIVE` once it is known that other ranks have called something else. */
  advance(): boolean {
    if (this.#fence.advance()) return true;
    const { mismatch } = this.#order;
    if (mismatch === undefined) return false;
    this.#comm.broke(mismatch.message);
    throw mismatch;
  }

  describe(): string {
    return this.#fence.describe();
  }

  abandon(): void {
    this.#fence.abandon?.();
  }

  isPolling(): boolean | number {
    return this.#fence.isPolling?.() ?? false;
  }

  linger(): void {
    const { fences } = this.#fence.statistics;
    this.#times = fences === this.#lingering ? this.#times + 1 : 1;
    this.#lingering = fences;
    this.#fence.linger?.();
    this.#order.lingerInFence(this.#window, this.#times === LONG ? this.#fence.askedFor() : [], this.#fence.after);
  }
}
