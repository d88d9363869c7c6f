/** The ways in which supersteps are delivered, by name: values of the option `delivery`. */
import type { Communicator } from '../../collective/communicator.ts';
import type { Carrier, PacketCarrier } from './carrier.ts';
import type { CarrierUser } from './carrier-user.ts';
import { Always, ByMeasurement } from './choices.ts';
import { LinkCarrier } from './link-carrier.ts';
import type { Chooser } from './zero-copy-delivery.ts';

/** A way in which chunks are packed and carried (packed-delivery.ts). */
export interface PackedKind {
  /** Makes what carries them. */
  readonly carrier: (comm: Communicator, user: CarrierUser) => Carrier;
  /** Makes what says which puts are received without copies; the carrier has `rdma` then. Absent: none are. */
  readonly chooser?: () => Chooser;
  /** Makes what carries them in packets (paced-carrier.ts). Absent: they cannot be paced. */
  readonly packets?: (comm: Communicator, user: CarrierUser) => PacketCarrier;
}

const byLinks: PackedKind['carrier'] = (comm, user) => new LinkCarrier(comm, user, false);
const byLinksAndRdma: PackedKind['carrier'] = (comm, user) => new LinkCarrier(comm, user, true);
/** Parts of chunks in a packet. Most packets have one, some have two. */
const MOST_PIECES = 4;
const inPackets: PackedKind['packets'] = (comm, user) => new LinkCarrier(comm, user, false, MOST_PIECES);

/** `shared` is `SharedDelivery`: nothing is carried. */
const DELIVERY_KINDS = {
  shared: undefined,
  packed: { carrier: byLinks, packets: inPackets },
  'zero-copy': { carrier: byLinksAndRdma, chooser: () => new Always() },
  auto: { carrier: byLinksAndRdma, chooser: () => new ByMeasurement() },
} as const satisfies Record<string, PackedKind | undefined>;

/**
 * How a superstep is delivered.
 *
 * - `shared`: through memory that all processes load and store.
 * - `packed`: in chunks of 16 KiB (BSP-IB §3.1).
 * - `zero-copy`: the receiver's device reads puts into its variables (§3.2).
 * - `auto`: one of the last two, by how long supersteps of the same kind took.
 */
export type DeliveryName = keyof typeof DELIVERY_KINDS;

export const DELIVERIES = Object.keys(DELIVERY_KINDS) as readonly DeliveryName[];

/** `undefined`: through memory that all load and store. */
export function packedKind(name: DeliveryName): PackedKind | undefined {
  return DELIVERY_KINDS[name];
}
