/** How the calls of a communicator, its barrier, and whatever waits, record themselves in a job that is traced. */

import { type CallRecord, recordCalls } from '../trace/calls.ts';
import type { Flow, Recorder } from '../trace/recorder.ts';
import type { Context } from '../verbs/device.ts';
import { isAborted } from './abort-signals.ts';
import type { Signals } from './barrier.ts';
import { COLLECTIVE_NAMES } from './collective-signature.ts';
import type { Concerned } from './concerned.ts';
import type { Operation, WaitOptions } from './operation.ts';
import { DONE, type Liveness, Progress, type ProgressOptions } from './progress.ts';

/** Waits that record what they wait for. What is complete at the first look is no wait. */
export class TracedProgress extends Progress {
  readonly #recorder: Recorder;

  constructor(recorder: Recorder, context: Context, liveness: Liveness, poll: () => void, options: ProgressOptions) {
    super(context, liveness, poll, options);
    this.#recorder = recorder;
  }

  override waitSync(operation: Operation, options: WaitOptions | undefined, concerned: Concerned): void {
    if ((options?.signal !== undefined && isAborted(options.signal)) || !this.looked(operation, concerned)) {
      const span = this.#recorder.begin('wait', operation.describe());
      try {
        super.waitSync(operation, options, concerned);
      } catch (error) {
        this.#recorder.end(span, error);
        throw error;
      }
      this.#recorder.end(span);
    }
  }

  override wait(operation: Operation, options: WaitOptions | undefined, concerned: Concerned): Promise<void> {
    return recordWait(this.#recorder, operation, () => super.wait(operation, options, concerned));
  }

  /** One look, which ends the wait if it fails. */
  private looked(operation: Operation, concerned: Concerned): boolean {
    try {
      return this.look(operation, concerned);
    } catch (error) {
      operation.abandon?.();
      throw error;
    }
  }
}

/** Records the promise form of a wait. */
export function recordWait(recorder: Recorder, operation: Operation, wait: () => Promise<void>): Promise<void> {
  const since = recorder.now();
  const promise = wait();
  if (promise === DONE) return promise;
  const span = recorder.begin('wait', operation.describe(), { since });
  return promise.then(
    () => recorder.end(span),
    (error: unknown) => {
      recorder.end(span, error);
      throw error;
    },
  );
}

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
