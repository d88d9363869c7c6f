/** How requests of a window, and operations that it queues, record themselves in a job that is traced. */
import type { Communicator } from '../../collective/communicator.ts';
import { QUEUED } from '../../trace/operation-arrivals.ts';
import type { RequestTrace } from '../../transfer/requests/outstanding.ts';
import type { QueueTrace } from '../../transfer/served/operation-queue.ts';

/**
 * Makes the recorder of requests of a window that is accessed by requests, in a job that is traced.
 * @param id the window's
 */
export function requestTrace(comm: Communicator, id: string): RequestTrace | undefined {
  const { recorder, size } = comm.job;
  if (recorder === undefined) return undefined;
  const ranks = comm.group.worldRanks;
  const flow = recorder.flow('request', id, size);
  const gathered = recorder.flow('gather', id, size);
  return {
    connected: (rank, qp) => qp.watch?.((number, time) => flow.tookEffect(ranks[rank], number, 1000 * time)),
    posted: (rank, turn) => void flow.posted(ranks[rank], turn),
    completed: (rank) => flow.completed(ranks[rank]),
    sends: (rank, bytes) => gathered.sent(ranks[rank], bytes),
    received: (rank) => gathered.seen(ranks[rank], 0),
  };
}

/**
 * Makes the recorder of operations that a window queues.
 * @param id the window's, @param name the queue's
 */
export function queueTrace(comm: Communicator, id: string, name: string): QueueTrace | undefined {
  const { recorder, size } = comm.job;
  if (recorder === undefined) return undefined;
  const ranks = comm.group.worldRanks;
  const flow = recorder.flow(`${QUEUED}${name}`, id, size);
  return {
    queued: (rank, turn) => flow.posted(ranks[rank], turn),
    carriedOut: (source) => flow.seen(ranks[source], 0),
    fetched: (rank, number) => flow.tookEffect(ranks[rank], number),
  };
}
