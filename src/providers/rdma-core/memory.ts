/** Memory and protection domains of a device. Addresses are those of the process. */
import { RmaError, show } from '../../errors.ts';
import { bytesIn } from '../../intrinsics.ts';
import type { Native, RdmaContext } from '../../native.ts';
import { checkInteger, checkRegistration } from '../../verbs/checks.ts';
import type { Memory, MemoryRegion, ProtectionDomain, QueuePairInit } from '../../verbs/memory.ts';
import type { RdmaCoreContext } from './context.ts';
import type { RdmaQueuePair } from './queue-pair.ts';
import { RdmaSharedReceiveQueue } from './shared-receive-queue.ts';
import { verb } from './verb.ts';

export class RdmaMemory implements Memory {
  readonly buffer: ArrayBufferLike;
  readonly address: number;
  readonly byteLength: number;
  readonly fromLibrary: boolean;
  /** What native code takes: it does not take a bare `SharedArrayBuffer`. */
  readonly bytes: Uint8Array;
  /** Live regions over it. */
  regions = 0;
  readonly #unmap: (() => void) | undefined;
  #freed = false;

  constructor(native: Native, buffer: ArrayBufferLike, unmap: (() => void) | undefined) {
    this.buffer = buffer;
    this.bytes = new Uint8Array(buffer);
    this.byteLength = bytesIn(buffer);
    this.address = this.byteLength === 0 ? 0 : native.addressOf(this.bytes);
    this.fromLibrary = unmap !== undefined;
    this.#unmap = unmap;
  }

  get isFreed(): boolean {
    return this.#freed;
  }

  free(): void {
    if (this.#freed) return;
    if (this.regions > 0) {
      throw new RmaError(
        'ERR_VERBS',
        `free memory: ${this.regions} memory regions are still registered over these ${this.byteLength} bytes; deregister them first (EBUSY)`,
      );
    }
    this.#freed = true;
    this.#unmap?.();
  }
}

export class RdmaProtectionDomain implements ProtectionDomain {
  readonly number: number;
  /** Live regions, queue pairs and shared receive queues. */
  children = 0;
  readonly #context: RdmaCoreContext;
  readonly #device: RdmaContext;
  #deallocated = false;

  constructor(context: RdmaCoreContext, device: RdmaContext) {
    this.#context = context;
    this.#device = device;
    this.number = verb('allocate a protection domain', () => device.allocPd());
  }

  registerMemory(memory: Memory, offset: number, length: number, access: number): MemoryRegion {
    const call = 'register memory';
    this.#mustLive(call);
    if (!(memory instanceof RdmaMemory) || memory.isFreed) {
      throw new RmaError('ERR_VERBS', `${call}: ${show(memory)} is not memory of this context, or was freed (EINVAL)`);
    }
    checkRegistration(call, memory, offset, length, access);
    const device = this.#device;
    const [number, lkey, rkey] = verb(call, () =>
      length === 0
        ? device.regMr(this.number, this.#context.nothing().bytes, 0, 1, 0)
        : device.regMr(this.number, memory.bytes, offset, length, access),
    );
    this.children++;
    memory.regions++;
    let live = true;
    return {
      memory,
      address: memory.address + offset,
      length,
      access,
      lkey,
      rkey,
      deregister: () => {
        if (!live || this.#context.isClosed) return;
        this.#context.giveBack('deregister memory', () => device.deregMr(number));
        live = false;
        this.children--;
        memory.regions--;
      },
    };
  }

  createQueuePair(init: QueuePairInit): RdmaQueuePair {
    this.#mustLive('create a queue pair');
    return this.#context.createQueuePair(this, init);
  }

  createSharedReceiveQueue(init: { maxWr: number; maxSge?: number }): RdmaSharedReceiveQueue {
    const call = 'create a shared receive queue';
    this.#mustLive(call);
    const { maxWr, maxSge = 1 } = init;
    const { maxSrqWr, maxSrqSge } = this.#context.device;
    checkInteger(call, 'maxWr', maxWr, 1, maxSrqWr);
    checkInteger(call, 'maxSge', maxSge, 1, maxSrqSge);
    return new RdmaSharedReceiveQueue(this.#context, this.#device, this, maxWr, maxSge);
  }

  dealloc(): void {
    if (this.#deallocated || this.#context.isClosed) return;
    if (this.children > 0) {
      throw new RmaError(
        'ERR_VERBS',
        `deallocate a protection domain: ${this.children} memory regions, queue pairs and shared receive queues still belong to it; destroy them first (EBUSY)`,
      );
    }
    this.#context.giveBack('deallocate a protection domain', () => this.#device.deallocPd(this.number));
    this.#deallocated = true;
  }

  #mustLive(call: string): void {
    this.#context.mustBeOpen(call);
    if (this.#deallocated) throw new RmaError('ERR_VERBS', `${call}: the protection domain was deallocated`);
  }
}
