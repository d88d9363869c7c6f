/**
 * Memory, regions and protection domains of a modelled device: as on a real one, any memory of the process can be
 * registered.
 */

import type { AddressHandle, AhAttributes } from '../../verbs/address-handle.ts';
import { checkRoom } from '../../verbs/checks.ts';
import type { Memory, QueuePairInit } from '../../verbs/memory.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import { wayInMemory } from '../core/address-handles.ts';
import { MappedRegion } from '../core/local-side.ts';
import { Mapping } from '../core/mapped-memory.ts';
import { MemoryCore, ProtectionDomainCore } from '../core/verbs-objects.ts';
import type { ModelledParent } from './modelled-parent.ts';
import { type ModelledPd, ModelledSharedReceiveQueue } from './modelled-receive-queue.ts';

export const PAGE = 4096;

export class ModelledMemory extends MemoryCore {
  readonly address: number;
  readonly byteLength: number;
  readonly fromLibrary: boolean;
  readonly mapping: Mapping;
  readonly context: ModelledParent;

  constructor(context: ModelledParent, address: number, buffer: ArrayBufferLike, fromLibrary: boolean) {
    super();
    this.context = context;
    this.address = address;
    this.byteLength = buffer.byteLength;
    this.fromLibrary = fromLibrary;
    this.mapping = new Mapping(buffer);
  }

  get buffer(): ArrayBufferLike {
    return this.mapping.buffer;
  }

  protected release(): void {}
}

/** One key serves as both, as on most adapters. */
export class ModelledRegion extends MappedRegion<ModelledMemory> {
  protected revoke(): void {
    this.memory.context.forgetRegion(this);
  }
}

export class ModelledProtectionDomain
  extends ProtectionDomainCore<ModelledMemory, ModelledRegion, QueuePair, ModelledSharedReceiveQueue>
  implements ModelledPd
{
  readonly context: ModelledParent;

  constructor(context: ModelledParent) {
    super(context.device);
    this.context = context;
  }

  protected owns(memory: Memory): memory is ModelledMemory {
    return memory instanceof ModelledMemory && memory.context === this.context;
  }

  protected register(
    call: string,
    memory: ModelledMemory,
    offset: number,
    length: number,
    access: number,
  ): ModelledRegion {
    if (!memory.fromLibrary) this.context.checkLocked(call, length);
    const key = this.context.newKey();
    const region = new ModelledRegion(this, memory, offset, length, access, key, key);
    this.context.noteRegion(region);
    return region;
  }

  protected makeQueuePair(init: QueuePairInit): QueuePair {
    return this.context.createQueuePair(this, init);
  }

  protected get handles(): number {
    return this.context.handles.size;
  }

  protected makeAh(attributes: AhAttributes): AddressHandle {
    return this.context.handles.make(this, wayInMemory(attributes, this.context.shared.contexts.length));
  }

  protected makeSharedReceiveQueue(call: string, maxWr: number, maxSge: number): ModelledSharedReceiveQueue {
    const { context } = this;
    checkRoom(call, 'shared receive queues', context.srqs.size, context.device.maxSrq);
    const srq = new ModelledSharedReceiveQueue(context, this, maxWr, maxSge);
    context.srqs.add(srq);
    return srq;
  }

  protected release(): void {
    this.context.forgetPd();
  }
}
