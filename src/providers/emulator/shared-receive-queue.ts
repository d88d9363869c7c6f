/** A shared receive queue, and what it has in common with a queue pair's own: how receives are checked and posted. */

import { RmaError, show } from '../../errors.ts';
import { checkInteger } from '../../verbs/checks.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import type { EmulatedContext } from './context.ts';
import type { Allocation } from './fabric.ts';
import { DEVICE } from './limits.ts';
import { ReceiveRing, receiveRingBytes } from './receive-ring.ts';

/** Checks and adds a scatter entry. What a device would only find when it receives is left to then. */
export function addReceiveSge(
  context: EmulatedContext,
  ring: ReceiveRing,
  lkey: number,
  address: number,
  length: number,
): void {
  const call = 'post receive';
  if (ring.isFull) {
    ring.abort();
    throw new RmaError('ERR_VERBS', `${call}: the receive queue is full: it holds ${ring.capacity} receives (ENOMEM)`);
  }
  if (ring.building >= ring.maxSge) {
    ring.abort();
    throw new RmaError(
      'ERR_VERBS',
      `${call}: a receive of this queue can have at most ${ring.maxSge} scatter entries (EINVAL)`,
    );
  }
  if (length !== 0) {
    const region = context.region(lkey);
    if (region !== undefined && !region.memory.fromLibrary) {
      ring.abort();
      throw new RmaError(
        'ERR_VERBS',
        `${call}: the sender stores the message itself and cannot access this process's own memory; receive into memory from allocateMemory (EINVAL)`,
      );
    }
  }
  if (length >>> 0 !== length || !Number.isSafeInteger(address) || address < 0) {
    ring.abort();
    throw new RmaError(
      'ERR_VERBS',
      `${call}: ${show(length)} bytes at address ${show(address)} are not a valid range of memory (EINVAL)`,
    );
  }
  ring.addSge(lkey, address, length);
}

export function postReceive(
  context: EmulatedContext,
  ring: ReceiveRing,
  wrId: number,
  lkey: number,
  address: number,
  length: number,
): void {
  if (!Number.isSafeInteger(wrId) || wrId < 0) {
    ring.abort();
    checkInteger('post receive', 'wrId', wrId, 0, Number.MAX_SAFE_INTEGER);
  }
  addReceiveSge(context, ring, lkey, address, length);
  ring.post(wrId);
}

export class EmulatedSharedReceiveQueue implements SharedReceiveQueue {
  readonly maxWr: number;
  readonly maxSge: number;
  /** The number of its protection domain. */
  readonly pd: number;
  readonly ring: ReceiveRing;
  readonly allocation: Allocation;
  /** Queue pairs that receive from it. */
  users = 0;
  readonly #context: EmulatedContext;
  readonly #forget: (srq: EmulatedSharedReceiveQueue) => void;
  #destroyed = false;

  constructor(
    context: EmulatedContext,
    pd: number,
    maxWr: number,
    maxSge: number,
    forget: (srq: EmulatedSharedReceiveQueue) => void,
  ) {
    this.#context = context;
    this.pd = pd;
    this.maxWr = 2 ** Math.ceil(Math.log2(maxWr));
    this.maxSge = maxSge;
    this.#forget = forget;
    this.allocation = context.allocate(receiveRingBytes(this.maxWr, maxSge));
    this.ring = new ReceiveRing(this.allocation.buffer, this.maxWr, maxSge);
  }

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    this.#mustLive('post receive');
    postReceive(this.#context, this.ring, wrId, lkey, address, length);
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    this.#mustLive('post receive');
    addReceiveSge(this.#context, this.ring, lkey, address, length);
  }

  get posted(): number {
    return this.#destroyed ? 0 : this.ring.posted;
  }

  arm(limit: number): void {
    this.#mustLive('arm the limit');
    checkInteger('arm the limit', 'the limit', limit, 0, Math.min(this.maxWr, DEVICE.maxSrqWr));
    this.ring.setLimit(limit);
    // An initiator that took a receive before it could see the limit left this to us.
    if (this.ring.passedLimit(this.ring.posted)) {
      this.#context.callOwnAttention();
      this.#context.fabric.wake(this.#context.lid);
    }
  }

  destroy(): void {
    if (this.#destroyed) return;
    if (this.users > 0) {
      throw new RmaError(
        'ERR_VERBS',
        `destroy a shared receive queue: ${this.users} queue pairs still receive from it; destroy them first (EBUSY)`,
      );
    }
    this.#destroyed = true;
    this.#forget(this);
  }

  #mustLive(call: string): void {
    if (this.#destroyed) throw new RmaError('ERR_VERBS', `${call}: the shared receive queue was destroyed`);
  }
}
