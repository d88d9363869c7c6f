/** libfabric as one of the providers: TCP on ordinary networks, EFA, and others of its own providers. */
import { RmaError } from '../../errors.ts';
import type { Native } from '../../native.ts';
import { availability, type DistantContext, type ProviderReport, providerKind } from '../provider-kind.ts';
import { hostAt } from '../rdma-core/addresses.ts';
import { DistantNeighbours } from '../rdma-core/distant-neighbours.ts';
import type { NeighbourHeap } from '../rdma-core/neighbours.ts';
import { type FabricAddress, fabricAddressAt, storeFabricAddress, unreachable } from './libfabric-addresses.ts';
import { chooseFabric, UNUSABLE } from './libfabric-choice.ts';
import { type FabricContext, fabricNative, openFabric } from './libfabric-context.ts';
import { refusalAt } from './libfabric-reach.ts';

const LOOPBACK = '127.0.0.1';
/** How long the kernel of another host may take to accept a connection: two attempts may be lost. */
const ANSWER_MS = 6000;

/**
 * A rank tells its address before it tells the numbers of queue pairs, so a peer that has the numbers finds the
 * address.
 */
function open(table: Int32Array, rank: number, size: number, host: string, heap?: NeighbourHeap): FabricContext {
  const addresses = Array.from({ length: size }, (_, other) => () => fabricAddressAt(table, other));
  const choice = chooseFabric(process.env['ONESIDED_DEVICE'] ?? '', host);
  const opened = openFabric(choice, rank, addresses, heap);
  storeFabricAddress(table, rank, opened.own);
  return opened;
}

/** As it stands on a rank's card. */
interface CardAddress {
  readonly name: string;
  readonly tag: readonly [number, number];
}

function openDistant(native: Native, table: Int32Array, rank: number, size: number, host: string): DistantContext {
  const neighbours = new DistantNeighbours(native, rank);
  const { context, own } = open(table, rank, size, host, neighbours.heap);
  const address = hostAt(context.gid);
  return {
    context,
    address: { name: Buffer.from(own.name).toString('base64url'), tag: own.tag, ...neighbours.onCard },
    hosts: address === undefined ? [] : [address],
    store(addresses, processes) {
      const all = (addresses as readonly CardAddress[]).map(
        ({ name, tag }): FabricAddress => ({ name: Buffer.from(name, 'base64url'), tag }),
      );
      const why = unreachable(all.map(({ name }) => name));
      if (why !== undefined) throw new RmaError('ERR_PROVIDER_UNAVAILABLE', `provider libfabric: ${why}`);
      for (const [other, address] of all.entries()) storeFabricAddress(table, other, address);
      neighbours.setPeers(addresses, processes);
    },
    refusal: (address, signal) => refusalAt(Buffer.from((address as CardAddress).name, 'base64url'), ANSWER_MS, signal),
  };
}

function report(): ProviderReport {
  const none = (reason: string): ProviderReport => ({
    json: { ...availability(reason), offers: [] },
    lines: [['libfabric', `no: ${reason}`]],
  });
  const found = fabricNative();
  if ('reason' in found) return none(found.reason);
  try {
    const { version, file, offers: said } = found.native.fabricOffers!();
    const offers = said.filter(({ provider }) => !UNUSABLE.has(provider));
    if (offers.length === 0)
      return none(`libfabric ${version} (${file}) has no provider with messages by name, RMA and 64-bit atomics`);
    const providers = [...new Set(offers.map(({ provider }) => provider))];
    return {
      json: { available: true, version, file, offers },
      lines: [
        ['libfabric', `yes: version ${version}, ${file}`],
        ...providers.map((name): [string, string] => {
          const places = offers.filter(({ provider }) => provider === name);
          const shown = places.map(({ domain, address }) => (address ? `${address} (${domain})` : domain));
          return ['', `${name}: ${shown.join(', ')}`];
        }),
      ],
    };
  } catch (error) {
    return none((error as Error).message);
  }
}

export const libfabric = providerKind({
  name: 'libfabric',
  summary: 'connect them by libfabric: TCP, EFA, …; ONESIDED_DEVICE=libfabric:provider:address (processes only)',
  ranks: ['processes'],
  open: (_native, table, rank, size) => open(table, rank, size, LOOPBACK).context,
  openDistant,
  report,
});
