/**
 * Memory that can be registered: the library's own, which peers can map, and adopted memory of this process, which they
 * cannot.
 *
 * Addresses are made up: work requests name memory by integers, and nothing here ever takes one for a pointer. Each
 * context begins at a random page and leaves a page between pieces, so an address that ran over, or was meant for
 * another context, falls into no region.
 */
import { randomInt } from 'node:crypto';
import { bytesIn } from '../../intrinsics.ts';
import { Mapping } from '../core/mapped-memory.ts';
import { MemoryCore } from '../core/verbs-objects.ts';
import type { Allocation, EmulatorFabric } from './emulator-fabric.ts';

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

export class EmulatedMemory extends MemoryCore {
  readonly address: number;
  readonly byteLength: number;
  readonly mapping: Mapping;
  /** Absent for adopted memory. */
  readonly allocation: Allocation | undefined;
  readonly #fabric: EmulatorFabric;
  readonly #forget: (memory: EmulatedMemory) => void;

  constructor(
    fabric: EmulatorFabric,
    address: number,
    buffer: ArrayBufferLike,
    allocation: Allocation | undefined,
    forget: (memory: EmulatedMemory) => void,
  ) {
    super();
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

  protected release(): void {
    this.#forget(this);
    if (this.allocation !== undefined) this.#fabric.free(this.allocation);
  }
}
