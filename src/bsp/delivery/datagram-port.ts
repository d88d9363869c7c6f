/**
 * Datagrams of a computation: a queue pair of type UD at each process, which sends to those of all others, and the
 * memory of what leaves and what comes. What is in the datagrams is datagram-carrier.ts's.
 *
 * A datagram that finds no receive is lost. So there are receives for `FIRST` from the beginning, and for more when
 * more are expected, up to `MOST`; a superstep that brings more depends on how fast they are taken.
 *
 * Computations are kept apart by their keys, which are random, as is the number that all datagrams bear. On a modelled
 * fabric, where a run must be the same each time and no other program is, both are the computation's own number.
 */
import { randomInt } from 'node:crypto';
import type { Communicator } from '../../collective/communicator.ts';
import { RmaError } from '../../errors.ts';
import { lostQueue } from '../../message/lost-connection.ts';
import { allocateRegistered, freeRegistered } from '../../message/registered-memory.ts';
import { type AddressHandle, GRH_BYTES } from '../../verbs/address-handle.ts';
import { type CompletionQueue, WcFlag, WcStatus, wcStatusName } from '../../verbs/completion-queue.ts';
import type { MemoryRegion } from '../../verbs/memory.ts';
import { QpState, QpType, type QueuePair, SendFlag } from '../../verbs/queue-pair.ts';
import type { Buffer } from './carrier-user.ts';

/**
 * Numbers that a process tells the others of itself, as many as of a multicast group: its queue pair, and what it would
 * choose for all.
 */
export type PortNumbers = readonly [qpNumber: number, computation: number, qkey: number];

/** Receives. */
const FIRST = 32;
const MOST = 1024;
/** Datagrams that wait to leave. */
const DEPTH = 64;
/** Words that each begins with. */
export const HEAD_WORDS = 5;
export const HEAD_BYTES = 4 * HEAD_WORDS;
/** Bytes that are written for one here: what is in front of its entries. */
const HEAD_ROOM = 1024;
/** Bytes of a datagram at least: an ask has a word of bits, and a packet something besides its head. */
const LEAST = HEAD_BYTES + 4;
/** Completions that are fetched at once. */
const POLLED = 64;

/** A part of registered memory. */
export interface Entry {
  readonly lkey: number;
  readonly address: number;
  readonly bytes: number;
}

/** A datagram that has come. */
export interface Received {
  readonly head: Int32Array;
  /** What is behind the head. */
  readonly data: Buffer;
}

/**
 * Takes what has come from a queue pair, and says whether it keeps the buffer until it releases it. Fewer bytes than
 * those of a head: the head is of no meaning.
 */
export type Take = (from: number, received: Received, bytes: number) => boolean;

export class DatagramPort {
  /** What this process tells the others. */
  readonly numbers: PortNumbers;
  /** Bytes of a datagram. */
  readonly most: number;
  /** Parts of memory that one can be made of, besides its head. */
  readonly entries: number;
  /** The number that all datagrams of the computation bear. */
  computation = 0;
  /** Datagrams that were given to the adapter, and that have left it. */
  given = 0;
  left = 0;
  readonly #comm: Communicator;
  readonly #room: number;
  readonly #cq: CompletionQueue;
  readonly #qp: QueuePair;
  readonly #heads: MemoryRegion;
  readonly #words: Int32Array;
  readonly #handles: (AddressHandle | undefined)[] = [];
  /** Queue pairs of all processes. */
  #peers: readonly number[] = [];
  #qkey = 0;
  readonly #buffers: Received[] = [];
  readonly #regions: { readonly region: MemoryRegion; readonly first: number }[] = [];
  /** Receives that can be posted. */
  readonly #receives: number;
  #lost: RmaError | undefined;
  /** Bytes of memory. */
  bytes = 0;

  /**
   * @param entries parts of memory of a datagram, if the device allows as many
   * @param space the number of the computation, at process 0, which chooses for all
   * Errors: `ERR_VERBS`; `ERR_ARG` if the device's datagrams are too short.
   */
  constructor(comm: Communicator, entries: number, space: number) {
    const { context, pd, tasks } = comm.job;
    const { device } = context;
    if (device.mtu < LEAST || device.maxSge < 2) {
      throw new RmaError(
        'ERR_ARG',
        `bsp.begin: delivery: 'datagrams' needs datagrams of ${LEAST} bytes and 2 parts, and this device's have ` +
          `${device.mtu} bytes and ${device.maxSge} parts at most; use 'packed'`,
      );
    }
    this.#comm = comm;
    this.most = device.mtu;
    this.entries = Math.min(entries, device.maxSge - 1);
    this.#room = GRH_BYTES + 8 * Math.ceil(this.most / 8);
    this.#receives = Math.min(MOST, device.maxQpWr, device.maxCqe - DEPTH);
    const cq = context.createCq(DEPTH + this.#receives);
    try {
      const [sendCq, recvCq, maxRecvWr] = [cq, cq, this.#receives];
      const init = { qpType: QpType.UD, sendCq, recvCq, maxSendWr: DEPTH, maxRecvWr, maxInlineData: 0 };
      this.#qp = pd.createQueuePair({ ...init, maxSendSge: 1 + this.entries });
    } catch (error) {
      cq.destroy();
      throw error;
    }
    this.#cq = cq;
    try {
      this.#heads = allocateRegistered(context, pd, DEPTH * HEAD_ROOM);
    } catch (error) {
      this.#qp.destroy();
      cq.destroy();
      throw error;
    }
    this.bytes = DEPTH * HEAD_ROOM;
    this.#words = new Int32Array(this.#heads.memory.buffer, 0, (DEPTH * HEAD_ROOM) / 4);
    const chosen = tasks !== undefined ? [space, space] : [randomInt(2 ** 31), randomInt(2 ** 31)];
    this.numbers = [this.#qp.number, chosen[0], chosen[1]];
  }

  /**
   * Begins to receive.
   * @param all what each process has told. Errors: `ERR_VERBS`, `ERR_SIZE`.
   */
  join(all: readonly PortNumbers[]): void {
    const [, computation, qkey] = all[0];
    this.computation = computation;
    this.#qkey = qkey;
    this.#peers = all.map(([number]) => number);
    this.#qp.modify({ state: QpState.INIT, qkey });
    this.#addBuffers(Math.min(FIRST, this.#receives));
    this.#qp.modify({ state: QpState.RTR });
    this.#qp.modify({ state: QpState.RTS });
  }

  /** So many datagrams come soon. Errors: `ERR_VERBS`, `ERR_SIZE`. */
  expect(datagrams: number): void {
    const wanted = Math.min(FIRST + datagrams, this.#receives);
    while (this.#buffers.length < wanted)
      this.#addBuffers(Math.min(this.#buffers.length, this.#receives - this.#buffers.length));
  }

  /** Receives that there are. */
  get buffers(): number {
    return this.#buffers.length;
  }

  /** Whether a datagram can be sent now. */
  get isReady(): boolean {
    return this.given - this.left < DEPTH;
  }

  /** The words at the front of the next datagram, to be written before `send`: as many as there is room for. */
  get head(): Int32Array {
    const at = (HEAD_ROOM / 4) * (this.given % DEPTH);
    return this.#words.subarray(at, at + (Math.min(HEAD_ROOM, this.most) >> 2));
  }

  /**
   * Sends one, if `isReady`: so many words of `head`, and then the entries. Its number is `given`, afterwards.
   * Errors: `ERR_VERBS`.
   */
  send(pid: number, words: number, count = 0, entry?: (i: number) => Entry): void {
    const qp = this.#qp;
    const handle = (this.#handles[pid] ??= this.#handleOf(pid));
    const { lkey, address } = this.#heads;
    qp.wrStart();
    try {
      qp.wrSend(0, SendFlag.SIGNALED);
      qp.wrSetUdAddr(handle, this.#peers[pid], this.#qkey);
      qp.wrAddSge(lkey, address + HEAD_ROOM * (this.given % DEPTH), 4 * words);
      for (let i = 0; i < count; i++) {
        const part = entry!(i);
        qp.wrAddSge(part.lkey, part.address, part.bytes);
      }
      qp.wrComplete();
    } catch (error) {
      qp.wrAbort();
      throw error;
    }
    this.given++;
  }

  /** Whether what comes completes there. */
  comesBy(cq: CompletionQueue): boolean {
    return cq === this.#cq;
  }

  /** Whether a queue pair is that of a process. */
  isOf(qpNumber: number, pid: number): boolean {
    return this.#peers[pid] === qpNumber;
  }

  /** Hands over what has come, and has this process woken when more comes. Errors: `ERR_VERBS`, from then on. */
  poll(take: Take): void {
    if (this.#lost !== undefined) throw this.#lost;
    try {
      this.#fetch(take);
      this.#cq.reqNotify();
    } catch (error) {
      this.#lost = lostQueue(error, 'the datagrams of supersteps');
      throw this.#lost;
    }
  }

  #fetch(take: Take): void {
    const cq = this.#cq;
    const { wc } = cq;
    for (let n = cq.poll(POLLED); n > 0; n = cq.poll(POLLED)) {
      for (let i = 0; i < n; i++) {
        if (wc.status[i] !== WcStatus.SUCCESS) {
          const status = wcStatusName(wc.status[i]);
          throw new RmaError('ERR_VERBS', `the queue pair has failed: a datagram completed with ${status}`);
        }
        if ((wc.flags[i] & WcFlag.GRH) === 0) {
          this.left++;
          continue;
        }
        const slot = wc.wrId[i];
        if (!take(wc.srcQp[i], this.#buffers[slot], wc.byteLen[i] - GRH_BYTES)) this.release(slot);
      }
    }
  }

  /** The buffer is free again. */
  release(slot: number): void {
    const { region, first } = this.#regions.findLast((one) => one.first <= slot)!;
    this.#qp.postRecv(slot, region.lkey, region.address + (slot - first) * this.#room, this.#room);
  }

  close(): void {
    this.#qp.destroy();
    this.#cq.destroy();
    for (const handle of this.#handles) handle?.destroy();
    for (const region of [...this.#regions.map((one) => one.region), this.#heads]) {
      freeRegistered(region);
    }
    this.#regions.length = this.#buffers.length = this.#handles.length = this.bytes = 0;
  }

  #handleOf(pid: number): AddressHandle {
    const { job, group } = this.#comm;
    return job.pd.createAh({ member: group.worldRanks[pid] });
  }

  #addBuffers(count: number): void {
    const { context, pd } = this.#comm.job;
    const bytes = count * this.#room;
    const first = this.#buffers.length;
    const region = allocateRegistered(context, pd, bytes);
    const { memory } = region;
    this.#regions.push({ region, first });
    this.bytes += bytes;
    for (let slot = first; slot < first + count; slot++) {
      const at = (slot - first) * this.#room + GRH_BYTES;
      const head = new Int32Array(memory.buffer, at, HEAD_WORDS);
      const i32 = new Int32Array(memory.buffer, at + HEAD_BYTES, (this.most - HEAD_BYTES) >> 2);
      const u8 = new Uint8Array(memory.buffer, at + HEAD_BYTES, this.most - HEAD_BYTES);
      this.#buffers.push({ head, data: { i32, u8, slot } });
      this.release(slot);
    }
  }
}
