/** How the calls of a communicator and its barrier record themselves in a job that is traced. */

import { type CallRecord, recordCalls } from '../trace/recorded-calls.ts';
import type { Flow, Recorder } from '../trace/recorder.ts';
import { DONE } from '../wait/progress.ts';
import { COLLECTIVE_NAMES } from './collective-signature.ts';
import type { Signals } from './word-barrier.ts';

/** What a barrier tells and sees, as messages between ranks of the world. */
export function recordSignals(flow: Flow, worldRanks: readonly number[]): Signals {
  return {
    sent: (rank) => flow.sent(worldRanks[rank], 0),
    seen: (rank) => flow.seen(worldRanks[rank], 0),
    released: (rank, count) => flow.released(worldRanks[rank], count),
    sawRelease: (count) => flow.sawRelease(count),
  };
}

const NOTHING_MORE: CallRecord = {};
/** Gives a communicator methods that record its calls. @param scope its id, and its name after a bar */
export function traceCommunicator(
  communicator: object,
  recorder: Recorder,
  scope: string,
  worldRanks: readonly number[],
): void {
  const withPeer: CallRecord = { details: (args) => ({ peer: worldRanks[args[1] as number] ?? -1 }) };
  const calls: Record<string, CallRecord> = { send: withPeer, receive: withPeer };
  for (const name of ['barrier', ...COLLECTIVE_NAMES]) calls[name] = NOTHING_MORE;
  recordCalls(communicator, recorder, recorder.text(scope), calls, DONE);
}
