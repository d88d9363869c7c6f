/**
 * What the immediate fences by requests have in common: puts leave when they are issued, and the fence waits for this
 * rank's own and for those that come.
 */

import type { Communicator } from '../../collective/communicator.ts';
import type { BarrierState } from '../../collective/word-barrier.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import { StepwiseFence } from './stepwise-fence.ts';

export abstract class FenceByRequests extends StepwiseFence {
  protected readonly requests: RequestTransfer;

  constructor(comm: Communicator, requests: RequestTransfer, description: string) {
    super(comm, description);
    this.requests = requests;
  }

  /** Brings tasks that hold something for which others wait to their end: meanwhile no rank waits for this one. */
  abandon(): void {
    this.requests.endHolding();
  }

  /** Until all requests of this rank are complete: then gets are here, and writes no longer need their origin. */
  protected *completeOwn(): Generator<void, void> {
    this.step = 'waiting for its own requests';
    const flush = this.requests.flushAnyway((error) => this.note(error));
    while (!flush.advance()) yield;
  }

  /** Until a collective has given its number; puts keep coming in meanwhile. */
  protected *count(sum: Generator<void, number>): Generator<void, number> {
    this.step = () => `waiting for the counts of ${this.comm.awaited}`;
    let next = sum.next();
    while (!next.done) {
      this.requests.poll();
      yield;
      next = sum.next();
    }
    return next.value;
  }

  protected *until(holds: () => boolean, step: string | (() => string)): Generator<void, void> {
    this.step = step;
    for (;;) {
      this.requests.poll();
      if (holds()) return;
      yield;
    }
  }

  protected *passBarrier(barrier: BarrierState): Generator<void, void> {
    this.step = () => `waiting in the barrier for ${barrier.waitsFor()}`;
    this.asks = () => barrier.askedFor();
    barrier.begin();
    while (!barrier.advance()) {
      this.requests.poll();
      yield;
    }
  }
}
