/** What a rank's processor has spent on the library, for programs: on modelled fabrics, where it is counted. */
import { argumentTypeError } from '../errors.ts';
import type { ProcessorUse } from '../verbs/processor.ts';
import { Communicator } from './communicator.ts';

export type { ProcessorUse };

/**
 * Returns the virtual microseconds that this rank's processor has spent so far, by what for. A rank that waits spends
 * nothing: it looks when something has come. Take the difference of two calls to measure what lies between them.
 *
 * @param world a communicator of a job that `runTasks` runs
 * Errors: `TypeError` where ranks are processes or threads, whose processor time is not counted here. Cost: none in
 * virtual time.
 */
export function processorUse(world: Communicator): ProcessorUse {
  const use = world instanceof Communicator ? world.job.processor.use : undefined;
  if (use === undefined) {
    throw argumentTypeError('processorUse: world must be a communicator of ranks that runTasks runs');
  }
  return use;
}
