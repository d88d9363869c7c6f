/** Messages between the agent of a lock (lock-agent.ts) and the origins that ask for it (lock-origin.ts). */
import type { OwnChannel } from '../../collective/communicator.ts';
import { Served } from '../../transfer/served/operation-messages.ts';
import type { LockCounts } from './lock-scheme.ts';

export const Message = Object.freeze({
  LOCK: 1,
  GRANT: 2,
  REFUSAL: 3,
  UNLOCK: 4,
  ...Served,
  ONE_EXCLUSIVE: 8,
  ONE_SHARED: 9,
});
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
