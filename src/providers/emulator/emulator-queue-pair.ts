/**
 * A queue pair: its states, its two work queues, and what becomes of them.
 *
 * The state lies in shared memory (qp-table.ts). This side moves it by `modify`, and to ERR when a request fails; the
 * peer moves it to ERR when its request breaks a rule at this end. In ERR every request and receive completes with
 * WR_FLUSH_ERR, in order: at once if this side noticed, at the next poll (for which the peer wakes this side) if the
 * peer did.
 *
 * Requests are carried out when the doorbell rings. One that finds no receive posted stays at the head of its queue,
 * later ones wait behind it, and it is tried again, after the time that the peer asked for, by whatever polls or posts
 * next. Datagrams wait for nothing (emulator-datagrams.ts).
 */

import { RmaError } from '../../errors.ts';
import { checkRoom } from '../../verbs/checks.ts';
import { WcOpcode, WcStatus } from '../../verbs/completion-queue.ts';
import { Access } from '../../verbs/memory.ts';
import { QpState, QpType, SendFlag } from '../../verbs/queue-pair.ts';
import { WC_OPCODE, WrField, WrField64 } from '../../verbs/work-request-ring.ts';
import { type QueuePairParts as CoreParts, QueuePairCore } from '../core/queue-pair-base.ts';
import { FOR_EVER, type Move, type MoveLimits, stateName } from '../core/transitions.ts';
import type { EmulatedCompletionQueue } from './emulator-completion-queue.ts';
import { DatagramRequester } from './emulator-datagrams.ts';
import { DEVICE } from './emulator-limits.ts';
import type { EmulatedParent, EmulatedPd } from './emulator-parent.ts';
import { addReceiveSge, type EmulatedSharedReceiveQueue, postReceive } from './emulator-receive-queue.ts';
import { EmulatorRequester, NOT_READY, publish, WAITS } from './emulator-requester.ts';
import { MAX_ATTACHMENTS } from './group-table.ts';
import { QpEvent, QpField, rowOf } from './qp-table.ts';
import type { ReceiveRing } from './receive-ring.ts';

const ALL_REMOTE = Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;

/** The row of a queue pair that was destroyed: in RESET for ever. */
const NO_ROWS = new Int32Array(QpField.EVENTS + 1);

export interface QueuePairParts extends CoreParts<EmulatedPd, EmulatedCompletionQueue, EmulatedSharedReceiveQueue> {
  /** Its own receives; `undefined` with a shared receive queue. */
  readonly receives: ReceiveRing | undefined;
  readonly signalAll: boolean;
  /** Of the table, where its row is. */
  readonly words: Int32Array;
  readonly release: (qp: EmulatedQueuePair) => void;
}

export class EmulatedQueuePair extends QueuePairCore<EmulatedPd, EmulatedCompletionQueue, EmulatedSharedReceiveQueue> {
  /** Whether the request at the head waits for a receive of the peer. */
  isBlocked = false;
  readonly #context: EmulatedParent;
  readonly #receives: ReceiveRing | undefined;
  readonly #release: (qp: EmulatedQueuePair) => void;
  readonly #requester: EmulatorRequester | DatagramRequester;
  readonly #signalAll: boolean;
  #row: number;
  #words: Int32Array;
  #rnrRetry = FOR_EVER;
  #triesLeft = 0;
  #retryAt = 0;
  #saidLast = false;

  constructor(context: EmulatedParent, parts: QueuePairParts) {
    const { number, requests } = parts;
    const kind = parts.qpType === QpType.UD ? DatagramRequester : EmulatorRequester;
    // First: there may be no memory for it, and then nothing must count this queue pair as its user.
    const requester = new kind(context, number, parts.pd, requests);
    super(context.member, parts);
    this.#context = context;
    this.#receives = parts.receives;
    this.#release = parts.release;
    this.#signalAll = parts.signalAll;
    this.#words = parts.words;
    this.#row = rowOf(number);
    this.#requester = requester;
  }

  get state(): number {
    return Atomics.load(this.#words, this.#row + QpField.STATE);
  }

  // ---- states -------------------------------------------------------------------------------------------------------

  protected moveLimits(): MoveLimits {
    const datagrams = this.qpType === QpType.UD;
    return { members: this.#context.fabric.size, maxQpInitRdAtom: DEVICE.maxQpInitRdAtom, packets: false, datagrams };
  }

  protected move(call: string, move: Move): void {
    switch (move.to) {
      case QpState.RESET:
        this.#reset();
        break;
      case QpState.INIT:
        this.#words[this.#row + QpField.ACCESS] = (move.access ?? 0) & ALL_REMOTE;
        if (this.qpType === QpType.UD) this.#words[this.#row + QpField.QKEY] = move.qkey;
        Atomics.store(this.#words, this.#row + QpField.STATE, QpState.INIT);
        break;
      case QpState.RTR:
        this.#toReceive(move);
        break;
      case QpState.RTS:
        this.#toSend(call, move);
        break;
      default:
        this.toError();
    }
  }

  #toReceive(move: Move): void {
    const words = this.#words;
    const row = this.#row;
    this.#setAccess(move);
    if (this.qpType === QpType.UD) {
      Atomics.store(words, row + QpField.STATE, QpState.RTR);
      return;
    }
    const { member, qpNumber } = move.dest!;
    words[row + QpField.DEST_MEMBER] = member;
    words[row + QpField.DEST_NUMBER] = qpNumber;
    words[row + QpField.RNR_TIMER_US] = Math.ceil(move.minRnrTimerMs * 1000);
    words[row + QpField.MAX_DEST_RD_ATOMIC] = move.maxDestRdAtomic;
    this.#requester.connect(this.#context.peer(member), qpNumber);
    Atomics.store(words, row + QpField.STATE, QpState.RTR);
  }

  #toSend(call: string, move: Move): void {
    this.#setAccess(move);
    this.#rnrRetry = move.rnrRetry;
    this.#requester.limitReads(move.maxRdAtomic);
    const at = this.#row + QpField.STATE;
    // By exchange, since the peer may have moved it to ERR meanwhile.
    const found = Atomics.compareExchange(this.#words, at, QpState.RTR, QpState.RTS);
    if (found !== QpState.RTR && found !== QpState.RTS) {
      throw new RmaError('ERR_VERBS', `${call}: a request of the peer has moved it to ${stateName(found)} (EINVAL)`);
    }
  }

  #setAccess({ access }: Move): void {
    if (access !== undefined) this.#words[this.#row + QpField.ACCESS] = access & ALL_REMOTE;
  }

  #reset(): void {
    Atomics.store(this.#words, this.#row + QpField.STATE, QpState.RESET);
    Atomics.store(this.#words, this.#row + QpField.EVENTS, 0);
    this.#forgetWork();
  }

  /** Drops requests, receives and completions, and the connection. */
  #forgetWork(): void {
    this.#unblock();
    this.ring.clear();
    this.#saidLast = false;
    const receives = this.#receives;
    const { recvCq } = this;
    receives?.abort();
    while (receives !== undefined && receives.consume() >= 0);
    recvCq.drop(this);
    if (this.sendCq !== recvCq) this.sendCq.drop(this);
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
    const ring = this.ring;
    while (ring.head !== ring.tail) this.#completeHead(WcStatus.WR_FLUSH_ERR);
    this.#flushReceives();
  }

  #flushReceives(): void {
    const receives = this.#receives;
    const { recvCq } = this;
    if (receives === undefined) {
      if (!this.#saidLast) this.#context.raise({ type: 'QP_LAST_WQE_REACHED', qpNumber: this.number });
      this.#saidLast = true;
      return;
    }
    while (receives.consume() >= 0) {
      if (!recvCq.ring.push(receives.wrId, WcStatus.WR_FLUSH_ERR, WcOpcode.RECV, 0, 0, 0, this.number)) {
        this.#context.callOwnAttention();
      } else if (recvCq.ring.takeArmed(true)) this.#context.wakeSelf(recvCq.ring);
    }
  }

  // ---- the send queue -----------------------------------------------------------------------------------------------

  wrComplete(): void {
    const state = this.#words[this.#row + QpField.STATE];
    if (state !== QpState.RTS && state !== QpState.ERR) this.refusePost(state);
    this.ring.complete();
    this.run();
  }

  /** Carries out what is posted, as far as it can. */
  run(): void {
    if (this.isBlocked && !this.#mayRetry()) return;
    const ring = this.ring;
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
        if (status === WAITS) {
          this.#hold();
          return;
        }
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

  #completeHead(status: number): void {
    const ring = this.ring;
    const request = ring.head;
    const w = ring.wordsOf(request);
    ring.head = (request + 1) | 0;
    this.sendCq.complete(
      this,
      request,
      ring.f64[(w >>> 1) + WrField64.WR_ID],
      status,
      WC_OPCODE[ring.u32[w + WrField.OPCODE]],
      ring.u32[w + WrField.MESSAGE_LENGTH],
      status !== WcStatus.SUCCESS,
    );
  }

  // ---- receiver not ready -------------------------------------------------------------------------------------------

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

  /** Lets the head of the queue, a wait, be looked at again whenever this rank polls. */
  #hold(): void {
    this.#retryAt = 0;
    if (!this.isBlocked) {
      this.isBlocked = true;
      this.#context.block(this);
    }
    publish();
  }

  #mayRetry(): boolean {
    return performance.now() >= this.#retryAt || this.#words[this.#row + QpField.STATE] !== QpState.RTS;
  }

  #unblock(): void {
    if (!this.isBlocked) return;
    this.isBlocked = false;
    this.#context.unblock(this);
  }

  // ---- the receive queue --------------------------------------------------------------------------------------------

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    const receives = this.#ownReceives();
    postReceive(this.#context, receives, wrId, lkey, address, length);
    if (this.state === QpState.ERR) this.#flushReceives();
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    addReceiveSge(this.#context, this.#ownReceives(), lkey, address, length);
  }

  #ownReceives(): ReceiveRing {
    this.mustTakeReceives(this.state);
    return this.#receives!;
  }

  protected get waits(): boolean {
    return this.#context.capabilities.waits;
  }

  protected joinGroup(call: string, words: Uint32Array): void {
    if (this.#context.root.groups.attach(words, this.number)) return;
    checkRoom(call, 'attachments to multicast groups', MAX_ATTACHMENTS, MAX_ATTACHMENTS);
  }

  protected leaveGroup(_call: string, words: Uint32Array): void {
    this.#context.root.groups.detach(words, this.number);
  }

  destroy(): void {
    if (this.isDestroyed) return;
    this.mustBeDetached();
    const words = this.#words;
    Atomics.store(words, this.#row + QpField.NUMBER, 0);
    Atomics.store(words, this.#row + QpField.STATE, QpState.RESET);
    this.#forgetWork();
    // The row may become another queue pair's: from now on this one looks at a row that stays in RESET.
    this.#words = NO_ROWS;
    this.#row = 0;
    this.leave();
    this.#release(this);
  }
}
