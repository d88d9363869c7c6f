/** Memory of the library's own that requests name. */
import { ALL_ACCESS } from '../verbs/checks.ts';
import type { Context } from '../verbs/device.ts';
import type { MemoryRegion, ProtectionDomain } from '../verbs/memory.ts';

/**
 * Memory that is registered from its first byte on, or an error and none. Errors: `ERR_VERBS`.
 * @param access what peers, and the device for this rank, may do there; everything if absent
 */
export function allocateRegistered(
  context: Context,
  pd: ProtectionDomain,
  bytes: number,
  access = ALL_ACCESS,
): MemoryRegion {
  const memory = context.allocateMemory(bytes);
  try {
    return pd.registerMemory(memory, 0, bytes, access);
  } catch (error) {
    memory.free();
    throw error;
  }
}

/** No request names it any more. */
export function freeRegistered(region: MemoryRegion): void {
  region.deregister();
  region.memory.free();
}
