/** A shared receive queue, and what it has in common with a queue pair's own: how receives are checked and posted. */

import { checkReceiveEntry, checkReceiveId, refuseReceive } from '../core/receives.ts';
import { SharedReceiveQueueCore } from '../core/verbs-objects.ts';
import type { Allocation } from './emulator-fabric.ts';
import type { EmulatedParent, EmulatedPd } from './emulator-parent.ts';
import { ReceiveRing, receiveRingBytes } from './receive-ring.ts';

/** Checks and adds a scatter entry. */
export function addReceiveSge(
  context: EmulatedParent,
  ring: ReceiveRing,
  lkey: number,
  address: number,
  length: number,
): void {
  checkReceiveEntry(ring, address, length);
  if (length !== 0) {
    const region = context.regions.get(lkey);
    if (region !== undefined && !region.memory.fromLibrary) {
      refuseReceive(
        ring,
        "the sender stores the message itself and cannot access this process's own memory; " +
          'receive into memory from allocateMemory (EINVAL)',
      );
    }
  }
  ring.addSge(lkey, address, length);
}

export function postReceive(
  context: EmulatedParent,
  ring: ReceiveRing,
  wrId: number,
  lkey: number,
  address: number,
  length: number,
): void {
  checkReceiveId(ring, wrId);
  addReceiveSge(context, ring, lkey, address, length);
  ring.post(wrId);
}

export class EmulatedSharedReceiveQueue extends SharedReceiveQueueCore<EmulatedPd> {
  readonly ring: ReceiveRing;
  readonly allocation: Allocation;
  readonly #context: EmulatedParent;
  readonly #forget: (srq: EmulatedSharedReceiveQueue) => void;

  constructor(
    context: EmulatedParent,
    pd: EmulatedPd,
    maxWr: number,
    maxSge: number,
    forget: (srq: EmulatedSharedReceiveQueue) => void,
  ) {
    const capacity = 2 ** Math.ceil(Math.log2(maxWr));
    const allocation = context.allocate(receiveRingBytes(capacity, maxSge));
    const ring = new ReceiveRing(allocation.buffer, capacity, maxSge);
    super(pd, ring);
    this.ring = ring;
    this.allocation = allocation;
    this.#context = context;
    this.#forget = forget;
  }

  postRecv(wrId: number, lkey: number, address: number, length: number): void {
    this.mustLive('post receive');
    postReceive(this.#context, this.ring, wrId, lkey, address, length);
  }

  addRecvSge(lkey: number, address: number, length: number): void {
    this.mustLive('post receive');
    addReceiveSge(this.#context, this.ring, lkey, address, length);
  }

  protected setLimit(_call: string, limit: number): void {
    this.ring.setLimit(limit);
    // An initiator that took a receive before it could see the limit left this to us.
    if (this.ring.passedLimit(this.ring.posted)) {
      this.#context.callOwnAttention();
      this.#context.fabric.wake(this.#context.member);
    }
  }

  protected release(): void {
    this.#forget(this);
  }
}
