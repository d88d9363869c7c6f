/**
 * What the objects made from a context see of it. They know neither the context's class nor, but for what is theirs to
 * use, each other's.
 */
import type { AsyncEvent, Capabilities } from '../../verbs/device.ts';
import type { ProtectionDomain, QueuePairInit } from '../../verbs/memory.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import type { SharedReceiveQueue } from '../../verbs/shared-receive-queue.ts';
import type { AddressHandles } from '../core/address-handles.ts';
import type { CompletionRing } from './completion-ring.ts';
import type { Root } from './context-root.ts';
import type { Allocation, EmulatorFabric } from './emulator-fabric.ts';
import type { EmulatedMemory } from './emulator-memory.ts';
import type { EmulatedRegion } from './memory-region.ts';
import type { Peer } from './peer.ts';

/** A protection domain, as what belongs to it sees it. */
export interface EmulatedPd extends ProtectionDomain {
  /** What the tables know it by. */
  readonly number: number;
  children: number;
}

/** A queue pair whose oldest request waits. */
export interface Blocked {
  /** Tries again. */
  run(): void;
}

export interface EmulatedParent {
  readonly member: number;
  readonly gid: string;
  readonly capabilities: Capabilities;
  readonly fabric: EmulatorFabric;
  readonly root: Root;
  readonly handles: AddressHandles<EmulatedPd>;
  /** By local key. */
  readonly regions: ReadonlyMap<number, EmulatedRegion>;
  allocate(bytes: number): Allocation;
  /** The device of `member`, if one is open. */
  peer(member: number): Peer | undefined;

  register(pd: EmulatedPd, memory: EmulatedMemory, offset: number, length: number, access: number): EmulatedRegion;
  createSrq(call: string, pd: EmulatedPd, maxWr: number, maxSge: number): SharedReceiveQueue;
  createQueuePair(pd: EmulatedPd, init: QueuePairInit): QueuePair;
  forgetPd(): void;

  raise(event: AsyncEvent): void;
  block(qp: Blocked): void;
  unblock(qp: Blocked): void;
  /** This rank has asked to be woken by the queue of this ring, and something has come. */
  wakeSelf(ring: CompletionRing): void;
  /** Has the next `progress` look at everything. */
  callOwnAttention(): void;
  /** What every poll does besides. */
  progress(): void;
}
