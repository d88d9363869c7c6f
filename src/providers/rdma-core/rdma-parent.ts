/**
 * What the objects made from a context see of it. They know neither the context's class nor, but for what is theirs to
 * use, each other's.
 */
import type { WorkCompletions } from '../../verbs/completion-queue.ts';
import type { AsyncEvent, Capabilities, DeviceAttributes } from '../../verbs/device.ts';
import type { ProtectionDomain, QueuePairInit } from '../../verbs/memory.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import type { RdmaAddress } from './addresses.ts';
import type { RdmaParking } from './rdma-parking.ts';
import type { ReceiveSlots } from './receive-slots.ts';

/** A protection domain, as what belongs to it sees it. */
export interface RdmaPd extends ProtectionDomain {
  /** What native code knows it by. */
  readonly number: number;
  children: number;
}

/** Whose requests completions name. */
export interface RdmaSender {
  /** The request of this count is complete. Writes entry `n` of `wc`. */
  complete(count: number, status: number, wc: WorkCompletions, n: number): void;
}

export interface RdmaParent {
  readonly member: number;
  readonly gid: string;
  readonly device: DeviceAttributes;
  readonly capabilities: Capabilities;
  readonly own: RdmaAddress;
  /** By member. */
  readonly peers: readonly RdmaAddress[];
  readonly parking: RdmaParking;
  readonly isClosed: boolean;
  mustBeOpen(call: string): void;
  /** Gives something back. A device that has failed refuses it, and has nothing any more. */
  giveBack(call: string, run: () => void): void;
  raise(event: AsyncEvent): void;

  /** Address handles. */
  handles: number;
  /** Objects by number; who ends takes itself out. */
  readonly cqs: { delete(number: number): boolean };
  readonly srqs: { delete(number: number): boolean };
  readonly queuePairs: {
    get(number: number): { readonly qpType: number } | undefined;
    delete(number: number): boolean;
  };
  createQueuePair(pd: RdmaPd, init: QueuePairInit): QueuePair;
  createSrq(call: string, pd: RdmaPd, maxWr: number, maxSge: number): SharedReceiveQueue;
  /** Memory that no request may access, for regions of no bytes, which devices do not make. */
  nothing(): { readonly bytes: Uint8Array };

  // Completions name the queue of their request by an owner: a number that was never given out before.
  addSender(qp: RdmaSender): number;
  sender(owner: number): RdmaSender | undefined;
  dropSender(owner: number): void;
  addReceiver(slots: ReceiveSlots): number;
  receiver(owner: number): ReceiveSlots | undefined;
  dropReceiver(owner: number): void;
  /** A receive of this queue pair has failed. */
  failed(number: number): void;
}
