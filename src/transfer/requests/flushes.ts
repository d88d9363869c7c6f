/**
 * When a flush is complete: nothing is outstanding to a rank, or to any; and what was put is in the targets' memory.
 * Where a provider's completions do not say so, a read follows the puts (`Connection.unplaced`).
 */

import { SendFlag } from '../../verbs/queue-pair.ts';
import type { Operation } from '../../wait/operation.ts';
import type { Connections, WindowConnection } from './connections.ts';
import type { Outstanding } from './outstanding.ts';
import type { RequestTasks } from './request-tasks.ts';

/**
 * How far operations are complete when a flush is. Either at this rank; or also in the targets' memory; or so that each
 * target finds in memory what was put there before the notification that is sent to it next.
 */
export type Extent = 'here' | 'in memory' | 'notified';

const ignore = (): void => {};

export class Flushes {
  readonly #connections: Connections;
  readonly #outstanding: Outstanding;
  readonly #tasks: RequestTasks;
  /** Whether puts that are complete may not be in the target's memory yet. */
  readonly #confirms: boolean;

  constructor(connections: Connections, outstanding: Outstanding, tasks: RequestTasks, confirms: boolean) {
    this.#connections = connections;
    this.#outstanding = outstanding;
    this.#tasks = tasks;
    this.#confirms = confirms;
  }

  /** A put of at least one byte was begun, and no notification follows it. */
  noteUnplaced(connection: WindowConnection, rkey: number, address: number): void {
    if (this.#confirms) connection.unplaced = { rkey, address };
  }

  isComplete(rank: number | undefined, extent: Extent): boolean {
    if (!this.#confirms || extent === 'here') return this.#isIdle(rank);
    const connections = rank === undefined ? this.#connections.all : [this.#connections.to(rank)];
    if (extent === 'in memory') for (const connection of connections) this.#confirm(connection);
    if (!this.#isIdle(rank)) return false;
    // The targets of all of them are notified behind them.
    if (extent === 'notified') for (const connection of connections) connection.unplaced = undefined;
    return true;
  }

  /** Reads behind puts that may not be in memory when they are complete. */
  #confirm(connection: WindowConnection): void {
    const { unplaced, rank } = connection;
    if (unplaced === undefined) return;
    connection.unplaced = undefined;
    this.#outstanding.ask(rank, ignore, (qp, id, answers, slot) => {
      qp.wrRdmaRead(id, SendFlag.SIGNALED, unplaced.rkey, unplaced.address);
      answers.setSge(qp, slot, 1);
    });
  }

  #isIdle(rank: number | undefined): boolean {
    if (rank === undefined) return this.#outstanding.count + this.#tasks.count === 0;
    return this.#connections.to(rank).outstanding === 0 && this.isPosted(rank);
  }

  /** Whether all that was begun to a rank has been posted. */
  isPosted(rank: number): boolean {
    return this.#connections.to(rank).backlog.length === 0 && this.#tasks.left(rank) === 0;
  }
}

/** Is told why an operation has failed. */
export type Failed = (error: unknown) => void;

/** What a flush asks of the requests that it waits for. */
interface Flushed {
  tryFlush(rank: number | undefined, extent: Extent, failed: Failed | undefined): boolean;
  endHolding(): void;
  readonly pending: number;
  readonly isPolling: boolean;
}

/**
 * Complete when nothing is outstanding to `rank`, or, without it, to any rank: then it is complete at the targets too.
 */
export class Flush implements Operation {
  readonly #requests: Flushed;
  readonly #rank: number | undefined;
  readonly #extent: Extent;
  readonly #failed: Failed | undefined;

  /** @param failed is told why operations have failed, instead of the caller that waits; the flush goes on then */
  constructor(requests: Flushed, rank: number | undefined, extent: Extent, failed?: Failed) {
    this.#requests = requests;
    this.#rank = rank;
    this.#extent = extent;
    this.#failed = failed;
  }

  advance(): boolean {
    return this.#requests.tryFlush(this.#rank, this.#extent, this.#failed);
  }

  describe(): string {
    return `flush of ${this.#requests.pending} outstanding requests`;
  }

  abandon(): void {
    this.#requests.endHolding();
  }

  isPolling(): boolean {
    return this.#requests.isPolling;
  }
}
