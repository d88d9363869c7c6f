/** Which RDMA devices there are, and which one is taken. */
import { networkInterfaces } from 'node:os';
import { RmaError } from '../../errors.ts';
import { loadNative, nativeStatus, type RdmaDevice, type RdmaPort } from '../../native.ts';

/** A port of a device, and the address that it is used with. */
export interface RdmaEndpoint {
  readonly device: string;
  readonly port: number;
  readonly gidIndex: number;
}

/** What may be said of the device to take; what is left out is chosen. */
export interface RdmaChoice {
  readonly device?: string | undefined;
  readonly port?: number | undefined;
  readonly gidIndex?: number | undefined;
}

const NO_DEVICE =
  'this machine has no RDMA device; Soft-RoCE makes one of an ordinary network interface: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0';

/** All devices, or why it cannot be known. */
export function rdmaDevices(): { devices: readonly RdmaDevice[]; reason?: string } {
  const native = loadNative();
  if (native === undefined) return { devices: [], reason: `the native addon is missing: ${nativeStatus().reason}` };
  if (native.rdmaDevices === undefined) return { devices: [], reason: native.rdmaReason ?? 'the addon is too old' };
  try {
    const devices = native.rdmaDevices();
    return devices.length > 0 ? { devices } : { devices, reason: NO_DEVICE };
  } catch (error) {
    return { devices: [], reason: (error as Error).message };
  }
}

/**
 * Chooses: the device, port and GID that are asked for, else the first active port; on Ethernet its first RoCE v2 address of IPv4, since that one is routed
 * and needs no more than the interface's own address.
 * Errors: `ERR_PROVIDER_UNAVAILABLE`.
 */
export function chooseEndpoint(choice: RdmaChoice = {}, found = rdmaDevices()): RdmaEndpoint {
  const { devices, reason } = found;
  const unavailable = (why: string): RmaError => new RmaError('ERR_PROVIDER_UNAVAILABLE', `provider rdma-core: ${why}`);
  if (reason !== undefined) throw unavailable(reason);
  const named = choice.device === undefined ? devices : devices.filter(({ name }) => name === choice.device);
  if (named.length === 0) {
    throw unavailable(`there is no device ${choice.device}; there are ${devices.map(({ name }) => name).join(', ')}`);
  }
  const refusals: string[] = [];
  for (const device of named) {
    if (device.refused !== undefined) refusals.push(refusalOf(device));
    for (const port of device.ports ?? []) {
      if (choice.port !== undefined && port.port !== choice.port) continue;
      const gidIndex = choice.gidIndex ?? gidIndexOf(port);
      const which = `port ${port.port} of ${device.name}`;
      const gid = port.gids.find(({ index }) => index === gidIndex)?.gid;
      if (port.state !== 'ACTIVE') {
        refusals.push(`${which} is ${port.state} (its cable, or its interface: ip link set … up)`);
      } else if (gid === undefined) {
        const what =
          gidIndex === undefined ? 'at all (give its interface an address: ip addr add …)' : String(gidIndex);
        refusals.push(`${which} has no GID ${what}`);
      } else if (choice.gidIndex === undefined && port.linkLayer === 'Ethernet' && !isAddress(gid)) {
        refusals.push(
          `${which} has no address: no interface has that of its only GID, ${gid} (give its interface an address: ip addr add …; or name the GID, ONESIDED_DEVICE=${device.name}:${port.port}:${gidIndex})`,
        );
      } else return { device: device.name, port: port.port, gidIndex: gidIndex! };
    }
  }
  throw unavailable(`no port can be used: ${refusals.join('; ') || `there is no port ${choice.port}`}`);
}

function gidIndexOf({ linkLayer, gids }: RdmaPort): number | undefined {
  if (linkLayer === 'InfiniBand') return gids[0]?.index;
  const routed = gids.filter(({ type }) => type === 'RoCE v2');
  const ipv4 = routed.find(({ gid }) => gid.startsWith('0000:0000:0000:0000:0000:ffff:'));
  return (ipv4 ?? routed[0] ?? gids[0])?.index;
}

/** Why a device cannot be opened, and what to do. */
function refusalOf({ name, file, refused, refusedCode }: RdmaDevice): string {
  const cure: Record<string, string> = {
    EACCES: `this user must be allowed to read and write ${file}`,
    EPERM: `the container must be allowed to use ${file} (--device ${file})`,
    ENOENT: `${file} is not there; is ib_uverbs loaded, and has the container been given it (--device ${file})?`,
  };
  return `${name} cannot be opened: ${cure[refusedCode ?? ''] ?? `${file}: ${refused}`}`;
}

/**
 * Every port has a GID made of its hardware address, which carries nothing unless its interface has that address, too. Others are there because an interface has their address, though
 * it may be in another network namespace than this process.
 */
function isAddress(gid: string): boolean {
  if (!gid.startsWith('fe80:')) return true;
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return all.some(({ address, family }) => family === 'IPv6' && expanded(address) === gid);
}

/** An IPv6 address in eight groups of four digits. */
function expanded(address: string): string {
  const [head, tail] = address.split('::');
  const groups = (text: string | undefined): string[] => (text ? text.split(':') : []);
  const [front, back] = [groups(head), groups(tail)];
  const zeros = tail === undefined ? [] : new Array<string>(8 - front.length - back.length).fill('0');
  return [...front, ...zeros, ...back].map((group) => group.padStart(4, '0').toLowerCase()).join(':');
}
