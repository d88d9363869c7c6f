/** RDMA devices as one of the providers: which device a rank opens, and how its peers find it. */
import { RmaError, show } from '../../errors.ts';
import type { Native, RdmaDevice } from '../../native.ts';
import { availability, type DistantContext, providerKind, showAvailability } from '../provider-kind.ts';
import { addressAt, hostAt, type RdmaAddress, storeAddress } from './addresses.ts';
import { DistantNeighbours } from './distant-neighbours.ts';
import type { NeighbourHeap } from './neighbours.ts';
import { openRdma, type RdmaCoreContext } from './rdma-context.ts';
import { chooseEndpoint, type RdmaChoice, rdmaDevices } from './rdma-devices.ts';

/**
 * The device that `ONESIDED_DEVICE` names, as `device`, `device:port` or `device:port:gidIndex`; what is left out is
 * chosen.
 */
function chosenDevice(): RdmaChoice {
  const text = process.env['ONESIDED_DEVICE'] ?? '';
  const [known, device, port, gidIndex] = /^([^:]*)(?::(\d*))?(?::(\d*))?$/.exec(text) ?? [];
  if (known === undefined) {
    throw new RmaError(
      'ERR_PROVIDER_UNAVAILABLE',
      `ONESIDED_DEVICE must be device, device:port or device:port:gidIndex, not ${show(text)}`,
    );
  }
  const number = (digits: string | undefined): number | undefined => (digits ? Number(digits) : undefined);
  return { device: device || undefined, port: number(port), gidIndex: number(gidIndex) };
}

/**
 * A rank tells its address before it tells the numbers of queue pairs, so a peer that has the numbers finds the
 * address.
 */
function openDevice(table: Int32Array, rank: number, size: number, heap?: NeighbourHeap): RdmaCoreContext {
  const peers = Array.from({ length: size }, (_, other) => addressAt(table, other));
  const context = openRdma(chooseEndpoint(chosenDevice()), rank, peers, heap);
  storeAddress(table, rank, context.own);
  return context;
}

function openDistant(native: Native, table: Int32Array, rank: number, size: number): DistantContext {
  const neighbours = new DistantNeighbours(native, rank);
  const context = openDevice(table, rank, size, neighbours.heap);
  const host = hostAt(context.own.gid);
  return {
    context,
    address: { ...context.own, ...neighbours.onCard },
    hosts: host === undefined ? [] : [host],
    store(addresses, processes) {
      for (const [other, address] of addresses.entries()) storeAddress(table, other, address as RdmaAddress);
      neighbours.setPeers(addresses, processes);
    },
  };
}

/** Name and value of a line for each port, and one for each of its GIDs. */
function linesOf(device: RdmaDevice): [string, string][] {
  if (device.refused !== undefined) return [[`  ${device.name}`, `cannot be opened: ${device.refused}`]];
  return (device.ports ?? []).flatMap(({ port, state, linkLayer, activeMtu, gids }) => [
    [
      `  ${device.name}`,
      `port ${port} ${state}, ${linkLayer}, MTU ${activeMtu}, firmware ${device.firmware || 'unknown'}`,
    ],
    ...gids.map(({ index, gid, type }): [string, string] => ['', `GID ${index}: ${gid}${type ? ` (${type})` : ''}`]),
  ]);
}

export const rdmaCore = providerKind({
  name: 'rdma-core',
  summary: 'connect them by an RDMA device, selected by ONESIDED_DEVICE=name[:port[:gid]] (processes only)',
  ranks: ['processes'],
  open: (_native, table, rank, size) => openDevice(table, rank, size),
  openDistant,
  report() {
    const { devices, reason } = rdmaDevices();
    const available = availability(reason);
    return {
      json: { ...available, devices },
      lines: [['rdma-core', showAvailability(available)], ...devices.flatMap(linesOf)],
    };
  },
});
