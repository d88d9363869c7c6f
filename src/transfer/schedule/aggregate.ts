/**
 * A small put travels with the message that completes its epoch (dissertation §10.2): one message where there were two,
 * and the target's processor carries it out. It is for `complete` by messages (sync/pscw/pscw-by-requests.ts), and for
 * an epoch in which the put is the only operation to its target; everything else is posted as requests. Gets have a
 * schedule of their own, aggregate-gets.ts.
 */
import { scheduleKind } from './schedule-kind.ts';

/** Bytes of the largest operation that does so. */
export const FOLDED_BYTES = 1024;

export const aggregate = scheduleKind({ name: 'aggregate', folds: 'puts' });
