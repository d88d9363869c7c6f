/**
 * An endpoint of libfabric, as a device: what it is made of (queue pairs, keys, order) is in native/fabric_engine.h,
 * and everything else is as on an RDMA device, so that its context is one of rdma-core's.
 */
import { RmaError } from '../../errors.ts';
import { loadNative, type Native, nativeStatus, type RdmaContext } from '../../native.ts';
import type { RdmaAddress } from '../rdma-core/addresses.ts';
import type { NeighbourHeap } from '../rdma-core/neighbours.ts';
import { RdmaCoreContext } from '../rdma-core/rdma-context.ts';
import { type FabricAddress, MOST_NAME } from './libfabric-addresses.ts';
import type { FabricChoice } from './libfabric-choice.ts';

/** Peers have a number in place of a GID; nothing else is asked of them. */
const WITHOUT_LID = { lid: 0, mtu: 5 } as const;

const unavailable = (why: string): RmaError => new RmaError('ERR_PROVIDER_UNAVAILABLE', `provider libfabric: ${why}`);

/** The addon, if it was built with libfabric's headers. */
export function fabricNative(): { native: Native } | { reason: string } {
  const native = loadNative();
  if (native === undefined) return { reason: `the native addon is not loaded: ${nativeStatus().reason}` };
  if (native.fabricOffers !== undefined) return { native };
  return { reason: native.fabricReason ?? native.rdmaReason ?? 'the native addon is too old: npx onesided build' };
}

export interface FabricContext {
  readonly context: RdmaCoreContext;
  readonly own: FabricAddress;
}

/**
 * Opens an endpoint.
 * @param addresses where the endpoints of all are, by member; asked for when a queue pair is first connected to one
 * @param heap gives memory that neighbours can map
 * Errors: `ERR_PROVIDER_UNAVAILABLE`.
 */
export function openFabric(
  { provider, address }: FabricChoice,
  member: number,
  addresses: readonly (() => FabricAddress | undefined)[],
  heap?: NeighbourHeap,
): FabricContext {
  const found = fabricNative();
  if ('reason' in found) throw unavailable(found.reason);
  let device: RdmaContext | undefined;
  const gids: string[] = [];
  const peers = Array.from(
    addresses,
    (_, other): RdmaAddress => ({
      ...WITHOUT_LID,
      get gid() {
        const known = gids[other];
        if (known !== undefined) return known;
        const peer = addresses[other]();
        if (peer === undefined) throw unavailable(`rank ${other} has not said where its endpoint is`);
        gids[other] = device!.addPeer(peer.name, ...peer.tag);
        return gids[other];
      },
    }),
  );
  const name = address === '' ? `libfabric:${provider}` : `libfabric:${provider}:${address}`;
  const context = new RdmaCoreContext(found.native, { device: name, port: 1, gidIndex: 0 }, member, peers, heap, {
    provider: 'libfabric',
    acknowledgesLater: true,
    open(native, _, woken) {
      device = new native.RdmaContext!(address === '' ? provider : `${provider}|${address}`, 1, 0, woken, true);
      return device;
    },
    claims(opened) {
      const { atomicsAgree } = opened.endpoint();
      // The owner takes a lock by the processor that other ranks take by libfabric's atomics.
      return { randomKeys: true, atomicsAgree, updates: atomicsAgree };
    },
    trouble: (opened) => opened.endpoint().trouble,
  });
  const own = device!.endpoint();
  if (own.name.length > MOST_NAME) {
    context.close();
    throw unavailable(`names of ${provider}'s endpoints have ${own.name.length} bytes; at most ${MOST_NAME} fit`);
  }
  return { context, own };
}
