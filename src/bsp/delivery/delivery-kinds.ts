/** The ways in which supersteps are delivered, by name: values of the option `delivery`. */
import type { Communicator } from '../../collective/communicator.ts';
import type { Carrier, PacketCarrier } from './carrier.ts';
import type { CarrierUser } from './carrier-user.ts';
import { Always, ByMeasurement } from './choices.ts';
import { DatagramCarrier } from './datagram-carrier.ts';
import type { DatagramPort } from './datagram-port.ts';
import { LinkCarrier } from './link-carrier.ts';
import type { Chooser } from './zero-copy-delivery.ts';

/** What carries packed chunks (packed-delivery.ts). */
export interface Carrying {
  /** Makes it. */
  readonly carrier: (comm: Communicator, user: CarrierUser) => Carrier;
  /** Makes what says which puts are received without copies; the carrier has `rdma` then. Absent: none are. */
  readonly chooser?: (() => Chooser) | undefined;
}

/** Of a way that has datagrams (datagram-carrier.ts). */
export interface Datagrams {
  readonly port: DatagramPort;
  /** Milliseconds. */
  readonly nackAfter: number;
}

/** Makes what carries packets. */
type Packets = (comm: Communicator, user: CarrierUser) => PacketCarrier;

/** A way in which chunks are packed and carried. */
export interface PackedKind extends Partial<Carrying> {
  /** As packets (paced-carrier.ts). Absent: they cannot be paced. */
  readonly packets?: Packets;
  /** As datagrams, always: packets that may be lost. */
  readonly datagrams?: (datagrams: Datagrams) => Packets;
}

const byLinks: Carrying['carrier'] = (comm, user) => new LinkCarrier(comm, user, false);
const byLinksAndRdma: Carrying['carrier'] = (comm, user) => new LinkCarrier(comm, user, true);
/** Parts of chunks in a packet. Most packets have one, some have two. */
export const MOST_PIECES = 4;
const inPackets: Packets = (comm, user) => new LinkCarrier(comm, user, false, MOST_PIECES);
const inDatagrams =
  ({ port, nackAfter }: Datagrams): Packets =>
  (comm, user) =>
    new DatagramCarrier(comm, user, port, nackAfter);

/** `shared` is `SharedDelivery`: nothing is carried. */
const DELIVERY_KINDS = {
  shared: undefined,
  packed: { carrier: byLinks, packets: inPackets },
  'zero-copy': { carrier: byLinksAndRdma, chooser: () => new Always() },
  datagrams: { datagrams: inDatagrams },
  auto: { carrier: byLinksAndRdma, chooser: () => new ByMeasurement() },
} as const satisfies Record<string, PackedKind | undefined>;

/**
 * How a superstep is delivered.
 *
 * - `shared`: through memory that all processes load and store.
 * - `packed`: in chunks of 16 KiB (BSP-IB §3.1).
 * - `zero-copy`: the receiver's device reads puts into its variables (§3.2).
 * - `datagrams`: in packets that nobody acknowledges; a process asks for what has not come. Needs devices with
 *   datagrams.
 * - `auto`: `packed` or `zero-copy`, by how long supersteps of the same kind took.
 */
export type DeliveryName = keyof typeof DELIVERY_KINDS;

export const DELIVERIES = Object.keys(DELIVERY_KINDS) as readonly DeliveryName[];

/** Whether what it sends goes in packets, so that it can be paced. */
export function goesInPackets(name: DeliveryName): boolean {
  return packedKind(name)?.packets !== undefined || goesInDatagrams(name);
}

/** Whether these packets are datagrams. */
export function goesInDatagrams(name: DeliveryName): boolean {
  return packedKind(name)?.datagrams !== undefined;
}

/** `undefined`: through memory that all load and store. */
export function packedKind(name: DeliveryName): PackedKind | undefined {
  return DELIVERY_KINDS[name];
}
