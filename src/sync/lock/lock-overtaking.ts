/**
 * For how long ranks that run may overtake the rank that is next in line for a lock.
 *
 * Fair in the long run, quick in the short: as in parking_lot ("eventual fairness", every half a millisecond) and Go's
 * `sync.Mutex` (a millisecond until its starvation mode).
 */
import type { Job } from '../../job/job.ts';

/** Values of the hint `lock_order`. */
export const LOCK_ORDERS = ['arrival', 'running-first'] as const;
export type LockOrder = (typeof LOCK_ORDERS)[number];

/** In virtual time each rank has a processor of its own, so the next in line is never without one. */
export function defaultLockOrder({ virtualTime }: { readonly virtualTime: boolean }): LockOrder {
  return virtualTime ? 'arrival' : 'running-first';
}

/** Milliseconds: a thousand locks of a microsecond, and less than a time slice of the kernel's scheduler. */
const OVERTAKING_MS = 1;

/**
 * The same by requests. There a rank in line cannot tell whether it is overtaken, or whether one holder has the lock
 * for so long. A holder that has lost its core is back within some milliseconds.
 */
export const OVERTAKING_BY_REQUESTS_MS = 10;

export interface Overtaking {
  /** Milliseconds since the rank is the next one in line; 0: the lock is first come, first served. */
  readonly ms: number;
  /** The clock, in milliseconds. */
  now(): number;
}

/** No rank is overtaken. */
export const NO_OVERTAKING: Overtaking = { ms: 0, now: () => 0 };

/** @param ms milliseconds for which ranks that run may overtake, if the order lets them */
export function overtakingBy(order: LockOrder, job: Job, ms = OVERTAKING_MS): Overtaking {
  return order === 'arrival' ? NO_OVERTAKING : { ms, now: () => job.progress.now() };
}
