/**
 * `onesided/verbs`: the verbs interface and its providers.
 *
 * `openRdmaDevice` opens a real device, through libibverbs.
 *
 * A program with a job takes the device that its windows use (`contextOf(world)`); one without opens devices that are connected
 * inside its thread (`openLocalDevices`).
 */
import type { Communicator } from '../comm/communicator.ts';
import { openEmulator } from '../providers/emulator/context.ts';
import { createLocalFabric } from '../providers/emulator/local-fabric.ts';
import { openRdma, type RdmaAddress } from '../providers/rdma-core/context.ts';
import { chooseEndpoint, type RdmaChoice, rdmaDevices } from '../providers/rdma-core/devices.ts';
import type { Context } from './device.ts';

export type { RdmaDevice, RdmaLimits, RdmaPort } from '../native.ts';
export * from './completion-queue.ts';
export * from './device.ts';
export * from './memory.ts';
export * from './queue-pair.ts';
export * from './shared-receive-queue.ts';
export type { RdmaAddress, RdmaChoice };
export { rdmaDevices };

/** The device of this rank of a job, to make queue pairs from beside the job's windows. It is closed by `finalize`, not by its user. */
export function contextOf(world: Communicator): Context {
  return world.job.context;
}

/** Opens `size` emulated devices in this thread, each reachable from the others by its `lid`, 0 … size − 1. */
export function openLocalDevices(size: number): Context[] {
  return createLocalFabric(size).map(openEmulator);
}

/**
 * Opens an RDMA device: InfiniBand, RoCE or iWARP, through libibverbs. Its memory is reached by requests only, and its atomics do not agree with
 * the CPU's: see `capabilities`.
 * @param choice device, port and GID; what is left out is chosen: the first active port, on Ethernet its RoCE v2 address of IPv4
 * @param lid this end's place in `peers`
 * @param peers where the others can be reached, by lid: their `own`, however it gets here; may be filled until queue pairs are connected
 * Errors: `ERR_PROVIDER_UNAVAILABLE`, which says what is missing.
 */
export function openRdmaDevice(
  choice: RdmaChoice,
  lid: number,
  peers: readonly RdmaAddress[],
): Context & { readonly own: RdmaAddress } {
  return openRdma(chooseEndpoint(choice), lid, peers);
}
