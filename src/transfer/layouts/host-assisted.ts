/**
 * Puts and gets of layouts that a helper at the other host serves while its program computes (dissertation §8.3.2,
 * "host-assisted zero-copy"). The messages and lists are those of sgrs.ts; what is added is a helper that looks. It
 * copies nothing and waits for nothing: it takes requests in, and posts receives, sends and answers.
 *
 * On devices the helper is the provider's (`Capabilities.helper`), with requests of its own: helped.ts. Here it is a
 * service of the rank's processor (`Processor.handleCompletions`), on modelled fabrics. Where there is neither,
 * layouts move as by `multi-write` (`availableHere`): the other way that copies nothing and needs no program of the
 * target's.
 *
 * Helper and program share the lanes of sgrs.ts. The simulator runs the helper in an event of its own. So the helper
 * never runs in the middle of a call, except for one that lets events pass (`AnswerWaits.finish`). There it finds the
 * same state as the looks of a rank that waits, which such a call may meet, too. Two looks at one lane do not nest
 * (`GroupLane.advance`). A reader of the target's part may see the bytes of a put as with RDMA writes: in any order,
 * until the origin's flush has ended and the two have synchronized.
 */
import type { Messenger } from '../../message/messenger.ts';
import type { Context } from '../../verbs/device.ts';
import type { Processor } from '../../verbs/processor.ts';
import type { RequestTransfer } from '../requests/request-transfer.ts';
import { DEFAULT_NONCONTIGUOUS, type NoncontiguousName, noncontiguousNamed } from './layout-kinds.ts';
import type { SgrsTransfers } from './sgrs.ts';

/** What a hint means in a job with this context and processor. */
export function availableHere(
  name: NoncontiguousName,
  { capabilities }: Pick<Context, 'capabilities'>,
  processor: Processor,
): NoncontiguousName {
  if (noncontiguousNamed(name).helped !== true) return name;
  return capabilities.helper || processor.hasHelper ? name : DEFAULT_NONCONTIGUOUS;
}

/** Whether a helper of the provider's serves such a window: the scheme is that of helped.ts. */
export function hasHelper(name: NoncontiguousName, { capabilities }: Pick<Context, 'capabilities'>): boolean {
  return noncontiguousNamed(name).helped === true && capabilities.helper;
}

/**
 * Has messages served beside the program's computation, and completions of a window's requests where something waits
 * for the room that they make; others wait for the program. @returns ends it
 */
export function serveBeside(
  processor: Processor,
  messenger: Messenger,
  requests: RequestTransfer,
  transfers: SgrsTransfers,
): () => void {
  const serve = (): void => {
    try {
      messenger.poll();
    } catch {
      // Each later look of the program says it again.
    }
    // What has been filled or sent makes room, and lets the next lists leave.
    requests.collect();
  };
  return processor.handleCompletions(
    serve,
    (cq, receives) => messenger.goesOnWith(cq, receives) || (transfers.isStuck && requests.completesAt(cq)),
  );
}
