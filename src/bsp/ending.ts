/** How a call ends a superstep, that of all processes or of a unit, and waits for that. */
import type { Communicator } from '../collective/communicator.ts';
import type { Job } from '../job/job.ts';
import { type Operation, readWait, type WaitOptions } from '../wait/operation.ts';

/** What ends supersteps. */
interface Ending {
  /** @param more what `end` and `sync` add; a call that ends just this superstep adds nothing */
  beginSync(call: string, more: boolean): void;
  await(): Operation;
  advance(): boolean;
  readonly comm: Communicator;
}

/** Never throws: the promise is rejected. */
export function endSuperstep(call: string, step: Ending, options: WaitOptions | undefined): Promise<void> {
  try {
    const wait = readWait(call, options);
    step.beginSync(call, false);
    return step.comm.members.wait(step.await(), wait);
  } catch (error) {
    return Promise.reject(step.comm.members.explain(error));
  }
}

/** Looks whether it ends soon, before the wait that can sleep: in a loop of its own, which V8 makes quicker. */
function looked(job: Job, step: Ending): boolean {
  const { messenger } = job;
  const { spin } = step.comm;
  try {
    for (let i = 0; i < spin; i++) {
      if (!step.advance()) continue;
      // As every call that has not slept: what waits for room leaves.
      if (messenger.idle !== true) messenger.poll();
      return true;
    }
  } catch (error) {
    throw step.comm.members.explain(error);
  }
  return false;
}

export function endSuperstepSync(job: Job, call: string, step: Ending, options: WaitOptions | undefined): void {
  job.refuseSync(call);
  const wait = readWait(call, options);
  step.beginSync(call, false);
  if (wait === undefined && looked(job, step)) return;
  step.comm.members.waitSync(step.await(), wait);
}
