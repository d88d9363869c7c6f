/**
 * A superstep that goes on and ends, of the whole computation (`Core`) or of a unit (`Unit`): what was asked for in it,
 * what delivers that, and the waits for its end.
 */
import type { Communicator } from '../collective/communicator.ts';
import type { Operation } from '../wait/operation.ts';
import type { Delivery, Superstep } from './delivery/delivery.ts';
import { forgetLast } from './element-words.ts';
import { Outgoing, type Route } from './outgoing.ts';
import { Placement } from './placement.ts';
import type { MessageQueue } from './received-messages.ts';
import type { VariableRegistrations } from './registrations.ts';

export abstract class Step implements Superstep, Operation {
  /** The processes that end it together. */
  readonly comm: Communicator;
  readonly outgoing: Outgoing;
  readonly placement: Placement;
  /** Supersteps that have ended. */
  step = 0;
  protected readonly delivery: Delivery;
  /** A call waits for its end. */
  protected isAwaited = false;

  /**
   * @param route another way for puts
   * @param short whether headers of puts are compressed
   */
  constructor(
    comm: Communicator,
    delivery: Delivery,
    registrations: VariableRegistrations,
    queue: MessageQueue,
    route: Route | undefined,
    short: boolean,
  ) {
    const { processor } = comm.job;
    this.comm = comm;
    this.delivery = delivery;
    this.outgoing = new Outgoing(comm.size, () => delivery.pool, route, short, processor);
    this.placement = new Placement(comm.rank, registrations, queue, processor);
  }

  abstract beginSync(call: string, more: boolean): void;
  abstract advance(): boolean;
  abstract describe(): string;
  abstract compare(numbers: readonly Float64Array[] | undefined): void;

  isPolling(): boolean | number {
    return this.delivery.isPolling?.() ?? false;
  }

  /** The wait of one call; another one can begin when it has ended. */
  await(): Operation {
    this.isAwaited = true;
    return this;
  }

  abandon(): void {
    this.isAwaited = false;
  }

  get bytes(): number {
    return this.delivery.bytes;
  }

  close(): void {
    this.delivery.close();
  }

  /** Everything has been delivered. Errors: `ERR_BUFFER` (the destination of a get has lost its memory). */
  protected checkResults(): void {
    if (!this.outgoing.isEmpty) for (const results of this.outgoing.results) results?.check();
  }

  /** The next superstep begins. */
  protected next(): void {
    this.outgoing.reset();
    forgetLast();
    this.step++;
  }
}
