/**
 * A registered memory region as its own context sees it. One key serves as both, since peers need it to scatter into
 * this side's receives.
 */
import { MappedRegion } from '../core/local-side.ts';
import type { EmulatedMemory } from './emulator-memory.ts';

export class EmulatedRegion extends MappedRegion<EmulatedMemory> {
  readonly #revoke: (key: number) => void;

  constructor(
    pd: { children: number },
    memory: EmulatedMemory,
    offset: number,
    length: number,
    access: number,
    key: number,
    revoke: (key: number) => void,
  ) {
    super(pd, memory, offset, length, access, key, key);
    this.#revoke = revoke;
  }

  protected revoke(): void {
    this.#revoke(this.lkey);
  }
}
