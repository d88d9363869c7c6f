/**
 * The sending end of a queue pair: the adapter takes requests from the queue, one at a time, and sends them (`happen`);
 * it sends again what was refused or not answered; and requests complete in the order of posting.
 */
import { WcStatus } from '../../verbs/completion-queue.ts';
import { Access } from '../../verbs/memory.ts';
import { QpState, type RequestEffect, SendFlag, WrOpcode } from '../../verbs/queue-pair.ts';
import { WrField } from '../../verbs/work-request-ring.ts';
import { regrown } from '../core/growing-columns.ts';
import type { AwaitedWord } from '../core/local-side.ts';
import { FOR_EVER, type Move } from '../core/transitions.ts';
import type { Connection } from './connection.ts';
import type { FabricEvent } from './event-queue.ts';
import { local, spread } from './local-pieces.ts';
import type { ModelledParent } from './modelled-parent.ts';
import type { Waiter } from './modelled-receive-queue.ts';
import { type Sending, SendQueue } from './send-queue.ts';
import type { Transit, TransitSender } from './transit.ts';

/** What is known of a request that was sent: nothing, or its `WcStatus`. */
const UNDER_WAY = -1;

/** Of a queue pair on which nothing was posted yet: of many ranks, that is most of them. */
const NO_TIMES = new Float64Array(0);
const NO_FLAGS = new Uint8Array(0);
const NO_STATUSES = new Int8Array(0);
const NO_TRANSITS: (Transit | undefined)[] = [];

export class ModelledRequester extends SendQueue implements FabricEvent, Waiter, TransitSender {
  readonly connection: Connection;
  /**
   * By slot: when the request was posted, whether it only asks if something has changed, what is known of it, and what
   * of it is on its way.
   */
  #posted = NO_TIMES;
  #asks = NO_FLAGS;
  #known = NO_STATUSES;
  #transits = NO_TRANSITS;
  /** Nothing is sent until a request that was sent in vain is sent again. */
  #held = false;
  /** Reads and atomics that have not come back. */
  #reads = 0;
  #rnrRetry = FOR_EVER;
  #retryCount = FOR_EVER;
  #maxRdAtomic = 0;
  /** Tries that are left for the request that is waited for. */
  #rnrLeft = 0;
  #timeoutsLeft = 0;
  /** When a refused request may be tried again for the first time, and how far apart the tries are. */
  #retryFrom = 0;
  #retryPeriod = 0;
  /** Is told of requests that have taken effect. */
  effect: RequestEffect | undefined;
  /** Times that something was to be sent again. */
  #resends = 0;
  /** While this watches: the wait that the adapter has come to, its word, and the value that it waits for. */
  #watched = 0;
  #awaited: AwaitedWord | undefined;
  #count = 0;

  constructor(context: ModelledParent, qp: Sending, signalAll: boolean) {
    super(context, qp, signalAll);
    this.connection = qp.connection;
  }

  limit({ rnrRetry, retryCount, maxRdAtomic }: Move): void {
    this.#rnrRetry = rnrRetry;
    this.#rnrLeft = rnrRetry;
    this.#retryCount = retryCount;
    this.#timeoutsLeft = retryCount;
    this.#maxRdAtomic = maxRdAtomic;
  }

  /**
   * Takes note of requests that were posted, from `first` to the ring's tail.
   * @param asking they only ask whether something has changed
   */
  post(first: number, asking: boolean): void {
    const { ring } = this;
    const { cpu, fabric } = this.context;
    const mask = this.#mask();
    const { doorbell = 0 } = fabric.bus;
    for (let count = first; count !== ring.tail; count = (count + 1) | 0) {
      this.#posted[count & mask] = cpu.time + doorbell;
      this.#asks[count & mask] = asking ? 1 : 0;
      this.#known[count & mask] = UNDER_WAY;
      const opcode = ring.u32[ring.wordsOf(count) + WrField.OPCODE];
      if (opcode === WrOpcode.SEND || opcode === WrOpcode.SEND_WITH_IMM) this.connection.countMessage();
    }
    this.#sendNext();
  }

  /** A request's count and this are its slot. What is kept by slot grows with the ring. */
  #mask(): number {
    const { ring } = this;
    const mask = ring.slots - 1;
    const before = this.#posted.length - 1;
    if (mask === before) return mask;
    const { head, slots } = ring;
    // At first there were no slots.
    const n = before < 0 ? 0 : (ring.tail - head) | 0;
    this.#posted = regrown(this.#posted, new Float64Array(slots), head, n);
    this.#asks = regrown(this.#asks, new Uint8Array(slots), head, n);
    this.#known = regrown(this.#known, new Int8Array(slots), head, n);
    this.#transits = regrown(this.#transits, new Array<undefined>(slots).fill(undefined), head, n);
    return mask;
  }

  // ---- sending ------------------------------------------------------------------------------------------------------

  /** Has the next request sent, when the adapter comes to it. */
  #sendNext(): void {
    const { ring, member, connection } = this;
    if (this.sending || this.#held || this.next === ring.tail || this.qp.state !== QpState.RTS) return;
    this.sending = true;
    const { simulator, shared } = this.context;
    const posted = this.#posted[this.next & this.#mask()];
    const w = ring.wordsOf(this.next);
    const opcode = ring.u32[w + WrField.OPCODE];
    const bytes = opcode >= WrOpcode.RDMA_READ ? 0 : ring.u32[w + WrField.MESSAGE_LENGTH];
    const free = connection.goesByMemory(opcode)
      ? 0
      : Math.max(connection.lastGone, shared.network.freeToSend(member, bytes));
    simulator.at(Math.max(posted, free), member, this);
  }

  /** Sends one request. */
  happen(): void {
    this.sending = false;
    const { ring } = this;
    const context = this.context;
    if (this.#held || this.next === ring.tail || this.qp.state !== QpState.RTS || context.cpu.dead) return;
    const request = this.next;
    // What was to be sent is flushed or forgotten, and this one has come since: not before its time.
    if (this.#posted[request & this.#mask()] > context.simulator.now) {
      this.#sendNext();
      return;
    }
    const w = ring.wordsOf(request);
    const opcode = ring.u32[w + WrField.OPCODE];
    const returns = opcode >= WrOpcode.RDMA_READ && opcode !== WrOpcode.WAIT;
    // Both go on when a read comes back.
    if ((ring.u32[w + WrField.FLAGS] & SendFlag.FENCE) !== 0 && this.#reads > 0) return;
    if (returns && this.#reads >= this.#maxRdAtomic && this.#maxRdAtomic > 0) return;
    if (opcode === WrOpcode.WAIT) {
      this.#wait(request);
      return;
    }
    this.next = (request + 1) | 0;
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

  /**
   * The adapter comes to a wait: it is over, or its word is looked at whenever something comes to this side's memory.
   * Waits in a row are one event that counts, and the step is taken when it has come.
   */
  #wait(first: number): void {
    const { simulator, fabric, shared } = this.context;
    for (let request = first; ; request = this.next) {
      const w = this.ring.wordsOf(request);
      const awaited = this.source.awaited(w);
      if (awaited === undefined) {
        this.next = (request + 1) | 0;
        this.#held = true;
        this.#learn(request, WcStatus.LOC_PROT_ERR);
        return;
      }
      const count = this.ring.u32[w + WrField.IMM_DATA];
      if (((awaited.region.memory.mapping.i32[awaited.at] - count) | 0) < 0) {
        this.#watched = request;
        this.#awaited = awaited;
        this.#count = count;
        this.context.watch(this);
        return;
      }
      this.next = (request + 1) | 0;
      if (!this.#isWait(this.next)) {
        const through = shared.network.step(simulator.now, this.member, fabric.adapter.step!);
        this.sending = true;
        simulator.at(through, this.member, { happen: () => this.#stepped(request) });
        return;
      }
      this.#learn(request, WcStatus.SUCCESS);
    }
  }

  /** Whether a request is there by now that waits. */
  #isWait(request: number): boolean {
    const { ring } = this;
    if (request === ring.tail || this.#posted[request & this.#mask()] > this.context.simulator.now) return false;
    return ring.u32[ring.wordsOf(request) + WrField.OPCODE] === WrOpcode.WAIT;
  }

  /** A wait is over, and the step that ends it. */
  #stepped(request: number): void {
    this.sending = false;
    // It was flushed or forgotten meanwhile.
    if (((request - this.ring.head) | 0) < 0 || this.context.cpu.dead || this.qp.state !== QpState.RTS) {
      this.#sendNext();
      return;
    }
    this.#learn(request, WcStatus.SUCCESS);
    this.#sendNext();
  }

  /** Something has come to this side's memory, while this watches a word there. */
  look(): void {
    const { region, at } = this.#awaited!;
    // Where a request before the wait is sent again, the adapter comes to the wait once more, behind those of other
    // queue pairs that it has come to meanwhile. A buffer that was detached has no such word: then, and where the
    // region is gone, the wait fails.
    const isThere = this.next === this.#watched && region.live;
    if (isThere && ((region.memory.mapping.i32[at] - this.#count) | 0) < 0) return;
    this.context.unwatch(this);
    this.#sendNext();
  }

  /** What the sender's adapter finds wrong before anything is sent. Leaves what is gathered in `local`. */
  #faultOf(w: number, opcode: number): number {
    const returns = opcode >= WrOpcode.RDMA_READ;
    const status = this.findLocal(w, returns ? Access.LOCAL_WRITE : 0);
    if (status !== WcStatus.SUCCESS || !returns) return status;
    if (opcode !== WrOpcode.RDMA_READ && local.length !== 8) return WcStatus.LOC_LEN_ERR;
    return this.#maxRdAtomic === 0 ? WcStatus.LOC_QP_OP_ERR : WcStatus.SUCCESS;
  }

  #depart(request: number, w: number, opcode: number): void {
    const { shared } = this.context;
    const slot = request & this.#mask();
    const transit = shared.takeTransit(this.#asks[slot] === 1);
    transit.requester = this;
    transit.request = request;
    transit.opcode = opcode;
    transit.bytes = local.length;
    transit.entries = opcode === WrOpcode.RDMA_READ ? local.count : 1;
    this.#transits[slot] = transit;
    // TCP sends again itself what an Ethernet loses.
    if (this.connection.tcp === undefined && shared.faults.drawLoss()) {
      this.#held = true;
      transit.lose();
      return;
    }
    const gathers = opcode < WrOpcode.RDMA_READ && local.length > 0 && this.ring.u32[w + WrField.INLINE_LENGTH] === 0;
    transit.depart(gathers ? local.count : 0);
  }

  /**
   * Resolves what the request gathers from or scatters to into `local`.
   * @param right what the regions must allow besides reading
   */
  findLocal(w: number, right: number): number {
    return this.source.find(w, right);
  }

  // ---- what comes back ----------------------------------------------------------------------------------------------

  /** Whether this is the transit of its request that counts. */
  counts(transit: Transit): boolean {
    return this.#transits[transit.request & (this.#transits.length - 1)] === transit;
  }

  /** A request has done now what it was to do. */
  tookEffect(request: number): void {
    // Requests are counted from 0 on, in 32 bits.
    this.effect?.((request >>> 0) + 1, this.context.simulator.now);
  }

  /** The request was carried out, or has failed. */
  done(transit: Transit): void {
    const { request, opcode } = transit;
    let { status } = transit;
    if (opcode >= WrOpcode.RDMA_READ && status === WcStatus.SUCCESS) {
      // The result comes to where the request says.
      status = this.findLocal(this.ring.wordsOf(request), Access.LOCAL_WRITE);
      if (status === WcStatus.SUCCESS) {
        spread(transit.found);
        this.context.stored();
        if (opcode === WrOpcode.RDMA_READ) this.tookEffect(request);
      }
    }
    this.#release(transit);
    this.#rnrLeft = this.#rnrRetry;
    this.#timeoutsLeft = this.#retryCount;
    this.#learn(request, status);
    this.#sendNext();
  }

  /** No receive was posted. */
  refused(transit: Transit): void {
    const { simulator, shared } = this.context;
    const peer = this.connection.peer();
    const { request } = transit;
    this.#release(transit);
    if (this.#rnrRetry !== FOR_EVER) {
      if (this.#rnrLeft === 0) {
        this.#learn(request, WcStatus.RNR_RETRY_EXC_ERR);
        return;
      }
      this.#rnrLeft--;
    }
    this.next = request;
    const timer = peer?.responder.rnrTimer ?? 0;
    this.#retryFrom = simulator.now + timer;
    this.#retryPeriod = timer + 2 * shared.network.acknowledgement(this.member, this.connection.destMember);
    // A request that is tried for ever is tried again when a receive has been posted, at the next time when it would be
    // tried anyway: the tries in vain are left out.
    if (peer !== undefined && this.#rnrRetry === FOR_EVER && peer.receiveQueue.posted === 0 && peer.isReady) {
      peer.receiveQueue.wait(this);
    } else this.#resendAt(this.#retryFrom);
  }

  receivePosted(): void {
    const { now } = this.context.simulator;
    const tries = Math.max(0, Math.ceil((now - this.#retryFrom) / this.#retryPeriod));
    this.#resendAt(this.#retryFrom + tries * this.#retryPeriod);
  }

  /** No answer has come. */
  timeOut(transit: Transit): void {
    const { request } = transit;
    this.#release(transit);
    if (this.#timeoutsLeft === 0) {
      this.#learn(request, WcStatus.RETRY_EXC_ERR);
      return;
    }
    this.#timeoutsLeft--;
    this.next = request;
    this.#resendAt(this.context.simulator.now);
  }

  /** TCP has given up: whether the request was carried out is not known, so it is not sent again. */
  broken(transit: Transit): void {
    const { request } = transit;
    this.#release(transit);
    this.#learn(request, WcStatus.RETRY_EXC_ERR);
  }

  /** Nothing of this transit is on its way any more. */
  #release(transit: Transit): void {
    this.#transits[transit.request & (this.#transits.length - 1)] = undefined;
    if (transit.opcode >= WrOpcode.RDMA_READ) this.#reads--;
    this.context.shared.giveBack(transit);
  }

  /** What was sent behind a request is out of sequence; nothing more is sent until that request is sent again. */
  discardBehind(request: number): void {
    this.#held = true;
    const mask = this.#transits.length - 1;
    for (let count = (request + 1) | 0; count !== this.next; count = (count + 1) | 0) {
      const transit = this.#transits[count & mask];
      if (transit === undefined) continue;
      if (transit.opcode >= WrOpcode.RDMA_READ) this.#reads--;
      this.#transits[count & mask] = undefined;
    }
  }

  #resendAt(time: number): void {
    const { simulator } = this.context;
    const resend = ++this.#resends;
    simulator.underWay++;
    simulator.at(time, this.member, {
      happen: () => {
        simulator.underWay--;
        if (resend !== this.#resends) return;
        this.#held = false;
        this.#sendNext();
      },
    });
  }

  // ---- completing ---------------------------------------------------------------------------------------------------

  /** What has become of a request. Requests complete in order. */
  #learn(request: number, status: number): void {
    const { ring } = this;
    const mask = this.#mask();
    this.#known[request & mask] = status;
    while (ring.head !== this.next) {
      const known = this.#known[ring.head & mask];
      if (known === UNDER_WAY || !this.completeOldest(known)) return;
    }
  }

  /** Nothing that is under way matters any more. */
  forgetTransits(): void {
    this.#transits.fill(undefined);
    this.#resends++;
    this.#held = false;
    this.#reads = 0;
    this.context.unwatch(this);
    this.connection.peer()?.receiveQueue.cancel(this);
  }
}
