/** Reliable-connected queue pairs: made first, and connected when the other end's number is known. */
import type { ProtectionDomain, QueuePairInit } from '../verbs/memory.ts';
import { QpState, type QueuePair } from '../verbs/queue-pair.ts';
import type { QpAddress } from '../verbs/queue-pair-address.ts';

/**
 * A queue pair in the state INIT, or an error and none: one that is left over would keep its number, and its completion
 * queues could not be destroyed.
 */
export function beginQueuePair(pd: ProtectionDomain, init: QueuePairInit, access: number): QueuePair {
  const qp = pd.createQueuePair(init);
  try {
    qp.modify({ state: QpState.INIT, access });
  } catch (error) {
    qp.destroy();
    throw error;
  }
  return qp;
}

/**
 * Connects one. A message that finds no receive at the other end is sent again, soon and for ever; an end that does not
 * respond is given up after as many tries as a device makes.
 * @param reads how many reads and atomics may be under way, each way
 */
export function connectQueuePair(qp: QueuePair, dest: QpAddress, reads: number): void {
  qp.modify({ state: QpState.RTR, dest, minRnrTimerMs: 0.01, maxDestRdAtomic: reads });
  qp.modify({ state: QpState.RTS, rnrRetry: 7, retryCount: 7, maxRdAtomic: reads });
}
