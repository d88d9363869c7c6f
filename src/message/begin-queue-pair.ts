/** Queue pairs that are made to be connected later. */
import type { ProtectionDomain, QueuePairInit } from '../verbs/memory.ts';
import { QpState, type QueuePair } from '../verbs/queue-pair.ts';

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
