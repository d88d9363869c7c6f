/**
 * A reliable-connected queue pair of a modelled device, and the way of its requests.
 *
 * A request is posted by its rank's task; everything else that becomes of it is events:
 *
 *     happen (queue pair)   its adapter takes it from the queue, one at a time, and sends it:                   `Network.depart`
 *     ARRIVE                its first packet has come; it is taken in when those before it are:                 `Network.arrive`, `atomic`
 *     EXECUTE               it is checked and carried out, in the order of its queue pair; bytes are moved
 *     RETURN                the answer of a read or an atomic has come back:                                    `Network.arrive`
 *     DONE                  the sender knows; requests complete in the order of posting
 *
 * What is on its way is a `Transit`; a request has at most one that counts. When the receiver was not ready, or nobody answered, what was sent behind that request is out of sequence, and discarded: those transits do not count
 * any more, wherever they are, and the requests are sent again. The same when a queue pair forgets its requests (ERR, RESET).
 *
 * A write takes its bytes from the sender's memory when it is carried out: the sender may not change them before the completion, which comes later. What a read finds is kept on its way back, since later requests may change what it has found.
 */
import { RmaError, show } from '../../errors.ts';
import { checkInteger } from '../../verbs/checks.ts';
import { WcFlag, WcOpcode, WcStatus } from '../../verbs/completion-queue.ts';
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
import { WorkRequestRing, WrField, WrField64 } from '../../verbs/work-request-ring.ts';
import { copyBytes, copyPieces, Mapping, Pieces } from '../emulator/mapping.ts';
import type { ModelledCompletionQueue } from './completion-queue.ts';
import type { ModelledContext, ModelledFabric } from './context.ts';
import type { FabricEvent } from './event-queue.ts';
import type { ModelledProtectionDomain, ModelledRegion } from './memory.ts';
import { type ModelledSharedReceiveQueue, ReceiveQueue, type Waiter } from './receive-queue.ts';

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
const ALL_REMOTE = Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC;
/** The value of `rnrRetry` that means: for ever. */
const FOR_EVER = 7;
/** The longest RNR timer that InfiniBand can say. */
const MAX_RNR_TIMER_MS = 655.36;
const FIRST_SLOTS = 4;

/** What is known of a request that was sent: nothing, or its `WcStatus`. */
const UNDER_WAY = -1;
/** The responder's answer, besides statuses: no receive was posted; nobody is there. */
const NOT_READY = -2;
const NO_ANSWER = -3;

const Stage = Object.freeze({ ARRIVE: 0, EXECUTE: 1, RETURN: 2, DONE: 3, REFUSED: 4, TIMEOUT: 5 });

/** One request on its way. */
export class Transit implements FabricEvent {
  stage: number = Stage.ARRIVE;
  qp!: ModelledQueuePair;
  request = 0;
  opcode = 0;
  /** Of the message; an answer of a read has as many. */
  bytes = 0;
  status = 0;
  /** It does not only ask whether something has changed. */
  counted = false;
  /** What a read has found, `bytes` of it from byte 0 on. */
  found = NOTHING_FOUND;
  readonly #shared: ModelledFabric;

  constructor(shared: ModelledFabric) {
    this.#shared = shared;
  }

  happen(): void {
    if (this.qp.counts(this)) this.qp.proceed(this);
    else this.#shared.giveBack(this);
  }
}

const NOTHING_FOUND = new Mapping(new ArrayBuffer(8));

/** Where local data is found: used for one request at a time. */
const filler = new Mapping(new ArrayBuffer(0));
const local = new Pieces(1024, filler);
const scatter = new Pieces(1024, filler);

/** Copies what `local` names, one piece after the other. */
function gather(to: Mapping, at: number): void {
  let end = at;
  for (let i = 0; i < local.count; i++) {
    copyBytes(to, end, local.mappings[i], local.offsets[i], local.lengths[i]);
    end += local.lengths[i];
  }
}

interface Asked {
  readonly maxSendWr: number;
  readonly maxRecvWr: number;
  readonly maxSendSge: number;
  readonly maxRecvSge: number;
  readonly maxInlineData: number;
  readonly signalAll: boolean;
}

export class ModelledQueuePair implements QueuePair, FabricEvent, Waiter {
  readonly number: number;
  readonly address: QpAddress;
  readonly sendCq: ModelledCompletionQueue;
  readonly recvCq: ModelledCompletionQueue;
  readonly maxInlineData: number;
  state: number = QpState.RESET;
  readonly #context: ModelledContext;
  readonly #pd: ModelledProtectionDomain;
  readonly #srq: ModelledSharedReceiveQueue | undefined;
  readonly #asked: Asked;
  #ring: WorkRequestRing | undefined;
  #ringMapping: Mapping | undefined;
  /** By slot: when the request was posted, whether it only asks if something has changed, what is known of it, and what of it is on its way. */
  #posted = new Float64Array(0);
  #asks = new Uint8Array(0);
  #known = new Int8Array(0);
  #transits: (Transit | undefined)[] = [];
  /** The next request to be sent: between the ring's `head` and `tail`. */
  #next = 0;
  /** An event that sends it is in the queue. */
  #sending = false;
  /** Nothing is sent until a request that was sent in vain is sent again. */
  #held = false;
  /** Reads and atomics that have not come back. */
  #reads = 0;
  /** Messages of this queue pair come in order: when the last one comes, and when it is carried out. */
  #lastArrival = 0;
  #lastExecuted = 0;
  /** When the last byte of its last long message has left the adapter. */
  #lastGone = 0;
  /** When the last of the writes that have come here is in memory. */
  #lastPlaced = 0;
  #receives: ReceiveQueue | undefined;
  /** Messages that have gone and come on this connection. */
  #messages = 0;
  #access = 0;
  #destLid = -1;
  #destNumber = 0;
  #maxDestRdAtomic = 0;
  #rnrTimer = 0;
  #rnrRetry = FOR_EVER;
  #retryCount = FOR_EVER;
  #maxRdAtomic = 0;
  /** Tries that are left for the request that is waited for. */
  #rnrLeft = 0;
  #timeoutsLeft = 0;
  /** When a refused request may be tried again for the first time, and how far apart the tries are. */
  #retryFrom = 0;
  #retryPeriod = 0;
  /** Times that something was to be sent again. */
  #resends = 0;
  #saidLast = false;
  #destroyed = false;

  constructor(
    context: ModelledContext,
    number: number,
    pd: ModelledProtectionDomain,
    sendCq: ModelledCompletionQueue,
    recvCq: ModelledCompletionQueue,
    srq: ModelledSharedReceiveQueue | undefined,
    asked: Asked,
  ) {
    this.#context = context;
    this.#pd = pd;
    this.#srq = srq;
    this.#asked = asked;
    this.number = number;
    this.sendCq = sendCq;
    this.recvCq = recvCq;
    this.maxInlineData = asked.maxInlineData;
    this.address = { lid: context.lid, qpNumber: number };
  }

  get cap(): QpCapacity {
    const { maxSendWr, maxRecvWr, maxSendSge, maxRecvSge, maxInlineData } = this.#asked;
    return {
      maxSendWr: 2 ** Math.ceil(Math.log2(maxSendWr)),
      maxRecvWr: this.#srq === undefined ? 2 ** Math.ceil(Math.log2(maxRecvWr)) : 0,
      maxSendSge,
      maxRecvSge: this.#srq?.maxSge ?? maxRecvSge,
      maxInlineData,
    };
  }

  // ---- states -----------------------------------------------------------------------------------------------------------

  modify(attributes: QpAttributes): void {
    this.#mustLive('modify');
    const from = this.state;
    const to = attributes.state;
    if (to === QpState.RESET) this.#reset();
    else if (to === QpState.ERR) this.toError();
    else if (to === QpState.INIT && (from === QpState.RESET || from === QpState.INIT)) {
      this.#setAccess(attributes.access ?? 0);
      this.state = QpState.INIT;
    } else if (to === QpState.RTR && from === QpState.INIT) this.#toReceive(attributes);
    else if (to === QpState.RTS && (from === QpState.RTR || from === QpState.RTS)) this.#toSend(attributes);
    else {
      throw new RmaError(
        'ERR_VERBS',
        `modify queue pair ${this.number}: cannot move from ${stateName(from)} to ${stateName(to)}; the order is RESET, INIT, RTR, RTS, and every state can move to ERR and RESET (EINVAL)`,
      );
    }
  }

  #toReceive(attributes: QpAttributes): void {
    const call = `modify queue pair ${this.number}`;
    const most = this.#context.device.maxQpInitRdAtom;
    const { dest, minRnrTimerMs = 0.01, maxDestRdAtomic = most } = attributes;
    if (dest === undefined) {
      throw new RmaError('ERR_VERBS', `${call}: RTR needs dest, the address of the remote queue pair (EINVAL)`);
    }
    checkInteger(call, 'dest.lid', dest.lid, 0, this.#context.shared.contexts.length - 1);
    checkInteger(call, 'dest.qpNumber', dest.qpNumber, 1, 2 ** 24 - 1);
    checkInteger(call, 'maxDestRdAtomic', maxDestRdAtomic, 0, most);
    if (!(minRnrTimerMs >= 0 && minRnrTimerMs <= MAX_RNR_TIMER_MS)) {
      throw new RmaError(
        'ERR_VERBS',
        `${call}: minRnrTimerMs must be from 0 to ${MAX_RNR_TIMER_MS}, not ${show(minRnrTimerMs)} (EINVAL)`,
      );
    }
    if (attributes.access !== undefined) this.#setAccess(attributes.access);
    this.#destLid = dest.lid;
    this.#destNumber = dest.qpNumber;
    this.#rnrTimer = minRnrTimerMs * 1000;
    this.#maxDestRdAtomic = maxDestRdAtomic;
    this.state = QpState.RTR;
  }

  #toSend(attributes: QpAttributes): void {
    const call = `modify queue pair ${this.number}`;
    const most = this.#context.device.maxQpInitRdAtom;
    const { rnrRetry = FOR_EVER, retryCount = 7, maxRdAtomic = most } = attributes;
    checkInteger(call, 'rnrRetry', rnrRetry, 0, FOR_EVER);
    checkInteger(call, 'retryCount', retryCount, 0, 7);
    checkInteger(call, 'maxRdAtomic', maxRdAtomic, 0, most);
    if (attributes.access !== undefined) this.#setAccess(attributes.access);
    this.#rnrRetry = rnrRetry;
    this.#rnrLeft = rnrRetry;
    this.#retryCount = retryCount;
    this.#timeoutsLeft = retryCount;
    this.#maxRdAtomic = maxRdAtomic;
    this.state = QpState.RTS;
  }

  #setAccess(access: number): void {
    checkInteger(`modify queue pair ${this.number}`, 'access', access, 0, ALL_REMOTE | Access.LOCAL_WRITE);
    this.#access = access & ALL_REMOTE;
  }

  #reset(): void {
    this.state = QpState.RESET;
    this.#forgetWork();
  }

  /** Drops requests, receives and completions, and the connection. */
  #forgetWork(): void {
    this.#forgetTransits();
    this.#ring?.clear();
    this.#next = this.#ring?.tail ?? 0;
    this.#saidLast = false;
    this.#receives?.clear();
    this.recvCq.drop(this);
    if (this.sendCq !== this.recvCq) this.sendCq.drop(this);
    this.#destLid = -1;
  }

  /** Nothing that is under way matters any more; who waits for a receive here waits in vain. */
  #forgetTransits(): void {
    this.#transits.fill(undefined);
    this.#resends++;
    this.#held = false;
    this.#reads = 0;
    this.#peer()?.receiveQueue.cancel(this);
    if (this.#context.hasRefused) this.receiveQueue.ring();
  }

  /** Whether this is what is on its way of its request. */
  counts(transit: Transit): boolean {
    return this.#transits[transit.request & (this.#transits.length - 1)] === transit;
  }

  /** Moves to ERR and flushes. */
  toError(): void {
    this.state = QpState.ERR;
    this.#flush();
  }

  #flush(): void {
    this.#forgetTransits();
    const ring = this.#ring;
    if (ring !== undefined) while (ring.head !== ring.tail) this.#completeHead(WcStatus.WR_FLUSH_ERR);
    this.#next = ring?.tail ?? 0;
    this.#flushReceives();
  }

  #flushReceives(): void {
    if (this.#srq !== undefined) {
      if (!this.#saidLast) this.#context.raise({ type: 'QP_LAST_WQE_REACHED', qpNumber: this.number });
      this.#saidLast = true;
      return;
    }
    const receives = this.#receives;
    while (receives?.take()) {
      this.recvCq.push(this, 0, receives.wrId, WcStatus.WR_FLUSH_ERR, WcOpcode.RECV, 0, 0, 0, true);
    }
  }

  // ---- building and posting requests ------------------------------------------------------------------------------------

  wrStart(): void {
    this.#requests().start();
  }

  wrRdmaWrite(wrId: number, flags: number, rkey: number, remoteAddress: number): void {
    this.#requests().rdma(WrOpcode.RDMA_WRITE, wrId, flags, rkey, remoteAddress, 0);
  }

  wrRdmaWriteImm(wrId: number, flags: number, rkey: number, remoteAddress: number, immData: number): void {
    this.#requests().rdma(WrOpcode.RDMA_WRITE_WITH_IMM, wrId, flags, rkey, remoteAddress, immData);
  }

  wrRdmaRead(wrId: number, flags: number, rkey: number, remoteAddress: number): void {
    this.#requests().rdma(WrOpcode.RDMA_READ, wrId, flags, rkey, remoteAddress, 0);
  }

  wrSend(wrId: number, flags: number): void {
    this.#requests().send(WrOpcode.SEND, wrId, flags, 0);
  }

  wrSendImm(wrId: number, flags: number, immData: number): void {
    this.#requests().send(WrOpcode.SEND_WITH_IMM, wrId, flags, immData);
  }

  wrAtomicFetchAdd(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    addLo: number,
    addHi: number,
  ): void {
    this.#requests().atomic(WrOpcode.ATOMIC_FETCH_AND_ADD, wrId, flags, rkey, remoteAddress, addLo, addHi, 0, 0);
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
    const { ATOMIC_CMP_AND_SWP } = WrOpcode;
    const ring = this.#requests();
    ring.atomic(ATOMIC_CMP_AND_SWP, wrId, flags, rkey, remoteAddress, compareLo, compareHi, swapLo, swapHi);
  }

  wrSetSge(lkey: number, address: number, length: number): void {
    this.#requests().setSge(lkey, address, length);
  }

  wrAddSge(lkey: number, address: number, length: number): void {
    this.#requests().addSge(lkey, address, length);
  }

  wrSetInlineData(bytes: Uint8Array, offset: number, length: number): void {
    this.#requests().setInline(bytes, offset, length);
  }

  /** The queue of requests, which most queue pairs of a large job never need. */
  #requests(): WorkRequestRing {
    if (this.#ring !== undefined) return this.#ring;
    const { maxSendWr, maxSendSge, maxInlineData } = this.#asked;
    const { maxMsgSize } = this.#context.device;
    this.#ring = new WorkRequestRing(maxSendWr, maxSendSge, maxInlineData, maxMsgSize, FIRST_SLOTS);
    return this.#ring;
  }

  wrComplete(): void {
    const { state } = this;
    const { cpu, fabric } = this.#context;
    const { asking } = cpu;
    cpu.asking = false;
    if (state !== QpState.RTS && state !== QpState.ERR) this.#refusePost(state);
    const ring = this.#requests();
    const first = ring.tail;
    ring.complete();
    const n = (ring.tail - first) | 0;
    if (n === 0) return;
    if (state === QpState.ERR) {
      this.#flush();
      return;
    }
    cpu.spend(fabric.host.post + (n - 1) * fabric.host.postNext);
    const mask = this.#mask(ring);
    for (let count = first; count !== ring.tail; count = (count + 1) | 0) {
      this.#posted[count & mask] = cpu.time;
      this.#asks[count & mask] = asking ? 1 : 0;
      this.#known[count & mask] = UNDER_WAY;
      const opcode = ring.u32[ring.wordsOf(count) + WrField.OPCODE];
      if (opcode === WrOpcode.SEND || opcode === WrOpcode.SEND_WITH_IMM) this.#countMessage();
    }
    this.#sendNext();
  }

  wrAbort(): void {
    this.#context.cpu.asking = false;
    this.#ring?.abort();
  }

  /** A request's count and this are its slot. What is kept by slot grows with the ring. */
  #mask(ring: WorkRequestRing): number {
    const mask = ring.slots - 1;
    const before = this.#posted.length - 1;
    if (mask === before) return mask;
    const [posted, asks, known, transits] = [this.#posted, this.#asks, this.#known, this.#transits];
    this.#posted = new Float64Array(ring.slots);
    this.#asks = new Uint8Array(ring.slots);
    this.#known = new Int8Array(ring.slots);
    this.#transits = new Array<undefined>(ring.slots).fill(undefined);
    for (let count = ring.head; before >= 0 && count !== ring.tail; count = (count + 1) | 0) {
      this.#posted[count & mask] = posted[count & before];
      this.#asks[count & mask] = asks[count & before];
      this.#known[count & mask] = known[count & before];
      this.#transits[count & mask] = transits[count & before];
    }
    return mask;
  }

  /** A completion of this request was polled: its place, and those of all before it, are free. */
  retire(request: number): void {
    if (this.#ring !== undefined) this.#ring.retired = (request + 1) | 0;
  }

  /**
   * A receive of this queue pair was polled. Messages come by a buffer for each connection, which the processor looks at in turn, once some have gone or come there: so taking one costs it
   * a look at each of the others. Those that the adapter does not bring are not among them: looking for them costs an access to memory of the node.
   */
  noteTaken(opcode: number): void {
    if (opcode !== WcOpcode.RECV || this.#goesByMemory(WrOpcode.SEND)) return;
    this.#countMessage();
    const { polled, cpu, fabric } = this.#context;
    if (polled > 1) cpu.spend((polled - 1) * fabric.host.pollConnection);
  }

  #countMessage(): void {
    if (this.#goesByMemory(WrOpcode.SEND)) return;
    const context = this.#context;
    const { pollThreshold, pollLimit } = context.fabric.host;
    if (++this.#messages === pollThreshold + 1 && context.polled < pollLimit) context.polled++;
  }

  // ---- the sending adapter ----------------------------------------------------------------------------------------------

  /** Has the next request sent, when the adapter comes to it. */
  #sendNext(): void {
    const ring = this.#ring!;
    if (this.#sending || this.#held || this.#next === ring.tail || this.state !== QpState.RTS) return;
    this.#sending = true;
    const { simulator, lid, shared } = this.#context;
    const posted = this.#posted[this.#next & this.#mask(ring)];
    const w = ring.wordsOf(this.#next);
    const opcode = ring.u32[w + WrField.OPCODE];
    const bytes = opcode >= WrOpcode.RDMA_READ ? 0 : ring.u32[w + WrField.MESSAGE_LENGTH];
    const free = this.#goesByMemory(opcode) ? 0 : Math.max(this.#lastGone, shared.network.freeToSend(lid, bytes));
    simulator.at(Math.max(posted, free), lid, this);
  }

  /** Sends one request. */
  happen(): void {
    this.#sending = false;
    const ring = this.#ring!;
    const context = this.#context;
    if (this.#held || this.#next === ring.tail || this.state !== QpState.RTS || context.cpu.dead) return;
    const request = this.#next;
    // What was to be sent is flushed or forgotten, and this one has come since: not before its time.
    if (this.#posted[request & this.#mask(ring)] > context.simulator.now) {
      this.#sendNext();
      return;
    }
    const w = ring.wordsOf(request);
    const opcode = ring.u32[w + WrField.OPCODE];
    const returns = opcode >= WrOpcode.RDMA_READ;
    // Both go on when a read comes back.
    if ((ring.u32[w + WrField.FLAGS] & SendFlag.FENCE) !== 0 && this.#reads > 0) return;
    if (returns && this.#reads >= this.#maxRdAtomic && this.#maxRdAtomic > 0) return;
    this.#next = (request + 1) | 0;
    const fault = this.#faultOf(w, opcode);
    if (fault !== WcStatus.SUCCESS) {
      // Those before it complete first; nothing behind it is sent.
      this.#held = true;
      this.#learn(request, fault);
      return;
    }
    if (returns) this.#reads++;
    this.#depart(request, w, opcode);
    this.#sendNext();
  }

  /** What the sender's adapter finds wrong before anything is sent. Leaves what is gathered in `local`. */
  #faultOf(w: number, opcode: number): number {
    const returns = opcode >= WrOpcode.RDMA_READ;
    const status = this.#findLocal(w, returns ? Access.LOCAL_WRITE : 0);
    if (status !== WcStatus.SUCCESS || !returns) return status;
    if (opcode !== WrOpcode.RDMA_READ && local.length !== 8) return WcStatus.LOC_LEN_ERR;
    return this.#maxRdAtomic === 0 ? WcStatus.LOC_QP_OP_ERR : WcStatus.SUCCESS;
  }

  #depart(request: number, w: number, opcode: number): void {
    const { shared, simulator, lid, fabric } = this.#context;
    const { now } = simulator;
    const slot = request & this.#mask(this.#ring!);
    const transit = shared.takeTransit(this.#asks[slot] === 1);
    transit.qp = this;
    transit.request = request;
    this.#transits[slot] = transit;
    transit.opcode = opcode;
    transit.bytes = local.length;
    const dest = this.#destLid;
    if (shared.faults.drawLoss()) {
      simulator.lost();
      this.#held = true;
      transit.stage = Stage.TIMEOUT;
      simulator.at(now + fabric.retry.timeout, lid, transit);
      return;
    }
    const bytes = opcode >= WrOpcode.RDMA_READ ? 0 : local.length;
    const entries = this.#ring!.u32[w + WrField.INLINE_LENGTH] > 0 || bytes === 0 ? 0 : local.count;
    const { latency, gap } = fabric.node;
    let arrival = this.#goesByMemory(opcode)
      ? now + latency + bytes * gap
      : shared.network.depart(now, lid, dest, bytes, entries);
    if (!shared.network.isShort(bytes)) this.#lastGone = shared.network.freeToSend(lid, bytes);
    arrival = Math.max(arrival + shared.faults.drawDelay(), this.#lastArrival);
    this.#lastArrival = arrival;
    transit.stage = Stage.ARRIVE;
    simulator.at(arrival, dest, transit);
  }

  /** Whether the way to the other end is the memory of the node. */
  #goesByMemory(opcode: number): boolean {
    const { node } = this.#context.fabric;
    const message = opcode === WrOpcode.SEND || opcode === WrOpcode.SEND_WITH_IMM;
    return (message ? node.messagesByMemory : node.rdmaByMemory) === 1 && this.#context.near(this.#destLid);
  }

  // ---- on the way -------------------------------------------------------------------------------------------------------

  /** A transit of this queue pair has come a stage further. */
  proceed(transit: Transit): void {
    switch (transit.stage) {
      case Stage.ARRIVE:
        this.#arrive(transit);
        return;
      case Stage.EXECUTE:
        this.#execute(transit);
        return;
      case Stage.RETURN:
        this.#return(transit);
        return;
      case Stage.DONE:
        this.#done(transit);
        return;
      case Stage.REFUSED:
        this.#refused(transit);
        return;
      default:
        this.#timeOut(transit);
    }
  }

  #arrive(transit: Transit): void {
    const { shared, simulator } = this.#context;
    const { opcode } = transit;
    const dest = this.#destLid;
    const bytes = opcode >= WrOpcode.RDMA_READ ? 0 : transit.bytes;
    let time = this.#goesByMemory(opcode) ? simulator.now : shared.network.arrive(simulator.now, dest, bytes);
    time = Math.max(time, this.#lastExecuted);
    if (opcode > WrOpcode.RDMA_READ) time = shared.network.atomic(time, dest);
    this.#lastExecuted = time;
    transit.stage = Stage.EXECUTE;
    simulator.at(time, dest, transit);
  }

  #execute(transit: Transit): void {
    const { shared, simulator, lid, fabric } = this.#context;
    const { now } = simulator;
    const { opcode } = transit;
    const dest = this.#destLid;
    const placed = shared.faults.placement > 0 ? this.#placedBefore(opcode) : 0;
    if (placed > now) {
      // What is seen after this must be in memory.
      this.#lastExecuted = Math.max(this.#lastExecuted, placed);
      simulator.at(placed, dest, transit);
      return;
    }
    const status = this.#carryOut(transit);
    transit.status = status;
    const byMemory = this.#goesByMemory(opcode);
    if (status === WcStatus.SUCCESS && opcode >= WrOpcode.RDMA_READ) {
      // The answer is sent by the other adapter, with the data.
      const { latency, gap } = fabric.node;
      const time = byMemory
        ? now + latency + transit.bytes * gap
        : shared.network.depart(now + fabric.adapter.read, dest, lid, transit.bytes, transit.bytes > 0 ? 1 : 0);
      transit.stage = Stage.RETURN;
      simulator.at(time + shared.faults.drawDelay(), lid, transit);
      return;
    }
    if (status === NO_ANSWER) {
      this.#discardBehind(transit.request);
      transit.stage = Stage.TIMEOUT;
      simulator.at(now + fabric.retry.timeout, lid, transit);
      return;
    }
    if (status === NOT_READY) {
      this.#discardBehind(transit.request);
      transit.stage = Stage.REFUSED;
    } else transit.stage = Stage.DONE;
    simulator.at(now + (byMemory ? fabric.node.latency : shared.network.acknowledgement(dest, lid)), lid, transit);
  }

  #return(transit: Transit): void {
    const { shared, simulator, lid } = this.#context;
    const time = this.#goesByMemory(transit.opcode)
      ? simulator.now
      : shared.network.arrive(simulator.now, lid, transit.bytes);
    transit.stage = Stage.DONE;
    simulator.at(time, lid, transit);
  }

  #done(transit: Transit): void {
    const { request, opcode } = transit;
    let { status } = transit;
    if (opcode >= WrOpcode.RDMA_READ && status === WcStatus.SUCCESS) status = this.#storeResult(transit);
    this.#release(transit);
    this.#rnrLeft = this.#rnrRetry;
    this.#timeoutsLeft = this.#retryCount;
    this.#learn(request, status);
    this.#sendNext();
  }

  /** The result of a read or an atomic comes to where the request says. */
  #storeResult(transit: Transit): number {
    const ring = this.#ring!;
    const status = this.#findLocal(ring.wordsOf(transit.request), Access.LOCAL_WRITE);
    if (status !== WcStatus.SUCCESS) return status;
    let at = 0;
    for (let i = 0; i < local.count; i++) {
      copyBytes(local.mappings[i], local.offsets[i], transit.found, at, local.lengths[i]);
      at += local.lengths[i];
    }
    return WcStatus.SUCCESS;
  }

  /** No receive was posted. */
  #refused(transit: Transit): void {
    const { simulator, shared } = this.#context;
    const peer = this.#peer();
    const { request } = transit;
    this.#release(transit);
    if (this.#rnrRetry !== FOR_EVER) {
      if (this.#rnrLeft === 0) {
        this.#learn(request, WcStatus.RNR_RETRY_EXC_ERR);
        return;
      }
      this.#rnrLeft--;
    }
    this.#next = request;
    const timer = peer?.rnrTimer ?? 0;
    this.#retryFrom = simulator.now + timer;
    this.#retryPeriod = timer + 2 * shared.network.acknowledgement(this.#context.lid, this.#destLid);
    // One that tries for ever is tried again when a receive has been posted, at the next time when it would be tried: the tries in vain are left out.
    if (peer !== undefined && this.#rnrRetry === FOR_EVER && peer.receiveQueue.posted === 0 && peer.isReady) {
      peer.receiveQueue.wait(this);
    } else this.#resendAt(this.#retryFrom);
  }

  receivePosted(): void {
    const { now } = this.#context.simulator;
    const tries = Math.max(0, Math.ceil((now - this.#retryFrom) / this.#retryPeriod));
    this.#resendAt(this.#retryFrom + tries * this.#retryPeriod);
  }

  #timeOut(transit: Transit): void {
    const { request } = transit;
    this.#release(transit);
    if (this.#timeoutsLeft === 0) {
      this.#learn(request, WcStatus.RETRY_EXC_ERR);
      return;
    }
    this.#timeoutsLeft--;
    this.#next = request;
    this.#resendAt(this.#context.simulator.now);
  }

  /** Nothing of this transit is on its way any more. */
  #release(transit: Transit): void {
    this.#transits[transit.request & (this.#transits.length - 1)] = undefined;
    if (transit.opcode >= WrOpcode.RDMA_READ) this.#reads--;
    this.#context.shared.giveBack(transit);
  }

  /** What was sent behind a request is out of sequence; nothing more is sent until that request is sent again. */
  #discardBehind(request: number): void {
    this.#held = true;
    const mask = this.#transits.length - 1;
    for (let count = (request + 1) | 0; count !== this.#next; count = (count + 1) | 0) {
      const transit = this.#transits[count & mask];
      if (transit === undefined) continue;
      if (transit.opcode >= WrOpcode.RDMA_READ) this.#reads--;
      this.#transits[count & mask] = undefined;
    }
  }

  #resendAt(time: number): void {
    const { simulator, lid } = this.#context;
    const resend = ++this.#resends;
    simulator.underWay++;
    simulator.at(time, lid, {
      happen: () => {
        simulator.underWay--;
        if (resend !== this.#resends) return;
        this.#held = false;
        this.#sendNext();
      },
    });
  }

  /** What has become of a request. Requests complete in order. */
  #learn(request: number, status: number): void {
    const ring = this.#ring!;
    const mask = this.#mask(ring);
    this.#known[request & mask] = status;
    while (ring.head !== this.#next) {
      const known = this.#known[ring.head & mask];
      if (known === UNDER_WAY) return;
      if (known !== WcStatus.SUCCESS) {
        this.#completeHead(known);
        this.toError();
        return;
      }
      const flags = ring.u32[ring.wordsOf(ring.head) + WrField.FLAGS];
      if (this.#asked.signalAll || (flags & SendFlag.SIGNALED) !== 0) this.#completeHead(known);
      else ring.head = (ring.head + 1) | 0;
    }
  }

  #completeHead(status: number): void {
    const ring = this.#ring!;
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

  /** Resolves what the request gathers from or scatters to into `local`. @param right what the regions must allow besides reading */
  #findLocal(w: number, right: number): number {
    const ring = this.#ring!;
    const { u32 } = ring;
    local.clear();
    const inline = u32[w + WrField.INLINE_LENGTH];
    if (inline > 0) {
      if (this.#ringMapping?.buffer !== ring.buffer) this.#ringMapping = new Mapping(ring.buffer);
      local.add(this.#ringMapping, ring.inlineByte(w), inline);
      return WcStatus.SUCCESS;
    }
    const n = u32[w + WrField.NUM_SGE];
    for (let i = 0; i < n; i++) {
      const s = ring.sgeWords(w, i);
      const length = u32[s + 2];
      if (length === 0) continue;
      const address = ring.f64[s >>> 1];
      const region = this.#context.regions.get(u32[s + 3]);
      if (
        region === undefined ||
        region.pd !== this.#pd ||
        (region.access & right) !== right ||
        !region.contains(address, length)
      ) {
        return WcStatus.LOC_PROT_ERR;
      }
      local.add(region.memory.mapping, address - region.memory.address, length);
    }
    return WcStatus.SUCCESS;
  }

  // ---- the other end ----------------------------------------------------------------------------------------------------

  /** The queue pair at the other end, if it is there and connected to this one. */
  #peer(): ModelledQueuePair | undefined {
    if (this.#destLid < 0) return undefined;
    const context = this.#context.shared.contexts[this.#destLid];
    const peer = context?.queuePairs.get(this.#destNumber);
    return peer !== undefined && peer.#destLid === this.#context.lid && peer.#destNumber === this.number
      ? peer
      : undefined;
  }

  get rnrTimer(): number {
    return this.#rnrTimer;
  }

  get isReady(): boolean {
    return (this.state === QpState.RTS || this.state === QpState.RTR) && !this.#context.cpu.dead;
  }

  get receiveQueue(): ReceiveQueue {
    return this.#srq?.receives ?? this.#ownReceives();
  }

  /** Carries a request out at the other end. @returns its status, `NOT_READY` or `NO_ANSWER`: then nothing has happened */
  #carryOut(transit: Transit): number {
    const peer = this.#peer();
    if (peer === undefined || !peer.isReady) return NO_ANSWER;
    const { opcode } = transit;
    const w = this.#ring!.wordsOf(transit.request);
    if (opcode >= WrOpcode.RDMA_READ) peer.#context.placeAll();
    switch (opcode) {
      case WrOpcode.RDMA_WRITE:
      case WrOpcode.RDMA_WRITE_WITH_IMM:
        return this.#write(w, transit.bytes, peer, opcode === WrOpcode.RDMA_WRITE_WITH_IMM);
      case WrOpcode.SEND:
        return this.#send(w, peer, 0);
      case WrOpcode.SEND_WITH_IMM:
        return this.#send(w, peer, WcFlag.WITH_IMM);
      case WrOpcode.RDMA_READ:
        return this.#read(w, transit, peer);
      default:
        return this.#atomic(w, transit, peer);
    }
  }

  #write(w: number, bytes: number, peer: ModelledQueuePair, immediate: boolean): number {
    let region: ModelledRegion | undefined;
    // A key is not looked at when there is nothing to access (InfiniBand 1.3, C9-88).
    if (bytes > 0) {
      region = this.#findRemote(w, bytes, peer, Access.REMOTE_WRITE);
      if (region === undefined) return peer.#accuse('QP_ACCESS_ERR', WcStatus.REM_ACCESS_ERR);
    }
    const receives = immediate ? peer.#takeReceive() : undefined;
    if (immediate && receives === undefined) return NOT_READY;
    this.#context.simulator.changed();
    if (region !== undefined) {
      const status = this.#findLocal(w, 0);
      if (status !== WcStatus.SUCCESS) return status;
      const at = this.#ring!.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS] - region.memory.address;
      if (immediate || this.#context.shared.faults.placement === 0) gather(region.memory.mapping, at);
      else peer.#placeLater(region, at);
    }
    if (receives !== undefined) {
      peer.#received(this.#ring!, w, receives, WcStatus.SUCCESS, WcOpcode.RECV_RDMA_WITH_IMM, WcFlag.WITH_IMM, bytes);
    }
    return WcStatus.SUCCESS;
  }

  #send(w: number, peer: ModelledQueuePair, flags: number): number {
    const receives = peer.#takeReceive();
    if (receives === undefined) return NOT_READY;
    const status = this.#findLocal(w, 0);
    if (status !== WcStatus.SUCCESS) return status;
    const { length } = local;
    const fault = peer.#findScatter(receives, length);
    if (fault !== WcStatus.SUCCESS) {
      peer.#received(this.#ring!, w, receives, fault, WcOpcode.RECV, 0, 0);
      peer.toError();
      return fault === WcStatus.LOC_LEN_ERR ? WcStatus.REM_INV_REQ_ERR : WcStatus.REM_OP_ERR;
    }
    if (length > 0) copyPieces(scatter, local, length);
    this.#context.simulator.changed();
    peer.#received(this.#ring!, w, receives, WcStatus.SUCCESS, WcOpcode.RECV, flags, length);
    return WcStatus.SUCCESS;
  }

  /** When all that came on this connection before is in memory, if it must be for this request. */
  #placedBefore(opcode: number): number {
    const peer = opcode === WrOpcode.RDMA_WRITE ? undefined : this.#peer();
    return peer === undefined ? 0 : peer.#lastPlaced;
  }

  /** Takes the data of a write, which come into memory later. */
  #placeLater(region: ModelledRegion, at: number): void {
    const { simulator, shared } = this.#context;
    const { length } = local;
    const data = new Mapping(new ArrayBuffer(8 * Math.ceil(length / 8)));
    gather(data, 0);
    this.#lastPlaced = Math.max(this.#lastPlaced, simulator.now + shared.faults.drawPlacement());
    this.#context.placeAt(this.#lastPlaced, region, () => copyBytes(region.memory.mapping, at, data, 0, length));
  }

  #read(w: number, transit: Transit, peer: ModelledQueuePair): number {
    if (peer.#maxDestRdAtomic === 0) return peer.#accuse('QP_REQ_ERR', WcStatus.REM_INV_REQ_ERR);
    const { bytes } = transit;
    if (bytes === 0) return WcStatus.SUCCESS;
    const region = this.#findRemote(w, bytes, peer, Access.REMOTE_READ);
    if (region === undefined) return peer.#accuse('QP_ACCESS_ERR', WcStatus.REM_ACCESS_ERR);
    const { mapping, address } = region.memory;
    if (transit.found.u8.length < bytes || transit.found === NOTHING_FOUND) {
      transit.found = new Mapping(new ArrayBuffer(Math.max(64, 2 ** Math.ceil(Math.log2(bytes)))));
    }
    copyBytes(transit.found, 0, mapping, this.#ring!.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS] - address, bytes);
    return WcStatus.SUCCESS;
  }

  #atomic(w: number, transit: Transit, peer: ModelledQueuePair): number {
    const ring = this.#ring!;
    const remote = ring.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS];
    if (peer.#maxDestRdAtomic === 0 || remote % 8 !== 0) return peer.#accuse('QP_REQ_ERR', WcStatus.REM_INV_REQ_ERR);
    const region = this.#findRemote(w, 8, peer, Access.REMOTE_ATOMIC);
    if (region === undefined) return peer.#accuse('QP_ACCESS_ERR', WcStatus.REM_ACCESS_ERR);
    if (transit.found === NOTHING_FOUND) transit.found = new Mapping(new ArrayBuffer(64));
    const { mapping, address } = region.memory;
    const { found } = transit;
    copyBytes(found, 0, mapping, remote - address, 8);
    const { u32 } = ring;
    const operand = w + WrField.COMPARE_ADD;
    const lo = found.i32[0] >>> 0;
    const hi = found.i32[1] >>> 0;
    // 64 bits in halves: a carry at most.
    if (transit.opcode === WrOpcode.ATOMIC_FETCH_AND_ADD) {
      const sum = lo + u32[operand];
      found.i32[2] = sum | 0;
      found.i32[3] = (hi + u32[operand + 1] + (sum >= 2 ** 32 ? 1 : 0)) | 0;
    } else if (lo === u32[operand] && hi === u32[operand + 1]) {
      found.i32[2] = u32[w + WrField.SWAP] | 0;
      found.i32[3] = u32[w + WrField.SWAP + 1] | 0;
    } else return WcStatus.SUCCESS;
    copyBytes(mapping, remote - address, found, 8, 8);
    if (found.i32[2] !== found.i32[0] || found.i32[3] !== found.i32[1]) this.#context.simulator.changed();
    return WcStatus.SUCCESS;
  }

  /** The region that the request names, if the request may do there what it wants to. */
  #findRemote(w: number, length: number, peer: ModelledQueuePair, right: number): ModelledRegion | undefined {
    const ring = this.#ring!;
    const region = peer.#context.regions.get(ring.u32[w + WrField.RKEY]);
    return region !== undefined &&
      (region.access & peer.#access & right) !== 0 &&
      region.pd === peer.#pd &&
      region.contains(ring.f64[(w >>> 1) + WrField64.REMOTE_ADDRESS], length)
      ? region
      : undefined;
  }

  // ---- as the other end -------------------------------------------------------------------------------------------------

  #takeReceive(): ReceiveQueue | undefined {
    const receives = this.receiveQueue;
    if (!receives.take()) {
      this.#context.hasRefused = true;
      if (this.#srq !== undefined) this.#srq.refused++;
      return undefined;
    }
    this.#srq?.noticeLimit();
    return receives;
  }

  /** Resolves where the receive that was taken puts `length` bytes into `scatter`. @returns the receiver's status */
  #findScatter(receives: ReceiveQueue, length: number): number {
    scatter.clear();
    let left = length;
    for (let i = 0; i < receives.numSge && left > 0; i++) {
      const n = Math.min(receives.length(i), left);
      if (n === 0) continue;
      const region = this.#context.regions.get(receives.lkey(i));
      const address = receives.address(i);
      if (
        region === undefined ||
        region.pd !== this.#pd ||
        (region.access & Access.LOCAL_WRITE) === 0 ||
        !region.contains(address, n)
      ) {
        return WcStatus.LOC_PROT_ERR;
      }
      scatter.add(region.memory.mapping, address - region.memory.address, n);
      left -= n;
    }
    return left > 0 ? WcStatus.LOC_LEN_ERR : WcStatus.SUCCESS;
  }

  /** The receive that was taken completes. @param ring and slot `w`: the sender's request */
  #received(
    ring: WorkRequestRing,
    w: number,
    receives: ReceiveQueue,
    status: number,
    opcode: number,
    flags: number,
    length: number,
  ): void {
    const immediate = flags === WcFlag.WITH_IMM ? ring.u32[w + WrField.IMM_DATA] : 0;
    const solicited = status !== WcStatus.SUCCESS || (ring.u32[w + WrField.FLAGS] & SendFlag.SOLICITED) !== 0;
    this.recvCq.push(this, 0, receives.wrId, status, opcode, flags, length, immediate, solicited);
  }

  /** A request of the other end broke a rule here: this queue pair goes to ERR too. */
  #accuse(event: 'QP_ACCESS_ERR' | 'QP_REQ_ERR', status: number): number {
    this.#context.raise({ type: event, qpNumber: this.number });
    this.toError();
    return status;
  }

  // ---- the receive queue ------------------------------------------------------------------------------------------------

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    this.#postable().post(wrId, lkey, address, length);
    if (this.state === QpState.ERR) this.#flushReceives();
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    this.#postable().addSge(lkey, address, length);
  }

  #postable(): ReceiveQueue {
    this.#mustLive('post receive');
    if (this.#srq !== undefined) {
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
    return this.#ownReceives();
  }

  #ownReceives(): ReceiveQueue {
    this.#receives ??= new ReceiveQueue(this.#context, this.#asked.maxRecvWr, this.#asked.maxRecvSge);
    return this.#receives;
  }

  destroy(): void {
    if (this.#destroyed) return;
    this.#destroyed = true;
    this.state = QpState.RESET;
    this.receiveQueue.ring();
    this.#forgetWork();
    this.#context.queuePairs.delete(this.number);
    this.sendCq.users--;
    this.recvCq.users--;
    if (this.#srq !== undefined) this.#srq.users--;
    this.#pd.children--;
  }

  #mustLive(call: string): void {
    if (this.#destroyed) throw new RmaError('ERR_VERBS', `${call}: queue pair ${this.number} was destroyed`);
  }

  #refusePost(state: number): never {
    this.#ring?.abort();
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
