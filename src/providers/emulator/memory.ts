/**
 * Memory that can be registered: the library's own, which peers can map, and adopted memory of this process, which they cannot.
 *
 * Addresses are made up: work requests name memory by integers, and nothing here ever takes one for a pointer. Each
 * context begins at a random page and leaves a page between pieces, so an address that ran over, or was meant for another
 * context, falls into no region.
 */
import { randomInt } from 'node:crypto';
import { RmaError } from '../../errors.ts';
import { bytesIn } from '../../intrinsics.ts';
import type { Memory } from '../../verbs/memory.ts';
import type { Allocation, Fabric } from './fabric.ts';
import { Mapping } from './mapping.ts';

const PAGE = 4096;

/** Gives out the synthetic addresses of one context. They never come again: 2^53 of them do not run out. */
export class AddressSpace {
  #next = randomInt(2 ** 20, 2 ** 34) * PAGE;

  take(bytes: number): number {
    const address = this.#next;
    this.#next += (Math.ceil(bytes / PAGE) + 1) * PAGE;
    return address;
  }
}

export class EmulatedMemory implements Memory {
  readonly address: number;
  readonly byteLength: number;
  readonly mapping: Mapping;
  /** Absent for adopted memory. */
  readonly allocation: Allocation | undefined;
  /** Live regions over it. */
  regions = 0;
  readonly #fabric: Fabric;
  readonly #forget: (memory: EmulatedMemory) => void;
  #freed = false;

  constructor(
    fabric: Fabric,
    address: number,
    buffer: ArrayBufferLike,
    allocation: Allocation | undefined,
    forget: (memory: EmulatedMemory) => void,
  ) {
    this.#fabric = fabric;
    this.address = address;
    this.byteLength = bytesIn(buffer);
    this.mapping = new Mapping(buffer);
    this.allocation = allocation;
    this.#forget = forget;
  }

  get buffer(): ArrayBufferLike {
    return this.mapping.buffer;
  }

  get fromLibrary(): boolean {
    return this.allocation !== undefined;
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
    this.#forget(this);
    if (this.allocation !== undefined) this.#fabric.free(this.allocation);
  }
}
