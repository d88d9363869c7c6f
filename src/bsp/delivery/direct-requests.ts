/**
 * `hpput` and `hpget` by requests: an RDMA write or read between the program's array and the variable (as xBSP does it,
 * which BSP-IB §1.3 refers to). Arrays are registered when they are first used, and stay so for the next time
 * (transfer/requests/origin-registrations.ts).
 *
 * A small transfer is packed with other puts, which costs less than a request of its own. So is one whose array the
 * device has no room to register. A request that cannot be posted yet, since the link is being made or is full, waits,
 * at most until the superstep ends: source and destination stay as they are until then.
 *
 * When: a process that has ended a superstep does not know whether the others have; until they have, their variables
 * may still be read and written for that superstep. So with the first such call to a process in a superstep it asks
 * that process, and posts requests when it has been told that the superstep before is over there. A process answers at
 * once, or when it has ended that superstep. A process that computes answers in its next `sync`; the asker's `sync`
 * cannot end before that, since all count together.
 *
 * Which process sees what: a process ends its part of a superstep (counts.ts) only when all that it has posted this way
 * is complete. So a process that has heard from all processes finds what they have written. Where a completion does not
 * say that data are in the target's memory (capability `completionImpliesPlacement`), a byte of the last write to each
 * process is read behind it, which says so (transfer/requests/connections.ts).
 */

import type { Communicator } from '../../collective/communicator.ts';
import type { TypedArray } from '../../datatype/base-types.ts';
import { bufferOf, byteOffsetOf } from '../../intrinsics.ts';
import { allocateRegistered, freeRegistered } from '../../message/registered-memory.ts';
import { OriginRegistrations as Arrays } from '../../transfer/requests/origin-registrations.ts';
import type { MemoryRegion } from '../../verbs/memory.ts';
import type { Part } from '../element-words.ts';
import type { Slot } from '../slot.ts';
import { atPid, isReached, rkeyOf } from '../variables.ts';
import type { Direct } from './direct-access.ts';
import { type Links, type LocalPlace, RDMA } from './links.ts';

/** Less goes packed: a request costs the processor and the adapter what packing some hundred bytes does. */
const LEAST_DIRECT_BYTES = 1024;

interface Request {
  readonly pid: number;
  readonly writes: boolean;
  readonly rkey: number;
  readonly address: number;
  readonly array: TypedArray;
  /** Byte of the array. */
  readonly start: number;
  readonly bytes: number;
}

export class DirectRequests implements Direct {
  sent = 0;
  got = 0;
  readonly #comm: Communicator;
  readonly #links: Links;
  readonly #arrays: Arrays;
  readonly #askFor: (pid: number) => void;
  /** In the superstep under way: processes that were asked, and that have ended the superstep before. */
  readonly #asked = new Set<number>();
  readonly #granted = new Set<number>();
  /** In the order of calls. */
  #waiting: Request[] = [];
  /** By process, the last write that may be complete before it is in memory. */
  readonly #unplaced = new Map<number, Request>();
  readonly #most: number;
  /** Where bytes are read to that no process wants. */
  #sink: MemoryRegion | undefined;

  /** @param askFor asks a process whether it has ended the superstep before: `granted` is called then */
  constructor(comm: Communicator, links: Links, askFor: (pid: number) => void) {
    const { origins, context } = comm.job;
    this.#askFor = askFor;
    this.#comm = comm;
    this.#links = links;
    // What waits needs its registration, too.
    this.#arrays = new Arrays(origins, () => this.#waiting.length === 0 && links.isSilent);
    this.#most = context.device.maxMsgSize;
  }

  put(pid: number, slot: Slot, at: number, part: Part): boolean {
    return this.#ask(pid, slot, at, part, true);
  }

  get(pid: number, slot: Slot, at: number, part: Part): boolean {
    return this.#ask(pid, slot, at, part, false);
  }

  #ask(pid: number, slot: Slot, at: number, { array, start, count, width }: Part, writes: boolean): boolean {
    const bytes = count * width;
    const key = atPid(slot.keys, pid);
    if (bytes < LEAST_DIRECT_BYTES || bytes > this.#most || pid === this.#comm.rank || !isReached(key)) return false;
    try {
      if (this.#arrays.draining || !this.#arrays.register(bufferOf(array))) return false;
    } catch {
      // The device has no room for it.
      return false;
    }
    const request = {
      ...{ pid, writes, array, bytes },
      rkey: rkeyOf(key),
      address: atPid(slot.addresses, pid) + at,
      start: start * width,
    };
    if (!this.#asked.has(pid)) {
      this.#asked.add(pid);
      this.#askFor(pid);
    }
    if (this.#waiting.length > 0 || !this.#canPost(pid)) this.#waiting.push(request);
    else this.#post(request);
    if (writes) this.sent += bytes;
    else this.got += bytes;
    return true;
  }

  /** Posts what waited, and sees to it that all is in memory. True when it is. */
  settle(): boolean {
    if (this.#waiting.length > 0) {
      this.#waiting = this.#waiting.filter((request) => {
        if (!this.#canPost(request.pid)) return true;
        this.#post(request);
        return false;
      });
      if (this.#waiting.length > 0) return false;
    }
    for (const [pid, request] of this.#unplaced) {
      if (!this.#links.isReady(pid, RDMA)) return false;
      this.#confirm(request);
      this.#unplaced.delete(pid);
    }
    if (!this.#links.isSilent) return false;
    if (this.#arrays.draining) this.#arrays.drained();
    return true;
  }

  /** A process has ended the superstep before the one under way. */
  granted(pid: number): void {
    this.#granted.add(pid);
  }

  /** The superstep is over. */
  next(): void {
    this.#asked.clear();
    this.#granted.clear();
  }

  close(): void {
    this.#arrays.close();
    if (this.#sink !== undefined) freeRegistered(this.#sink);
    this.#sink = undefined;
  }

  #canPost(pid: number): boolean {
    return this.#granted.has(pid) && this.#links.isReady(pid, RDMA);
  }

  #placeOf({ array, start }: Request): LocalPlace {
    const { lkey, address } = this.#arrays.regionOf(bufferOf(array));
    return { lkey, address: address + byteOffsetOf(array) + start };
  }

  #post(request: Request): void {
    const { pid, writes, rkey, address, bytes } = request;
    const place = this.#placeOf(request);
    this.#links.post(
      pid,
      RDMA,
      (qp, flags) => {
        if (writes) qp.wrRdmaWrite(0, flags, rkey, address);
        else qp.wrRdmaRead(0, flags, rkey, address);
        qp.wrSetSge(place.lkey, place.address, bytes);
      },
      undefined,
      writes,
    );
    if (writes) this.#unplaced.set(pid, request);
  }

  /** Reads a byte of what was written. */
  #confirm(request: Request): void {
    const { context, pd } = this.#comm.job;
    this.#sink ??= allocateRegistered(context, pd, 8);
    const { lkey, address } = this.#sink;
    this.#links.post(
      request.pid,
      RDMA,
      (qp, flags) => {
        qp.wrRdmaRead(0, flags, request.rkey, request.address);
        qp.wrSetSge(lkey, address, 1);
      },
      undefined,
      false,
    );
  }
}
