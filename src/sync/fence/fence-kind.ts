/** What a fence scheme says of itself: hints, refusals, documentation and tests know it from this alone. */

import type { Communicator } from '../../collective/communicator.ts';
import type { BarrierState } from '../../collective/word-barrier.ts';
import type { MessageChannel } from '../../message/message-channel.ts';
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
  /**
   * There for those that queue operations: the queue, what carries out the operations of others, and spaces of
   * messages.
   */
  readonly queued: QueuedParts | undefined;
}

export interface QueuedParts {
  readonly queue: OperationQueue;
  readonly server: OperationServer;
  readonly operations: MessageChannel;
  readonly answers: MessageChannel;
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
  /** Whether windows whose hints name no scheme have this one: of each place, one scheme says so. */
  isDefault?(where: FencePlace): boolean;
  make(parts: FenceParts): FenceScheme;
}

export function fenceKind<const N extends string>(kind: FenceKind<N>): FenceKind<N> {
  return kind;
}
