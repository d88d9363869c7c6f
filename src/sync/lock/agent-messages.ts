/** Messages between the agent of a lock (lock-agent.ts) and the origins that ask for it (lock-origin.ts). */
import type { OwnChannel } from '../../collective/communicator.ts';
import type { LockCounts } from './lock-scheme.ts';

export const Message = Object.freeze({
  LOCK: 1,
  GRANT: 2,
  REFUSAL: 3,
  UNLOCK: 4,
  OPERATIONS: 5,
  DONE: 6,
  FAILURE: 7,
  ONE_EXCLUSIVE: 8,
  ONE_SHARED: 9,
});
/** The first word of an answer: which it is, and how the lock was granted. */
export const WHAT = 0xff;
export const HOW_SHIFT = 8;

/** Words of a LOCK. */
export const LOCK_WORDS = 5;

/**
 * How a lock that was granted is given back: by a message to the agent, or by the origin itself, which was handed it.
 * Of a hybrid lock, `BY_AGENT_IN_NETWORK_MODE` says besides what mode the agent has found.
 */
export const Grant = Object.freeze({ BY_AGENT: 0, HANDED: 1, BY_AGENT_IN_NETWORK_MODE: 2 });

export function sendWords(channel: OwnChannel, counts: LockCounts, target: number, words: Int32Array): void {
  counts.messages++;
  channel.send(target, new Uint8Array(words.buffer));
}
