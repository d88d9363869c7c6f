/** How a call ends a superstep, that of all processes or of a unit, and waits for that. */
import type { Job } from '../comm/job.ts';
import { type Operation, readWait, type WaitOptions } from '../comm/operation.ts';

/** What ends supersteps. */
interface Ending {
  /** @param more what `end` and `sync` add; a call that ends just this superstep adds nothing */
  beginSync(call: string, more: boolean): void;
  await(): Operation;
}

/** Never throws: the promise is rejected. */
export function endSuperstep(job: Job, call: string, step: Ending, options: WaitOptions | undefined): Promise<void> {
  try {
    const wait = readWait(call, options);
    step.beginSync(call, false);
    return job.progress.wait(step.await(), wait);
  } catch (error) {
    return Promise.reject(job.explain(error));
  }
}

export function endSuperstepSync(job: Job, call: string, step: Ending, options: WaitOptions | undefined): void {
  job.refuseSync(call);
  const wait = readWait(call, options);
  step.beginSync(call, false);
  job.progress.waitSync(step.await(), wait);
}
