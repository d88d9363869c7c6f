/**
 * A completion queue. What peers complete comes in through a ring in shared memory; what this thread completes itself
 * comes in through arrays of its own, without atomics. Completions of one work queue always take the same of the two
 * ways (requests the second, receives the first), so their order is kept.
 */
import { overrunError } from '../../verbs/checks.ts';
import { WcFlag } from '../../verbs/completion-queue.ts';
import { CompletionQueueCore } from '../core/completion-queue-base.ts';
import { ARMED_ANY, ARMED_SOLICITED, CompletionRing, completionRingBytes, ringCapacity } from './completion-ring.ts';
import type { Allocation } from './emulator-fabric.ts';
import type { EmulatedParent } from './emulator-parent.ts';

/** A queue pair whose requests complete here. */
interface Requester {
  readonly number: number;
  /** A completion of this request was polled. */
  retire(request: number): void;
}

/** Completions that one `poll` can fetch. */
const BATCH = 1024;

export class EmulatedCompletionQueue extends CompletionQueueCore {
  readonly ring: CompletionRing;
  readonly allocation: Allocation;
  readonly #context: EmulatedParent;
  readonly #forget: (cq: EmulatedCompletionQueue) => void;
  readonly #mask: number;
  // This thread's own completions: a ring by the counts `#head … #tail`.
  readonly #wrId: Float64Array;
  readonly #status: Uint8Array;
  readonly #opcode: Uint8Array;
  readonly #byteLen: Uint32Array;
  readonly #requests: Int32Array;
  readonly #queuePairs: (Requester | undefined)[];
  #head = 0;
  #tail = 0;
  #overrun = false;

  /** @param forget gives its memory back */
  constructor(context: EmulatedParent, cqe: number, forget: (cq: EmulatedCompletionQueue) => void) {
    super(ringCapacity(cqe), BATCH);
    this.#context = context;
    this.#forget = forget;
    this.#mask = this.capacity - 1;
    this.#wrId = new Float64Array(this.capacity);
    this.#status = new Uint8Array(this.capacity);
    this.#opcode = new Uint8Array(this.capacity);
    this.#byteLen = new Uint32Array(this.capacity);
    this.#requests = new Int32Array(this.capacity);
    this.#queuePairs = new Array(this.capacity).fill(undefined);
    // Last: only this has to be given back.
    this.allocation = context.allocate(completionRingBytes(this.capacity));
    this.ring = new CompletionRing(this.allocation.buffer, this.capacity);
  }

  poll(max: number): number {
    if (this.isDestroyed) this.mustLive('poll');
    this.#context.progress();
    if (this.#overrun) throw overrunError(this.capacity);
    const limit = Math.min(max, this.batch);
    let n = this.#head === this.#tail ? 0 : this.#takeOwn(limit);
    if (n < limit) n = this.#takeShared(n, limit);
    return n;
  }

  /** Adds the completion of a request of this thread: number `request` of `qp`'s send queue. */
  complete(
    qp: Requester,
    request: number,
    wrId: number,
    status: number,
    opcode: number,
    byteLen: number,
    solicited: boolean,
  ): void {
    const { ring } = this;
    const own = (this.#tail - this.#head) | 0;
    if (own + ring.claimed >= this.capacity) {
      ring.recordOverrun();
      this.#context.callOwnAttention();
      return;
    }
    const i = this.#tail & this.#mask;
    this.#wrId[i] = wrId;
    this.#status[i] = status;
    this.#opcode[i] = opcode;
    this.#byteLen[i] = byteLen;
    this.#requests[i] = request;
    this.#queuePairs[i] = qp;
    this.#tail = (this.#tail + 1) | 0;
    ring.setLocal(own + 1);
    if (ring.isArmed && ring.takeArmed(solicited)) this.#context.wakeSelf(ring);
  }

  reqNotify(solicitedOnly = false): void {
    this.mustLive('request notification');
    this.ring.arm(solicitedOnly ? ARMED_SOLICITED : ARMED_ANY);
    // What came before the arming would ring no bell.
    if ((this.#head !== this.#tail || this.ring.peek() >= 0) && this.ring.takeArmed(true)) {
      this.#context.wakeSelf(this.ring);
    }
  }

  get isArmed(): boolean {
    return this.ring.isArmed;
  }

  announce(): void {
    this.ring.announce();
  }

  /** Whether completions were lost since the last call that said so. */
  noticeOverrun(): boolean {
    if (this.#overrun || !this.ring.isOverrun) return false;
    this.#overrun = true;
    return true;
  }

  /** Forgets the completions of a queue pair that is destroyed or reset. */
  drop(qp: Requester): void {
    this.ring.drop(qp.number);
    let to = this.#head;
    for (let from = this.#head; from !== this.#tail; from = (from + 1) | 0) {
      const f = from & this.#mask;
      if (this.#queuePairs[f] === qp) continue;
      const t = to & this.#mask;
      this.#wrId[t] = this.#wrId[f];
      this.#status[t] = this.#status[f];
      this.#opcode[t] = this.#opcode[f];
      this.#byteLen[t] = this.#byteLen[f];
      this.#requests[t] = this.#requests[f];
      this.#queuePairs[t] = this.#queuePairs[f];
      to = (to + 1) | 0;
    }
    for (let i = to; i !== this.#tail; i = (i + 1) | 0) this.#queuePairs[i & this.#mask] = undefined;
    this.#tail = to;
    this.ring.setLocal((this.#tail - this.#head) | 0);
  }

  protected release(): void {
    this.#forget(this);
  }

  #takeOwn(limit: number): number {
    const { wc } = this;
    let n = 0;
    let head = this.#head;
    for (; n < limit && head !== this.#tail; head = (head + 1) | 0, n++) {
      const i = head & this.#mask;
      const qp = this.#queuePairs[i]!;
      this.#queuePairs[i] = undefined;
      qp.retire(this.#requests[i]);
      wc.wrId[n] = this.#wrId[i];
      wc.status[n] = this.#status[i];
      wc.opcode[n] = this.#opcode[i];
      wc.flags[n] = 0;
      wc.byteLen[n] = this.#byteLen[i];
      wc.immData[n] = 0;
      wc.qpNum[n] = qp.number;
    }
    this.#head = head;
    this.ring.setLocal((this.#tail - head) | 0);
    return n;
  }

  #takeShared(taken: number, limit: number): number {
    const { wc, ring } = this;
    let n = taken;
    for (; n < limit; n++) {
      const w = ring.peek();
      if (w < 0) break;
      wc.wrId[n] = ring.wrId(w);
      wc.status[n] = ring.status(w);
      wc.opcode[n] = ring.opcode(w);
      wc.flags[n] = ring.flags(w);
      wc.byteLen[n] = ring.byteLen(w);
      wc.immData[n] = ring.immData(w);
      wc.qpNum[n] = ring.qpNum(w);
      if ((wc.flags[n] & WcFlag.GRH) !== 0) wc.srcQp[n] = ring.srcQp(w);
      ring.next();
    }
    if (n > taken) ring.release();
    return n;
  }
}
