/**
 * Queue pairs of a device.
 *
 * Requests are built in the ring of src/verbs/work-request-ring.ts and posted by one native call. The device knows a
 * request by the queue pair's owner number and the request's count; RESET and destruction give up that number, so that
 * completions that come after belong to no queue pair.
 */
import { RmaError } from '../../errors.ts';
import type { QpChange, RdmaContext } from '../../native.ts';
import { WcStatus, type WorkCompletions } from '../../verbs/completion-queue.ts';
import { gidText } from '../../verbs/gid.ts';
import { QpState, QpType, WrOpcode } from '../../verbs/queue-pair.ts';
import { WC_OPCODE, WrField, WrField64 } from '../../verbs/work-request-ring.ts';
import { type QueuePairParts as CoreParts, QueuePairCore } from '../core/queue-pair-base.ts';
import { MAX_RNR_TIMER_MS, type Move, type MoveLimits } from '../core/transitions.ts';
import type { RdmaCompletionQueue } from './rdma-completion-queue.ts';
import type { RdmaParent, RdmaPd } from './rdma-parent.ts';
import type { RdmaSharedReceiveQueue } from './rdma-receive-queue.ts';
import type { ReceiveSlots } from './receive-slots.ts';
import { verb } from './verb.ts';

/** Tries when there is no answer: Soft-RoCE takes 7 for "for ever", which it means for receiver-not-ready only. */
const MOST_RETRIES = 6;
/** `ibv_qp_attr.timeout`: 4.096 µs × 2^14, about 67 ms, times the retries. */
const ACK_TIMEOUT = 14;
/** InfiniBand's RNR timers in milliseconds, by their code (InfiniBand specification, table 45). */
const RNR_TIMERS = [
  ...[MAX_RNR_TIMER_MS, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24, 0.32, 0.48, 0.64, 0.96, 1.28, 1.92],
  ...[2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48, 30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52],
];

/** Words of the posting function: native/rdma_data_path.cc, sender. */
const OWNER = 0;
const HEAD = 1;
const COUNT = 2;
const POSTED = 3;
const ERRNO = 4;
const WORDS = 5;

export interface QueuePairParts extends CoreParts<RdmaPd, RdmaCompletionQueue, RdmaSharedReceiveQueue> {
  readonly handle: number;
  /** Its own receives; `undefined` with a shared receive queue. */
  readonly receives: ReceiveSlots | undefined;
}

/**
 * The number of the first packet from one queue pair to another. A device does not look which queue pair a packet comes
 * from, only whether it is the next one: packets of a queue pair that is not connected to this one must have other
 * numbers.
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

export class RdmaQueuePair extends QueuePairCore<RdmaPd, RdmaCompletionQueue, RdmaSharedReceiveQueue> {
  readonly #context: RdmaParent;
  readonly #device: RdmaContext;
  readonly #handle: number;
  readonly #receives: ReceiveSlots | undefined;
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

  constructor(context: RdmaParent, device: RdmaContext, parts: QueuePairParts) {
    super(context.member, parts);
    const { requests, receives, handle } = parts;
    this.#context = context;
    this.#device = device;
    this.#handle = handle;
    this.#receives = receives;
    this.#post = device.sender(handle, requests.u8, requests.slotBytes, this.#words);
    if (this.qpType === QpType.UD) this.recvCq.datagrams++;
    this.#sender = context.addSender(this);
    this.#receiver = receives === undefined ? 0 : context.addReceiver(receives);
  }

  /** What native code knows it by. */
  get handle(): number {
    return this.#handle;
  }

  /** Cost: a system call, since the device may have changed it. */
  get state(): number {
    if (this.isDestroyed || this.#context.isClosed) return QpState.RESET;
    this.#state = verb('query a queue pair', () => this.#device.queryQp(this.#handle));
    return this.#state;
  }

  // ---- states -------------------------------------------------------------------------------------------------------

  protected moveLimits(): MoveLimits {
    const { device, peers } = this.#context;
    const datagrams = this.qpType === QpType.UD;
    return { members: peers.length, maxQpInitRdAtom: device.maxQpInitRdAtom, packets: true, datagrams };
  }

  protected move(call: string, move: Move): void {
    const { from, to, access } = move;
    if (this.qpType === QpType.UD) this.#moveDatagrams(call, move);
    else if (to === QpState.RTR) this.#toReceive(call, move);
    else if (to === QpState.RTS) this.#toSend(call, move);
    else {
      // Devices do not go from RESET to ERR.
      if (to === QpState.ERR && from === QpState.RESET) this.#modify(call, { state: QpState.INIT, access: 0 });
      this.#modify(call, to === QpState.INIT ? { state: to, access: access ?? 0 } : { state: to });
    }
    if (to === QpState.RESET) this.#forgetWork();
    if (to === QpState.ERR) this.#sayLast();
    this.#state = to;
  }

  /** One of type UD has a key, and the number of its first packet; its peers are in its requests. */
  #moveDatagrams(call: string, { from, to, qkey, sqPsn = 0 }: Move): void {
    if (to === QpState.ERR && from === QpState.RESET) this.#modify(call, { state: QpState.INIT, qkey: 0 });
    const psn = to === QpState.RTS && from !== QpState.RTS ? sqPsn : undefined;
    this.#modify(call, { state: to, psn, qkey: to === QpState.INIT ? qkey : 0 });
  }

  #modify(call: string, change: QpChange): void {
    verb(call, () => this.#device.modifyQp(this.#handle, change));
  }

  /** It takes no more from its shared receive queue. Some devices say so, some do not. */
  #sayLast(): void {
    if (this.srq !== undefined && !this.saidLast) {
      this.#context.raise({ type: 'QP_LAST_WQE_REACHED', qpNumber: this.number });
    }
    this.saidLast = true;
  }

  #toReceive(call: string, move: Move): void {
    const dest = move.dest!;
    const { access, rqPsn = firstPacket(dest.qpNumber, this.number) } = move;
    this.#destNumber = dest.qpNumber;
    const peer = this.#context.peers[dest.member];
    const way =
      `${call} (from GID ${this.#context.own.gid} to ${peer.gid}; check that both hosts can reach each ` +
      'other at these addresses)';
    this.#modify(way, {
      ...{ state: QpState.RTR, access },
      gid: peer.gid,
      lid: peer.lid,
      destQp: dest.qpNumber,
      maxDestRdAtomic: move.maxDestRdAtomic,
      minRnrTimer: rnrTimerCode(move.minRnrTimerMs),
      mtu: Math.min(peer.mtu, this.#context.own.mtu),
      psn: rqPsn,
    });
  }

  #toSend(call: string, move: Move): void {
    const { access, sqPsn = firstPacket(this.number, this.#destNumber) } = move;
    if (move.from === QpState.RTS) {
      this.#modify(call, { state: QpState.RTS, access });
      return;
    }
    this.#mayRead = move.maxRdAtomic > 0;
    this.#modify(call, {
      ...{ state: QpState.RTS, access },
      rnrRetry: move.rnrRetry,
      retryCount: Math.min(move.retryCount, MOST_RETRIES),
      maxRdAtomic: move.maxRdAtomic,
      timeout: ACK_TIMEOUT,
      psn: sqPsn,
    });
  }

  /** Drops requests, receives, and the completions of either. */
  #forgetWork(): void {
    this.ring.clear();
    this.saidLast = false;
    const context = this.#context;
    context.dropSender(this.#sender);
    this.#sender = context.addSender(this);
    const receives = this.#receives;
    this.recvCq.dropFlushed(this.number);
    if (receives === undefined) return;
    context.dropReceiver(this.#receiver);
    receives.clear();
    this.#receiver = context.addReceiver(receives);
  }

  /** A request has failed, or the device says that the queue pair has. */
  fail(): void {
    this.#state = QpState.ERR;
  }

  // ---- the send queue -----------------------------------------------------------------------------------------------

  wrUpdate(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    update: number,
    lockRkey: number,
    lockAddress: number,
    holder: number,
  ): void {
    if (!this.#context.capabilities.updates || this.qpType !== QpType.RC) {
      this.ring.abort();
      const { name } = this.#context.device;
      throw new RmaError('ERR_VERBS', `post send: device ${name} carries out no updates (ENOTSUP)`);
    }
    this.ring.update(wrId, flags, rkey, remoteAddress, update, lockRkey, lockAddress, holder);
  }

  wrComplete(): void {
    const ring = this.ring;
    if (this.#state !== QpState.RTS && this.#state !== QpState.ERR) this.refusePost(this.#state);
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

  /** The request of this count is complete, and its place and those before it are free. Writes entry `n` of `wc`. */
  complete(count: number, status: number, wc: WorkCompletions, n: number): void {
    const ring = this.ring;
    const w = ring.wordsOf(count);
    wc.wrId[n] = ring.f64[(w >>> 1) + WrField64.WR_ID];
    wc.opcode[n] = WC_OPCODE[ring.u32[w + WrField.OPCODE]];
    wc.byteLen[n] = ring.u32[w + WrField.MESSAGE_LENGTH];
    wc.qpNum[n] = this.number;
    this.retire(count);
    if (status !== WcStatus.SUCCESS) this.#state = QpState.ERR;
  }

  /**
   * What some devices never answer: reads that may not be outstanding, and atomics whose result has another length than
   * 8 bytes.
   */
  #checkBatch(): void {
    const ring = this.ring;
    const { u32 } = ring;
    for (let i = ring.tail; i !== ring.next; i = (i + 1) | 0) {
      const w = ring.wordsOf(i);
      const opcode = u32[w + WrField.OPCODE];
      if (opcode < WrOpcode.RDMA_READ) continue;
      let why: string | undefined;
      if (!this.#mayRead) why = 'allows no outstanding reads or atomics (its maxRdAtomic is 0)';
      else if (opcode === WrOpcode.UPDATE) continue;
      else if (opcode > WrOpcode.RDMA_READ && u32[w + WrField.MESSAGE_LENGTH] !== 8)
        why = 'supports only atomics of 8 bytes';
      if (why === undefined) continue;
      ring.abort();
      throw new RmaError('ERR_VERBS', `post send: queue pair ${this.number} ${why} (EINVAL)`);
    }
  }

  // ---- the receive queue --------------------------------------------------------------------------------------------

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    const receives = this.#ownReceives();
    // Some devices leave a receive that is posted in ERR where it is.
    if (this.#state === QpState.ERR) this.recvCq.addFlushed(receives.refuse(wrId, lkey, address, length), this.number);
    else receives.post(this.#receiver, wrId, lkey, address, length);
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    this.#ownReceives().add(lkey, address, length);
  }

  #ownReceives(): ReceiveSlots {
    this.mustTakeReceives(this.#state);
    return this.#receives!;
  }

  protected get waits(): boolean {
    return false;
  }

  protected joinGroup(call: string, words: Uint32Array, lid: number): void {
    verb(call, () => this.#device.attachMcast(this.#handle, gidText(words), lid));
  }

  protected leaveGroup(call: string, words: Uint32Array, lid: number): void {
    verb(call, () => this.#device.detachMcast(this.#handle, gidText(words), lid));
  }

  destroy(): void {
    if (this.isDestroyed || this.#context.isClosed) return;
    this.mustBeDetached();
    this.#context.giveBack('destroy a queue pair', () => this.#device.destroyQp(this.#handle));
    this.leave();
    if (this.qpType === QpType.UD) this.recvCq.datagrams--;
    this.#state = QpState.RESET;
    this.ring.clear();
    this.recvCq.dropFlushed(this.number);
    this.#context.dropSender(this.#sender);
    if (this.srq === undefined) this.#context.dropReceiver(this.#receiver);
    this.#context.queuePairs.delete(this.number);
  }

  protected override mustLive(call: string): void {
    this.#context.mustBeOpen(call);
    super.mustLive(call);
  }
}
