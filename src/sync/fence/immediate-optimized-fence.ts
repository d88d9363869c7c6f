/**
 * The immediate fence with finish messages (dissertation §6.3.2): puts are RDMA writes, and behind the last one to each
 * target goes a message that says so.
 *
 * 1. A finish message to each rank that was put to, on the connection of the puts: it arrives behind them.
 * 2. Wait until all requests of this rank are complete here (gets are complete then).
 * 3. A reduce-scatter tells each rank how many have put to it.
 * 4. Wait for so many finish messages. A receive completes after all that came before it on its connection was placed,
 *    so all puts are in memory.
 * 5. A barrier, so that no rank's next epoch meets a rank that still waits in this one.
 *
 * Local completion and a barrier, without 1, 3 and 4, would not be enough (dissertation figure 6.3): a put that is
 * complete at its origin may still be on its way into the target's memory when messages between others have told every
 * rank that all have come. test/sync/fence-schemes.test.ts shows it.
 *
 * `NO_PRECEDE` leaves out 1 to 4, `NO_SUCCEED` 5, for the reasons given in remote-notify-fence.ts. Cost: a message more
 * than remote-notify for each target.
 */

import type { Communicator } from '../../collective/communicator.ts';
import type { BarrierState } from '../../collective/word-barrier.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import { FenceByFinish } from './fence-by-finish.ts';
import { fenceKind } from './fence-kind.ts';

class ImmediateOptimizedFence extends FenceByFinish {
  readonly #barrier: BarrierState;

  constructor(comm: Communicator, requests: RequestTransfer, barrier: BarrierState, description: string) {
    super(comm, requests, description);
    this.#barrier = barrier;
  }

  protected *steps(precedes: boolean, succeeds: boolean): Generator<void, void> {
    if (precedes) yield* this.finish();
    if (succeeds) yield* this.passBarrier(this.#barrier);
  }
}

export const immediateOptimized = fenceKind({
  name: 'immediate-optimized',
  moves: 'by requests',
  make: ({ comm, wire, barrier, description }) => new ImmediateOptimizedFence(comm, wire!, barrier, description),
});
