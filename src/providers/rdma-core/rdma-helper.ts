/**
 * A helper on a device (src/verbs/helper.ts): a thread of the addon, which sleeps on a completion channel of its own,
 * posts what it is asked to, and touches no memory of JavaScript's (native/rdma_helper.h).
 *
 * Queue pairs are made and connected here, before the thread starts, and destroyed here, when it has ended; in between
 * they are the thread's.
 */
import type { RdmaContext } from '../../native.ts';
import { HELPER_GROUPS, HELPER_MESSAGES, type Helper, type HelperLane } from '../../verbs/helper.ts';
import { Access, type MemoryRegion } from '../../verbs/memory.ts';
import { QpState, type QueuePair } from '../../verbs/queue-pair.ts';
import type { QpAddress } from '../../verbs/queue-pair-address.ts';
import { RdmaCompletionQueue } from './rdma-completion-queue.ts';
import type { RdmaProtectionDomain } from './rdma-memory.ts';
import type { RdmaParent } from './rdma-parent.ts';
import type { RdmaQueuePair } from './rdma-queue-pair.ts';
import { verb } from './verb.ts';

/** Receives for requests of a lane: twice as many as may be under way, since the thread posts them again. */
const RECEIVES = 2 * HELPER_GROUPS;

interface Parent extends RdmaParent {
  readonly cqs: Map<number, RdmaCompletionQueue>;
}

export class RdmaHelper implements Helper {
  readonly entries: number;
  readonly #context: Parent;
  readonly #device: RdmaContext;
  readonly #pd: RdmaProtectionDomain;
  readonly #number: number;
  readonly #cq: RdmaCompletionQueue;
  readonly #lanes: { readonly control: RdmaQueuePair; readonly data: RdmaQueuePair }[] = [];
  #closed = false;

  constructor(
    context: Parent,
    device: RdmaContext,
    pd: RdmaProtectionDomain,
    region: MemoryRegion | undefined,
    entries: number,
    lanes: number,
  ) {
    this.#context = context;
    this.#device = device;
    this.#pd = pd;
    this.entries = entries;
    const { address = 0, length = 0, lkey = 0 } = region ?? {};
    const [number, cq, capacity] = verb('make a helper', () =>
      device.createHelper(pd.number, address, length, lkey, entries, Math.max(1, lanes)),
    );
    this.#number = number;
    this.#cq = new RdmaCompletionQueue(context, device, capacity, [cq, capacity]);
    context.cqs.set(cq, this.#cq);
  }

  addLane(): HelperLane {
    const control = this.#makeQueuePair(RECEIVES, RECEIVES, 1);
    const data = this.#makeQueuePair(HELPER_MESSAGES, HELPER_MESSAGES, this.entries);
    this.#lanes.push({ control, data });
    verb('add a lane', () => this.#device.addLane(this.#number, control.handle, data.handle));
    return { control: control.number, data: data.number };
  }

  #makeQueuePair(maxSendWr: number, maxRecvWr: number, entries: number): RdmaQueuePair {
    const queuePair = this.#pd.createQueuePair({
      sendCq: this.#cq,
      recvCq: this.#cq,
      maxSendWr,
      maxRecvWr,
      maxSendSge: entries,
      maxRecvSge: entries,
      maxInlineData: 0,
    }) as RdmaQueuePair;
    queuePair.modify({ state: QpState.INIT, access: Access.REMOTE_READ });
    return queuePair;
  }

  connect(lane: number, control: QpAddress, data: QpAddress): void {
    const ends = this.#lanes[lane];
    connect(ends.control, control);
    connect(ends.data, data);
  }

  start(): void {
    verb('start a thread', () => this.#device.startHelper(this.#number));
  }

  close(): void {
    if (this.#closed || this.#context.isClosed) return;
    this.#closed = true;
    verb('end a helper', () => this.#device.stopHelper(this.#number));
    for (const { control, data } of this.#lanes) for (const queuePair of [control, data]) queuePair.destroy();
    this.#context.cqs.delete(this.#cq.number);
    this.#context.giveBack('destroy a helper', () => this.#device.destroyHelper(this.#number));
  }
}

/** The same numbers as those of the other end (second-connections.ts). Receivers are ready: see src/verbs/helper.ts. */
function connect(queuePair: QueuePair, dest: QpAddress): void {
  queuePair.modify({ state: QpState.RTR, dest, minRnrTimerMs: 0.01, maxDestRdAtomic: HELPER_GROUPS });
  queuePair.modify({ state: QpState.RTS, rnrRetry: 7, retryCount: 7, maxRdAtomic: HELPER_GROUPS });
}
