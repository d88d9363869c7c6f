/**
 * A queue pair of a modelled device.
 *
 * A request is posted by its rank's task; everything else that becomes of it is events. Its adapter takes it from the
 * queue (modelled-requester.ts); then it is on its way (transit.ts); the other end carries it out (responder.ts); and
 * it completes when its adapter has learned of that. A datagram completes when it has left (modelled-datagrams.ts).
 * Here are the states, and what they mean for both ends.
 */
import { WcOpcode, WcStatus } from '../../verbs/completion-queue.ts';
import { Access } from '../../verbs/memory.ts';
import { QpState, QpType, type RequestEffect, WrOpcode } from '../../verbs/queue-pair.ts';
import { WC_OPCODE, WrField, WrField64 } from '../../verbs/work-request-ring.ts';
import { type Asked, makeRing, QueuePairCore } from '../core/queue-pair-base.ts';
import type { Move, MoveLimits } from '../core/transitions.ts';
import { Connection } from './connection.ts';
import type { Completing, ModelledCompletionQueue } from './modelled-completion-queue.ts';
import { DatagramSender } from './modelled-datagrams.ts';
import type { ModelledParent, ModelledPeer } from './modelled-parent.ts';
import { type ModelledPd, type ModelledSharedReceiveQueue, ReceiveQueue } from './modelled-receive-queue.ts';
import { ModelledRequester } from './modelled-requester.ts';
import { Responder } from './responder.ts';
import type { Sending } from './send-queue.ts';

const ALL_REMOTE = Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;
/** Most queue pairs of a large job never send anything, and few have many requests outstanding. */
const FIRST_SLOTS = 1;

export class ModelledQueuePair
  extends QueuePairCore<ModelledPd, ModelledCompletionQueue, ModelledSharedReceiveQueue>
  implements ModelledPeer, Completing, Sending
{
  state: number = QpState.RESET;
  readonly connection: Connection;
  readonly responder: Responder;
  readonly #context: ModelledParent;
  readonly #requester: ModelledRequester | DatagramSender;
  #receives: ReceiveQueue | undefined;
  #saidLast = false;

  constructor(
    context: ModelledParent,
    number: number,
    pd: ModelledPd,
    asked: Asked<ModelledCompletionQueue, ModelledSharedReceiveQueue>,
  ) {
    super(context.member, {
      ...asked,
      ...{ number, pd },
      maxRecvWr: 2 ** Math.ceil(Math.log2(asked.maxRecvWr)),
      requests: makeRing(asked, context.device.maxMsgSize, FIRST_SLOTS),
    });
    this.#context = context;
    this.connection = new Connection(context, number);
    this.responder = new Responder(context, this);
    const kind = asked.qpType === QpType.UD ? DatagramSender : ModelledRequester;
    this.#requester = new kind(context, this, asked.signalAll);
  }

  // ---- states -------------------------------------------------------------------------------------------------------

  /** Whether requests of the other end are carried out here. */
  get isReady(): boolean {
    return (this.state === QpState.RTS || this.state === QpState.RTR) && !this.#context.cpu.dead;
  }

  /** Datagrams take effect nowhere that is known. */
  watch(effect: RequestEffect): void {
    if (this.#requester instanceof ModelledRequester) this.#requester.effect = effect;
  }

  protected moveLimits(): MoveLimits {
    const { shared, device } = this.#context;
    const datagrams = this.qpType === QpType.UD;
    return {
      members: shared.contexts.length,
      maxQpInitRdAtom: device.maxQpInitRdAtom,
      packets: false,
      datagrams,
    };
  }

  protected move(_call: string, move: Move): void {
    const { to, access, dest } = move;
    const { responder } = this;
    if (to === QpState.ERR) {
      this.toError();
      return;
    }
    if (to === QpState.INIT) {
      responder.access = (access ?? 0) & ALL_REMOTE;
      responder.qkey = move.qkey;
    } else if (access !== undefined && to !== QpState.RESET) responder.access = access & ALL_REMOTE;
    this.state = to;
    if (to === QpState.RESET) this.#forgetWork();
    else if (to === QpState.RTS) this.#requester.limit(move);
    else if (to === QpState.RTR && this.qpType === QpType.RC) {
      this.connection.connect(dest!.member, dest!.qpNumber);
      responder.rnrTimer = move.minRnrTimerMs * 1000;
      responder.maxDestRdAtomic = move.maxDestRdAtomic;
    }
  }

  /** Drops requests, receives and completions, and the connection. */
  #forgetWork(): void {
    this.#forgetTransits();
    this.#requester.clear();
    this.#saidLast = false;
    this.#receives?.clear();
    this.recvCq.drop(this);
    if (this.sendCq !== this.recvCq) this.sendCq.drop(this);
    this.connection.disconnect();
  }

  /** Nothing that is under way matters any more; a sender that waits for a receive here waits in vain. */
  #forgetTransits(): void {
    this.#requester.forgetTransits();
    if (this.#context.hasRefused) this.receiveQueue.ring();
  }

  /** Moves to ERR and flushes. */
  toError(): void {
    this.state = QpState.ERR;
    this.#flush();
  }

  #flush(): void {
    this.#forgetTransits();
    this.#requester.flush();
    this.#flushReceives();
  }

  #flushReceives(): void {
    if (this.srq !== undefined) {
      if (!this.#saidLast) this.#context.raise({ type: 'QP_LAST_WQE_REACHED', qpNumber: this.number });
      this.#saidLast = true;
      return;
    }
    const receives = this.#receives;
    while (receives?.take()) {
      this.recvCq.push(this, 0, receives.wrId, WcStatus.WR_FLUSH_ERR, WcOpcode.RECV, 0, 0, 0, true);
    }
  }

  // ---- posting ------------------------------------------------------------------------------------------------------

  wrComplete(): void {
    const { state, ring } = this;
    const { cpu } = this.#context;
    const { asking } = cpu;
    cpu.asking = false;
    if (state !== QpState.RTS && state !== QpState.ERR) this.refusePost(state);
    const first = ring.tail;
    ring.complete();
    const n = (ring.tail - first) | 0;
    if (n === 0) return;
    if (state === QpState.ERR) {
      this.#flush();
      return;
    }
    cpu.spend(this.#postingTime(first, n));
    this.#requester.post(first, asking);
  }

  /** What posting `n` requests from `first` on takes the processor, by one doorbell. Memory of the node has none. */
  #postingTime(first: number, n: number): number {
    const { host, node } = this.#context.fabric;
    const byMemory = node.post === undefined ? 0 : this.#byMemoryOf(first, n);
    const byAdapter = n - byMemory;
    const toAdapter = byAdapter === 0 ? 0 : host.post + (byAdapter - 1) * host.postNext;
    return byMemory === 0 ? toAdapter : toAdapter + byMemory * node.post!;
  }

  /** How many of `n` requests from `first` on go through memory of the node. */
  #byMemoryOf(first: number, n: number): number {
    const { ring, connection, qpType } = this;
    if (qpType === QpType.UD) return 0;
    let count = 0;
    for (let k = 0; k < n; k++) {
      const w = ring.wordsOf((first + k) | 0);
      if (connection.goesByMemory(ring.u32[w + WrField.OPCODE])) count++;
    }
    return count;
  }

  override wrAbort(): void {
    this.#context.cpu.asking = false;
    super.wrAbort();
  }

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    this.mustTakeReceives(this.state);
    this.receiveQueue.post(wrId, lkey, address, length);
    if (this.state === QpState.ERR) this.#flushReceives();
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    this.mustTakeReceives(this.state);
    this.receiveQueue.addSge(lkey, address, length);
  }

  get receiveQueue(): ReceiveQueue {
    if (this.srq !== undefined) return this.srq.receives;
    if (this.#receives === undefined) {
      const { maxRecvWr, maxRecvSge } = this.cap;
      this.#receives = new ReceiveQueue(this.#context, maxRecvWr, maxRecvSge);
    }
    return this.#receives;
  }

  /**
   * A receive of this queue pair was polled. @returns whether the adapter has brought a message: they come by a buffer
   * for each connection, which a poll looks for. One that came by memory of the node costs no such look.
   */
  noteTaken(opcode: number): boolean {
    if (opcode !== WcOpcode.RECV || this.qpType === QpType.UD || this.connection.goesByMemory(WrOpcode.SEND))
      return false;
    this.connection.countMessage();
    return true;
  }

  wentByMemory(opcode: number): boolean {
    if (this.qpType === QpType.UD) return false;
    const isMessage = opcode === WcOpcode.SEND || opcode === WcOpcode.RECV;
    return this.connection.goesByMemory(isMessage ? WrOpcode.SEND : WrOpcode.RDMA_WRITE);
  }

  protected get waits(): boolean {
    return this.#context.capabilities.waits;
  }

  protected joinGroup(call: string, words: Uint32Array): void {
    this.#context.joinGroup(call, this, words);
  }

  protected leaveGroup(_call: string, words: Uint32Array): void {
    this.#context.leaveGroup(this, words);
  }

  /** The oldest request completes. */
  completeHead(status: number): void {
    const { ring } = this;
    const request = ring.head;
    const w = ring.wordsOf(request);
    ring.head = (request + 1) | 0;
    this.sendCq.push(
      this,
      request,
      ring.f64[(w >>> 1) + WrField64.WR_ID],
      status,
      WC_OPCODE[ring.u32[w + WrField.OPCODE]],
      0,
      ring.u32[w + WrField.MESSAGE_LENGTH],
      0,
      status !== WcStatus.SUCCESS,
    );
  }

  destroy(): void {
    if (this.isDestroyed) return;
    this.mustBeDetached();
    this.state = QpState.RESET;
    this.receiveQueue.ring();
    this.#forgetWork();
    this.#context.queuePairs.delete(this.number);
    this.connection.endPolling();
    this.leave();
  }
}
