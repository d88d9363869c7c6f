/**
 * The emulator's second form: devices of a modelled fabric, in virtual time.
 *
 * All devices of a fabric live in one thread, and find each other through `ModelledFabric`. A request becomes events
 * (modelled-queue-pair.ts): it departs, comes to the other adapter, is carried out there, and completes; each at the
 * time that the fabric's description and what else goes on give it (network.ts). Data move when the request is carried
 * out, so what a rank finds in its memory is what had arrived by its time.
 */
import { RmaError } from '../../errors.ts';
import { bytesIn } from '../../intrinsics.ts';
import type { AdapterBarrierInit } from '../../verbs/adapter-barrier.ts';
import type { MulticastGroup } from '../../verbs/address-handle.ts';
import { checkInteger, checkRoom } from '../../verbs/checks.ts';
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import type { AsyncEvent, Capabilities, Context, DeviceAttributes } from '../../verbs/device.ts';
import type { Memory, QueuePairInit } from '../../verbs/memory.ts';
import { QpType, type QueuePair } from '../../verbs/queue-pair.ts';
import { AddressHandles, groupInMemory, memberGid } from '../core/address-handles.ts';
import { ContextCore } from '../core/context-base.ts';
import type { MappedRegion } from '../core/local-side.ts';
import { checkQueuePair, failUsersOf } from '../core/queue-pair-base.ts';
import { Ethernet } from './ethernet/ethernet.ts';
import type { Fabric } from './fabric-numbers.ts';
import type { Faults } from './faults.ts';
import { BarrierGroups, ModelledBarrier } from './modelled-barrier.ts';
import { ModelledCompletionQueue } from './modelled-completion-queue.ts';
import { CAPABILITIES, deviceOf, MOST } from './modelled-limits.ts';
import { ModelledMemory, ModelledProtectionDomain, PAGE } from './modelled-memory.ts';
import type { ModelledParent, ModelledShared, Watcher } from './modelled-parent.ts';
import { ModelledParking } from './modelled-parking.ts';
import { ModelledQueuePair } from './modelled-queue-pair.ts';
import type { ModelledPd, ModelledSharedReceiveQueue } from './modelled-receive-queue.ts';
import { Groups } from './multicast-groups.ts';
import { Network } from './network.ts';
import { Random } from './random.ts';
import { Cpu, type Simulator } from './simulator.ts';
import { Transit } from './transit.ts';

/** What the devices of one fabric share. */
export class ModelledFabric implements ModelledShared {
  readonly fabric: Fabric;
  readonly simulator: Simulator;
  readonly network: Network;
  readonly ethernet: Ethernet | undefined;
  readonly faults: Faults;
  readonly contexts: (ModelledContext | undefined)[];
  readonly device: DeviceAttributes;
  readonly groups = new Groups();
  readonly barriers = new BarrierGroups();
  readonly #transits: Transit[] = [];

  constructor(fabric: Fabric, simulator: Simulator, faults: Faults, ranks: number) {
    this.fabric = fabric;
    this.simulator = simulator;
    this.network = new Network(fabric, ranks);
    this.faults = faults;
    this.ethernet = Ethernet.of(fabric, simulator, faults, this.network, ranks);
    this.contexts = new Array<undefined>(ranks).fill(undefined);
    this.device = deviceOf(fabric);
  }

  open(member: number): ModelledContext {
    const context = new ModelledContext(this, member);
    this.contexts[member] = context;
    return context;
  }

  /** Transits are used again: a simulation makes millions. */
  takeTransit(asking: boolean): Transit {
    const transit = this.#transits.pop() ?? new Transit(this);
    transit.counted = !asking;
    if (!asking) {
      this.simulator.underWay++;
      this.simulator.changed();
    }
    return transit;
  }

  giveBack(transit: Transit): void {
    if (transit.counted) this.simulator.underWay--;
    transit.retire();
    this.#transits.push(transit);
  }
}

export class ModelledContext extends ContextCore implements Context, ModelledParent {
  readonly device: DeviceAttributes;
  readonly capabilities: Capabilities;
  readonly member: number;
  readonly gid: string;
  readonly handles = new AddressHandles<ModelledPd>();
  readonly parking: ModelledParking;
  readonly neighbours = undefined;
  readonly cpu: Cpu;
  /** The adapter tries again by itself. */
  readonly pendingRetry = false;
  readonly shared: ModelledFabric;
  readonly fabric: Fabric;
  readonly simulator: Simulator;
  readonly regions = new Map<number, MappedRegion>();
  readonly cqs = new Set<ModelledCompletionQueue>();
  readonly srqs = new Set<ModelledSharedReceiveQueue>();
  readonly queuePairs = new Map<number, ModelledQueuePair>();
  /**
   * Whether some request has ever found no receive here: until then, no sender need be told when a receive is posted.
   */
  hasRefused = false;
  /** Connections that messages have come from often enough to be looked at before all others. */
  polled = 0;
  /** Called when an event is raised while the rank computes, if the fabric has a helper for that. */
  readonly #handlers = new Set<() => void>();
  /**
   * Those of them that are called for completions, too, and whether they now want to be called for those of a queue.
   */
  readonly #ofCompletions = new Map<() => void, (cq: CompletionQueue, receives: boolean) => boolean>();
  #interrupting = false;
  /** Data of writes that are complete and not in memory yet, in the order of their coming. */
  readonly #unplaced = new Set<() => void>();
  /** Those whose oldest request waits for a word of this side's memory. */
  readonly #watching = new Set<Watcher>();
  readonly #random: Random;
  #nextAddress: number;
  #lastQp = 0;
  #pds = 0;
  /** Bytes of the program's memory that are registered. */
  #locked = 0;
  /** Something that a task has done at this time, before whatever it does now, takes place. */
  #touching = false;

  constructor(shared: ModelledFabric, member: number) {
    super("device's context");
    const { simulator, fabric } = shared;
    this.shared = shared;
    this.fabric = fabric;
    this.simulator = simulator;
    this.member = member;
    this.gid = memberGid(member);
    this.device = shared.device;
    this.capabilities = {
      ...CAPABILITIES,
      completionImpliesPlacement: shared.faults.placement === 0,
      waits: fabric.adapter.step !== undefined,
      barrier: fabric.adapter.barrierSend !== undefined && fabric.adapter.barrierReceive !== undefined,
    };
    this.cpu = new Cpu(simulator, member);
    this.parking = new ModelledParking(simulator);
    // What has come before, and was not looked at, raises no event any more.
    this.cpu.whenComputing = () => {
      if (this.#ofCompletions.size === 0) return;
      for (const cq of this.cqs) if (cq.isWaiting) this.completed(cq, true);
    };
    this.#random = new Random(simulator.seed, 16 + member);
    this.#nextAddress = ((this.#random.bits() >>> 4) + 2 ** 20) * PAGE;
  }

  /** Whether the memory of a rank is that of this one's node. */
  near(member: number): boolean {
    const { network } = this.shared;
    return network.nodeOf(member) === network.nodeOf(this.member);
  }

  /**
   * A rank of this node that waits for a line of memory has it after the time that an atomic instruction takes, or
   * `later` microseconds after that.
   */
  wake(member: number, later = 0): void {
    if (!this.near(member)) return;
    const { simulator, cpu, fabric, shared } = this;
    // The task that gave back what others wait for may have been given work to do since: that does not delay them.
    const when = this.#touching ? simulator.now : cpu.time;
    simulator.at(when + fabric.node.atomic + later, this.member, { happen: () => shared.contexts[member]?.cpu.ring() });
  }

  /** Has the rank's task access memory of the node when its step is over, and look again at what it waits for. */
  touch(access: () => void): void {
    const happen = (): void => {
      if (this.cpu.dead) return;
      this.#touching = true;
      try {
        access();
      } finally {
        this.#touching = false;
      }
      this.cpu.ring();
    };
    this.simulator.at(this.cpu.time, this.member, { happen });
  }

  allocateMemory(bytes: number): Memory {
    this.mustBeOpen('allocate memory');
    checkInteger('allocate memory', 'the number of bytes', bytes, 1, this.device.maxMrSize);
    let buffer: ArrayBuffer;
    try {
      buffer = new ArrayBuffer(bytes);
    } catch (cause) {
      throw new RmaError('ERR_VERBS', `allocate memory: cannot allocate ${bytes} bytes (ENOMEM)`, { cause });
    }
    return new ModelledMemory(this, this.#takeAddress(bytes), buffer, true);
  }

  protected adopt(buffer: ArrayBufferLike): Memory {
    return new ModelledMemory(this, this.#takeAddress(bytesIn(buffer)), buffer, false);
  }

  allocPd(): ModelledProtectionDomain {
    this.mustBeOpen('allocate a protection domain');
    checkRoom('allocate a protection domain', 'protection domains', this.#pds, this.device.maxPd);
    this.#pds++;
    return new ModelledProtectionDomain(this);
  }

  createCq(cqe: number): ModelledCompletionQueue {
    const call = 'create a completion queue';
    this.mustBeOpen(call);
    checkInteger(call, 'cqe', cqe, 1, this.device.maxCqe);
    checkRoom(call, 'completion queues', this.cqs.size, this.device.maxCq);
    const cq = new ModelledCompletionQueue(this, cqe);
    this.cqs.add(cq);
    return cq;
  }

  makeBarrier(init: AdapterBarrierInit): ModelledBarrier {
    this.mustBeOpen('make a barrier');
    if (!this.capabilities.barrier) {
      throw new RmaError(
        'ERR_VERBS',
        `make a barrier: the adapter of device ${this.device.name} carries out no barriers (capability barrier)`,
      );
    }
    return new ModelledBarrier(this, init);
  }

  multicastGroup(number: number): MulticastGroup {
    return groupInMemory(number);
  }

  close(): void {
    if (this.isClosed) return;
    for (const qp of this.queuePairs.values()) {
      if (qp.qpType === QpType.UD) this.shared.groups.forget(qp);
      qp.forgetGroups();
      qp.destroy();
    }
    this.isClosed = true;
    for (const srq of this.srqs) srq.destroy();
    for (const cq of this.cqs) cq.destroy();
    this.regions.clear();
    this.shared.contexts[this.member] = undefined;
  }

  // ---- for the objects made from this context -----------------------------------------------------------------------

  newKey(): number {
    let key: number;
    do key = this.#random.bits();
    while (key === 0 || this.regions.has(key));
    return key;
  }

  /** Has a requester called when the adapter has put something into this side's memory: it waits for a word there. */
  watch(watcher: Watcher): void {
    this.#watching.add(watcher);
  }

  unwatch(watcher: Watcher): void {
    this.#watching.delete(watcher);
  }

  /** The adapter has put something into this side's memory. */
  stored(): void {
    for (const watcher of this.#watching) watcher.look();
  }

  /** Has the data of a write come into memory at a time, unless something has asked for them before. */
  placeAt(time: number, region: MappedRegion, place: () => void): void {
    const put = (): void => {
      if (!this.#unplaced.delete(put) || this.regions.get(region.rkey) !== region) return;
      place();
      this.simulator.changed();
      this.stored();
    };
    this.#unplaced.add(put);
    this.simulator.at(time, this.member, { happen: put });
  }

  /** The adapter reads what it has been given, wherever that is. */
  placeAll(): void {
    for (const put of this.#unplaced) put();
  }

  /** Errors: `ERR_VERBS` if the program has no more memory to register (`faults.registration`). */
  checkLocked(call: string, length: number): void {
    const { registration } = this.shared.faults;
    if (this.#locked + length <= registration) return;
    throw new RmaError(
      'ERR_VERBS',
      `${call}: cannot lock ${length} bytes: ${this.#locked} of ${registration} bytes are locked (ENOMEM)`,
    );
  }

  noteRegion(region: MappedRegion): void {
    this.regions.set(region.rkey, region);
    if (!region.memory.fromLibrary) this.#locked += region.length;
  }

  forgetRegion(region: MappedRegion): void {
    if (this.regions.delete(region.rkey) && !region.memory.fromLibrary) this.#locked -= region.length;
  }

  forgetPd(): void {
    this.#pds--;
  }

  createQueuePair(pd: ModelledPd, init: QueuePairInit): ModelledQueuePair {
    const call = 'create a queue pair';
    this.mustBeOpen(call);
    const { device } = this;
    const asked = checkQueuePair(pd, init, device, Math.min(64, device.maxInlineData), this.cqs, this.srqs);
    checkRoom(call, 'queue pairs', this.queuePairs.size, MOST);
    do this.#lastQp = (this.#lastQp % (2 ** 24 - 1)) + 1;
    while (this.queuePairs.has(this.#lastQp));
    const qp = new ModelledQueuePair(this, this.#lastQp, pd, asked);
    this.queuePairs.set(qp.number, qp);
    return qp;
  }

  joinGroup(call: string, qp: QueuePair, words: Uint32Array): void {
    this.shared.groups.join(call, qp, words);
  }

  leaveGroup(qp: QueuePair, words: Uint32Array): void {
    this.shared.groups.leave(qp, words);
  }

  override raise(event: AsyncEvent): void {
    super.raise(event);
    this.parking.ring();
    this.cpu.ring();
    this.#interrupt();
  }

  /** Has `handler` called beside the rank's computation. @returns ends it */
  handleEvents(handler: () => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** The same for a handler that is called for completions, too. */
  handleCompletions(handler: () => void, wants: (cq: CompletionQueue, receives: boolean) => boolean): () => void {
    const end = this.handleEvents(handler);
    this.#ofCompletions.set(handler, wants);
    return () => {
      this.#ofCompletions.delete(handler);
      end();
    };
  }

  /** A completion has come to a queue. @param receives of a receive */
  completed(cq: CompletionQueue, receives: boolean): void {
    for (const wants of this.#ofCompletions.values()) {
      if (wants(cq, receives)) {
        this.#interrupt();
        return;
      }
    }
  }

  /** A rank that does not compute looks by itself. */
  #interrupt(): void {
    const { simulator, cpu } = this;
    const { helper, interrupt } = this.fabric.host;
    if (helper === 0 || this.#interrupting || cpu.computations === 0 || this.#handlers.size === 0) return;
    this.#interrupting = true;
    const handle = (): void => {
      for (const handler of this.#handlers) handler();
    };
    simulator.at(simulator.now + interrupt, this.member, {
      happen: () => {
        this.#interrupting = false;
        if (cpu.computations > 0 && !cpu.dead) cpu.handle(handle, helper === 1, interrupt);
      },
    });
  }

  /**
   * The processor has taken `n` completions in a poll, `byMemory` of them of what went through memory of the node,
   * where these cost something else. If messages of the adapter are among them (`scans`), it has looked at the buffers
   * of all connections in use once, whatever their number in this poll.
   */
  spendPoll(n: number, byMemory: number, scans: boolean): void {
    const { host, node } = this.fabric;
    const others = scans ? Math.max(0, this.polled - 1) : 0;
    this.cpu.fetched += n;
    const inNode = byMemory * (node.completion ?? 0);
    this.cpu.spend((n - byMemory) * host.completion + inNode + others * host.pollConnection);
  }

  /** Completions were lost, and with them what the queue pairs promise. */
  overrun(cq: CompletionQueue): void {
    this.raise({ type: 'CQ_ERR', cq });
    failUsersOf(cq, this.queuePairs.values(), (event) => this.raise(event));
  }

  #takeAddress(bytes: number): number {
    const address = this.#nextAddress;
    this.#nextAddress += (Math.ceil(bytes / PAGE) + 1) * PAGE;
    return address;
  }
}
