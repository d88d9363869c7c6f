/**
 * A small operation travels with the message that completes its epoch (dissertation §10.2): one message where there
 * were two, and the target's processor carries the operation out. It is for `complete` by messages
 * (sync/pscw/by-requests.ts), and for an epoch in which the operation is the only one to its target; what does not fit
 * is posted as requests.
 */
import { scheduleKind } from './kind.ts';

/** Bytes of the largest operation that does so. */
export const FOLDED_BYTES = 1024;

export const aggregate = scheduleKind({ name: 'aggregate', folds: true });
