/**
 * What the objects of all providers have in common besides queue pairs: how long they live, what still uses them, and
 * what is refused because of that. A provider's classes add what its device does.
 */
import { RmaError, show } from '../../errors.ts';
import type { AddressHandle, AhAttributes } from '../../verbs/address-handle.ts';
import { checkInteger, checkRegistration, checkRoom } from '../../verbs/checks.ts';
import type { DeviceAttributes } from '../../verbs/device.ts';
import type { Memory, MemoryRegion, ProtectionDomain, QueuePairInit } from '../../verbs/memory.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import { CREATE_AH } from './address-handles.ts';
import type { Mapping } from './mapped-memory.ts';
import type { ReceiveSource } from './receives.ts';

export abstract class MemoryCore implements Memory {
  abstract readonly buffer: ArrayBufferLike;
  abstract readonly byteLength: number;
  abstract readonly fromLibrary: boolean;
  abstract readonly address: number;
  /** Live regions over it. */
  regions = 0;
  #freed = false;

  get isFreed(): boolean {
    return this.#freed;
  }

  free(): void {
    if (this.#freed) return;
    if (this.regions > 0) {
      throw new RmaError(
        'ERR_VERBS',
        `free memory: ${this.regions} memory regions are still registered over these ${this.byteLength} bytes; ` +
          'deregister them first (EBUSY)',
      );
    }
    this.#freed = true;
    this.release();
  }

  /** Gives the bytes back. */
  protected abstract release(): void;
}

/** Memory that this process has mapped. */
export type MappedMemory = MemoryCore & { readonly mapping: Mapping };

export abstract class RegionCore<M extends MemoryCore, Pd extends { children: number }> implements MemoryRegion {
  readonly pd: Pd;
  readonly memory: M;
  readonly address: number;
  readonly length: number;
  readonly access: number;
  readonly lkey: number;
  readonly rkey: number;
  live = true;

  constructor(pd: Pd, memory: M, offset: number, length: number, access: number, lkey: number, rkey: number) {
    this.pd = pd;
    this.memory = memory;
    this.address = memory.address + offset;
    this.length = length;
    this.access = access;
    this.lkey = lkey;
    this.rkey = rkey;
    pd.children++;
    memory.regions++;
  }

  deregister(): void {
    if (!this.live) return;
    this.revoke();
    this.live = false;
    this.memory.regions--;
    this.pd.children--;
  }

  /** Takes the keys back. */
  protected abstract revoke(): void;
}

export abstract class ProtectionDomainCore<
  M extends MemoryCore,
  R extends MemoryRegion,
  Qp extends QueuePair,
  Srq extends SharedReceiveQueue,
> implements ProtectionDomain
{
  /** Live regions, queue pairs, shared receive queues and address handles. */
  children = 0;
  readonly #device: DeviceAttributes;
  #deallocated = false;

  constructor(device: DeviceAttributes) {
    this.#device = device;
  }

  registerMemory(memory: Memory, offset: number, length: number, access: number): R {
    const call = 'register memory';
    this.mustLive(call);
    if (!this.owns(memory) || memory.isFreed) {
      throw new RmaError('ERR_VERBS', `${call}: ${show(memory)} is not memory of this context, or was freed (EINVAL)`);
    }
    checkRegistration(call, memory, offset, length, access);
    return this.register(call, memory, offset, length, access);
  }

  createQueuePair(init: QueuePairInit): Qp {
    this.mustLive('create a queue pair');
    return this.makeQueuePair(init);
  }

  createSharedReceiveQueue(init: { maxWr: number; maxSge?: number }): Srq {
    const call = 'create a shared receive queue';
    this.mustLive(call);
    const { maxWr, maxSge = 1 } = init;
    checkInteger(call, 'maxWr', maxWr, 1, this.#device.maxSrqWr);
    checkInteger(call, 'maxSge', maxSge, 1, this.#device.maxSrqSge);
    return this.makeSharedReceiveQueue(call, maxWr, maxSge);
  }

  createAh(attributes: AhAttributes): AddressHandle {
    this.mustLive(CREATE_AH);
    if (this.#device.maxAh === 0) {
      const { name } = this.#device;
      throw new RmaError('ERR_VERBS', `${CREATE_AH}: device ${name} has no datagrams (capability datagrams) (ENOTSUP)`);
    }
    checkRoom(CREATE_AH, 'address handles', this.handles, this.#device.maxAh);
    return this.makeAh(attributes);
  }

  dealloc(): void {
    if (this.#deallocated) return;
    if (this.children > 0) {
      throw new RmaError(
        'ERR_VERBS',
        `deallocate a protection domain: ${this.children} memory regions, queue pairs, ` +
          'address handles and shared receive queues still belong to it; destroy them first (EBUSY)',
      );
    }
    this.release();
    this.#deallocated = true;
  }

  protected mustLive(call: string): void {
    if (this.#deallocated) throw new RmaError('ERR_VERBS', `${call}: the protection domain was deallocated`);
  }

  protected abstract owns(memory: Memory): memory is M;
  protected abstract register(call: string, memory: M, offset: number, length: number, access: number): R;
  protected abstract makeQueuePair(init: QueuePairInit): Qp;
  protected abstract makeAh(attributes: AhAttributes): AddressHandle;
  /** Address handles of the context. */
  protected abstract readonly handles: number;
  protected abstract makeSharedReceiveQueue(call: string, maxWr: number, maxSge: number): Srq;
  protected abstract release(): void;
}

export abstract class SharedReceiveQueueCore<Pd extends { children: number }> implements SharedReceiveQueue {
  readonly maxWr: number;
  readonly maxSge: number;
  readonly pd: Pd;
  /** Queue pairs that receive from it. */
  users = 0;
  readonly #receives: ReceiveSource;
  #destroyed = false;

  constructor(pd: Pd, receives: ReceiveSource) {
    this.pd = pd;
    this.#receives = receives;
    this.maxWr = receives.capacity;
    this.maxSge = receives.maxSge;
    pd.children++;
  }

  get posted(): number {
    return this.#destroyed ? 0 : this.#receives.posted;
  }

  abstract postRecv(wrId: number, lkey: number, address: number, length: number): void;
  abstract addRecvSge(lkey: number, address: number, length: number): void;

  arm(limit: number): void {
    const call = 'arm the limit';
    this.mustLive(call);
    checkInteger(call, 'the limit', limit, 0, this.maxWr);
    this.setLimit(call, limit);
  }

  destroy(): void {
    if (this.#destroyed) return;
    if (this.users > 0) {
      throw new RmaError(
        'ERR_VERBS',
        `destroy a shared receive queue: ${this.users} queue pairs still receive from it; destroy them first (EBUSY)`,
      );
    }
    this.release();
    this.#destroyed = true;
    this.pd.children--;
  }

  protected mustLive(call: string): void {
    if (this.#destroyed) throw new RmaError('ERR_VERBS', `${call}: the shared receive queue was destroyed`);
  }

  protected abstract setLimit(call: string, limit: number): void;
  protected abstract release(): void;
}
