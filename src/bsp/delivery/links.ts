/**
 * Connections of a computation's own among its processes, for data: chunks that are sent into buffers which the
 * receiver has posted, and RDMA from and to registered memory. Each is one request of the adapter from registered
 * memory to registered memory (BSP-IB §3.1: packed into the buffers that the hardware uses, and placed from them).
 *
 * A link is made when two processes first have data for each other. Numbers of queue pairs go as messages:
 *
 *     CONNECT numbers   "these are my queue pairs for you": a process that hears it makes its own, if it has none, says
 *                       their numbers, connects to the other's, and then says
 *     READY             "I take what you send": a process that hears it may send and read
 *
 * Both may begin at the same time: then each hears CONNECT once and READY once, as well. A message comes only from a
 * process that is connected, so a process that hears READY has been told the number before.
 *
 * Buffers: `FIRST_BUFFERS` when the first link is made, then as many as are expected, up to `MOST_BUFFERS`; all links
 * share them. A chunk that finds no buffer waits at its sender's adapter (receiver not ready), which tries for ever.
 * Buffers fill with chunks that wait until gets have been answered. Gets and their results are messages, which need no
 * buffers, so two processes never wait for each other's buffers.
 *
 * Sends have a queue pair of their own. Requests of one queue pair leave in order, so reads behind a chunk that finds
 * no buffer would wait for it. Where buffers are full of lists of data to be read, two processes would wait for each
 * other. So reads and writes go by a second queue pair, where there are any.
 *
 * All is kept by this process's thread; there is nothing to share.
 */

import type { Communicator } from '../../collective/communicator.ts';
import { RmaError } from '../../errors.ts';
import { Fifo } from '../../fifo.ts';
import { lostConnection, lostQueue } from '../../message/lost-connection.ts';
import { allocateRegistered, freeRegistered } from '../../message/registered-memory.ts';
import { beginQueuePair, connectQueuePair } from '../../message/reliable-queue-pairs.ts';
import { WatchedQueue } from '../../message/watched-queue.ts';
import { WcOpcode, WcStatus } from '../../verbs/completion-queue.ts';
import { Access, type MemoryRegion } from '../../verbs/memory.ts';
import { type QueuePair, SendFlag } from '../../verbs/queue-pair.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import { CHUNK_BYTES } from '../chunks.ts';
import type { Buffer, CarrierUser } from './carrier-user.ts';

/** Buffers of 16 KiB that chunks are received into. */
const FIRST_BUFFERS = 4;
const MOST_BUFFERS = 64;
/** Requests under way on a link, and on all of them together. */
const DEPTH = 64;
const MOST_REQUESTS = 1024;
/** Of so many requests of a link, one at least has a completion. */
const SIGNAL_EVERY = 8;
/** Reads under way on a link, if the device allows as many. */
const MOST_READS = 16;
/** Completions that are fetched at once. */
const POLLED = 64;

/** Memory of this process that requests name. */
export interface LocalPlace {
  readonly lkey: number;
  readonly address: number;
}

/** Writes a request into the queue pair. */
type Build = (qp: QueuePair, flags: number) => void;

/** Requests that a completion says are complete. */
interface Batch {
  readonly requests: number;
  readonly done: (() => void) | undefined;
}

/** A queue pair, and what is under way on it. */
class Lane {
  readonly pid: number;
  readonly qp: QueuePair;
  /** Requests that are posted and not known to be complete. */
  outstanding = 0;
  /** The last of them, which have no completion of their own. */
  quiet = 0;
  /** In the order of posting, which is that of completions. */
  readonly batches = new Fifo<Batch>();

  constructor(pid: number, qp: QueuePair) {
    this.pid = pid;
    this.qp = qp;
  }
}

/** What a request goes by: chunks that are sent; reads and writes. */
export const SENDS = 0;
export const RDMA = 1;

/** What is told instead of numbers. */
const READY: readonly number[] = [];

interface Link {
  readonly lanes: readonly Lane[];
  /** 0: the other's numbers are not known; 1: connected; 2: the other one is, too. */
  stage: 0 | 1 | 2;
}

export class Links {
  /** Entries of a read's list; 0: nothing is read or written. */
  readonly entries: number;
  readonly #pieces: number;
  readonly #comm: Communicator;
  readonly #user: CarrierUser;
  readonly #links: (Link | undefined)[] = [];
  #queue: WatchedQueue | undefined;
  #srq: SharedReceiveQueue | undefined;
  readonly #buffers: Buffer[] = [];
  readonly #regions: { readonly region: MemoryRegion; readonly first: number }[] = [];
  readonly #byNumber = new Map<number, Lane>();
  /** What a poll has found: process, buffer and bytes of each chunk; what was waited for. */
  readonly #arrivals: number[] = [];
  readonly #done: (() => void)[] = [];
  #outstanding = 0;
  #lost: RmaError | undefined;
  /** Bytes of the buffers. */
  bytes = 0;

  /**
   * @param entries of a read's list, as many as the device allows at most; 0: nothing is read or written
   * @param pieces of a send's list
   */
  constructor(comm: Communicator, entries: number, user: CarrierUser, pieces: number) {
    this.#comm = comm;
    this.#user = user;
    this.entries = entries;
    this.#pieces = pieces;
  }

  /**
   * Whether so many requests can be posted to a process now; if there is no link, one begins to be made.
   * @param way `SENDS` or `RDMA`
   */
  isReady(pid: number, way: number, requests = 1): boolean {
    const { stage, lanes } = this.#links[pid] ?? this.#make(pid);
    if (stage !== 2) return false;
    return lanes[way].outstanding + requests <= DEPTH && this.#outstanding + requests <= MOST_REQUESTS;
  }

  /** Chunks come: there are buffers for so many, if they are not too many. Errors: `ERR_VERBS`. */
  expect(chunks: number): void {
    if (this.#srq === undefined) return;
    const wanted = Math.min(chunks, MOST_BUFFERS);
    while (this.#buffers.length < wanted)
      this.#addBuffers(Math.min(this.#buffers.length, wanted - this.#buffers.length));
  }

  /** The buffer is free again. */
  release({ slot }: Buffer): void {
    const { region, first } = this.#regions.findLast((one) => one.first <= slot)!;
    this.#srq!.postRecv(slot, region.lkey, region.address + (slot - first) * CHUNK_BYTES, CHUNK_BYTES);
  }

  /**
   * Posts a request to a process. `isReady` has said that it can be.
   * @param done is called when it is complete, if given
   * @param silent it needs no completion of its own: another one follows
   */
  post(pid: number, way: number, build: Build, done: (() => void) | undefined, silent: boolean): void {
    const lane = this.#links[pid]!.lanes[way];
    const { qp } = lane;
    const quiet = silent && done === undefined && lane.quiet + 1 < SIGNAL_EVERY;
    qp.wrStart();
    try {
      build(qp, quiet ? 0 : SendFlag.SIGNALED);
      qp.wrComplete();
    } catch (error) {
      qp.wrAbort();
      throw error;
    }
    lane.quiet++;
    lane.outstanding++;
    this.#outstanding++;
    if (quiet) return;
    lane.batches.push({ requests: lane.quiet, done });
    lane.quiet = 0;
  }

  /** Whether nothing is under way. */
  get isSilent(): boolean {
    return this.#outstanding === 0;
  }

  /** What the other end has said: its numbers, or READY. If no link can be made, every `poll` says so. */
  heard(pid: number, words: Int32Array): void {
    try {
      this.#heard(pid, words);
    } catch (error) {
      if (!(error instanceof RmaError)) throw error;
      this.#lost ??= error;
    }
  }

  #heard(pid: number, numbers: Int32Array): void {
    const link = this.#links[pid] ?? this.#make(pid);
    if (numbers.length === 0) {
      link.stage = 2;
      return;
    }
    const { device } = this.#comm.job.context;
    const reads = Math.min(MOST_READS, device.maxQpInitRdAtom);
    const member = this.#comm.group.worldRanks[pid];
    for (const [way, { qp }] of link.lanes.entries())
      connectQueuePair(qp, { member, qpNumber: numbers[way] }, way === RDMA ? reads : 0);
    link.stage = 1;
    this.#user.tell(pid, READY);
  }

  /**
   * Takes in what has come and what is complete.
   * Errors: `ERR_VERBS` (a link is lost, or could not be made), from then on.
   */
  poll(): void {
    const queue = this.#queue;
    if (queue === undefined) {
      if (this.#lost !== undefined) throw this.#lost;
      return;
    }
    for (;;) {
      const n = queue.fetch();
      const { status, opcode, qpNum, wrId, byteLen } = queue.cq.wc;
      for (let i = 0; i < n; i++) {
        const lane = this.#byNumber.get(qpNum[i])!;
        if (status[i] !== WcStatus.SUCCESS) this.#lose(lane, status[i]);
        else if (opcode[i] === WcOpcode.RECV) this.#arrivals.push(lane.pid, wrId[i], byteLen[i]);
        else this.#complete(lane);
      }
      this.#handOver();
      if (n < POLLED) break;
    }
    if (this.#lost === undefined) queue.wantNews();
    if (this.#lost !== undefined) throw this.#lost;
  }

  close(): void {
    for (const { qp } of this.#byNumber.values()) qp.destroy();
    this.#byNumber.clear();
    this.#srq?.destroy();
    this.#queue?.cq.destroy();
    for (const { region } of this.#regions) freeRegistered(region);
    this.#regions.length = this.#buffers.length = this.bytes = 0;
  }

  /** What users do may post, and poll is not called from within. */
  #handOver(): void {
    const [arrivals, done] = [this.#arrivals, this.#done];
    for (let i = 0; i < arrivals.length; i += 3) {
      this.#user.arrived(arrivals[i], this.#buffers[arrivals[i + 1]], arrivals[i + 2]);
    }
    arrivals.length = 0;
    for (const one of done.splice(0)) one();
  }

  #complete(lane: Lane): void {
    const { requests, done } = lane.batches.shift()!;
    lane.outstanding -= requests;
    this.#outstanding -= requests;
    if (done !== undefined) this.#done.push(done);
  }

  #lose({ pid }: Lane, status: number): void {
    const { job, group } = this.#comm;
    this.#lost ??= lostConnection(job.context, group.worldRanks[pid], status, 'a transfer of a superstep');
  }

  /** Where there is no room for a link, the computation has none from then on. */
  #make(pid: number): Link {
    try {
      return this.#makeLink(pid);
    } catch (error) {
      if (error instanceof RmaError) this.#lost ??= error;
      throw error;
    }
  }

  #makeLink(pid: number): Link {
    const { context, pd } = this.#comm.job;
    if (this.#queue === undefined) {
      this.#queue = new WatchedQueue(context.createCq(MOST_REQUESTS + MOST_BUFFERS), POLLED, (error) => {
        this.#lost ??= lostQueue(error, 'the transfers of supersteps');
      });
      this.#srq = pd.createSharedReceiveQueue({ maxWr: MOST_BUFFERS });
      this.#addBuffers(FIRST_BUFFERS);
    }
    const link: Link = {
      lanes: (this.entries === 0 ? [this.#pieces] : [this.#pieces, this.entries]).map((most) => this.#lane(pid, most)),
      stage: 0,
    };
    this.#links[pid] = link;
    this.#user.tell(
      pid,
      link.lanes.map(({ qp }) => qp.number),
    );
    return link;
  }

  #lane(pid: number, entries: number): Lane {
    const { pd } = this.#comm.job;
    const { cq } = this.#queue!;
    const init = { sendCq: cq, recvCq: cq, srq: this.#srq!, maxSendWr: DEPTH, maxSendSge: entries };
    const qp = beginQueuePair(pd, init, Access.REMOTE_READ | Access.REMOTE_WRITE);
    const lane = new Lane(pid, qp);
    this.#byNumber.set(qp.number, lane);
    return lane;
  }

  #addBuffers(count: number): void {
    const { context, pd } = this.#comm.job;
    const bytes = count * CHUNK_BYTES;
    const first = this.#buffers.length;
    const region = allocateRegistered(context, pd, bytes);
    const { memory } = region;
    this.#regions.push({ region, first });
    this.bytes += bytes;
    for (let slot = first; slot < first + count; slot++) {
      const at = (slot - first) * CHUNK_BYTES;
      const i32 = new Int32Array(memory.buffer, at, CHUNK_BYTES / 4);
      this.#buffers.push({ i32, u8: new Uint8Array(memory.buffer, at, CHUNK_BYTES), slot });
      this.release(this.#buffers[slot]);
    }
  }
}
