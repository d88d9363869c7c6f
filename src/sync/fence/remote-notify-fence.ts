/**
 * The remote-notify fence (dissertation §6.3.3): puts are RDMA writes with immediate, which the target counts.
 *
 * 1. Wait until all requests of this rank are complete here (gets are complete then).
 * 2. Tell each rank how many notified puts it was sent: an allreduce of the counts, as in the dissertation.
 * 3. Wait until that many notifications have arrived: the data of a write with immediate is in memory before its
 *    notification.
 * 4. A barrier, so that no rank's next epoch meets a rank that still waits in this one.
 *
 * No finish message to each target is needed. The other immediate schemes flood the network with those.
 *
 * Why the counts are right. A rank gives its counts after its own requests are complete, and issues nothing more in
 * this epoch. So a rank that knows the sum knows of every put to it, and that no get of its part is under way any more.
 * The closing half has to wait for no more than that: with `NO_SUCCEED` the barrier is left out, with `NO_PRECEDE` all
 * but the barrier. A put of the next epoch is never counted for this one: it is issued after the barrier of the fence
 * that opens that epoch, and no rank passes that barrier before all have left this fence.
 */

import type { Communicator } from '../../collective/communicator.ts';
import type { BarrierState } from '../../collective/word-barrier.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import { FenceByRequests } from './fence-by-requests.ts';
import { fenceKind } from './fence-kind.ts';
import { FEW } from './notify-all-fence.ts';

class RemoteNotifyFence extends FenceByRequests {
  readonly #barrier: BarrierState;
  /** Notifications that all fences so far have waited for. */
  #expected = 0;

  constructor(comm: Communicator, requests: RequestTransfer, barrier: BarrierState, description: string) {
    super(comm, requests, description);
    this.#barrier = barrier;
  }

  protected *steps(precedes: boolean, succeeds: boolean): Generator<void, void> {
    if (precedes) {
      yield* this.completeOwn();
      this.#expected += yield* this.count(this.comm.sumForMeOfAll(this.requests.notifications.takeSent()));
      const holds = (): boolean => this.requests.notifications.received >= this.#expected;
      yield* this.until(holds, 'waiting for the notifications of puts to this rank');
    }
    if (succeeds) yield* this.passBarrier(this.#barrier);
  }
}

export const remoteNotify = fenceKind({
  name: 'remote-notify',
  moves: 'by requests',
  notifies: true,
  isDefault: ({ immediateCompletion, size }) => !immediateCompletion && size > FEW,
  make: ({ comm, wire, barrier, description }) => new RemoteNotifyFence(comm, wire!, barrier, description),
});
