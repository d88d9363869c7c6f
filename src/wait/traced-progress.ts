/** How whatever waits records itself in a job that is traced. */
import type { Recorder } from '../trace/recorder.ts';
import type { Context } from '../verbs/device.ts';
import { isAborted } from './abort-signals.ts';
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
