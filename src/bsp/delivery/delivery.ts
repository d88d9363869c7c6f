/** What every way of delivering a superstep offers. */
import type { ChunkPool } from '../chunks.ts';
import type { Outgoing, Route } from '../outgoing.ts';
import type { Placement } from '../placement.ts';
import type { Variables } from '../variables.ts';
import type { DatagramStatistics } from './datagram-counts.ts';
import type { Direct } from './direct-access.ts';
import type { MulticastStatistics } from './multicast-counts.ts';
import type { PacingStatistics } from './pacing-counts.ts';

/** Of what there is. */
export interface DeliveryStatistics {
  readonly multicast: MulticastStatistics | undefined;
  readonly pacing: PacingStatistics | undefined;
  readonly datagrams: DatagramStatistics | undefined;
}

/** What is delivered, and to whom it comes. */
export interface Superstep {
  readonly outgoing: Outgoing;
  readonly placement: Placement;
  /**
   * All processes have come to the end of the superstep, and their data is about to be placed.
   * @param numbers what each must do alike (alike.ts), by process; `undefined` if no process does any of it
   * Errors: `ERR_COLLECTIVE` if they differ, at all processes.
   */
  compare(numbers: readonly Float64Array[] | undefined): void;
}

/**
 * A `sync` is begun and advanced until it is complete: all processes have come to it, and what they have put, sent and
 * got is in place here. No other process needs this one's memory for it any more, or only until its next `sync`. After
 * a wait that ended early it goes on where it was.
 */
export interface Delivery {
  /** Chunks for what is asked for in the superstep under way. */
  readonly pool: ChunkPool;
  /** Registers variables for the device; absent if nothing needs it. */
  readonly variables?: Variables | undefined;
  /** Takes puts that go another way than in chunks with everything else, and calls of `hpput` and `hpget`. */
  readonly route?: Route | undefined;
  readonly direct?: Direct | undefined;
  /** @param numbers what this process does in the superstep that all must do (alike.ts) */
  begin(superstep: Superstep, numbers: Float64Array): void;
  advance(): boolean;
  /** As `Operation.isPolling`, in a `sync`. */
  isPolling?(): boolean | number;
  /** What it has counted, if there is something to count. */
  readonly statistics?: DeliveryStatistics;
  /** The processes that it waits for. */
  waitsFor(): string;
  /** Bytes of memory for chunks. */
  readonly bytes: number;
  /** Gives back what it has; nothing is delivered any more. */
  close(): void;
}
