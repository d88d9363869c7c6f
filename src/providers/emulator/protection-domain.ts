/** A protection domain: what is made from it can be used together, and with nothing else. */

import { RmaError, show } from '../../errors.ts';
import { checkInteger, checkRegistration } from '../../verbs/checks.ts';
import { Access, type Memory, type ProtectionDomain, type QueuePairInit } from '../../verbs/memory.ts';
import type { EmulatedContext } from './context.ts';
import { DEVICE } from './limits.ts';
import { EmulatedMemory } from './memory.ts';
import type { EmulatedRegion } from './memory-region.ts';
import type { EmulatedQueuePair } from './queue-pair.ts';
import type { EmulatedSharedReceiveQueue } from './shared-receive-queue.ts';

export class EmulatedProtectionDomain implements ProtectionDomain {
  readonly number: number;
  /** Live regions, queue pairs and shared receive queues. */
  children = 0;
  readonly #context: EmulatedContext;
  #deallocated = false;

  constructor(context: EmulatedContext, number: number) {
    this.#context = context;
    this.number = number;
  }

  registerMemory(memory: Memory, offset: number, length: number, access: number): EmulatedRegion {
    const call = 'register memory';
    this.#mustLive(call);
    if (!(memory instanceof EmulatedMemory) || memory.isFreed) {
      throw new RmaError('ERR_VERBS', `${call}: ${show(memory)} is not memory of this context, or was freed (EINVAL)`);
    }
    checkRegistration(call, memory, offset, length, access);
    if (!memory.fromLibrary && (access & ~Access.LOCAL_WRITE) !== 0) {
      throw new RmaError(
        'ERR_VERBS',
        `${call}: other ranks cannot access this process's own memory (capability remoteUserMemory); register it with access LOCAL_WRITE or 0, or use memory from allocateMemory (EINVAL)`,
      );
    }
    return this.#context.register(this, memory, offset, length, access);
  }

  createQueuePair(init: QueuePairInit): EmulatedQueuePair {
    this.#mustLive('create a queue pair');
    return this.#context.createQueuePair(this, init);
  }

  createSharedReceiveQueue(init: { maxWr: number; maxSge?: number }): EmulatedSharedReceiveQueue {
    const call = 'create a shared receive queue';
    this.#mustLive(call);
    const { maxWr, maxSge = 1 } = init;
    checkInteger(call, 'maxWr', maxWr, 1, DEVICE.maxSrqWr);
    checkInteger(call, 'maxSge', maxSge, 1, DEVICE.maxSrqSge);
    return this.#context.createSrq(this, maxWr, maxSge);
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
    this.#context.forgetPd();
  }

  #mustLive(call: string): void {
    if (this.#deallocated) throw new RmaError('ERR_VERBS', `${call}: the protection domain was deallocated`);
  }
}
