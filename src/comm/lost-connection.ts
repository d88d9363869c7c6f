/** What a completion with an error says of the connection that it came by. */
import { LostConnectionError } from '../errors.ts';
import { WcStatus, wcStatusName } from '../verbs/completion-queue.ts';
import type { Context } from '../verbs/device.ts';

/** In words, where the field's own are not enough. */
const MEANING: Readonly<Record<number, string>> = {
  [WcStatus.RETRY_EXC_ERR]: 'it does not answer',
  [WcStatus.RNR_RETRY_EXC_ERR]: 'it takes no messages',
  [WcStatus.REM_ACCESS_ERR]: 'it refuses access to that memory, which is not, or not any more, part of a window',
  [WcStatus.LOC_PROT_ERR]: 'the memory here is not registered any more',
};

/**
 * @param rank in the job's world, at the other end
 * @param what has completed: `a put or get`
 */
export function lostConnection(context: Context, rank: number, status: number, what: string): LostConnectionError {
  const trouble = context.trouble?.();
  const silent = status === WcStatus.RETRY_EXC_ERR || status === WcStatus.RNR_RETRY_EXC_ERR;
  const why = [trouble, MEANING[status]].filter((text) => text !== undefined);
  return new LostConnectionError(
    rank,
    silent || trouble !== undefined,
    `the connection with rank ${rank} is lost: ${what} completed with ${wcStatusName(status)}${why.length > 0 ? ` (${why.join('; ')})` : ''}`,
  );
}
