/**
 * Reliable-connected queue pairs of a device.
 *
 * Requests are built in the ring of src/verbs/work-request-ring.ts and posted by one native call. The device knows a request by the queue pair's owner number
 * and the request's count; RESET and destruction give up that number, so that completions that come after belong to nobody.
 */
import { RmaError, show } from '../../errors.ts';
import type { RdmaContext } from '../../native.ts';
import { ALL_ACCESS, checkInteger } from '../../verbs/checks.ts';
import { WcOpcode, WcStatus, type WorkCompletions } from '../../verbs/completion-queue.ts';
import type { QpAddress } from '../../verbs/device.ts';
import { type QpAttributes, type QpCapacity, QpState, type QueuePair, WrOpcode } from '../../verbs/queue-pair.ts';
import { type WorkRequestRing, WrField, WrField64 } from '../../verbs/work-request-ring.ts';
import type { RdmaCompletionQueue } from './completion-queue.ts';
import type { RdmaCoreContext } from './context.ts';
import type { RdmaProtectionDomain } from './memory.ts';
import type { ReceiveSlots } from './receive-slots.ts';
import type { RdmaSharedReceiveQueue } from './shared-receive-queue.ts';
import { verb } from './verb.ts';

const FOR_EVER = 7;
/** Tries when there is no answer: Soft-RoCE takes 7 for "for ever", which it means for receiver-not-ready only. */
const MOST_RETRIES = 6;
/** `ibv_qp_attr.timeout`: 4.096 µs × 2^14, about 67 ms, times the retries. */
const ACK_TIMEOUT = 14;
/** InfiniBand's RNR timers in milliseconds, by their code (InfiniBand specification, table 45). */
const RNR_TIMERS = [
  ...[655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92],
  ...[2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52],
];

/** Words of the posting function: native/rdma.cc, sender. */
const OWNER = 0;
const HEAD = 1;
const COUNT = 2;
const POSTED = 3;
const ERRNO = 4;
const WORDS = 5;

/** What a request completes as, by `WrOpcode`. */
const WC_OPCODE = [
  WcOpcode.RDMA_WRITE,
  WcOpcode.RDMA_WRITE,
  WcOpcode.SEND,
  WcOpcode.SEND,
  WcOpcode.RDMA_READ,
  WcOpcode.COMP_SWAP,
  WcOpcode.FETCH_ADD,
] as const;

export interface QueuePairParts {
  readonly pd: RdmaProtectionDomain;
  readonly handle: number;
  readonly number: number;
  readonly sendCq: RdmaCompletionQueue;
  readonly recvCq: RdmaCompletionQueue;
  readonly srq: RdmaSharedReceiveQueue | undefined;
  /** Its own receives; `undefined` with a shared receive queue. */
  readonly receives: ReceiveSlots | undefined;
  readonly requests: WorkRequestRing;
}

/**
 * The number of the first packet from one queue pair to another. A device does not look which queue pair a packet comes from, only whether it is the next one:
 * what is sent by one that is not connected to this one must have other numbers.
 */
function firstPacket(from: number, to: number): number {
  return (Math.imul(from, 0x9e3779b1) ^ Math.imul(to, 0x85ebca6b)) >>> 8;
}

/** The code of the shortest timer that is not shorter than so many milliseconds. */
function rnrTimerCode(milliseconds: number): number {
  let best = 0;
  RNR_TIMERS.forEach((timer, code) => {
    if (timer >= milliseconds && timer <= RNR_TIMERS[best]) best = code;
  });
  return best;
}

export class RdmaQueuePair implements QueuePair {
  readonly number: number;
  readonly address: QpAddress;
  readonly cap: QpCapacity;
  readonly maxInlineData: number;
  readonly #context: RdmaCoreContext;
  readonly #device: RdmaContext;
  readonly #parts: QueuePairParts;
  readonly #ring: WorkRequestRing;
  readonly #words = new Uint32Array(new ArrayBuffer(4 * WORDS));
  readonly #post: () => void;
  /** What completions of requests and receives name it by. */
  #sender: number;
  #receiver: number;
  /** As far as this side knows: the peer or the device may have moved it to ERR. */
  #state: number = QpState.RESET;
  /** Whether `QP_LAST_WQE_REACHED` was raised since the last RESET. */
  saidLast = false;
  #destNumber = 0;
  #mayRead = true;
  #destroyed = false;

  constructor(context: RdmaCoreContext, device: RdmaContext, parts: QueuePairParts) {
    const { requests, receives, srq } = parts;
    this.#context = context;
    this.#device = device;
    this.#parts = parts;
    this.#ring = requests;
    this.#post = device.sender(parts.handle, requests.u8, requests.slotBytes, this.#words);
    this.number = parts.number;
    this.address = Object.freeze({ lid: context.lid, qpNumber: parts.number });
    this.maxInlineData = requests.maxInline;
    this.cap = Object.freeze({
      maxSendWr: requests.capacity,
      maxRecvWr: receives?.capacity ?? 0,
      maxSendSge: requests.maxSge,
      maxRecvSge: receives?.maxSge ?? srq!.maxSge,
      maxInlineData: requests.maxInline,
    });
    this.#sender = context.addSender(this);
    this.#receiver = receives === undefined ? 0 : context.addReceiver(receives);
  }

  /** Cost: a system call, since the device may have changed it. */
  get state(): number {
    if (this.#destroyed || this.#context.isClosed) return QpState.RESET;
    this.#state = verb('query a queue pair', () => this.#device.queryQp(this.#parts.handle));
    return this.#state;
  }

  // ---- states -----------------------------------------------------------------------------------------------------------

  modify(attributes: QpAttributes): void {
    const call = `modify queue pair ${this.number}`;
    this.#mustLive('modify');
    const from = this.state;
    const to = attributes.state;
    const { access } = attributes;
    if (access !== undefined) checkInteger(call, 'access', access, 0, ALL_ACCESS);
    const way =
      to === QpState.RESET ||
      to === QpState.ERR ||
      (to === QpState.INIT && (from === QpState.RESET || from === QpState.INIT)) ||
      (to === QpState.RTR && from === QpState.INIT) ||
      (to === QpState.RTS && (from === QpState.RTR || from === QpState.RTS));
    if (!way) {
      throw new RmaError(
        'ERR_VERBS',
        `${call}: cannot move from ${stateName(from)} to ${stateName(to)}; the order is RESET, INIT, RTR, RTS, and every state can move to ERR and RESET (EINVAL)`,
      );
    }
    const { handle } = this.#parts;
    if (to === QpState.RTR) this.#toReceive(call, attributes);
    else if (to === QpState.RTS) this.#toSend(call, attributes, from);
    else {
      const rights = to === QpState.INIT ? (access ?? 0) : -1;
      // Devices do not go from RESET to ERR.
      if (to === QpState.ERR && from === QpState.RESET)
        verb(call, () => this.#device.modifyQp(handle, QpState.INIT, 0));
      verb(call, () => this.#device.modifyQp(handle, to, rights));
      if (to === QpState.RESET) this.#forgetWork();
      if (to === QpState.ERR) this.#sayLast();
    }
    this.#state = to;
  }

  /** It takes no more from its shared receive queue. Some devices say so, some do not. */
  #sayLast(): void {
    if (this.#parts.srq !== undefined && !this.saidLast) {
      this.#context.raise({ type: 'QP_LAST_WQE_REACHED', qpNumber: this.number });
    }
    this.saidLast = true;
  }

  #toReceive(call: string, attributes: QpAttributes): void {
    const { maxQpInitRdAtom } = this.#context.device;
    const { dest, minRnrTimerMs = 0.01, maxDestRdAtomic = maxQpInitRdAtom, access = -1 } = attributes;
    if (dest === undefined) {
      throw new RmaError('ERR_VERBS', `${call}: RTR needs dest, the address of the remote queue pair (EINVAL)`);
    }
    checkInteger(call, 'dest.lid', dest.lid, 0, this.#context.peers.length - 1);
    checkInteger(call, 'dest.qpNumber', dest.qpNumber, 1, 2 ** 24 - 1);
    const { rqPsn = firstPacket(dest.qpNumber, this.number) } = attributes;
    this.#destNumber = dest.qpNumber;
    checkInteger(call, 'rqPsn', rqPsn, 0, 2 ** 24 - 1);
    checkInteger(call, 'maxDestRdAtomic', maxDestRdAtomic, 0, maxQpInitRdAtom);
    if (!(minRnrTimerMs >= 0 && minRnrTimerMs <= RNR_TIMERS[0])) {
      throw new RmaError(
        'ERR_VERBS',
        `${call}: minRnrTimerMs must be from 0 to ${RNR_TIMERS[0]}, not ${show(minRnrTimerMs)} (EINVAL)`,
      );
    }
    const peer = this.#context.peers[dest.lid];
    const timer = rnrTimerCode(minRnrTimerMs);
    const mtu = Math.min(peer.mtu, this.#context.own.mtu);
    const way = `${call} (from GID ${this.#context.own.gid} to ${peer.gid}; check that both hosts can reach each other at these addresses)`;
    verb(way, () =>
      this.#device.modifyQp(
        ...[this.#parts.handle, QpState.RTR, access],
        ...[
          peer.gid,
          peer.lid,
          dest.qpNumber,
          maxDestRdAtomic,
          timer,
          undefined,
          undefined,
          undefined,
          undefined,
          mtu,
          rqPsn,
        ],
      ),
    );
  }

  #toSend(call: string, attributes: QpAttributes, from: number): void {
    const { maxQpInitRdAtom } = this.#context.device;
    const { rnrRetry = FOR_EVER, retryCount = 7, maxRdAtomic = maxQpInitRdAtom, access = -1 } = attributes;
    const { sqPsn = firstPacket(this.number, this.#destNumber) } = attributes;
    checkInteger(call, 'rnrRetry', rnrRetry, 0, FOR_EVER);
    checkInteger(call, 'retryCount', retryCount, 0, 7);
    checkInteger(call, 'sqPsn', sqPsn, 0, 2 ** 24 - 1);
    checkInteger(call, 'maxRdAtomic', maxRdAtomic, 0, maxQpInitRdAtom);
    const { handle } = this.#parts;
    if (from === QpState.RTS) {
      verb(call, () => this.#device.modifyQp(handle, QpState.RTS, access));
      return;
    }
    this.#mayRead = maxRdAtomic > 0;
    verb(call, () =>
      this.#device.modifyQp(
        ...[handle, QpState.RTS, access],
        ...[
          undefined,
          undefined,
          undefined,
          undefined,
          undefined,
          rnrRetry,
          Math.min(retryCount, MOST_RETRIES),
          maxRdAtomic,
          ACK_TIMEOUT,
          undefined,
          sqPsn,
        ],
      ),
    );
  }

  /** Drops requests, receives, and the completions of either. */
  #forgetWork(): void {
    this.#ring.clear();
    this.saidLast = false;
    const context = this.#context;
    context.dropSender(this.#sender);
    this.#sender = context.addSender(this);
    const { receives, recvCq } = this.#parts;
    recvCq.dropFlushed(this.number);
    if (receives === undefined) return;
    context.dropReceiver(this.#receiver);
    receives.clear();
    this.#receiver = context.addReceiver(receives);
  }

  /** A request has failed. */
  fail(): void {
    this.#state = QpState.ERR;
  }

  // ---- the send queue ---------------------------------------------------------------------------------------------------

  wrStart(): void {
    this.#ring.start();
  }

  wrRdmaWrite(wrId: number, flags: number, rkey: number, remoteAddress: number): void {
    this.#ring.rdma(WrOpcode.RDMA_WRITE, wrId, flags, rkey, remoteAddress, 0);
  }

  wrRdmaWriteImm(wrId: number, flags: number, rkey: number, remoteAddress: number, immData: number): void {
    this.#ring.rdma(WrOpcode.RDMA_WRITE_WITH_IMM, wrId, flags, rkey, remoteAddress, immData);
  }

  wrRdmaRead(wrId: number, flags: number, rkey: number, remoteAddress: number): void {
    this.#ring.rdma(WrOpcode.RDMA_READ, wrId, flags, rkey, remoteAddress, 0);
  }

  wrSend(wrId: number, flags: number): void {
    this.#ring.send(WrOpcode.SEND, wrId, flags, 0);
  }

  wrSendImm(wrId: number, flags: number, immData: number): void {
    this.#ring.send(WrOpcode.SEND_WITH_IMM, wrId, flags, immData);
  }

  wrAtomicFetchAdd(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    addLo: number,
    addHi: number,
  ): void {
    this.#ring.atomic(WrOpcode.ATOMIC_FETCH_AND_ADD, wrId, flags, rkey, remoteAddress, addLo, addHi, 0, 0);
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
    this.#ring.atomic(opcode, wrId, flags, rkey, remoteAddress, compareLo, compareHi, swapLo, swapHi);
  }

  wrSetSge(lkey: number, address: number, length: number): void {
    this.#ring.setSge(lkey, address, length);
  }

  wrAddSge(lkey: number, address: number, length: number): void {
    this.#ring.addSge(lkey, address, length);
  }

  wrSetInlineData(bytes: Uint8Array, offset: number, length: number): void {
    this.#ring.setInline(bytes, offset, length);
  }

  wrComplete(): void {
    const ring = this.#ring;
    if (this.#state !== QpState.RTS && this.#state !== QpState.ERR) this.#refusePost();
    this.#checkBatch();
    ring.complete();
    const count = (ring.tail - ring.head) >>> 0;
    if (count === 0) return;
    const words = this.#words;
    words[OWNER] = this.#sender;
    words[HEAD] = ring.head;
    words[COUNT] = count;
    this.#post();
    if (words[POSTED] === count) {
      ring.head = ring.tail;
      return;
    }
    ring.head = (ring.head + words[POSTED]) | 0;
    ring.tail = ring.head;
    ring.next = ring.head;
    throw new RmaError(
      'ERR_VERBS',
      `post send: the device refused a request of queue pair ${this.number} (errno ${words[ERRNO]})`,
    );
  }

  wrAbort(): void {
    this.#ring.abort();
  }

  /** The request of this count is complete, and its place and those before it are free. Writes entry `n` of `wc`. */
  complete(count: number, status: number, wc: WorkCompletions, n: number): void {
    const ring = this.#ring;
    const w = ring.wordsOf(count);
    wc.wrId[n] = ring.f64[(w >>> 1) + WrField64.WR_ID];
    wc.opcode[n] = WC_OPCODE[ring.u32[w + WrField.OPCODE]];
    wc.byteLen[n] = ring.u32[w + WrField.MESSAGE_LENGTH];
    wc.qpNum[n] = this.number;
    ring.retired = (count + 1) | 0;
    if (status !== WcStatus.SUCCESS) this.#state = QpState.ERR;
  }

  /** What some devices never answer: reads that may not be outstanding, and atomics whose result has another length than 8 bytes. */
  #checkBatch(): void {
    const ring = this.#ring;
    const { u32 } = ring;
    for (let i = ring.tail; i !== ring.next; i = (i + 1) | 0) {
      const w = ring.wordsOf(i);
      const opcode = u32[w + WrField.OPCODE];
      if (opcode < WrOpcode.RDMA_READ) continue;
      let why: string | undefined;
      if (!this.#mayRead) why = 'allows no outstanding reads or atomics (its maxRdAtomic is 0)';
      else if (opcode > WrOpcode.RDMA_READ && u32[w + WrField.MESSAGE_LENGTH] !== 8)
        why = 'supports only atomics of 8 bytes';
      if (why === undefined) continue;
      ring.abort();
      throw new RmaError('ERR_VERBS', `post send: queue pair ${this.number} ${why} (EINVAL)`);
    }
  }

  // ---- the receive queue ------------------------------------------------------------------------------------------------

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    const receives = this.#ownReceives();
    // Some devices leave a receive that is posted in ERR where it is.
    if (this.#state === QpState.ERR)
      this.#parts.recvCq.addFlushed(receives.refuse(wrId, lkey, address, length), this.number);
    else receives.post(this.#receiver, wrId, lkey, address, length);
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    this.#ownReceives().add(lkey, address, length);
  }

  #ownReceives(): ReceiveSlots {
    this.#mustLive('post receive');
    const { receives } = this.#parts;
    if (receives === undefined) {
      throw new RmaError(
        'ERR_VERBS',
        `post receive: queue pair ${this.number} receives from a shared receive queue; post the receive there (EINVAL)`,
      );
    }
    if (this.#state === QpState.RESET) {
      throw new RmaError(
        'ERR_VERBS',
        `post receive: queue pair ${this.number} is in RESET; move it to INIT first (EINVAL)`,
      );
    }
    return receives;
  }

  destroy(): void {
    if (this.#destroyed || this.#context.isClosed) return;
    const { handle, sendCq, recvCq, srq, pd } = this.#parts;
    this.#context.giveBack('destroy a queue pair', () => this.#device.destroyQp(handle));
    this.#destroyed = true;
    this.#state = QpState.RESET;
    this.#ring.clear();
    recvCq.dropFlushed(this.number);
    this.#context.dropSender(this.#sender);
    if (srq === undefined) this.#context.dropReceiver(this.#receiver);
    this.#context.queuePairs.delete(this.number);
    sendCq.users--;
    recvCq.users--;
    if (srq !== undefined) srq.users--;
    pd.children--;
  }

  #mustLive(call: string): void {
    this.#context.mustBeOpen(call);
    if (this.#destroyed) throw new RmaError('ERR_VERBS', `${call}: queue pair ${this.number} was destroyed`);
  }

  #refusePost(): never {
    this.#ring.abort();
    this.#mustLive('post send');
    throw new RmaError(
      'ERR_VERBS',
      `post send: queue pair ${this.number} is in ${stateName(this.#state)}, but accepts send requests only in RTS (EINVAL)`,
    );
  }
}

function stateName(state: number): string {
  for (const [name, value] of Object.entries(QpState)) if (value === state) return name;
  return show(state);
}
