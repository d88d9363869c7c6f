/**
 * `onesided/verbs`: the verbs interface and its providers.
 *
 * `contextOf(world)` returns the device that the windows of a job use. `openRdmaDevice` opens a real device through
 * libibverbs. `openLocalDevices` opens emulated devices inside this thread, without a job.
 */

import type { Communicator } from '../collective/communicator.ts';
import { publicCalls } from '../program-line.ts';
import { QueuePairCore } from '../providers/core/queue-pair-base.ts';
import { openEmulator } from '../providers/emulator/emulator-context.ts';
import { createLocalFabric } from '../providers/emulator/local-fabric.ts';
import type { RdmaAddress } from '../providers/rdma-core/addresses.ts';
import { openRdma } from '../providers/rdma-core/rdma-context.ts';
import { chooseEndpoint, type RdmaChoice, rdmaDevices } from '../providers/rdma-core/rdma-devices.ts';
import type { Context } from './device.ts';

export type { RdmaDevice, RdmaLimits, RdmaPort } from '../native.ts';
export * from './adapter-barrier.ts';
export * from './address-handle.ts';
export * from './completion-queue.ts';
export * from './device.ts';
export * from './memory.ts';
export * from './queue-pair.ts';
export * from './queue-pair-address.ts';
export * from './shared-receive-queue.ts';
export type { RdmaAddress, RdmaChoice };
export { rdmaDevices };

/**
 * Returns the device of this rank of a job, for queue pairs beside the job's windows. `finalize` closes it; do not
 * close it yourself.
 */
export function contextOf(world: Communicator): Context {
  return world.job.context;
}

/** Opens `size` emulated devices in this thread; each reaches the others by `member`, 0 … size − 1. */
export function openLocalDevices(size: number): Context[] {
  return createLocalFabric(size).map(openEmulator);
}

/**
 * Opens an RDMA device (InfiniBand, RoCE or iWARP) through libibverbs. Only requests reach its memory, and its atomics
 * are not atomic with respect to the CPU's: see `capabilities`.
 * @param choice device, port and GID. What is left out is selected: the first active port, and on Ethernet its RoCE v2
 * GID with an IPv4 address
 * @param member this side's number: its index in `peers`
 * @param peers the addresses of all sides, by `member`: each side's `own`, exchanged by any means. Must be complete
 * before queue pairs are connected
 * @returns the context; `own` is its address, for the `peers` of the other sides
 * Errors: `ERR_PROVIDER_UNAVAILABLE`, which says what is missing.
 */
export function openRdmaDevice(
  choice: RdmaChoice,
  member: number,
  peers: readonly RdmaAddress[],
): Context & {
  /** This side's address, for the `peers` of the other sides. */
  readonly own: RdmaAddress;
} {
  return openRdma(chooseEndpoint(choice), member, peers);
}

publicCalls(QueuePairCore, openLocalDevices, openRdmaDevice, rdmaDevices);
