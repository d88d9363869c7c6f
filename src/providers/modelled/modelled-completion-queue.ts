/** A completion queue of a modelled device: a ring that grows to its capacity as it is filled. */
import { overrunError } from '../../verbs/checks.ts';
import { WcFlag, WcOpcode } from '../../verbs/completion-queue.ts';
import { CompletionQueueCore } from '../core/completion-queue-base.ts';
import { regrown } from '../core/growing-columns.ts';
import type { ModelledParent } from './modelled-parent.ts';

/** Completions that one `poll` can fetch. */
const BATCH = 64;
const FIRST_SLOTS = 16;

const DISARMED = 0;
const ARMED_SOLICITED = 1;
const ARMED_ANY = 2;

/** A queue pair whose requests or receives complete here. */
export interface Completing {
  readonly number: number;
  /** A completion of this request was polled. */
  retire(request: number): void;
  /** A receive was polled. @returns whether the adapter has brought a message */
  noteTaken(opcode: number): boolean;
  /** Whether what completes with this opcode (`WcOpcode`) went through memory of the node. */
  wentByMemory(opcode: number): boolean;
}

export class ModelledCompletionQueue extends CompletionQueueCore {
  overrun = false;
  readonly #context: ModelledParent;
  /** Those whose events are on their way to the processor. */
  readonly #coming = new Set<{ readonly qp: Completing }>();
  #armed = DISARMED;
  // Completions `#head … #tail` by their count modulo the number of slots, a power of two.
  #slots: number;
  #head = 0;
  #tail = 0;
  #wrIds: Float64Array;
  #lengths: Uint32Array;
  #immediates: Uint32Array;
  /** Status, opcode and flags: 8 bits each. */
  #kinds: Uint32Array;
  /** Number of the request in its queue; of a datagram that was received, the sender's queue pair. */
  #requests: Int32Array;
  #queuePairs: Completing[];

  constructor(context: ModelledParent, cqe: number) {
    super(2 ** Math.ceil(Math.log2(cqe)), BATCH);
    this.#context = context;
    this.#slots = Math.min(FIRST_SLOTS, this.capacity);
    this.#wrIds = new Float64Array(this.#slots);
    this.#lengths = new Uint32Array(this.#slots);
    this.#immediates = new Uint32Array(this.#slots);
    this.#kinds = new Uint32Array(this.#slots);
    this.#requests = new Int32Array(this.#slots);
    this.#queuePairs = new Array(this.#slots);
  }

  /** Whether there are completions that were not fetched. */
  get isWaiting(): boolean {
    return this.#head < this.#tail;
  }

  poll(max: number): number {
    if (this.isDestroyed) this.mustLive('poll');
    if (this.overrun) {
      throw overrunError(this.capacity);
    }
    const { wc } = this;
    const mask = this.#slots - 1;
    const n = Math.min(max, this.batch, this.#tail - this.#head);
    const { completion } = this.#context.fabric.node;
    let scans = false;
    let byMemory = 0;
    for (let k = 0; k < n; k++) {
      const i = this.#head++ & mask;
      const qp = this.#queuePairs[i];
      const kind = this.#kinds[i];
      const opcode = (kind >>> 8) & 0xff;
      if (!isReceive(opcode)) qp.retire(this.#requests[i]);
      else if (qp.noteTaken(opcode)) scans = true;
      if (completion !== undefined && qp.wentByMemory(opcode)) byMemory++;
      wc.wrId[k] = this.#wrIds[i];
      wc.status[k] = kind & 0xff;
      wc.opcode[k] = opcode;
      wc.flags[k] = kind >>> 16;
      if (((kind >>> 16) & WcFlag.GRH) !== 0) wc.srcQp[k] = this.#requests[i];
      wc.byteLen[k] = this.#lengths[i];
      wc.immData[k] = this.#immediates[i];
      wc.qpNum[k] = qp.number;
    }
    if (n > 0) this.#context.spendPoll(n, byMemory, scans);
    return n;
  }

  /** Adds a completion, as an event, when the adapter's event has come to the processor. */
  push(
    qp: Completing,
    request: number,
    wrId: number,
    status: number,
    opcode: number,
    flags: number,
    length: number,
    immediate: number,
    solicited: boolean,
  ): void {
    const { simulator, fabric, member } = this.#context;
    const { event = 0 } = fabric.bus;
    if (event === 0) {
      this.#add(qp, request, wrId, status, opcode, flags, length, immediate, solicited);
      return;
    }
    const coming = { qp };
    this.#coming.add(coming);
    simulator.at(simulator.now + event, member, {
      happen: () => {
        if (!this.#coming.delete(coming) || this.isDestroyed) return;
        this.#add(qp, request, wrId, status, opcode, flags, length, immediate, solicited);
      },
    });
  }

  #add(
    qp: Completing,
    request: number,
    wrId: number,
    status: number,
    opcode: number,
    flags: number,
    length: number,
    immediate: number,
    solicited: boolean,
  ): void {
    if (this.#tail - this.#head >= this.capacity) {
      if (!this.overrun) {
        this.overrun = true;
        this.#context.overrun(this);
      }
      return;
    }
    if (this.#tail - this.#head >= this.#slots) this.#grow();
    const i = this.#tail++ & (this.#slots - 1);
    this.#wrIds[i] = wrId;
    this.#kinds[i] = status | (opcode << 8) | (flags << 16);
    this.#lengths[i] = length;
    this.#immediates[i] = immediate;
    this.#requests[i] = request;
    this.#queuePairs[i] = qp;
    if (this.#armed === ARMED_ANY || (this.#armed === ARMED_SOLICITED && solicited)) {
      this.#armed = DISARMED;
      this.#context.parking.ring();
    }
    this.#context.completed(this, isReceive(opcode));
    this.#context.cpu.ring();
  }

  reqNotify(solicitedOnly = false): void {
    this.mustLive('request notification');
    this.#armed = solicitedOnly ? ARMED_SOLICITED : ARMED_ANY;
    // What came before the arming would ring no bell.
    if (this.#head === this.#tail) return;
    this.#armed = DISARMED;
    this.#context.parking.ring();
  }

  /** Forgets the completions of a queue pair that is destroyed or reset. */
  drop(qp: Completing): void {
    const mask = this.#slots - 1;
    let to = this.#head;
    for (let from = this.#head; from < this.#tail; from++) {
      if (this.#queuePairs[from & mask] !== qp) this.#move(from & mask, to++ & mask);
    }
    this.#tail = to;
    for (const coming of this.#coming) if (coming.qp === qp) this.#coming.delete(coming);
  }

  protected release(): void {
    this.#context.cqs.delete(this);
  }

  #move(from: number, to: number): void {
    this.#wrIds[to] = this.#wrIds[from];
    this.#lengths[to] = this.#lengths[from];
    this.#immediates[to] = this.#immediates[from];
    this.#kinds[to] = this.#kinds[from];
    this.#requests[to] = this.#requests[from];
    this.#queuePairs[to] = this.#queuePairs[from];
  }

  #grow(): void {
    const slots = 2 * this.#slots;
    const head = this.#head;
    const n = this.#tail - head;
    this.#slots = slots;
    this.#wrIds = regrown(this.#wrIds, new Float64Array(slots), head, n);
    this.#lengths = regrown(this.#lengths, new Uint32Array(slots), head, n);
    this.#immediates = regrown(this.#immediates, new Uint32Array(slots), head, n);
    this.#kinds = regrown(this.#kinds, new Uint32Array(slots), head, n);
    this.#requests = regrown(this.#requests, new Int32Array(slots), head, n);
    this.#queuePairs = regrown(this.#queuePairs, new Array(slots), head, n);
  }
}

function isReceive(opcode: number): boolean {
  return opcode === WcOpcode.RECV || opcode === WcOpcode.RECV_RDMA_WITH_IMM;
}
