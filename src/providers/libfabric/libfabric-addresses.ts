/** Addresses of the ranks' endpoints, in the rows of the control memory's table. */
import { rowOf } from '../emulator/bells.ts';

/** Where an endpoint is, and what stands in every message to it. */
export interface FabricAddress {
  /** In the format of libfabric's provider. */
  readonly name: Uint8Array;
  /** 64 random bits: the upper and the lower half. */
  readonly tag: readonly [number, number];
}

/** `AF_INET`, as a `sockaddr_in` begins with. */
const IPV4 = 2;

/** The IPv4 address that a name says, if its provider names endpoints so. */
function ipv4In(name: Uint8Array): string | undefined {
  return name.length === 16 && name[0] === IPV4 && name[1] === 0 ? name.slice(4, 8).join('.') : undefined;
}

/**
 * Why the endpoints of a job cannot reach each other, if their addresses say so: a host that has found no interface but
 * the loopback is reached by nobody else.
 * @param names of all ranks' endpoints
 */
export function unreachable(names: readonly Uint8Array[]): string | undefined {
  const hosts = names.map(ipv4In);
  const isLoopback = (host: string | undefined): boolean => host?.startsWith('127.') === true;
  const alone = hosts.findIndex(isLoopback);
  const outside = hosts.findIndex((host) => host !== undefined && !isLoopback(host));
  if (alone < 0 || outside < 0) return undefined;
  return (
    `rank ${alone} is at ${hosts[alone]}, where rank ${outside} at ${hosts[outside]} cannot reach it: its host has ` +
    'no other interface that is up and has an address (ip addr); set one up, or name an address by ONESIDED_DEVICE'
  );
}

/** Words of a rank's row, behind those that bells use. A name has up to 48 bytes. */
const Address = Object.freeze({ READY: 16, BYTES: 17, NAME: 18, TAG: 30 });

/** The longest name; those of IP have 16 or 28 bytes, EFA's 32. */
export const MOST_NAME = 4 * (Address.TAG - Address.NAME);

/** Where peers look for a rank's endpoint. */
export function storeFabricAddress(table: Int32Array, rank: number, { name, tag }: FabricAddress): void {
  const row = rowOf(rank);
  const words = new Int32Array(MOST_NAME / 4);
  new Uint8Array(words.buffer).set(name);
  words.forEach((word, i) => void Atomics.store(table, row + Address.NAME + i, word));
  Atomics.store(table, row + Address.BYTES, name.length);
  tag.forEach((half, i) => void Atomics.store(table, row + Address.TAG + i, half | 0));
  Atomics.store(table, row + Address.READY, 1);
}

/** What a rank's row says; `undefined` if nothing yet. */
export function fabricAddressAt(table: Int32Array, rank: number): FabricAddress | undefined {
  const row = rowOf(rank);
  if (Atomics.load(table, row + Address.READY) !== 1) return undefined;
  const word = (at: number): number => Atomics.load(table, row + at);
  const words = Int32Array.from({ length: MOST_NAME / 4 }, (_, i) => word(Address.NAME + i));
  return {
    name: new Uint8Array(words.buffer).slice(0, word(Address.BYTES)),
    tag: [word(Address.TAG) >>> 0, word(Address.TAG + 1) >>> 0],
  };
}
