/**
 * Origins whose memory is registered for the device. The windows of a job that transfer from or to the same buffer
 * share one registration, which lasts until the last of them lets it go.
 */

import { bytesIn } from '../intrinsics.ts';
import type { Context } from '../verbs/device.ts';
import { Access, type MemoryRegion, type ProtectionDomain } from '../verbs/memory.ts';

/** A window's side: what it keeps for the next transfers. */
interface Keeper {
  /** Lets the registration of a buffer go, unless a transfer is under way. */
  forget(buffer: ArrayBufferLike): void;
}

export class Origins {
  readonly #context: Context;
  readonly #pd: ProtectionDomain;
  /** By buffer, the last registration of each. */
  readonly #regions = new Map<ArrayBufferLike, MemoryRegion>();
  readonly #users = new Map<MemoryRegion, number>();
  readonly #keepers = new Set<Keeper>();

  constructor(context: Context, pd: ProtectionDomain) {
    this.#context = context;
    this.#pd = pd;
  }

  join(keeper: Keeper): void {
    this.#keepers.add(keeper);
  }

  leave(keeper: Keeper): void {
    this.#keepers.delete(keeper);
  }

  /**
   * All of a buffer, as it is now: one that has grown is registered anew. Errors: of the device, which may have no room
   * for it.
   */
  take(buffer: ArrayBufferLike): MemoryRegion {
    let region = this.#regions.get(buffer);
    const bytes = bytesIn(buffer);
    if (region?.length !== bytes) {
      region = this.#pd.registerMemory(this.#context.adoptMemory(buffer), 0, bytes, Access.LOCAL_WRITE);
      this.#regions.set(buffer, region);
    }
    this.#users.set(region, (this.#users.get(region) ?? 0) + 1);
    return region;
  }

  /** One user less. Nothing that it has posted may still access the memory. */
  give(buffer: ArrayBufferLike, region: MemoryRegion): void {
    const users = this.#users.get(region)! - 1;
    if (users > 0) {
      this.#users.set(region, users);
      return;
    }
    this.#users.delete(region);
    if (this.#regions.get(buffer) === region) this.#regions.delete(buffer);
    region.deregister();
  }

  /** The buffer's memory is about to be given back. */
  forget(buffer: ArrayBufferLike): void {
    if (this.#regions.has(buffer)) for (const keeper of this.#keepers) keeper.forget(buffer);
  }
}
