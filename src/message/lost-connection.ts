/** What a completion with an error says of the connection that it came by, and a queue that gives no completions. */
import { LostConnectionError, LostQueueError, RmaError } from '../errors.ts';
import { WcStatus, wcStatusName } from '../verbs/completion-queue.ts';
import type { Context } from '../verbs/device.ts';

/** In words, where the field's own are not enough. */
const MEANING: Readonly<Record<number, string>> = {
  [WcStatus.RETRY_EXC_ERR]: 'the rank does not respond',
  [WcStatus.RNR_RETRY_EXC_ERR]: 'the rank accepts no messages',
  [WcStatus.REM_ACCESS_ERR]: 'the rank denies access: this memory is not, or is no longer, part of a window',
  [WcStatus.LOC_PROT_ERR]: 'the local memory is no longer registered',
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
    `the connection to rank ${rank} was lost: ${what} completed with ` +
      `${wcStatusName(status)}${why.length > 0 ? ` (${why.join('; ')})` : ''}`,
  );
}

/**
 * @param error what looking for completions, or making room for them, has thrown. If the device has not said it, it is
 * thrown again
 * @param what goes by the queue: `the requests of a window`
 */
export function lostQueue(error: unknown, what: string): LostQueueError {
  if (!(error instanceof RmaError) || error.code !== 'ERR_VERBS') throw error;
  if (error instanceof LostQueueError) return error;
  return new LostQueueError(`${what} are lost: ${error.message.replace(/^poll: /, '')}`, { cause: error });
}
