/**
 * Posted receives: a queue pair's own, or shared by several. The owner's task posts them; requests that arrive, which
 * are events, take them.
 *
 * A request that found no receive waits in `waiters`. Posting does not touch them: it makes an event, so that it does
 * not matter in which order tasks of one time run.
 */

import type { AsyncEvent } from '../../verbs/device.ts';
import type { ProtectionDomain } from '../../verbs/memory.ts';
import { regrown } from '../core/growing-columns.ts';
import { checkReceiveEntry, checkReceiveId, type ReceiveSource } from '../core/receives.ts';
import { SharedReceiveQueueCore } from '../core/verbs-objects.ts';
import type { FabricEvent } from './event-queue.ts';
import type { Fabric } from './fabric-numbers.ts';
import type { Cpu, Simulator } from './simulator.ts';

/** A sender whose request waits for a receive. */
export interface Waiter {
  receivePosted(): void;
}

/** What the context gives. */
interface Around {
  readonly member: number;
  readonly cpu: Cpu;
  readonly fabric: Fabric;
  readonly simulator: Simulator;
  /** Whether some request has ever found no receive. */
  readonly hasRefused: boolean;
  readonly srqs: { delete(srq: ModelledSharedReceiveQueue): boolean };
  raise(event: AsyncEvent): void;
}

/** A protection domain, as what belongs to it sees it. */
export interface ModelledPd extends ProtectionDomain {
  children: number;
}

const FIRST_SLOTS = 8;
const NO_DOUBLES = new Float64Array(0);
const NO_WORDS = new Uint32Array(0);
const NO_COUNTS = new Uint16Array(0);

export class ReceiveQueue implements FabricEvent, ReceiveSource {
  readonly capacity: number;
  readonly maxSge: number;
  readonly #context: Around;
  readonly #waiters = new Set<Waiter>();
  #ringing = false;
  // Receives `#head … #tail`, by their count modulo the number of slots, a power of two that grows to `capacity`. At
  // first there are none: of many ranks, most queue pairs never receive.
  #slots = 0;
  #head = 0;
  #tail = 0;
  #building = 0;
  #wrIds = NO_DOUBLES;
  #counts = NO_COUNTS;
  #addresses = NO_DOUBLES;
  #lengths = NO_WORDS;
  #lkeys = NO_WORDS;
  /** The receive that `take` has taken. */
  wrId = 0;
  numSge = 0;
  #taken = 0;

  constructor(context: Around, maxWr: number, maxSge: number) {
    this.#context = context;
    this.capacity = 2 ** Math.ceil(Math.log2(maxWr));
    this.maxSge = maxSge;
  }

  get posted(): number {
    return this.#tail - this.#head;
  }

  get building(): number {
    return this.#building;
  }

  /** Forgets the receive being built. */
  abort(): void {
    this.#building = 0;
  }

  addSge(lkey: number, address: number, length: number): void {
    checkReceiveEntry(this, address, length);
    if (this.posted >= this.#slots) this.#grow();
    const i = (this.#tail & (this.#slots - 1)) * this.maxSge + this.#building++;
    this.#addresses[i] = address;
    this.#lengths[i] = length;
    this.#lkeys[i] = lkey;
  }

  post(wrId: number, lkey: number, address: number, length: number): void {
    checkReceiveId(this, wrId);
    this.addSge(lkey, address, length);
    const slot = this.#tail & (this.#slots - 1);
    this.#wrIds[slot] = wrId;
    this.#counts[slot] = this.#building;
    this.#building = 0;
    this.#tail++;
    const { cpu } = this.#context;
    cpu.spend(this.#context.fabric.host.postReceive);
    this.ring();
  }

  /** Scatter entries of the oldest receive; 0 if there is none. */
  get nextEntries(): number {
    return this.#head === this.#tail ? 0 : this.#counts[this.#head & (this.#slots - 1)];
  }

  /** Takes the oldest receive; `false` if there is none. */
  take(): boolean {
    if (this.#head === this.#tail) return false;
    this.#taken = this.#head++ & (this.#slots - 1);
    this.wrId = this.#wrIds[this.#taken];
    this.numSge = this.#counts[this.#taken];
    return true;
  }

  /** Entry `i` of the receive that was taken. */
  address(i: number): number {
    return this.#addresses[this.#taken * this.maxSge + i];
  }

  length(i: number): number {
    return this.#lengths[this.#taken * this.maxSge + i];
  }

  lkey(i: number): number {
    return this.#lkeys[this.#taken * this.maxSge + i];
  }

  /** Forgets all receives. */
  clear(): void {
    this.#building = 0;
    this.#head = this.#tail;
  }

  wait(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  cancel(waiter: Waiter): void {
    this.#waiters.delete(waiter);
  }

  /** Tells the waiting senders that they may try again: a receive was posted, or there will be none. */
  ring(): void {
    if (this.#ringing) return;
    const { cpu, simulator, member } = this.#context;
    if (!this.#context.hasRefused) return;
    this.#ringing = true;
    simulator.at(cpu.time, member, this);
  }

  happen(): void {
    this.#ringing = false;
    const waiting = [...this.#waiters];
    this.#waiters.clear();
    for (const waiter of waiting) waiter.receivePosted();
  }

  #grow(): void {
    const slots = this.#slots === 0 ? Math.min(FIRST_SLOTS, this.capacity) : 2 * this.#slots;
    const head = this.#head;
    const n = this.posted;
    const width = this.maxSge;
    this.#slots = slots;
    this.#wrIds = regrown(this.#wrIds, new Float64Array(slots), head, n);
    this.#counts = regrown(this.#counts, new Uint16Array(slots), head, n);
    this.#addresses = regrown(this.#addresses, new Float64Array(slots * width), head, n, width);
    this.#lengths = regrown(this.#lengths, new Uint32Array(slots * width), head, n, width);
    this.#lkeys = regrown(this.#lkeys, new Uint32Array(slots * width), head, n, width);
  }
}

export class ModelledSharedReceiveQueue extends SharedReceiveQueueCore<ModelledPd> {
  readonly receives: ReceiveQueue;
  refused = 0;
  readonly #context: Around;
  #limit = 0;

  constructor(context: Around, pd: ModelledPd, maxWr: number, maxSge: number) {
    const receives = new ReceiveQueue(context, maxWr, maxSge);
    super(pd, receives);
    this.#context = context;
    this.receives = receives;
  }

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    this.mustLive('post receive');
    this.receives.post(wrId, lkey, address, length);
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    this.mustLive('post receive');
    this.receives.addSge(lkey, address, length);
  }

  protected setLimit(_call: string, limit: number): void {
    this.#limit = limit;
    this.noticeLimit();
  }

  /** Raises the event if fewer receives are left than the limit says. */
  noticeLimit(): void {
    if (this.receives.posted >= this.#limit) return;
    this.#limit = 0;
    this.#context.raise({ type: 'SRQ_LIMIT_REACHED', srq: this });
  }

  protected release(): void {
    this.#context.srqs.delete(this);
  }
}
