/**
 * Memory of the library's own that requests read to and write from. It may be given up while some of them are on their
 * way: it is freed when the last one is complete, or when the device carries out none any more.
 */
import type { Context } from '../verbs/device.ts';
import { Access, type Memory, type MemoryRegion, type ProtectionDomain } from '../verbs/memory.ts';

/** Requests that are not complete. */
export interface Left {
  count: number;
  /** Called when there are none any more. */
  whenNone?: (() => void) | undefined;
}

export class Scratch {
  readonly memory: Memory;
  readonly region: MemoryRegion;
  readonly left: Left = { count: 0 };
  readonly #all: Set<Scratch>;

  /** @param all where it stands as long as it has its memory. Errors: `ERR_VERBS` */
  constructor(context: Context, pd: ProtectionDomain, bytes: number, all: Set<Scratch>) {
    this.memory = context.allocateMemory(bytes);
    try {
      this.region = pd.registerMemory(this.memory, 0, bytes, Access.LOCAL_WRITE);
    } catch (error) {
      this.memory.free();
      throw error;
    }
    this.#all = all;
    all.add(this);
  }

  free(): void {
    if (this.left.count === 0) this.dispose();
    else this.left.whenNone = () => this.dispose();
  }

  /** Frees it whatever is on its way: nothing is, since its connections are gone. */
  dispose(): void {
    if (!this.#all.delete(this)) return;
    this.region.deregister();
    this.memory.free();
  }
}
