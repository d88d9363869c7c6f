/** A registered memory region as its own context sees it. */
import type { MemoryRegion } from '../../verbs/memory.ts';
import type { EmulatedMemory } from './memory.ts';

export class EmulatedRegion implements MemoryRegion {
  readonly memory: EmulatedMemory;
  readonly address: number;
  readonly length: number;
  readonly access: number;
  /** One key serves as both, as on most adapters: peers need it too, to scatter into this side's receives. */
  readonly lkey: number;
  readonly rkey: number;
  /** The number of its protection domain. */
  readonly pd: number;
  live = true;
  readonly #revoke: (region: EmulatedRegion) => void;

  constructor(
    memory: EmulatedMemory,
    offset: number,
    length: number,
    access: number,
    pd: number,
    key: number,
    revoke: (region: EmulatedRegion) => void,
  ) {
    this.memory = memory;
    this.address = memory.address + offset;
    this.length = length;
    this.access = access;
    this.lkey = key;
    this.rkey = key;
    this.pd = pd;
    this.#revoke = revoke;
  }

  deregister(): void {
    if (!this.live) return;
    this.live = false;
    this.#revoke(this);
  }
}
