/** Addresses of the ranks' devices, in the rows of the control memory's table. */
import { rowOf } from '../emulator/bells.ts';

/** The address of a device's port, for the other sides to connect to. */
export interface RdmaAddress {
  /** The port's GID, as eight groups of four hexadecimal digits. */
  readonly gid: string;
  /** The port's local identifier in an InfiniBand subnet; 0 on Ethernet. */
  readonly lid: number;
  /** The port's MTU as an `ibv_mtu`: 1 for 256 bytes, 5 for 4096. */
  readonly mtu: number;
}

/**
 * Words of a rank's row in the control memory, where it has a device instead of a fabric: behind those that bells use.
 */
const Address = Object.freeze({ READY: 16, GID: 17, LID: 21, MTU: 22 });

/** Where peers look for a rank's device. */
export function storeAddress(table: Int32Array, rank: number, { gid, lid, mtu }: RdmaAddress): void {
  const row = rowOf(rank);
  const words = gidWords(gid);
  for (let i = 0; i < words.length; i++) Atomics.store(table, row + Address.GID + i, words[i]);
  Atomics.store(table, row + Address.LID, lid);
  Atomics.store(table, row + Address.MTU, mtu);
  Atomics.store(table, row + Address.READY, 1);
}

/** A rank's address: what its row says when it is read. */
export function addressAt(table: Int32Array, rank: number): RdmaAddress {
  const row = rowOf(rank);
  return {
    get gid() {
      const words = Uint32Array.from({ length: 4 }, (_, i) => Atomics.load(table, row + Address.GID + i));
      const hex = [...words].map((word) => word.toString(16).padStart(8, '0')).join('');
      return hex.replace(/(....)(?=.)/g, '$1:');
    },
    get lid() {
      return Atomics.load(table, row + Address.LID);
    },
    get mtu() {
      return Atomics.load(table, row + Address.MTU);
    },
  };
}

/** The IPv4 address that a GID of RoCE v2 stands for, if it does. */
export function hostAt(gid: string): string | undefined {
  const hex = gid.replaceAll(':', '');
  if (!hex.startsWith(`${'0'.repeat(20)}ffff`)) return undefined;
  return [0, 2, 4, 6].map((at) => Number.parseInt(hex.slice(24 + at, 26 + at), 16)).join('.');
}

/** @param gid eight groups of four hexadecimal digits */
function gidWords(gid: string): Int32Array {
  const hex = gid.replaceAll(':', '');
  return Int32Array.from({ length: 4 }, (_, i) => Number.parseInt(hex.slice(8 * i, 8 * i + 8), 16) | 0);
}
