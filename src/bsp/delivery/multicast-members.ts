/**
 * Datagrams from one process to all others: a queue pair of type UD at each, attached to a multicast group that process
 * 0 has chosen, as the key.
 *
 * Computations are kept apart by their keys, which are random; on a modelled fabric, by what is in them of process 0.
 *
 * Nothing of it is reliable, and nothing of it fails: where a queue pair cannot be made, attached, or used any more, no
 * datagram is sent or comes, which is what may happen to any.
 */
import { randomInt } from 'node:crypto';
import type { Communicator } from '../../collective/communicator.ts';
import { SPACES } from '../../collective/message-spaces.ts';
import { lostQueue } from '../../message/lost-connection.ts';
import { allocateRegistered, freeRegistered } from '../../message/registered-memory.ts';
import { type AddressHandle, GRH_BYTES } from '../../verbs/address-handle.ts';
import { type CompletionQueue, WcFlag, WcStatus } from '../../verbs/completion-queue.ts';
import type { MemoryRegion } from '../../verbs/memory.ts';
import { QpState, QpType, type QueuePair, SendFlag } from '../../verbs/queue-pair.ts';

/** Numbers that a process tells the others of itself: its queue pair (0: it has none), and what it would choose. */
export const GROUP_NUMBERS = 3;
export type GroupNumbers = readonly [qpNumber: number, group: number, qkey: number];
export const NO_GROUP: GroupNumbers = [0, 0, 0];
/** Of no meaning in a datagram for a group. */
const ANY_QP = 1;

/** A queue pair that can be attached, if this process's device can have one. */
export function makeGroup(comm: Communicator, parts: number, space: number): MulticastMembers | undefined {
  if (!comm.job.context.capabilities.multicast) return undefined;
  try {
    return new MulticastMembers(comm, parts, space);
  } catch {
    // Its place is taken, or its memory: others need it more.
    return undefined;
  }
}

/** Bytes of a datagram of this process's device. */
export function datagramBytes(comm: Communicator): number {
  return comm.job.context.device.mtu;
}

export class MulticastMembers {
  /** What this process tells the others. */
  readonly numbers: GroupNumbers;
  readonly #comm: Communicator;
  readonly #region: MemoryRegion;
  readonly #cq: CompletionQueue;
  readonly #qp: QueuePair;
  readonly #words: Int32Array;
  /** Datagrams that can be sent together, and receives. */
  readonly #sends: number;
  readonly #receives: number;
  readonly #room: number;
  #ah: AddressHandle | undefined;
  #leave: (() => void) | undefined;
  #sender = 0;
  #qkey = 0;
  /** Datagrams of this process that have not left. */
  #leaving = 0;
  #works = false;
  #queueIsLost = false;

  /**
   * @param parts datagrams that are sent together
   * @param space the number of the computation, at process 0, which chooses for all
   */
  constructor(comm: Communicator, parts: number, space: number) {
    const { context, pd, tasks } = comm.job;
    this.#comm = comm;
    this.#sends = parts;
    // Those of two supersteps can be on their way (multicast-counts.ts).
    this.#receives = 2 * parts + 2;
    this.#room = GRH_BYTES + 8 * Math.ceil(datagramBytes(comm) / 8);
    const region = allocateRegistered(context, pd, this.#room * (this.#sends + this.#receives));
    this.#region = region;
    this.#words = new Int32Array(region.memory.buffer, 0, (this.#room / 4) * (this.#sends + this.#receives));
    let cq: CompletionQueue | undefined;
    try {
      cq = context.createCq(this.#sends + this.#receives);
      const [sendCq, recvCq] = [cq, cq];
      const init = { qpType: QpType.UD, sendCq, recvCq, maxSendWr: this.#sends, maxRecvWr: this.#receives };
      this.#qp = pd.createQueuePair({ ...init, maxInlineData: 0 });
    } catch (error) {
      cq?.destroy();
      freeRegistered(region);
      throw error;
    }
    this.#cq = cq;
    // On a modelled fabric there is no other program, and a run must be the same each time.
    const isAlone = tasks !== undefined;
    const chosen = isAlone ? [(space / SPACES) & 0xffff, space] : [randomInt(2 ** 16), randomInt(2 ** 31)];
    this.numbers = [this.#qp.number, chosen[0], chosen[1]];
  }

  /**
   * Begins to receive, or at process 0 to send.
   * @param first the numbers of process 0
   */
  join([sender, number, qkey]: GroupNumbers): void {
    const qp = this.#qp;
    const { context, pd } = this.#comm.job;
    this.#sender = sender;
    this.#qkey = qkey;
    try {
      const group = context.multicastGroup(number);
      qp.modify({ state: QpState.INIT, qkey });
      qp.modify({ state: QpState.RTR });
      qp.modify({ state: QpState.RTS });
      if (sender === qp.number && this.#comm.rank === 0) this.#ah = pd.createAh(group);
      else {
        for (let i = 0; i < this.#receives; i++) this.#post(i);
        qp.attachMulticast(group.gid, group.lid);
        this.#leave = () => qp.detachMulticast(group.gid, group.lid);
      }
      this.#works = true;
    } catch {
      this.#works = false;
    }
  }

  /** Whether datagrams may come, or can be sent. */
  get works(): boolean {
    return this.#works;
  }

  /** Sends datagrams, at process 0, once those before have left. @returns `false` if they cannot be sent now */
  send(parts: readonly Int32Array[]): boolean {
    this.receive();
    if (!this.#works || this.#leaving > 0) return false;
    const qp = this.#qp;
    qp.wrStart();
    parts.forEach((part, i) => {
      this.#words.set(part, (this.#room / 4) * i);
      qp.wrSend(i, SendFlag.SIGNALED);
      qp.wrSetUdAddr(this.#ah!, ANY_QP, this.#qkey);
      qp.wrSetSge(this.#region.lkey, this.#region.address + this.#room * i, part.byteLength);
    });
    this.#leaving = parts.length;
    qp.wrComplete();
    return true;
  }

  /**
   * Hands over what has come from process 0; and has this process woken when more comes. If the queue is lost, nothing
   * comes any more, as if the datagrams were.
   */
  receive(take?: (words: Int32Array) => void): void {
    if (this.#queueIsLost) return;
    try {
      this.#fetch(take);
    } catch (error) {
      lostQueue(error, 'the datagrams of supersteps');
      this.#queueIsLost = true;
      this.#works = false;
    }
  }

  #fetch(take: ((words: Int32Array) => void) | undefined): void {
    const cq = this.#cq;
    const { wc } = cq;
    if (this.#works) cq.reqNotify();
    for (let n = cq.poll(16); n > 0; n = cq.poll(16)) {
      for (let i = 0; i < n; i++) {
        // A queue pair that has failed takes nothing any more.
        if (wc.status[i] !== WcStatus.SUCCESS) this.#works = false;
        if ((wc.flags[i] & WcFlag.GRH) === 0) {
          if (this.#leaving > 0) this.#leaving--;
          continue;
        }
        const slot = wc.wrId[i];
        const at = (this.#room * (this.#sends + slot) + GRH_BYTES) / 4;
        const isWhole = wc.srcQp[i] === this.#sender && wc.byteLen[i] >= GRH_BYTES && wc.byteLen[i] % 4 === 0;
        if (isWhole) take?.(this.#words.subarray(at, at + (wc.byteLen[i] - GRH_BYTES) / 4));
        if (this.#works) this.#post(slot);
      }
    }
  }

  close(): void {
    this.#works = false;
    this.#leave?.();
    this.#qp.destroy();
    this.#cq.destroy();
    this.#ah?.destroy();
    freeRegistered(this.#region);
  }

  #post(slot: number): void {
    const at = this.#region.address + this.#room * (this.#sends + slot);
    this.#qp.postRecv(slot, this.#region.lkey, at, this.#room);
  }
}
