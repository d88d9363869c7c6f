/** Refusals of posted receives, the same whatever a provider keeps them in. */
import { RmaError, show } from '../../errors.ts';
import { checkInteger } from '../../verbs/checks.ts';

/** Where receives are posted. */
export interface ReceiveSource {
  readonly capacity: number;
  readonly maxSge: number;
  /** Receives that are posted and not consumed. */
  readonly posted: number;
  /** Scatter entries of the receive being built. */
  readonly building: number;
  /** Forgets the receive being built. */
  abort(): void;
}

/** Refuses a scatter entry that does not fit. What a device would find only when it receives is left until then. */
export function checkReceiveEntry(receives: ReceiveSource, address: number, length: number): void {
  if (receives.posted >= receives.capacity) {
    refuseReceive(receives, `the receive queue is full: it holds ${receives.capacity} receives (ENOMEM)`);
  }
  if (receives.building >= receives.maxSge) {
    refuseReceive(receives, `a receive of this queue can have at most ${receives.maxSge} scatter entries (EINVAL)`);
  }
  if (length >>> 0 !== length || !Number.isSafeInteger(address) || address < 0) {
    refuseReceive(
      receives,
      `${show(length)} bytes at address ${show(address)} are not a valid range of memory (EINVAL)`,
    );
  }
}

export function checkReceiveId(receives: ReceiveSource, wrId: number): void {
  if (Number.isSafeInteger(wrId) && wrId >= 0) return;
  receives.abort();
  checkInteger('post receive', 'wrId', wrId, 0, Number.MAX_SAFE_INTEGER);
}

/** Drops the receive being built. */
export function refuseReceive(receives: ReceiveSource, why: string): never {
  receives.abort();
  throw new RmaError('ERR_VERBS', `post receive: ${why}`);
}
