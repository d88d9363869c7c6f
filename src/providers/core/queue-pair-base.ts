/**
 * The part of a queue pair that all providers share: building requests in the ring, checking what is asked of it, and
 * being counted by what it uses. A provider adds what its device does with posted requests.
 *
 * Programs use one provider at a time: then the calls that build requests see one class, and are compiled into their
 * callers.
 */
import { RmaError, show } from '../../errors.ts';
import type { AddressHandle } from '../../verbs/address-handle.ts';
import { checkInteger } from '../../verbs/checks.ts';
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import { DatagramRing } from '../../verbs/datagram-ring.ts';
import type { DeviceAttributes } from '../../verbs/device.ts';
import { parseGroup } from '../../verbs/gid.ts';
import type { ProtectionDomain, QueuePairInit } from '../../verbs/memory.ts';
import {
  type QpAttributes,
  type QpCapacity,
  QpState,
  QpType,
  type QueuePair,
  WrOpcode,
} from '../../verbs/queue-pair.ts';
import type { QpAddress } from '../../verbs/queue-pair-address.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import { WorkRequestRing } from '../../verbs/work-request-ring.ts';
import { AddressHandleCore } from './address-handles.ts';
import { checkMove, type Move, type MoveLimits, stateName } from './transitions.ts';

/** The queue pair that a datagram for a group names (InfiniBand specification, 10.5.1). */
const MULTICAST_QPN = 0xffffff;

/** What is asked of a new queue pair, checked, with the defaults of what was left out. */
export type Asked<Cq, Srq> = Required<Omit<QueuePairInit, 'sendCq' | 'recvCq' | 'srq'>> & {
  readonly sendCq: Cq;
  readonly recvCq: Cq;
  readonly srq: Srq | undefined;
};

/**
 * Checks what is asked of a new queue pair.
 * @param inline the default of `maxInlineData`
 * @param cqs the context's completion queues
 * @param srqs the context's shared receive queues
 */
export function checkQueuePair<
  Cq extends CompletionQueue,
  Srq extends SharedReceiveQueue & { readonly pd: ProtectionDomain },
>(
  pd: ProtectionDomain,
  init: QueuePairInit,
  device: DeviceAttributes,
  inline: number,
  cqs: { has(cq: Cq): boolean },
  srqs: { has(srq: Srq): boolean },
): Asked<Cq, Srq> {
  const call = 'create a queue pair';
  const { qpType = QpType.RC } = init;
  if (qpType !== QpType.RC && qpType !== QpType.UD) {
    throw new RmaError('ERR_VERBS', `${call}: qpType must be one of QpType, not ${show(qpType)} (EINVAL)`);
  }
  if (qpType === QpType.UD && device.maxAh === 0) {
    throw new RmaError('ERR_VERBS', `${call}: device ${device.name} has no datagrams (capability datagrams) (ENOTSUP)`);
  }
  const { maxSendWr = 64, maxRecvWr = 64, maxSendSge = 1, maxRecvSge = 1, maxInlineData = inline } = init;
  const { signalAll = false } = init;
  checkInteger(call, 'maxSendWr', maxSendWr, 1, device.maxQpWr);
  checkInteger(call, 'maxRecvWr', maxRecvWr, 1, device.maxQpWr);
  checkInteger(call, 'maxSendSge', maxSendSge, 1, device.maxSge);
  checkInteger(call, 'maxRecvSge', maxRecvSge, 1, device.maxSge);
  checkInteger(call, 'maxInlineData', maxInlineData, 0, device.maxInlineData);
  const own = (name: string, cq: Cq): Cq => {
    if (cqs.has(cq)) return cq;
    throw new RmaError(
      'ERR_VERBS',
      `${call}: ${name} must be a completion queue of this context, not ${show(cq)} (EINVAL)`,
    );
  };
  const sendCq = own('sendCq', init.sendCq as Cq);
  const recvCq = own('recvCq', init.recvCq as Cq);
  const srq = init.srq as Srq | undefined;
  if (srq !== undefined && !(srqs.has(srq) && srq.pd === pd)) {
    throw new RmaError(
      'ERR_VERBS',
      `${call}: srq must be a shared receive queue of the same protection domain (EINVAL)`,
    );
  }
  return { qpType, maxSendWr, maxRecvWr, maxSendSge, maxRecvSge, maxInlineData, sendCq, recvCq, srq, signalAll };
}

/**
 * The send queue of a new queue pair.
 * @param mostBytes of one message
 * @param first as `WorkRequestRing` has it
 */
export function makeRing(
  { qpType, maxSendWr, maxSendSge, maxInlineData }: Asked<unknown, unknown>,
  mostBytes: number,
  first = 0,
  most?: number,
): WorkRequestRing {
  return qpType === QpType.UD
    ? new DatagramRing(maxSendWr, maxSendSge, maxInlineData, mostBytes, first, most)
    : new WorkRequestRing(maxSendWr, maxSendSge, maxInlineData, mostBytes, first, most);
}

/** What a queue pair is made of and belongs to. */
export interface QueuePairParts<Pd, Cq, Srq> {
  readonly qpType: number;
  readonly number: number;
  readonly pd: Pd;
  readonly sendCq: Cq;
  readonly recvCq: Cq;
  readonly srq: Srq | undefined;
  readonly requests: WorkRequestRing;
  /** The capacity of its own receive queue; of no meaning with a shared one. */
  readonly maxRecvWr: number;
  readonly maxRecvSge: number;
}

export abstract class QueuePairCore<
  Pd extends { children: number },
  Cq extends CompletionQueue & { users: number },
  Srq extends SharedReceiveQueue & { users: number },
> implements QueuePair
{
  abstract readonly state: number;
  readonly number: number;
  readonly qpType: number;
  readonly address: QpAddress;
  readonly pd: Pd;
  readonly sendCq: Cq;
  readonly recvCq: Cq;
  readonly srq: Srq | undefined;
  readonly ring: WorkRequestRing;
  readonly #maxRecvWr: number;
  readonly #maxRecvSge: number;
  /** Multicast groups that it is attached to: the text of their GIDs' words. Most queue pairs have none. */
  #groups: Set<string> | undefined;
  #destroyed = false;

  constructor(member: number, parts: QueuePairParts<Pd, Cq, Srq>) {
    const { number, pd, sendCq, recvCq, srq } = parts;
    this.number = number;
    this.qpType = parts.qpType;
    this.address = Object.freeze({ member, qpNumber: number });
    this.pd = pd;
    this.sendCq = sendCq;
    this.recvCq = recvCq;
    this.srq = srq;
    this.ring = parts.requests;
    this.#maxRecvWr = parts.maxRecvWr;
    this.#maxRecvSge = parts.maxRecvSge;
    sendCq.users++;
    recvCq.users++;
    if (srq !== undefined) srq.users++;
    pd.children++;
  }

  get cap(): QpCapacity {
    const { ring, srq } = this;
    return {
      maxSendWr: ring.limit,
      maxRecvWr: srq === undefined ? this.#maxRecvWr : 0,
      maxSendSge: ring.maxSge,
      maxRecvSge: srq === undefined ? this.#maxRecvSge : srq.maxSge,
      maxInlineData: ring.maxInline,
    };
  }

  get maxInlineData(): number {
    return this.ring.maxInline;
  }

  get isDestroyed(): boolean {
    return this.#destroyed;
  }

  modify(attributes: QpAttributes): void {
    this.mustLive('modify');
    const call = `modify queue pair ${this.number}`;
    this.move(call, checkMove(call, this.state, attributes, this.moveLimits()));
  }

  protected abstract moveLimits(): MoveLimits;
  /** Carries out a move, whose attributes were checked. */
  protected abstract move(call: string, move: Move): void;

  // ---- building requests --------------------------------------------------------------------------------------------

  wrStart(): void {
    this.ring.start();
  }

  wrRdmaWrite(wrId: number, flags: number, rkey: number, remoteAddress: number): void {
    this.ring.rdma(WrOpcode.RDMA_WRITE, wrId, flags, rkey, remoteAddress, 0);
  }

  wrRdmaWriteImm(wrId: number, flags: number, rkey: number, remoteAddress: number, immData: number): void {
    this.ring.rdma(WrOpcode.RDMA_WRITE_WITH_IMM, wrId, flags, rkey, remoteAddress, immData);
  }

  wrRdmaRead(wrId: number, flags: number, rkey: number, remoteAddress: number): void {
    this.ring.rdma(WrOpcode.RDMA_READ, wrId, flags, rkey, remoteAddress, 0);
  }

  wrSend(wrId: number, flags: number): void {
    this.ring.send(WrOpcode.SEND, wrId, flags, 0);
  }

  wrSendImm(wrId: number, flags: number, immData: number): void {
    this.ring.send(WrOpcode.SEND_WITH_IMM, wrId, flags, immData);
  }

  wrAtomicFetchAdd(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    addLo: number,
    addHi: number,
  ): void {
    this.ring.atomic(WrOpcode.ATOMIC_FETCH_AND_ADD, wrId, flags, rkey, remoteAddress, addLo, addHi, 0, 0);
  }

  wrAtomicCmpSwp(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    compareLo: number,
    compareHi: number,
    swapLo: number,
    swapHi: number,
  ): void {
    const opcode = WrOpcode.ATOMIC_CMP_AND_SWP;
    this.ring.atomic(opcode, wrId, flags, rkey, remoteAddress, compareLo, compareHi, swapLo, swapHi);
  }

  wrWait(wrId: number, flags: number, lkey: number, address: number, value: number): void {
    if (!this.waits || this.qpType !== QpType.RC) this.#refuseWait();
    this.ring.wait(wrId, flags, lkey, address, value);
  }

  /** `capabilities.waits`. */
  protected abstract readonly waits: boolean;

  wrSetUdAddr(ah: AddressHandle, remoteQpn: number, remoteQkey: number): void {
    if (!(ah instanceof AddressHandleCore) || !ah.live || ah.pd !== this.pd) this.#refuseHandle(ah);
    this.ring.setUdAddr(ah.number, ah.isMulticast ? MULTICAST_QPN : remoteQpn, remoteQkey);
  }

  wrSetSge(lkey: number, address: number, length: number): void {
    this.ring.setSge(lkey, address, length);
  }

  wrAddSge(lkey: number, address: number, length: number): void {
    this.ring.addSge(lkey, address, length);
  }

  wrSetInlineData(bytes: Uint8Array, offset: number, length: number): void {
    this.ring.setInline(bytes, offset, length);
  }

  wrAbort(): void {
    this.ring.abort();
  }

  abstract wrComplete(): void;

  /** A completion of this request was polled: its place, and those of all before it, are free. */
  retire(request: number): void {
    this.ring.retired = (request + 1) | 0;
  }

  abstract postRecv(wrId: number, lkey: number, address: number, length: number): void;
  abstract addRecvSge(lkey: number, address: number, length: number): void;
  abstract destroy(): void;

  // ---- multicast groups ---------------------------------------------------------------------------------------------

  attachMulticast(gid: string, lid: number): void {
    const call = 'attach to a multicast group';
    const words = this.#groupWords(call, gid, lid);
    const key = words.join();
    if (this.#groups?.has(key) === true) return;
    this.joinGroup(call, words, lid);
    this.#groups ??= new Set();
    this.#groups.add(key);
  }

  detachMulticast(gid: string, lid: number): void {
    const call = 'detach from a multicast group';
    const words = this.#groupWords(call, gid, lid);
    const key = words.join();
    if (this.#groups?.has(key) !== true) {
      throw new RmaError('ERR_VERBS', `${call}: queue pair ${this.number} is not attached to ${gid} (EINVAL)`);
    }
    this.leaveGroup(call, words, lid);
    this.#groups.delete(key);
  }

  #groupWords(call: string, gid: string, lid: number): Uint32Array {
    this.mustLive(call);
    if (this.qpType !== QpType.UD) {
      throw new RmaError('ERR_VERBS', `${call}: queue pair ${this.number} is not of type UD (EINVAL)`);
    }
    return parseGroup(call, gid, lid);
  }

  /** Has datagrams of a group come to it. */
  protected abstract joinGroup(call: string, words: Uint32Array, lid: number): void;
  protected abstract leaveGroup(call: string, words: Uint32Array, lid: number): void;

  // ---- refusals and the end -----------------------------------------------------------------------------------------

  protected mustLive(call: string): void {
    if (this.#destroyed) throw new RmaError('ERR_VERBS', `${call}: queue pair ${this.number} was destroyed`);
  }

  protected mustTakeReceives(state: number): void {
    this.mustLive('post receive');
    if (this.srq !== undefined) {
      throw new RmaError(
        'ERR_VERBS',
        `post receive: queue pair ${this.number} receives from a shared receive queue; post the receive there (EINVAL)`,
      );
    }
    if (state === QpState.RESET) {
      throw new RmaError(
        'ERR_VERBS',
        `post receive: queue pair ${this.number} is in RESET; move it to INIT first (EINVAL)`,
      );
    }
  }

  /** While it is attached to groups, it stays. */
  protected mustBeDetached(): void {
    if (this.#groups === undefined || this.#groups.size === 0) return;
    throw new RmaError(
      'ERR_VERBS',
      `destroy a queue pair: queue pair ${this.number} is attached to ${this.#groups.size} multicast ` +
        'groups; detach it first (EBUSY)',
    );
  }

  /** The context ends, and with it all attachments. */
  forgetGroups(): void {
    this.#groups?.clear();
  }

  #refuseWait(): never {
    this.ring.abort();
    const why = this.waits
      ? `queue pair ${this.number} is not of type RC (EINVAL)`
      : 'the device has no requests that wait (capability waits) (ENOTSUP)';
    throw new RmaError('ERR_VERBS', `post send: ${why}`);
  }

  #refuseHandle(ah: unknown): never {
    this.ring.abort();
    throw new RmaError(
      'ERR_VERBS',
      `post send: ${show(ah)} is not an address handle of the queue pair's protection domain, ` +
        'or was destroyed (EINVAL)',
    );
  }

  /** Drops the batch, which cannot be posted in this state. */
  protected refusePost(state: number): never {
    this.ring.abort();
    this.mustLive('post send');
    throw new RmaError(
      'ERR_VERBS',
      `post send: queue pair ${this.number} is in ${stateName(state)}, but accepts send requests only in RTS (EINVAL)`,
    );
  }

  /** From now on it is destroyed, and nothing counts it any more. */
  protected leave(): void {
    this.#destroyed = true;
    this.sendCq.users--;
    this.recvCq.users--;
    if (this.srq !== undefined) this.srq.users--;
    this.pd.children--;
  }
}

/** Completions of a queue were lost, and with them what its queue pairs promise. */
export function failUsersOf(
  cq: CompletionQueue,
  queuePairs: Iterable<QueuePair & { sendCq: CompletionQueue; recvCq: CompletionQueue; toError(): void }>,
  raise: (event: { type: 'QP_FATAL'; qpNumber: number }) => void,
): void {
  for (const qp of queuePairs) {
    if ((qp.sendCq !== cq && qp.recvCq !== cq) || qp.state === QpState.RESET || qp.state === QpState.ERR) continue;
    raise({ type: 'QP_FATAL', qpNumber: qp.number });
    qp.toError();
  }
}
