/**
 * What the objects made from a context see of it, and of the contexts of other members. They know neither the context's
 * class nor, but for what is theirs to use, each other's.
 */
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import type { AsyncEvent, Capabilities, DeviceAttributes } from '../../verbs/device.ts';
import type { QueuePairInit } from '../../verbs/memory.ts';
import type { QueuePair } from '../../verbs/queue-pair.ts';
import type { AddressHandles } from '../core/address-handles.ts';
import type { MappedRegion } from '../core/local-side.ts';
import type { Datagram } from './datagram.ts';
import type { Ethernet } from './ethernet/ethernet.ts';
import type { Fabric } from './fabric-numbers.ts';
import type { ModelledPd, ModelledSharedReceiveQueue, ReceiveQueue } from './modelled-receive-queue.ts';
import type { Groups } from './multicast-groups.ts';
import type { Cpu, Simulator } from './simulator.ts';
import type { Transit, TransitFabric, TransitPeer } from './transit.ts';

/** What the contexts of one fabric share. */
export interface ModelledShared extends TransitFabric {
  /** By member. */
  readonly contexts: readonly (ModelledParent | undefined)[];
  readonly groups: Groups;
  readonly ethernet: Ethernet | undefined;
  takeTransit(asking: boolean): Transit;
}

/** A queue pair as what comes from others finds it. */
export interface ModelledPeer extends TransitPeer {
  readonly qpType: number;
  readonly receiveQueue: ReceiveQueue;
  readonly connection: { leadsTo(member: number, number: number): boolean };
  readonly responder: TransitPeer['responder'] & {
    readonly rnrTimer: number;
    takeDatagram(datagram: Datagram): void;
  };
}

/** Whose oldest request waits for a word of this side's memory. */
export interface Watcher {
  look(): void;
}

export interface ModelledParent {
  readonly member: number;
  readonly gid: string;
  readonly device: DeviceAttributes;
  readonly capabilities: Capabilities;
  readonly shared: ModelledShared;
  readonly fabric: Fabric;
  readonly simulator: Simulator;
  readonly cpu: Cpu;
  readonly parking: { ring(): void };
  /** Whether the memory of a rank is that of this one's node. */
  near(member: number): boolean;

  readonly handles: AddressHandles<ModelledPd>;
  /** By key. */
  readonly regions: ReadonlyMap<number, MappedRegion>;
  readonly cqs: { delete(cq: CompletionQueue): boolean };
  readonly srqs: Set<ModelledSharedReceiveQueue>;
  readonly queuePairs: { get(number: number): ModelledPeer | undefined; delete(number: number): boolean };
  createQueuePair(pd: ModelledPd, init: QueuePairInit): QueuePair;
  forgetPd(): void;
  /** Errors: `ERR_VERBS` if the program has no more memory to register. */
  checkLocked(call: string, length: number): void;
  newKey(): number;
  noteRegion(region: MappedRegion): void;
  forgetRegion(region: MappedRegion): void;
  joinGroup(call: string, qp: QueuePair, words: Uint32Array): void;
  leaveGroup(qp: QueuePair, words: Uint32Array): void;
  raise(event: AsyncEvent): void;

  /** Whether some request has ever found no receive here. */
  hasRefused: boolean;
  /** Connections that messages have come from often enough to be looked at before all others. */
  polled: number;
  /**
   * The processor has taken `n` completions in a poll.
   * @param byMemory those of what went through memory of the node, where they cost something else
   * @param scans messages of the adapter are among them
   */
  spendPoll(n: number, byMemory: number, scans: boolean): void;
  /** A completion has come to a queue. @param receives of a receive */
  completed(cq: CompletionQueue, receives: boolean): void;
  /** Completions were lost. */
  overrun(cq: CompletionQueue): void;

  /** The adapter has put something into this side's memory. */
  stored(): void;
  watch(watcher: Watcher): void;
  unwatch(watcher: Watcher): void;
  /** Has the data of a write come into memory at a time, unless something has asked for them before. */
  placeAt(time: number, region: MappedRegion, place: () => void): void;
  /** The adapter reads what it has been given, wherever that is. */
  placeAll(): void;
}
