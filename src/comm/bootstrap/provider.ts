/** The device that connects the ranks. */
import { debugs, nodeSize } from '../../debug.ts';
import { RmaError, show } from '../../errors.ts';
import type { Native } from '../../native.ts';
import { rowOf } from '../../providers/emulator/bells.ts';
import { openEmulator, openEmulatorAsDevice } from '../../providers/emulator/context.ts';
import type { Fabric } from '../../providers/emulator/fabric.ts';
import { openProcessFabric } from '../../providers/emulator/process-fabric.ts';
import { openRdma, type RdmaAddress, type RdmaCoreContext } from '../../providers/rdma-core/context.ts';
import { chooseEndpoint, type RdmaChoice } from '../../providers/rdma-core/devices.ts';
import type { NeighbourHeap } from '../../providers/rdma-core/neighbours.ts';
import type { Context } from '../../verbs/device.ts';

const RANKS_A_HOST = debugs('neighbours') ? 2 : 1;

/**
 * Words of a rank's row in the control memory, where it has a device instead of a fabric: behind those that bells use.
 */
const Address = Object.freeze({ READY: 16, GID: 17, LID: 21, MTU: 22 });

/** The emulator over a fabric. */
export function openContext(fabric: Fabric): Context {
  return debugs('requests') ? openEmulatorAsDevice(fabric, RANKS_A_HOST) : openEmulator(fabric, nodeSize());
}

/** Between processes: what `ONESIDED_PROVIDER` says, the emulator or a device. */
export function openProcessContext(native: Native, table: Int32Array, rank: number, size: number): Context {
  const provider = process.env['ONESIDED_PROVIDER'] ?? 'emulator';
  if (provider === 'emulator') return openContext(openProcessFabric(native, table, rank, size));
  if (provider === 'rdma-core') return openDevice(table, rank, size);
  throw new RmaError(
    'ERR_PROVIDER_UNAVAILABLE',
    `ONESIDED_PROVIDER must be emulator or rdma-core, not ${show(provider)}`,
  );
}

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

/** Whether `ONESIDED_PROVIDER` asks for a device. */
export function wantsDevice(): boolean {
  return process.env['ONESIDED_PROVIDER'] === 'rdma-core';
}

/**
 * Whether ranks of one host put and get by loads and stores, in a job on several hosts. `ONESIDED_NEIGHBOURS=device`:
 * no, as with all others.
 */
export function neighboursMap(): boolean {
  const how = process.env['ONESIDED_NEIGHBOURS'] ?? 'memory';
  if (how === 'memory' || how === 'device') return how === 'memory';
  throw new RmaError('ERR_PROVIDER_UNAVAILABLE', `ONESIDED_NEIGHBOURS must be memory or device, not ${show(how)}`);
}

/** A rank tells its address before it tells the numbers of queue pairs, so who has those finds it. */
export function openDevice(table: Int32Array, rank: number, size: number, heap?: NeighbourHeap): RdmaCoreContext {
  const peers = Array.from({ length: size }, (_, other) => addressAt(table, rowOf(other)));
  const context = openRdma(chooseEndpoint(chosenDevice()), rank, peers, heap);
  storeAddress(table, rank, context.own);
  return context;
}

/** Where peers look for a rank's device. */
export function storeAddress(table: Int32Array, rank: number, { gid, lid, mtu }: RdmaAddress): void {
  const row = rowOf(rank);
  const words = gidWords(gid);
  for (let i = 0; i < words.length; i++) Atomics.store(table, row + Address.GID + i, words[i]);
  Atomics.store(table, row + Address.LID, lid);
  Atomics.store(table, row + Address.MTU, mtu);
  Atomics.store(table, row + Address.READY, 1);
}

function addressAt(table: Int32Array, row: number): RdmaAddress {
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

/** @param gid eight groups of four hexadecimal digits */
function gidWords(gid: string): Int32Array {
  const hex = gid.replaceAll(':', '');
  return Int32Array.from({ length: 4 }, (_, i) => Number.parseInt(hex.slice(8 * i, 8 * i + 8), 16) | 0);
}
