/** Which RDMA devices there are, and which one is taken. */
import { networkInterfaces } from 'node:os';
import { RmaError } from '../../errors.ts';
import { loadNative, nativeStatus, type RdmaDevice, type RdmaPort } from '../../native.ts';

/** A port of a device, and the address that it is used with. */
export interface RdmaEndpoint {
  readonly device: string;
  readonly port: number;
  readonly gidIndex: number;
  /** Of the device, as `RdmaDevice` says it; absent: InfiniBand's, which RoCE has, too. */
  readonly transport?: string;
}

/** Selects a device, a port and a GID; the library selects what is left out. */
export interface RdmaChoice {
  /** The device's name: `mlx5_0`. */
  readonly device?: string | undefined;
  /** The number of the port, from 1. */
  readonly port?: number | undefined;
  /** The index of the GID in the port's table. */
  readonly gidIndex?: number | undefined;
}

const NO_DEVICE =
  'this machine has no RDMA device; Soft-RoCE provides one on an ordinary network interface: modprobe rdma_rxe; ' +
  'rdma link add rxe0 type rxe netdev eth0';

/** Lists the RDMA devices of this machine. If there are none, `reason` says why, and what to do. */
export function rdmaDevices(): {
  /** The devices, with their ports; a device that cannot be opened says why. */
  devices: readonly RdmaDevice[];
  /** Why there are none; absent if there are some. */
  reason?: string;
} {
  const native = loadNative();
  if (native === undefined) return { devices: [], reason: `the native addon is not loaded: ${nativeStatus().reason}` };
  if (native.rdmaDevices === undefined)
    return {
      devices: [],
      reason: native.rdmaReason ?? 'the native addon is too old for RDMA devices; build it again: npx onesided build',
    };
  try {
    const devices = native.rdmaDevices();
    return devices.length > 0 ? { devices } : { devices, reason: NO_DEVICE };
  } catch (error) {
    return { devices: [], reason: (error as Error).message };
  }
}

/**
 * Chooses: the device, port and GID that are asked for, else the first active port; on Ethernet its first RoCE v2
 * address of IPv4, since that one is routed and needs no more than the interface's own address.
 * Errors: `ERR_PROVIDER_UNAVAILABLE`.
 */
export function chooseEndpoint(choice: RdmaChoice = {}, found = rdmaDevices()): RdmaEndpoint {
  const { devices, reason } = found;
  const unavailable = (why: string): RmaError => new RmaError('ERR_PROVIDER_UNAVAILABLE', `provider rdma-core: ${why}`);
  if (reason !== undefined) throw unavailable(reason);
  const named = choice.device === undefined ? devices : devices.filter(({ name }) => name === choice.device);
  if (named.length === 0) {
    throw unavailable(
      `no device is named ${choice.device}; this machine has ${devices.map(({ name }) => name).join(', ')}`,
    );
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
        refusals.push(`${which} is ${port.state} (check its cable, and set its interface up: ip link set … up)`);
      } else if (gid === undefined) {
        const what = gidIndex === undefined ? '(assign an address to its interface: ip addr add …)' : String(gidIndex);
        refusals.push(`${which} has no GID ${what}`);
      } else if (choice.gidIndex === undefined && port.linkLayer === 'Ethernet' && !isAddress(gid)) {
        refusals.push(
          `${which} has no usable GID: its only GID, ${gid}, is not the address of any interface (assign an ` +
            'address to its interface: ip addr add …; or choose this GID: ' +
            `ONESIDED_DEVICE=${device.name}:${port.port}:${gidIndex})`,
        );
      } else return { device: device.name, port: port.port, gidIndex: gidIndex!, transport: device.transport };
    }
  }
  throw unavailable(`no usable port: ${refusals.join('; ') || `no device has a port ${choice.port}`}`);
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
    EACCES: `this user needs permission to read and write ${file}`,
    EPERM: `the container needs permission to use ${file} (--device ${file})`,
    ENOENT:
      `${file} does not exist; load the kernel module ib_uverbs, and in a container, ` +
      `pass the file in (--device ${file})`,
  };
  return `cannot open ${name}: ${cure[refusedCode ?? ''] ?? `${file}: ${refused}`}`;
}

/**
 * Every port has a GID made of its hardware address, which carries nothing unless its interface has that address, too.
 * Others are there because an interface has their address, though it may be in another network namespace than this
 * process.
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
