/** Where a receive puts a message: checked as its adapter would check it. */
import { WcStatus } from '../../verbs/completion-queue.ts';
import { Access } from '../../verbs/memory.ts';
import type { Pieces } from '../core/mapped-memory.ts';
import type { Peer } from './peer.ts';
import type { ReceiveRing } from './receive-ring.ts';

/**
 * Resolves where the receive that was claimed puts `length` bytes into `scatter`.
 * @param pd the protection domain of the receiver's queue pair
 * @returns the receiver's status
 */
export function findScatter(peer: Peer, pd: number, receives: ReceiveRing, scatter: Pieces, length: number): number {
  scatter.clear();
  let left = length;
  for (let i = 0; i < receives.numSge && left > 0; i++) {
    const n = Math.min(receives.lengths[i], left);
    if (n === 0) continue;
    const region = peer.region(receives.lkeys[i]);
    const address = receives.addresses[i];
    if (
      region === undefined ||
      region.pd !== pd ||
      (region.access & Access.LOCAL_WRITE) === 0 ||
      !region.contains(address, n)
    ) {
      return WcStatus.LOC_PROT_ERR;
    }
    scatter.add(region.mapping, address + region.shift, n);
    left -= n;
  }
  return left > 0 ? WcStatus.LOC_LEN_ERR : WcStatus.SUCCESS;
}
