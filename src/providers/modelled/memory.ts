/** Memory, regions and protection domains of a modelled device: as on a real one, any memory of the process can be registered. */
import { RmaError, show } from '../../errors.ts';
import { checkInteger, checkRegistration, checkRoom } from '../../verbs/checks.ts';
import type { Memory, MemoryRegion, ProtectionDomain, QueuePairInit } from '../../verbs/memory.ts';
import { Mapping } from '../emulator/mapping.ts';
import type { ModelledContext } from './context.ts';
import { MAX_SRQ_WR, MOST } from './limits.ts';
import type { ModelledQueuePair } from './queue-pair.ts';
import { ModelledSharedReceiveQueue } from './receive-queue.ts';

export const PAGE = 4096;

export class ModelledMemory implements Memory {
  readonly address: number;
  readonly byteLength: number;
  readonly fromLibrary: boolean;
  readonly mapping: Mapping;
  readonly context: ModelledContext;
  /** Live regions over it. */
  regions = 0;
  freed = false;

  constructor(context: ModelledContext, address: number, buffer: ArrayBufferLike, fromLibrary: boolean) {
    this.context = context;
    this.address = address;
    this.byteLength = buffer.byteLength;
    this.fromLibrary = fromLibrary;
    this.mapping = new Mapping(buffer);
  }

  get buffer(): ArrayBufferLike {
    return this.mapping.buffer;
  }

  free(): void {
    if (this.freed) return;
    if (this.regions > 0) {
      throw new RmaError(
        'ERR_VERBS',
        `free memory: ${this.regions} memory regions are still registered over these ${this.byteLength} bytes; deregister them first (EBUSY)`,
      );
    }
    this.freed = true;
  }
}

export class ModelledRegion implements MemoryRegion {
  readonly memory: ModelledMemory;
  readonly address: number;
  readonly length: number;
  readonly access: number;
  /** One key serves as both, as on most adapters. */
  readonly lkey: number;
  readonly rkey: number;
  readonly pd: ModelledProtectionDomain;
  live = true;

  constructor(
    pd: ModelledProtectionDomain,
    memory: ModelledMemory,
    offset: number,
    length: number,
    access: number,
    key: number,
  ) {
    this.pd = pd;
    this.memory = memory;
    this.address = memory.address + offset;
    this.length = length;
    this.access = access;
    this.lkey = key;
    this.rkey = key;
  }

  /** Whether `length` bytes at `address` lie in the region, and still in its buffer, which may have been detached. */
  contains(address: number, length: number): boolean {
    const at = address - this.address;
    return (
      at >= 0 &&
      length <= this.length &&
      at <= this.length - length &&
      address - this.memory.address + length <= this.memory.mapping.u8.length
    );
  }

  deregister(): void {
    if (!this.live) return;
    this.live = false;
    this.memory.regions--;
    this.pd.children--;
    this.memory.context.forgetRegion(this);
  }
}

export class ModelledProtectionDomain implements ProtectionDomain {
  readonly context: ModelledContext;
  /** Live regions, queue pairs and shared receive queues. */
  children = 0;
  #deallocated = false;

  constructor(context: ModelledContext) {
    this.context = context;
  }

  registerMemory(memory: Memory, offset: number, length: number, access: number): ModelledRegion {
    const call = 'register memory';
    this.#mustLive(call);
    if (!(memory instanceof ModelledMemory) || memory.freed || memory.context !== this.context) {
      throw new RmaError('ERR_VERBS', `${call}: ${show(memory)} is not memory of this context, or was freed (EINVAL)`);
    }
    checkRegistration(call, memory, offset, length, access);
    const { context } = this;
    const region = new ModelledRegion(this, memory, offset, length, access, context.newKey());
    context.regions.set(region.rkey, region);
    memory.regions++;
    this.children++;
    return region;
  }

  createQueuePair(init: QueuePairInit): ModelledQueuePair {
    this.#mustLive('create a queue pair');
    return this.context.createQueuePair(this, init);
  }

  createSharedReceiveQueue(init: { maxWr: number; maxSge?: number }): ModelledSharedReceiveQueue {
    const call = 'create a shared receive queue';
    this.#mustLive(call);
    const { maxWr, maxSge = 1 } = init;
    const { context } = this;
    checkInteger(call, 'maxWr', maxWr, 1, MAX_SRQ_WR);
    checkInteger(call, 'maxSge', maxSge, 1, context.device.maxSrqSge);
    checkRoom(call, 'shared receive queues', context.srqs.size, MOST);
    const srq = new ModelledSharedReceiveQueue(context, this, maxWr, maxSge);
    context.srqs.add(srq);
    this.children++;
    return srq;
  }

  dealloc(): void {
    if (this.#deallocated) return;
    if (this.children > 0) {
      throw new RmaError(
        'ERR_VERBS',
        `deallocate a protection domain: ${this.children} memory regions, queue pairs and shared receive queues still belong to it; destroy them first (EBUSY)`,
      );
    }
    this.#deallocated = true;
    this.context.forgetPd();
  }

  #mustLive(call: string): void {
    if (this.#deallocated) throw new RmaError('ERR_VERBS', `${call}: the protection domain was deallocated`);
  }
}
