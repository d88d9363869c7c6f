/** Messages among the ranks of a group, in spaces that are isolated from each other. */

import type { Job } from '../job/job.ts';
import type { Fill } from '../message/long-messages.ts';
import type { MessageChannel } from '../message/message-channel.ts';
import type { Group } from './group.ts';
import type { RoomChannel } from './point-to-point.ts';

/** Messages among the ranks that only one thing uses. */
export interface OwnChannel extends MessageChannel {
  /** The number of its space. */
  readonly space: number;
  /** Hands over messages as they arrive (`Messenger.listen`), instead of `receive`. */
  listen(listener: (source: number, message: Uint8Array) => void, borrows?: boolean): () => void;
  /** Sends a message that `fill` writes (`Messenger.compose`). */
  compose(target: number, bytes: number, fill: Fill): void;
  /** Looks for arrivals: of this space, and of all others. */
  poll(): void;
  /** Whether all that this rank has sent has left, in whichever space. */
  readonly drained: boolean;
}

/** @param contextId the number of the space */
export function makeChannel(job: Job, group: Group, contextId: number): MessageChannel {
  const { messenger } = job;
  const ranks = group.worldRanks;
  return {
    rank: group.rank,
    size: group.size,
    awaited: -1,
    processor: job.processor,
    send: (target, payload) => messenger.send(ranks[target], contextId, payload),
    give: (target, message) => messenger.give(ranks[target], contextId, message),
    receive: (source) => {
      const waiting = messenger.receive(ranks[source], contextId);
      if (waiting !== undefined) return waiting;
      messenger.poll();
      return messenger.receive(ranks[source], contextId);
    },
  };
}

/** One whose long messages go where they are waited for. */
export function makeRoomChannel(job: Job, group: Group, contextId: number): MessageChannel & RoomChannel {
  const ranks = group.worldRanks;
  const { messenger } = job;
  return {
    ...makeChannel(job, group, contextId),
    exchange: (source, from, to) => messenger.exchange(ranks[source], contextId, from, to),
    awaitFrom: (source) => messenger.awaitFrom(ranks[source], contextId),
    receiveInto: (room) => messenger.receiveInto(contextId, (source, bytes) => room(ranks.indexOf(source), bytes)),
  };
}

export function makeOwnChannel(job: Job, group: Group, contextId: number): OwnChannel {
  const ranks = group.worldRanks;
  return {
    ...makeChannel(job, group, contextId),
    space: contextId,
    listen: (listener, borrows) =>
      job.messenger.listen(contextId, (source, message) => listener(ranks.indexOf(source), message), borrows),
    compose: (target, bytes, fill) => job.messenger.compose(ranks[target], contextId, bytes, fill),
    poll: () => job.messenger.poll(),
    get drained() {
      return job.messenger.drained;
    },
  };
}
