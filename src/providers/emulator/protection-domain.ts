/** A protection domain: what is made from it can be used together, and with nothing else. */

import { RmaError } from '../../errors.ts';
import type { AddressHandle, AhAttributes } from '../../verbs/address-handle.ts';
import { Access, type Memory, type QueuePairInit } from '../../verbs/memory.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import { wayInMemory } from '../core/address-handles.ts';
import { ProtectionDomainCore } from '../core/verbs-objects.ts';
import { DEVICE } from './emulator-limits.ts';
import { EmulatedMemory } from './emulator-memory.ts';
import type { EmulatedParent, EmulatedPd } from './emulator-parent.ts';
import type { EmulatedRegion } from './memory-region.ts';

export class EmulatedProtectionDomain
  extends ProtectionDomainCore<EmulatedMemory, EmulatedRegion, QueuePair, SharedReceiveQueue>
  implements EmulatedPd
{
  readonly number: number;
  readonly #context: EmulatedParent;

  constructor(context: EmulatedParent, number: number) {
    super(DEVICE);
    this.#context = context;
    this.number = number;
  }

  protected owns(memory: Memory): memory is EmulatedMemory {
    return memory instanceof EmulatedMemory;
  }

  protected register(
    call: string,
    memory: EmulatedMemory,
    offset: number,
    length: number,
    access: number,
  ): EmulatedRegion {
    if (!memory.fromLibrary && (access & ~Access.LOCAL_WRITE) !== 0) {
      throw new RmaError(
        'ERR_VERBS',
        `${call}: other ranks cannot access this process's own memory (capability remoteUserMemory); ` +
          'register it with access LOCAL_WRITE or 0, or use memory from allocateMemory (EINVAL)',
      );
    }
    return this.#context.register(this, memory, offset, length, access);
  }

  protected makeQueuePair(init: QueuePairInit): QueuePair {
    return this.#context.createQueuePair(this, init);
  }

  protected get handles(): number {
    return this.#context.handles.size;
  }

  protected makeAh(attributes: AhAttributes): AddressHandle {
    return this.#context.handles.make(this, wayInMemory(attributes, this.#context.fabric.size));
  }

  protected makeSharedReceiveQueue(call: string, maxWr: number, maxSge: number): SharedReceiveQueue {
    return this.#context.createSrq(call, this, maxWr, maxSge);
  }

  protected release(): void {
    this.#context.forgetPd();
  }
}
