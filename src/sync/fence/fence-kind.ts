/** What a fence scheme says of itself: hints, refusals, documentation and tests know it from this alone. */

import type { Communicator } from '../../collective/communicator.ts';
import type { BarrierState } from '../../collective/word-barrier.ts';
import type { MessageChannel } from '../../message/message-channel.ts';
import type { RemoteWord } from '../../transfer/requests/remote-access.ts';
import type { RequestTransfer } from '../../transfer/requests/request-transfer.ts';
import type { OperationQueue } from '../../transfer/served/operation-queue.ts';
import type { OperationServer } from '../../transfer/served/operation-server.ts';
import type { FenceScheme } from './fence-scheme.ts';

/** What a window gives its fence. */
export interface FenceParts {
  readonly comm: Communicator;
  /** The window, for messages. */
  readonly description: string;
  readonly barrier: BarrierState;
  /** There for all that move operations by requests. */
  readonly wire: RequestTransfer | undefined;
  /** There for those that queue operations. */
  readonly queued: QueuedParts | undefined;
  /** As many as the scheme says; nothing else goes through them. */
  readonly channels: readonly MessageChannel[];
  /** There for those that say that they have some. */
  readonly words: FenceWords | undefined;
}

/** The queue of operations, and what carries out those of others. */
export interface QueuedParts {
  readonly queue: OperationQueue;
  readonly server: OperationServer;
}

/** The words of a scheme: of 64 bits, in memory that devices reach. They begin with 0. */
export interface FenceWords {
  /** This rank's, in two halves each, the low one first. Others' writes and atomics change them. */
  readonly own: Int32Array;
  of(rank: number, index: number): RemoteWord;
}

/** What the default depends on. */
export interface FencePlace {
  /** Requests are complete when they are issued. */
  readonly immediateCompletion: boolean;
  /** Ranks of the window. */
  readonly size: number;
}

export interface FenceKind<N extends string = string> {
  /** Its value of the hint `fence`. */
  readonly name: N;
  /**
   * How puts and gets of a fence epoch move: as on all windows of the provider (`immediately`), by work requests
   * whatever the provider is, or queued until the fence.
   */
  readonly moves: 'immediately' | 'by requests' | 'in the fence';
  /** Each put of a fence epoch raises a completion at its target. */
  readonly notifies?: true;
  /** Channels of messages that it needs, at most 2; none if it is not said. */
  readonly channels?: number;
  /** Words of each rank that it needs (`FenceWords`), of a scheme that moves operations by requests; none likewise. */
  deviceWords?(size: number): number;
  /** Whether windows whose hints name no scheme have this one: of each place, one scheme says so. */
  isDefault?(where: FencePlace): boolean;
  make(parts: FenceParts): FenceScheme;
}

export function fenceKind<const N extends string>(kind: FenceKind<N>): FenceKind<N> {
  return kind;
}
