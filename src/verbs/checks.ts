/** Refusals that every provider makes, in the words of the verbs. */
import { RmaError, show } from '../errors.ts';
import { Access, type Memory } from './memory.ts';

/** Refuses a number that is no integer in a range, in the words of `call`. */
export function checkInteger(call: string, name: string, value: number, low: number, high: number): void {
  if (Number.isSafeInteger(value) && value >= low && value <= high) return;
  throw new RmaError(
    'ERR_VERBS',
    `${call}: ${name} must be an integer from ${low} to ${high}, not ${show(value)} (EINVAL)`,
  );
}

/** Refuses one more object where the device has room for `limit`. */
export function checkRoom(call: string, what: string, inUse: number, limit: number): void {
  if (inUse < limit) return;
  throw new RmaError('ERR_VERBS', `${call}: the device has ${limit} ${what}, and all are in use (ENOMEM)`);
}

/** All access rights together. */
export const ALL_ACCESS = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

/** The part of a memory to be registered, and with which rights. */
export function checkRegistration(call: string, memory: Memory, offset: number, length: number, access: number): void {
  checkInteger(call, 'the offset', offset, 0, memory.byteLength);
  checkInteger(call, 'the length', length, 0, memory.byteLength - offset);
  checkInteger(call, 'access', access, 0, ALL_ACCESS);
  if ((access & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC)) !== 0 && (access & Access.LOCAL_WRITE) === 0) {
    throw new RmaError('ERR_VERBS', `${call}: REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE (EINVAL)`);
  }
}

/** A completion queue has lost completions: every poll refuses. */
export function overrunError(capacity: number): RmaError {
  return new RmaError(
    'ERR_VERBS',
    `poll: the completion queue of ${capacity} entries was overrun and has lost completions; ` +
      'create it with room for all requests and receives that can be outstanding (CQ_ERR)',
  );
}

/** A completion queue about to be destroyed. @param users work queues of queue pairs that complete there */
export function checkUnused(users: number): void {
  if (users === 0) return;
  throw new RmaError(
    'ERR_VERBS',
    `destroy a completion queue: ${users} work queues still complete in it; destroy their queue pairs first (EBUSY)`,
  );
}
