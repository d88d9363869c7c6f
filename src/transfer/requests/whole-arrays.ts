/**
 * Puts and gets of whole arrays, by one request each: the shortest way to a device, which allocates nothing. What it
 * does not take on goes by request-transfer.ts, which does it in pieces, lets it wait for room, or says what is wrong.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import { byteLengthOf, byteOffsetOf } from '../../intrinsics.ts';
import type { Context } from '../../verbs/device.ts';
import { SendFlag } from '../../verbs/queue-pair.ts';
import { COUNTED } from './arrivals.ts';
import type { Connections } from './connections.ts';
import type { Flushes } from './flushes.ts';
import type { OriginRegistrations } from './origin-registrations.ts';
import type { Outstanding } from './outstanding.ts';
import type { Regions } from './regions.ts';

export class WholeArrays {
  /** Set before the first transfer. */
  regions: Regions | undefined;
  readonly #context: Context;
  readonly #connections: Connections;
  readonly #outstanding: Outstanding;
  readonly #registrations: OriginRegistrations;
  readonly #flushes: Flushes;
  readonly #notifies: boolean;

  /** @param notifies puts of fence epochs are writes with immediate */
  constructor(
    context: Context,
    connections: Connections,
    outstanding: Outstanding,
    flushes: Flushes,
    notifies: boolean,
  ) {
    this.#context = context;
    this.#connections = connections;
    this.#outstanding = outstanding;
    this.#registrations = outstanding.registrations;
    this.#flushes = flushes;
    this.#notifies = notifies;
  }

  /**
   * Puts all of `origin` to byte `at` of a rank's part. Errors: those of the device.
   * @param fenced the next fence completes it
   * @returns false if it must go the other way, which says why or does it in pieces; nothing was done then
   */
  put(origin: TypedArray, rank: number, at: number, fenced: boolean): boolean {
    const bytes = byteLengthOf(origin);
    const connection = this.#connections.to(rank);
    if (bytes > this.#context.device.maxMsgSize || !this.#outstanding.mayPost(connection)) return false;
    const { rkey, address } = this.regions!.of(rank);
    const notify = fenced && this.#notifies;
    const qp = connection.queuePair ?? this.#connections.queuePairTo(rank);
    // What can fail is outside of the builder; then there is nothing to take back.
    const buffer = this.#registrations.remember(origin);
    const inline = bytes <= qp.maxInlineData;
    const region = inline ? undefined : this.#registrations.regionOfLast();
    if (!inline && region === undefined) return false;
    qp.wrStart();
    if (notify) qp.wrRdmaWriteImm(rank, SendFlag.SIGNALED, rkey, address + at, COUNTED);
    else qp.wrRdmaWrite(rank, SendFlag.SIGNALED, rkey, address + at);
    if (region === undefined) qp.wrSetInlineData(buffer, byteOffsetOf(origin), bytes);
    else qp.wrSetSge(region.lkey, region.address + byteOffsetOf(origin), bytes);
    qp.wrComplete();
    this.#outstanding.notePosted(connection);
    if (fenced) connection.fenced = true;
    else this.#flushes.noteUnplaced(connection, rkey, address + at);
    if (notify) connection.sent++;
    return true;
  }

  /** The same for a get into all of `origin`. */
  get(origin: TypedArray, rank: number, at: number): boolean {
    const bytes = byteLengthOf(origin);
    const connection = this.#connections.to(rank);
    if (bytes > this.#context.device.maxMsgSize || !this.#outstanding.mayPost(connection)) return false;
    const { rkey, address } = this.regions!.of(rank);
    this.#registrations.remember(origin);
    const region = this.#registrations.regionOfLast();
    if (region === undefined) return false;
    const qp = connection.queuePair ?? this.#connections.queuePairTo(rank);
    qp.wrStart();
    connection.reading = true;
    qp.wrRdmaRead(rank, SendFlag.SIGNALED, rkey, address + at);
    qp.wrSetSge(region.lkey, region.address + byteOffsetOf(origin), bytes);
    qp.wrComplete();
    this.#outstanding.notePosted(connection);
    return true;
  }
}
