/**
 * A reliable-connected queue pair: its states, its two work queues, and what becomes of them.
 *
 * The state lies in shared memory (qp-table.ts). This side moves it by `modify`, and to ERR when a request fails; the peer moves it to ERR
 * when its request breaks a rule at this end. In ERR every request and receive completes with WR_FLUSH_ERR, in order: at once if
 * this side noticed, at the next poll (for which the peer wakes this side) if the peer did.
 *
 * Requests are carried out when the doorbell rings. One that finds no receive posted stays at the head of its queue, later ones wait
 * behind it, and it is tried again, after the time that the peer asked for, by whatever polls or posts next.
 */

import { RmaError, show } from '../../errors.ts';
import { checkInteger } from '../../verbs/checks.ts';
import { WcOpcode, WcStatus } from '../../verbs/completion-queue.ts';
import type { QpAddress } from '../../verbs/device.ts';
import { Access } from '../../verbs/memory.ts';
import {
  type QpAttributes,
  type QpCapacity,
  QpState,
  type QueuePair,
  SendFlag,
  WrOpcode,
} from '../../verbs/queue-pair.ts';
import { type WorkRequestRing, WrField, WrField64 } from '../../verbs/work-request-ring.ts';
import type { EmulatedCompletionQueue } from './completion-queue.ts';
import type { EmulatedContext } from './context.ts';
import { DEVICE } from './limits.ts';
import { QpEvent, QpField } from './qp-table.ts';
import type { ReceiveRing } from './receive-ring.ts';
import { NOT_READY, publish, Requester } from './requester.ts';
import { addReceiveSge, type EmulatedSharedReceiveQueue, postReceive } from './shared-receive-queue.ts';

/** By `WrOpcode`. */
const WC_OPCODE = Uint8Array.of(
  WcOpcode.RDMA_WRITE,
  WcOpcode.RDMA_WRITE,
  WcOpcode.SEND,
  WcOpcode.SEND,
  WcOpcode.RDMA_READ,
  WcOpcode.COMP_SWAP,
  WcOpcode.FETCH_ADD,
);

/** The value of `rnrRetry` that means: for ever. */
const FOR_EVER = 7;
/** The longest RNR timer that InfiniBand can say. */
const MAX_RNR_TIMER_MS = 655.36;
const ALL_REMOTE = Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

/** The row of a queue pair that was destroyed: in RESET for ever. */
const NO_ROWS = new Int32Array(QpField.EVENTS + 1);

export interface QueuePairParts {
  readonly number: number;
  /** The number of the protection domain. */
  readonly pd: number;
  readonly sendCq: EmulatedCompletionQueue;
  readonly recvCq: EmulatedCompletionQueue;
  readonly srq: EmulatedSharedReceiveQueue | undefined;
  /** Its own receives; `undefined` with a shared receive queue. */
  readonly receives: ReceiveRing | undefined;
  readonly requests: WorkRequestRing;
  readonly signalAll: boolean;
  readonly release: (qp: EmulatedQueuePair) => void;
}

export class EmulatedQueuePair implements QueuePair {
  readonly number: number;
  readonly address: QpAddress;
  readonly cap: QpCapacity;
  readonly maxInlineData: number;
  /** Whether the request at the head waits for a receive of the peer. */
  isBlocked = false;
  readonly #parts: QueuePairParts;
  readonly #context: EmulatedContext;
  readonly #ring: WorkRequestRing;
  readonly #requester: Requester;
  readonly #sendCq: EmulatedCompletionQueue;
  readonly #signalAll: boolean;
  #row: number;
  #words: Int32Array;
  #rnrRetry = FOR_EVER;
  #triesLeft = 0;
  #retryAt = 0;
  #saidLast = false;
  #destroyed = false;

  constructor(context: EmulatedContext, parts: QueuePairParts) {
    const { number, requests, receives, srq } = parts;
    this.#context = context;
    this.#parts = parts;
    this.#ring = requests;
    this.#sendCq = parts.sendCq;
    this.#signalAll = parts.signalAll;
    this.#words = context.root.queuePairs.words;
    this.#row = context.root.queuePairs.row(number);
    this.#requester = new Requester(context, number, parts.pd, requests);
    this.number = number;
    this.address = Object.freeze({ lid: context.lid, qpNumber: number });
    this.maxInlineData = requests.maxInline;
    this.cap = Object.freeze({
      maxSendWr: requests.capacity,
      maxRecvWr: receives?.capacity ?? 0,
      maxSendSge: requests.maxSge,
      maxRecvSge: receives?.maxSge ?? srq!.maxSge,
      maxInlineData: requests.maxInline,
    });
  }

  get state(): number {
    return Atomics.load(this.#words, this.#row + QpField.STATE);
  }

  get sendCq(): EmulatedCompletionQueue {
    return this.#sendCq;
  }

  get recvCq(): EmulatedCompletionQueue {
    return this.#parts.recvCq;
  }

  // ---- states -----------------------------------------------------------------------------------------------------------

  modify(attributes: QpAttributes): void {
    this.#mustLive('modify');
    const from = this.state;
    const to = attributes.state;
    if (to === QpState.RESET) this.#reset();
    else if (to === QpState.ERR) this.toError();
    else if (to === QpState.INIT && (from === QpState.RESET || from === QpState.INIT)) this.#toInit(attributes);
    else if (to === QpState.RTR && from === QpState.INIT) this.#toReceive(attributes);
    else if (to === QpState.RTS && (from === QpState.RTR || from === QpState.RTS)) this.#toSend(attributes);
    else {
      throw new RmaError(
        'ERR_VERBS',
        `modify queue pair ${this.number}: cannot move from ${stateName(from)} to ${stateName(to)}; the order is RESET, INIT, RTR, RTS, and every state can move to ERR and RESET (EINVAL)`,
      );
    }
  }

  #toInit(attributes: QpAttributes): void {
    this.#setAccess(attributes.access ?? 0);
    Atomics.store(this.#words, this.#row + QpField.STATE, QpState.INIT);
  }

  #toReceive(attributes: QpAttributes): void {
    const call = `modify queue pair ${this.number}`;
    const { dest, minRnrTimerMs = 0.01, maxDestRdAtomic = DEVICE.maxQpInitRdAtom } = attributes;
    if (dest === undefined) {
      throw new RmaError('ERR_VERBS', `${call}: RTR needs dest, the address of the remote queue pair (EINVAL)`);
    }
    checkInteger(call, 'dest.lid', dest.lid, 0, this.#context.fabric.size - 1);
    checkInteger(call, 'dest.qpNumber', dest.qpNumber, 1, 2 ** 24 - 1);
    checkInteger(call, 'maxDestRdAtomic', maxDestRdAtomic, 0, DEVICE.maxQpInitRdAtom);
    if (!(minRnrTimerMs >= 0 && minRnrTimerMs <= MAX_RNR_TIMER_MS)) {
      throw new RmaError(
        'ERR_VERBS',
        `${call}: minRnrTimerMs must be from 0 to ${MAX_RNR_TIMER_MS}, not ${show(minRnrTimerMs)} (EINVAL)`,
      );
    }
    if (attributes.access !== undefined) this.#setAccess(attributes.access);
    const words = this.#words;
    const row = this.#row;
    words[row + QpField.DEST_LID] = dest.lid;
    words[row + QpField.DEST_NUMBER] = dest.qpNumber;
    words[row + QpField.RNR_TIMER_US] = Math.ceil(minRnrTimerMs * 1000);
    words[row + QpField.MAX_DEST_RD_ATOMIC] = maxDestRdAtomic;
    this.#requester.connect(this.#context.peer(dest.lid), dest.qpNumber);
    Atomics.store(words, row + QpField.STATE, QpState.RTR);
  }

  #toSend(attributes: QpAttributes): void {
    const call = `modify queue pair ${this.number}`;
    const { rnrRetry = FOR_EVER, retryCount = 7, maxRdAtomic = DEVICE.maxQpInitRdAtom } = attributes;
    checkInteger(call, 'rnrRetry', rnrRetry, 0, FOR_EVER);
    checkInteger(call, 'retryCount', retryCount, 0, 7);
    checkInteger(call, 'maxRdAtomic', maxRdAtomic, 0, DEVICE.maxQpInitRdAtom);
    if (attributes.access !== undefined) this.#setAccess(attributes.access);
    this.#rnrRetry = rnrRetry;
    this.#requester.limitReads(maxRdAtomic);
    const at = this.#row + QpField.STATE;
    // By exchange, since the peer may have moved it to ERR meanwhile.
    const found = Atomics.compareExchange(this.#words, at, QpState.RTR, QpState.RTS);
    if (found !== QpState.RTR && found !== QpState.RTS) {
      throw new RmaError('ERR_VERBS', `${call}: a request of the peer has moved it to ${stateName(found)} (EINVAL)`);
    }
  }

  #setAccess(access: number): void {
    checkInteger(`modify queue pair ${this.number}`, 'access', access, 0, ALL_REMOTE | Access.LOCAL_WRITE);
    this.#words[this.#row + QpField.ACCESS] = access & ALL_REMOTE;
  }

  #reset(): void {
    Atomics.store(this.#words, this.#row + QpField.STATE, QpState.RESET);
    Atomics.store(this.#words, this.#row + QpField.EVENTS, 0);
    this.#forgetWork();
  }

  /** Drops requests, receives and completions, and the connection. */
  #forgetWork(): void {
    this.#unblock();
    this.#ring.clear();
    this.#saidLast = false;
    const { receives, recvCq } = this.#parts;
    receives?.abort();
    while (receives !== undefined && receives.consume() >= 0);
    recvCq.drop(this);
    if (this.#sendCq !== recvCq) this.#sendCq.drop(this);
    this.#requester.disconnect();
  }

  /** Moves to ERR and flushes. */
  toError(): void {
    Atomics.store(this.#words, this.#row + QpField.STATE, QpState.ERR);
    this.#flush();
  }

  /** Sees to what the peer has done to this queue pair. */
  attend(): void {
    const { number } = this;
    const at = this.#row + QpField.EVENTS;
    if (this.#words[at] !== 0) {
      const events = Atomics.exchange(this.#words, at, 0);
      if (events & QpEvent.ACCESS) this.#context.raise({ type: 'QP_ACCESS_ERR', qpNumber: number });
      if (events & QpEvent.REQUEST) this.#context.raise({ type: 'QP_REQ_ERR', qpNumber: number });
    }
    if (this.state === QpState.ERR) this.#flush();
  }

  #flush(): void {
    this.#unblock();
    const ring = this.#ring;
    while (ring.head !== ring.tail) this.#completeHead(WcStatus.WR_FLUSH_ERR);
    this.#flushReceives();
  }

  #flushReceives(): void {
    const { receives, recvCq } = this.#parts;
    if (receives === undefined) {
      if (!this.#saidLast) this.#context.raise({ type: 'QP_LAST_WQE_REACHED', qpNumber: this.number });
      this.#saidLast = true;
      return;
    }
    while (receives.consume() >= 0) {
      if (!recvCq.ring.push(receives.wrId, WcStatus.WR_FLUSH_ERR, WcOpcode.RECV, 0, 0, 0, this.number)) {
        this.#context.callOwnAttention();
      } else if (recvCq.ring.takeArmed(true)) this.#context.fabric.wake(this.#context.lid);
    }
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
    this.#ring.atomic(
      WrOpcode.ATOMIC_CMP_AND_SWP,
      wrId,
      flags,
      rkey,
      remoteAddress,
      compareLo,
      compareHi,
      swapLo,
      swapHi,
    );
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
    const state = this.#words[this.#row + QpField.STATE];
    if (state !== QpState.RTS && state !== QpState.ERR) this.#refusePost(state);
    this.#ring.complete();
    this.run();
  }

  wrAbort(): void {
    this.#ring.abort();
  }

  /** Carries out what is posted, as far as it can. */
  run(): void {
    if (this.isBlocked && !this.#mayRetry()) return;
    const ring = this.#ring;
    const words = this.#words;
    const at = this.#row + QpField.STATE;
    while (ring.head !== ring.tail) {
      if (words[at] !== QpState.RTS) {
        this.#flush();
        return;
      }
      const w = ring.wordsOf(ring.head);
      let status = this.#requester.execute(w);
      if (status !== WcStatus.SUCCESS) {
        if (status === NOT_READY) {
          if (this.#postpone()) return;
          status = WcStatus.RNR_RETRY_EXC_ERR;
        }
        this.#completeHead(status);
        this.toError();
        return;
      }
      if (this.isBlocked) this.#unblock();
      if (this.#signalAll || (ring.u32[w + WrField.FLAGS] & SendFlag.SIGNALED) !== 0) this.#completeHead(status);
      else ring.head = (ring.head + 1) | 0;
    }
    publish();
  }

  /** A completion of this request was polled: its place, and those of all before it, are free. */
  retire(request: number): void {
    this.#ring.retired = (request + 1) | 0;
  }

  #completeHead(status: number): void {
    const ring = this.#ring;
    const request = ring.head;
    const w = ring.wordsOf(request);
    ring.head = (request + 1) | 0;
    this.#sendCq.complete(
      this,
      request,
      ring.f64[(w >>> 1) + WrField64.WR_ID],
      status,
      WC_OPCODE[ring.u32[w + WrField.OPCODE]],
      ring.u32[w + WrField.MESSAGE_LENGTH],
      status !== WcStatus.SUCCESS,
    );
  }

  // ---- receiver not ready -----------------------------------------------------------------------------------------------

  /** Lets the head of the queue wait for its next try; `false` if there is none left. */
  #postpone(): boolean {
    if (!this.isBlocked) this.#triesLeft = this.#rnrRetry;
    if (this.#triesLeft === 0) return false;
    if (this.#rnrRetry !== FOR_EVER) this.#triesLeft--;
    this.#retryAt = performance.now() + this.#requester.rnrDelay;
    if (!this.isBlocked) {
      this.isBlocked = true;
      this.#context.block(this);
    }
    publish();
    return true;
  }

  #mayRetry(): boolean {
    return performance.now() >= this.#retryAt || this.#words[this.#row + QpField.STATE] !== QpState.RTS;
  }

  #unblock(): void {
    if (!this.isBlocked) return;
    this.isBlocked = false;
    this.#context.unblock(this);
  }

  // ---- the receive queue ------------------------------------------------------------------------------------------------

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    const receives = this.#ownReceives();
    postReceive(this.#context, receives, wrId, lkey, address, length);
    if (this.state === QpState.ERR) this.#flushReceives();
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    addReceiveSge(this.#context, this.#ownReceives(), lkey, address, length);
  }

  #ownReceives(): ReceiveRing {
    this.#mustLive('post receive');
    const { receives } = this.#parts;
    if (receives === undefined) {
      throw new RmaError(
        'ERR_VERBS',
        `post receive: queue pair ${this.number} receives from a shared receive queue; post the receive there (EINVAL)`,
      );
    }
    if (this.state === QpState.RESET) {
      throw new RmaError(
        'ERR_VERBS',
        `post receive: queue pair ${this.number} is in RESET; move it to INIT first (EINVAL)`,
      );
    }
    return receives;
  }

  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    const words = this.#words;
    Atomics.store(words, this.#row + QpField.NUMBER, 0);
    Atomics.store(words, this.#row + QpField.STATE, QpState.RESET);
    this.#forgetWork();
    // The row may become another queue pair's: from now on this one looks at a row that stays in RESET.
    this.#words = NO_ROWS;
    this.#row = 0;
    this.#parts.release(this);
  }

  #mustLive(call: string): void {
    if (this.#destroyed) throw new RmaError('ERR_VERBS', `${call}: queue pair ${this.number} was destroyed`);
  }

  #refusePost(state: number): never {
    this.#ring.abort();
    this.#mustLive('post send');
    throw new RmaError(
      'ERR_VERBS',
      `post send: queue pair ${this.number} is in ${stateName(state)}, but accepts send requests only in RTS (EINVAL)`,
    );
  }
}

function stateName(state: number): string {
  for (const [name, value] of Object.entries(QpState)) if (value === state) return name;
  return show(state);
}
