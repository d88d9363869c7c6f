/**
 * A real RDMA device, through libibverbs.
 *
 * It implements the same interface as the emulator, nearly one call for one. Where devices differ, or find a fault
 * late, this context makes them look alike. One thread uses everything. A peer is known by its place (`member`) in a
 * list of what a queue pair needs to be connected to it.
 */

import { closeSync } from 'node:fs';
import { RmaError } from '../../errors.ts';
import { loadNative, type Native, type RdmaContext } from '../../native.ts';
import type { AdapterBarrier, AdapterBarrierInit } from '../../verbs/adapter-barrier.ts';
import type { MulticastGroup } from '../../verbs/address-handle.ts';
import { checkInteger } from '../../verbs/checks.ts';
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import type { AsyncEvent, Capabilities, Context, DeviceAttributes, Neighbours } from '../../verbs/device.ts';
import { gidText, isMappedIpv4, parseGid } from '../../verbs/gid.ts';
import type { Helper } from '../../verbs/helper.ts';
import type { Memory, MemoryRegion, ProtectionDomain, QueuePairInit } from '../../verbs/memory.ts';
import { QpType } from '../../verbs/queue-pair.ts';
import { ContextCore } from '../core/context-base.ts';
import { checkQueuePair, makeRing } from '../core/queue-pair-base.ts';
import type { RdmaAddress } from './addresses.ts';
import type { NeighbourHeap } from './neighbours.ts';
import { RdmaBarriers } from './rdma-barriers.ts';
import { RdmaCompletionQueue } from './rdma-completion-queue.ts';
import type { RdmaEndpoint } from './rdma-devices.ts';
import { RdmaHelper } from './rdma-helper.ts';
import { RdmaMemory, RdmaProtectionDomain } from './rdma-memory.ts';
import type { RdmaParent, RdmaPd, RdmaSender } from './rdma-parent.ts';
import { RdmaParking } from './rdma-parking.ts';
import { RdmaQueuePair } from './rdma-queue-pair.ts';
import { RdmaSharedReceiveQueue } from './rdma-receive-queue.ts';
import { ReceiveSlots } from './receive-slots.ts';
import { verb } from './verb.ts';

const CAPABILITIES: Capabilities = Object.freeze({
  loadStore: false,
  atomicsAgree: false,
  immediateCompletion: false,
  // The acknowledgement comes from the target's device. Whatever that device tells its processor afterwards goes there
  // behind the data: its bus keeps writes in order unless memory is registered with relaxed ordering, and none is here.
  completionImpliesPlacement: true,
  remoteUserMemory: true,
  randomKeys: false,
  faultEvents: false,
  helper: true,
  datagrams: true,
  multicast: false,
  waits: false,
  updates: false,
  barrier: false,
});

/**
 * The most that one object may ask for, even if the device would take more: rings are allocated in full. A send queue
 * of this size with this many entries takes 16 MiB here, and as much again in the device's driver.
 */
const MOST_WR = 16_384;
const MOST_SGE = 60;
const MOST_CQE = 2 ** 22;

/** Bytes that a request can carry inline where the device names no limit: common devices take so many. */
const INLINE = 64;

/** `ibv_event_type`. */
const EVENTS: Readonly<Record<number, AsyncEvent['type']>> = {
  0: 'CQ_ERR',
  1: 'QP_FATAL',
  2: 'QP_REQ_ERR',
  3: 'QP_ACCESS_ERR',
  8: 'DEVICE_FATAL',
  14: 'SRQ_ERR',
  15: 'SRQ_LIMIT_REACHED',
  16: 'QP_LAST_WQE_REACHED',
};

/**
 * Opens a device.
 * @param peers the addresses of all, by member; may be filled later, before queue pairs are connected
 * @param heap gives memory that neighbours can map
 * Errors: `ERR_PROVIDER_UNAVAILABLE`.
 */
export function openRdma(
  endpoint: RdmaEndpoint,
  member: number,
  peers: readonly RdmaAddress[],
  heap?: NeighbourHeap,
): RdmaCoreContext {
  const native = loadNative();
  if (native?.RdmaContext === undefined) {
    throw new RmaError(
      'ERR_PROVIDER_UNAVAILABLE',
      `provider rdma-core: ${native?.rdmaReason ?? 'the native addon is not loaded; see "onesided info"'}`,
    );
  }
  return new RdmaCoreContext(native, endpoint, member, peers, heap);
}

/** A device that another library than libibverbs brings. */
export interface RdmaVariant {
  /** For refusals. */
  readonly provider: string;
  open(native: Native, endpoint: RdmaEndpoint, woken: () => void): RdmaContext;
  /** Whether it may acknowledge later what was received. */
  readonly acknowledgesLater: boolean;
  /** What it claims beyond other devices, or does not claim. */
  claims(device: RdmaContext): Partial<Capabilities>;
  /** Why others are not reached by it, beside what its port says. */
  trouble(device: RdmaContext): string | undefined;
}

const LIBIBVERBS: RdmaVariant = {
  provider: 'rdma-core',
  acknowledgesLater: false,
  open: (native, { device, port, gidIndex }, woken) => new native.RdmaContext!(device, port, gidIndex, woken),
  claims: () => ({}),
  trouble: () => undefined,
};

/**
 * What the multicast groups of a RoCE network begin with, by the kind of the port's address: 239.192.0.0/16, of the
 * organization (RFC 2365), or ff18::, transient and of the organization (RFC 4291, 2.7).
 */
function groupPrefix(gid: string): readonly number[] {
  return isMappedIpv4(parseGid('open a device', gid)) ? [0, 0, 0xffff, 0xefc00000] : [0xff180000, 0, 0, 0];
}

export class RdmaCoreContext extends ContextCore implements Context, RdmaParent {
  readonly device: DeviceAttributes;
  readonly capabilities: Capabilities;
  readonly member: number;
  readonly gid: string;
  readonly port: number;
  readonly parking: RdmaParking;
  readonly pendingRetry = false;
  readonly neighbours: Neighbours | undefined;
  readonly acknowledge?: () => void;
  readonly peers: readonly RdmaAddress[];
  readonly own: RdmaAddress;
  readonly cqs = new Map<number, RdmaCompletionQueue>();
  readonly srqs = new Map<number, RdmaSharedReceiveQueue>();
  /** By the numbers that peers know them by. */
  readonly queuePairs = new Map<number, RdmaQueuePair>();
  readonly #native: Native;
  readonly #heap: NeighbourHeap | undefined;
  readonly #device: RdmaContext;
  readonly #variant: RdmaVariant;
  readonly #senders = new Map<number, RdmaSender>();
  readonly #receivers = new Map<number, ReceiveSlots>();
  #nothing: RdmaMemory | undefined;
  #barriers: RdmaBarriers | undefined;
  /** The device has failed: nothing that was made from this context is of use any more. */
  #broken: RmaError | undefined;
  #owners = 0;
  /** Address handles. */
  handles = 0;
  /** What multicast groups of its network begin with; `undefined` if there are none. */
  readonly #group: readonly number[] | undefined;

  constructor(
    native: Native,
    endpoint: RdmaEndpoint,
    member: number,
    peers: readonly RdmaAddress[],
    heap: NeighbourHeap | undefined,
    variant: RdmaVariant = LIBIBVERBS,
  ) {
    super("device's context");
    const { device, port, transport } = endpoint;
    this.#native = native;
    this.#heap = heap;
    this.neighbours = heap;
    this.#variant = variant;
    try {
      this.#device = variant.open(native, endpoint, () => {
        if (!this.isClosed) this.parking.woken();
      });
    } catch (cause) {
      const why = `provider ${variant.provider}: ${(cause as Error).message}`;
      throw new RmaError('ERR_PROVIDER_UNAVAILABLE', why, { cause });
    }
    if (variant.acknowledgesLater) {
      this.acknowledge = () => {
        if (!this.isClosed) this.#device.acknowledge();
      };
    }
    const limits = this.#device.describe();
    const datagrams = transport !== 'iWARP' && limits.maxAh > 0;
    // On an InfiniBand subnet, its administrator would have to be asked for a group.
    this.#group = datagrams && limits.ethernet && limits.maxMcastGrp > 0 ? groupPrefix(limits.gid) : undefined;
    const multicast = this.#group !== undefined;
    // A completion of iWARP only says that the origin may be changed (RFC 5040, 5.5).
    const completionImpliesPlacement = transport !== 'iWARP';
    this.capabilities = Object.freeze({
      ...CAPABILITIES,
      completionImpliesPlacement,
      datagrams,
      multicast,
      barrier: datagrams,
      ...variant.claims(this.#device),
    });
    this.gid = limits.gid;
    this.own = { gid: limits.gid, lid: limits.lid, mtu: limits.mtu };
    this.member = member;
    this.port = port;
    this.peers = peers;
    this.parking = new RdmaParking(
      this.#device,
      () => this.#takeAsyncEvents(),
      () => {
        for (const cq of this.cqs.values()) cq.notify();
      },
    );
    this.device = Object.freeze({
      name: device,
      maxQp: limits.maxQp,
      maxQpWr: Math.min(limits.maxQpWr, MOST_WR),
      maxSge: Math.min(limits.maxSge, MOST_SGE),
      maxCq: limits.maxCq,
      maxCqe: Math.min(limits.maxCqe, MOST_CQE),
      maxMr: limits.maxMr,
      maxMrSize: limits.maxMrSize,
      maxPd: limits.maxPd,
      maxSrq: limits.maxSrq,
      maxSrqWr: Math.min(limits.maxSrqWr, MOST_WR),
      maxSrqSge: Math.min(limits.maxSrqSge, MOST_SGE),
      maxInlineData: INLINE,
      maxQpInitRdAtom: Math.min(limits.maxQpInitRdAtom, limits.maxQpRdAtom, 255),
      maxMsgSize: limits.maxMsgSize,
      mtu: 128 << limits.mtu,
      maxAh: datagrams ? limits.maxAh : 0,
      maxMcastGrp: multicast ? limits.maxMcastGrp : 0,
      maxMcastQpAttach: multicast ? limits.maxMcastQpAttach : 0,
      maxTotalMcastQpAttach: multicast ? limits.maxTotalMcastQpAttach : 0,
    });
  }

  /** Other ranks are woken by what completes at them. */
  wake(member: number): void {
    if (member === this.member) this.parking.note();
  }

  allocateMemory(bytes: number): Memory {
    const call = 'allocate memory';
    this.mustBeOpen(call);
    checkInteger(call, 'the number of bytes', bytes, 1, this.device.maxMrSize);
    const native = this.#native;
    const whole = Math.ceil(bytes / native.pageBytes) * native.pageBytes;
    if (this.#heap !== undefined) return this.#heap.allocate(whole);
    const buffer = verb(call, () => {
      const fd = native.memoryCreate('onesided-rdma');
      try {
        native.memoryResize(fd, whole);
        return native.memoryMap(fd, 0, whole);
      } finally {
        closeSync(fd);
      }
    });
    return new RdmaMemory(native, buffer, () => native.memoryUnmap(buffer));
  }

  protected adopt(buffer: ArrayBufferLike): Memory {
    return new RdmaMemory(this.#native, buffer, undefined);
  }

  allocPd(): ProtectionDomain {
    this.mustBeOpen('allocate a protection domain');
    return new RdmaProtectionDomain(this, this.#device);
  }

  createCq(cqe: number): CompletionQueue {
    const call = 'create a completion queue';
    this.mustBeOpen(call);
    checkInteger(call, 'cqe', cqe, 1, this.device.maxCqe);
    if (this.#broken !== undefined) throw this.#broken;
    const cq = new RdmaCompletionQueue(this, this.#device, cqe);
    this.cqs.set(cq.number, cq);
    return cq;
  }

  makeHelper(pd: ProtectionDomain, region: MemoryRegion | undefined, lanes: number): Helper {
    this.mustBeOpen('make a helper');
    const { maxSge } = this.device;
    return new RdmaHelper(this, this.#device, pd as RdmaProtectionDomain, region, maxSge, lanes);
  }

  makeBarrier(init: AdapterBarrierInit): AdapterBarrier {
    const call = 'make a barrier';
    this.mustBeOpen(call);
    if (!this.capabilities.barrier)
      throw new RmaError('ERR_VERBS', `${call}: device ${this.device.name} has no datagrams (capability barrier)`);
    this.#barriers ??= new RdmaBarriers(this, this.#device);
    return this.#barriers.join(init);
  }

  createQueuePair(pd: RdmaPd, init: QueuePairInit): RdmaQueuePair {
    const { device } = this;
    const asked = checkQueuePair<RdmaCompletionQueue, RdmaSharedReceiveQueue>(
      pd,
      init,
      device,
      INLINE,
      { has: (cq) => cq instanceof RdmaCompletionQueue && this.cqs.get(cq.number) === cq },
      { has: (srq) => this.srqs.get(srq.number) === srq },
    );
    const { qpType, sendCq, recvCq, srq, maxSendSge, maxRecvSge, maxInlineData } = asked;
    // Some devices drop a longer datagram, and say that they have sent it.
    const requests = makeRing(asked, qpType === QpType.UD ? device.mtu : device.maxMsgSize, 0, device.maxQpWr);
    const maxRecvWr = Math.min(2 ** Math.ceil(Math.log2(asked.maxRecvWr)), device.maxQpWr);
    const [handle, number] = verb('create a queue pair', () =>
      this.#device.createQp({
        ...{ maxRecvWr, maxSendSge, maxRecvSge, maxInlineData },
        pd: pd.number,
        sendCq: sendCq.number,
        recvCq: recvCq.number,
        srq: srq?.number,
        maxSendWr: requests.limit,
        signalAll: asked.signalAll,
        datagrams: qpType === QpType.UD,
      }),
    );
    try {
      const receives =
        srq === undefined ? new ReceiveSlots(this.#device, false, handle, maxRecvWr, maxRecvSge) : undefined;
      const qp = new RdmaQueuePair(this, this.#device, {
        ...{ qpType, pd, handle, number, sendCq, recvCq, srq, receives, requests, maxRecvWr, maxRecvSge },
      });
      this.queuePairs.set(number, qp);
      return qp;
    } catch (error) {
      this.#device.destroyQp(handle);
      throw error;
    }
  }

  createSrq(call: string, pd: RdmaPd, maxWr: number, maxSge: number): RdmaSharedReceiveQueue {
    const capacity = Math.min(2 ** Math.ceil(Math.log2(maxWr)), this.device.maxSrqWr);
    const [number] = verb(call, () => this.#device.createSrq(pd.number, capacity, maxSge));
    const srq = new RdmaSharedReceiveQueue(this, this.#device, pd, number, capacity, maxSge);
    this.srqs.set(number, srq);
    return srq;
  }

  multicastGroup(number: number): MulticastGroup {
    const call = 'multicast group';
    const group = this.#group;
    if (group === undefined) {
      const { name } = this.device;
      throw new RmaError(
        'ERR_VERBS',
        `${call}: device ${name} has no multicast groups (capability multicast) (ENOTSUP)`,
      );
    }
    checkInteger(call, 'the number', number, 0, 0xffff);
    return Object.freeze({ gid: gidText([...group.slice(0, 3), group[3] + number]), lid: 0 });
  }

  protected override fetchEvents(): void {
    this.#takeAsyncEvents();
  }

  trouble(): string | undefined {
    if (this.#broken !== undefined || this.isClosed) return this.#broken?.message;
    const { name } = this.device;
    try {
      const state = this.#device.portState();
      return state === 'ACTIVE' ? this.#variant.trouble(this.#device) : `port ${this.port} of ${name} is ${state}`;
    } catch (error) {
      return `cannot query port ${this.port} of ${name}: ${(error as Error).message}`;
    }
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.parking.close();
    this.#device.close();
    this.#heap?.close();
    this.#senders.clear();
    this.#receivers.clear();
  }

  // ---- for the objects made from this context -----------------------------------------------------------------------

  /** Gives something back. A device that has failed refuses it, and has nothing any more. */
  giveBack(call: string, run: () => void): void {
    try {
      verb(call, run);
    } catch (error) {
      if (this.#broken === undefined) throw error;
    }
  }

  override raise(event: AsyncEvent): void {
    super.raise(event);
    this.parking.note();
  }

  /** The next number by which completions name a queue; the first comes again after 2^31 queues. */
  #newOwner(): number {
    this.#owners = (this.#owners + 1) & 0x7fffffff;
    return this.#owners;
  }

  addSender(qp: RdmaSender): number {
    const owner = this.#newOwner();
    this.#senders.set(owner, qp);
    return owner;
  }

  dropSender(owner: number): void {
    this.#senders.delete(owner);
  }

  sender(owner: number): RdmaSender | undefined {
    return this.#senders.get(owner);
  }

  addReceiver(slots: ReceiveSlots): number {
    const owner = this.#newOwner();
    this.#receivers.set(owner, slots);
    return owner;
  }

  dropReceiver(owner: number): void {
    this.#receivers.delete(owner);
  }

  receiver(owner: number): ReceiveSlots | undefined {
    return this.#receivers.get(owner);
  }

  /** Memory that no request may access, for regions of no bytes, which devices do not make. */
  nothing(): RdmaMemory {
    this.#nothing ??= this.allocateMemory(1) as RdmaMemory;
    return this.#nothing;
  }

  /** A receive of this queue pair has failed. */
  failed(number: number): void {
    this.queuePairs.get(number)?.fail();
  }

  #takeAsyncEvents(): void {
    for (;;) {
      const event = verb('get an asynchronous event', () => this.#device.asyncEvent());
      if (event === undefined) break;
      this.#note(...event);
    }
  }

  #note(code: number, concerned: number): void {
    const type = EVENTS[code];
    if (type === undefined) return;
    if (type === 'CQ_ERR') {
      const cq = this.cqs.get(concerned);
      if (cq !== undefined) {
        cq.overrun();
        super.raise({ type, cq });
      }
    } else if (type === 'SRQ_ERR' || type === 'SRQ_LIMIT_REACHED') {
      const srq = this.srqs.get(concerned);
      if (srq === undefined) return;
      super.raise({ type, srq });
      // What was posted there is lost: a call that waits for it would wait for ever.
      if (type === 'SRQ_ERR') this.#break('a shared receive queue of device', type);
    } else if (type === 'DEVICE_FATAL') {
      super.raise({ type });
      this.#break('device', type);
    } else {
      const qp = this.queuePairs.get(concerned);
      if (qp === undefined || (type === 'QP_LAST_WQE_REACHED' && qp.saidLast)) return;
      if (type === 'QP_LAST_WQE_REACHED') qp.saidLast = true;
      else qp.fail();
      super.raise({ type, qpNumber: concerned });
    }
  }

  /**
   * Every completion queue refuses from now on: so every call that waits for anything of this device gets the error.
   */
  #break(what: string, type: string): void {
    this.#broken ??= new RmaError(
      'ERR_VERBS',
      `${what} ${this.device.name} has failed (${type}) and completes no more requests; ` +
        "look into the kernel's log (dmesg), and restart the job",
    );
    for (const cq of this.cqs.values()) cq.refusal ??= this.#broken;
  }
}
