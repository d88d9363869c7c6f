/**
 * The direct emulator: a device whose adapter is the processor that posts a request.
 *
 * The initiator's thread carries out every access at once, on memory that it maps. What a peer must reach (regions,
 * queue pairs, receives, completions) lies in memory of the fabric and is found from the root that each context
 * publishes; the rest is private to the context's thread. So it works the same between contexts of one thread, threads
 * and processes.
 */

import { RmaError, show } from '../../errors.ts';
import { bytesIn } from '../../intrinsics.ts';
import type { MulticastGroup } from '../../verbs/address-handle.ts';
import { checkInteger, checkRoom } from '../../verbs/checks.ts';
import type { Capabilities, Context, Neighbours, Parking } from '../../verbs/device.ts';
import type { Memory, ProtectionDomain, QueuePairInit, RemotePointer } from '../../verbs/memory.ts';
import { QpState } from '../../verbs/queue-pair.ts';
import { MAX_MESSAGE_BYTES } from '../../verbs/work-request-ring.ts';
import { AddressHandles, groupInMemory, memberGid } from '../core/address-handles.ts';
import { ContextCore } from '../core/context-base.ts';
import type { Mapping } from '../core/mapped-memory.ts';
import { checkQueuePair, failUsersOf, makeRing } from '../core/queue-pair-base.ts';
import type { CompletionRing } from './completion-ring.ts';
import { ROOT_BYTES, Root } from './context-root.ts';
import { EmulatedCompletionQueue } from './emulator-completion-queue.ts';
import type { Allocation, EmulatorFabric } from './emulator-fabric.ts';
import { CAPABILITIES, DEVICE } from './emulator-limits.ts';
import { AddressSpace, EmulatedMemory } from './emulator-memory.ts';
import type { Blocked, EmulatedParent, EmulatedPd } from './emulator-parent.ts';
import { EmulatedQueuePair } from './emulator-queue-pair.ts';
import { EmulatedSharedReceiveQueue } from './emulator-receive-queue.ts';
import { EmulatedRegion } from './memory-region.ts';
import { Peer } from './peer.ts';
import { EmulatedProtectionDomain } from './protection-domain.ts';
import { MAX_QP, QpField, QpField64, QpNumbers, type QpRows, rowOf } from './qp-table.ts';
import { ReceiveRing, receiveRingBytes } from './receive-ring.ts';

/** What a device lacks that the emulator has. */
const AS_DEVICE = { ...CAPABILITIES, loadStore: false, atomicsAgree: false, immediateCompletion: false };

/**
 * Opens the emulated device of one member of a fabric. The context closes the fabric when it is closed.
 * @param nodeSize for tests: so many members, one after the other, say that they are a node of their own
 * (`Context.near`)
 */
export function openEmulator(fabric: EmulatorFabric, nodeSize?: number): Context {
  return new EmulatedContext(fabric, CAPABILITIES, undefined, nodeSize);
}

/**
 * The same, but it claims no more than a device across a network can do, and does no more: for tests of what runs on
 * such devices.
 * @param ranksAHost how many members, in their order, are neighbours
 */
export function openEmulatorAsDevice(fabric: EmulatorFabric, ranksAHost: number): Context {
  if (ranksAHost === 1) return new EmulatedContext(fabric, AS_DEVICE);
  // The emulator's atomics are the processor's.
  return new EmulatedContext(fabric, { ...AS_DEVICE, atomicsAgree: true }, new PretendedNeighbours(fabric, ranksAHost));
}

class PretendedNeighbours implements Neighbours {
  readonly #fabric: EmulatorFabric;
  readonly #ranksAHost: number;

  constructor(fabric: EmulatorFabric, ranksAHost: number) {
    this.#fabric = fabric;
    this.#ranksAHost = ranksAHost;
  }

  has(member: number): boolean {
    return Math.floor(member / this.#ranksAHost) === Math.floor(this.#fabric.member / this.#ranksAHost);
  }

  handleOf(memory: Memory): number {
    return (memory as EmulatedMemory).allocation?.handle ?? 0;
  }

  map(member: number, handle: number, byteLength: number): RemotePointer {
    const { buffer, release } = this.#fabric.attach(member, handle, byteLength);
    return { buffer, offset: 0, release };
  }
}

class EmulatedContext extends ContextCore implements Context, EmulatedParent {
  readonly device = DEVICE;
  readonly capabilities: Capabilities;
  readonly member: number;
  readonly gid: string;
  readonly handles = new AddressHandles<EmulatedPd>();
  readonly parking: Parking;
  readonly neighbours: Neighbours | undefined;
  readonly pointerToWords: Context['remotePointer'] | undefined;
  readonly fabric: EmulatorFabric;
  readonly root: Root;
  readonly #addresses = new AddressSpace();
  readonly #peers: (Peer | undefined)[];
  /** This context's own memory by handle. */
  readonly #ownMemory = new Map<number, Mapping>();
  /** By local key. */
  readonly regions = new Map<number, EmulatedRegion>();
  readonly #cqs = new Set<EmulatedCompletionQueue>();
  readonly #srqs = new Set<EmulatedSharedReceiveQueue>();
  readonly #queuePairs = new Set<EmulatedQueuePair>();
  readonly #qpNumbers = new QpNumbers();
  /** Queue pairs whose head waits for a receive. */
  readonly #blocked = new Set<Blocked>();
  #pds = 0;
  #lastPd = 0;
  /** The value of the root's ATTENTION when everything was last seen to. */
  #attended = 0;
  #progressing = false;

  readonly #nodeSize: number;

  constructor(
    fabric: EmulatorFabric,
    capabilities: Capabilities,
    neighbours?: Neighbours,
    nodeSize = Number.POSITIVE_INFINITY,
  ) {
    super('context');
    this.#nodeSize = nodeSize;
    this.fabric = fabric;
    this.neighbours = neighbours;
    this.capabilities = capabilities;
    if (!capabilities.loadStore) this.pointerToWords = (...asked) => this.#pointer('remote pointer', ...asked);
    this.member = fabric.member;
    this.gid = memberGid(fabric.member);
    this.parking = fabric.parking;
    this.#peers = new Array(fabric.size).fill(undefined);
    const allocation = fabric.allocate(ROOT_BYTES);
    this.root = new Root(allocation.buffer);
    this.root.open();
    fabric.publishRoot(allocation);
  }

  get news(): number {
    return this.root.news;
  }

  get pendingRetry(): boolean {
    return this.#blocked.size > 0;
  }

  wake(member: number): void {
    if (this.capabilities.loadStore) this.fabric.wake(member);
  }

  near(member: number): boolean {
    if (member === this.member) return true;
    return (
      this.capabilities.loadStore && Math.floor(member / this.#nodeSize) === Math.floor(this.member / this.#nodeSize)
    );
  }

  allocateMemory(bytes: number): Memory {
    this.mustBeOpen('allocate memory');
    checkInteger('allocate memory', 'the number of bytes', bytes, 1, DEVICE.maxMrSize);
    return this.#libraryMemory(this.allocate(bytes));
  }

  /** Memory that peers can attach. */
  #libraryMemory(allocation: Allocation): EmulatedMemory {
    const memory = new EmulatedMemory(
      this.fabric,
      this.#addresses.take(allocation.byteLength),
      allocation.buffer,
      allocation,
      (freed) => this.#ownMemory.delete(freed.allocation!.handle),
    );
    this.#ownMemory.set(allocation.handle, memory.mapping);
    return memory;
  }

  protected adopt(buffer: ArrayBufferLike): Memory {
    return new EmulatedMemory(this.fabric, this.#addresses.take(bytesIn(buffer)), buffer, undefined, () => {});
  }

  override exposeMemory(buffer: ArrayBufferLike, bytes: number): Memory | undefined {
    this.mustBeOpen('expose memory');
    const allocation = this.fabric.adopt?.(buffer, bytes);
    return allocation && this.#libraryMemory(allocation);
  }

  allocPd(): ProtectionDomain {
    this.mustBeOpen('allocate a protection domain');
    checkRoom('allocate a protection domain', 'protection domains', this.#pds, DEVICE.maxPd);
    this.#pds++;
    this.#lastPd = (this.#lastPd + 1) | 0;
    return new EmulatedProtectionDomain(this, this.#lastPd);
  }

  createCq(cqe: number): EmulatedCompletionQueue {
    const call = 'create a completion queue';
    this.mustBeOpen(call);
    checkInteger(call, 'cqe', cqe, 1, DEVICE.maxCqe);
    checkRoom(call, 'completion queues', this.#cqs.size, DEVICE.maxCq);
    const cq = new EmulatedCompletionQueue(this, cqe, () => {
      this.#cqs.delete(cq);
      this.fabric.free(cq.allocation);
    });
    this.#cqs.add(cq);
    return cq;
  }

  override remotePointer(
    member: number,
    rkey: number,
    remoteAddress: number,
    length: number,
    access: number,
  ): RemotePointer {
    const call = 'remote pointer';
    this.mustBeOpen(call);
    if (!this.capabilities.loadStore)
      throw new RmaError('ERR_VERBS', `${call}: this device cannot map remote memory (capability loadStore)`);
    return this.#pointer(call, member, rkey, remoteAddress, length, access);
  }

  #pointer(
    call: string,
    member: number,
    rkey: number,
    remoteAddress: number,
    length: number,
    access: number,
  ): RemotePointer {
    const peer = this.peer(member);
    if (peer === undefined) throw new RmaError('ERR_VERBS', `${call}: no device is open at member ${show(member)}`);
    // A number beyond 32 bits is not the key that its low bits are.
    const region = rkey === rkey >>> 0 ? peer.region(rkey) : undefined;
    if (region === undefined) {
      throw new RmaError(
        'ERR_VERBS',
        `${call}: key ${show(rkey)} names no memory region of member ${member}, or one that was deregistered`,
      );
    }
    if (
      !Number.isSafeInteger(remoteAddress) ||
      !Number.isSafeInteger(length) ||
      length < 0 ||
      !region.contains(remoteAddress, length)
    ) {
      throw new RmaError(
        'ERR_VERBS',
        `${call}: ${show(length)} bytes at address ${show(remoteAddress)} are not within the region of ` +
          `${region.length} bytes at address ${region.address} of member ${member}`,
      );
    }
    if ((region.access & access) !== access) {
      throw new RmaError(
        'ERR_VERBS',
        `${call}: the caller asks for access rights ${show(access)}, ` +
          `but the region of member ${member} allows only ${region.access}`,
      );
    }
    const { attached } = region;
    attached.users++;
    let held = true;
    return {
      buffer: region.mapping.buffer,
      offset: remoteAddress + region.shift,
      release: () => {
        if (!held) return;
        held = false;
        if (this.isClosed) return;
        peer.detach(attached);
        peer.forget(rkey);
      },
    };
  }

  multicastGroup(number: number): MulticastGroup {
    return groupInMemory(number);
  }

  protected override fetchEvents(): void {
    this.progress();
  }

  close(): void {
    if (this.isClosed) return;
    this.root.close();
    for (const qp of this.#queuePairs) {
      qp.forgetGroups();
      qp.destroy();
    }
    for (const srq of this.#srqs) srq.destroy();
    for (const cq of this.#cqs) cq.destroy();
    for (const region of this.regions.values()) region.deregister();
    this.isClosed = true;
    // First: a fabric that is closed need not make room for anything.
    this.fabric.close();
    for (const peer of this.#peers) peer?.close();
    this.#peers.fill(undefined);
    this.#ownMemory.clear();
  }

  // ---- for the objects made from this context -----------------------------------------------------------------------

  allocate(bytes: number): Allocation {
    return this.fabric.allocate(bytes);
  }

  readonly #allocate = (bytes: number): Allocation => this.allocate(bytes);

  /** The device of `member`, if one is open. */
  peer(member: number): Peer | undefined {
    const known = this.#peers[member];
    if (known?.root.isOpen) return known;
    const peer = Peer.open(this.fabric, member, this.#ownMemory);
    if (peer === undefined) return undefined;
    known?.close();
    this.#peers[member] = peer;
    return peer;
  }

  register(pd: EmulatedPd, memory: EmulatedMemory, offset: number, length: number, access: number): EmulatedRegion {
    const key = this.root.regions.publish(
      {
        access,
        pd: pd.number,
        address: memory.address + offset,
        length,
        handle: memory.allocation?.handle ?? -1,
        memoryBytes: memory.byteLength,
        offset,
      },
      this.#allocate,
    );
    const region = new EmulatedRegion(pd, memory, offset, length, access, key, (revoked) => {
      this.root.regions.revoke(revoked);
      this.regions.delete(revoked);
    });
    this.regions.set(key, region);
    return region;
  }

  createSrq(call: string, pd: EmulatedPd, maxWr: number, maxSge: number): EmulatedSharedReceiveQueue {
    checkRoom(call, 'shared receive queues', this.#srqs.size, DEVICE.maxSrq);
    const srq = new EmulatedSharedReceiveQueue(this, pd, maxWr, maxSge, () => {
      this.#srqs.delete(srq);
      this.fabric.free(srq.allocation);
    });
    this.#srqs.add(srq);
    return srq;
  }

  createQueuePair(pd: EmulatedPd, init: QueuePairInit): EmulatedQueuePair {
    const asked = checkQueuePair(pd, init, DEVICE, 64, this.#cqs, this.#srqs);
    const number = this.#qpNumbers.take();
    if (number === 0) checkRoom('create a queue pair', 'queue pairs', MAX_QP, MAX_QP);

    let own: Allocation | undefined;
    try {
      const { recvCq, srq } = asked;
      const maxRecvWr = srq?.maxWr ?? 2 ** Math.ceil(Math.log2(asked.maxRecvWr));
      const maxRecvSge = srq?.maxSge ?? asked.maxRecvSge;
      if (srq === undefined) own = this.allocate(receiveRingBytes(maxRecvWr, maxRecvSge));
      const rows = this.root.queuePairs.ownRows(number, this.#allocate);
      const qp: EmulatedQueuePair = new EmulatedQueuePair(this, {
        ...asked,
        ...{ number, pd, maxRecvWr, maxRecvSge, words: rows.words },
        receives: own && new ReceiveRing(own.buffer, maxRecvWr, maxRecvSge),
        requests: makeRing(asked, MAX_MESSAGE_BYTES),
        release: () => {
          this.#queuePairs.delete(qp);
          this.#giveBack(number, own);
        },
      });
      // Nothing fails any more: no peer ever sees a queue pair that could not be made.
      this.#writeRow(rows, number, asked.qpType, pd.number, maxRecvWr, maxRecvSge, srq, own ?? srq!.allocation, recvCq);
      this.#queuePairs.add(qp);
      return qp;
    } catch (error) {
      this.#giveBack(number, own);
      throw error;
    }
  }

  /** @param receives the memory of its own receives, if it has some */
  #giveBack(number: number, receives: Allocation | undefined): void {
    this.#qpNumbers.giveBack(number);
    if (receives !== undefined) this.fabric.free(receives);
  }

  forgetPd(): void {
    this.#pds--;
  }

  block(qp: Blocked): void {
    this.#blocked.add(qp);
  }

  unblock(qp: Blocked): void {
    this.#blocked.delete(qp);
  }

  /** This rank has asked to be woken by the queue of this ring, and something has come. */
  wakeSelf(ring: CompletionRing): void {
    if (ring.announces) this.root.announce();
    this.fabric.wake(this.member);
  }

  /** Has the next `progress` look at everything. */
  callOwnAttention(): void {
    this.root.callAttention();
  }

  /**
   * What every poll does besides: sees to what peers have changed here, and tries waiting requests again. Two loads
   * when there is nothing.
   */
  progress(): void {
    if (this.root.attention !== this.#attended || this.#blocked.size > 0) this.#catchUp();
  }

  #catchUp(): void {
    // Flushing completes, and completing may call for attention: what comes up meanwhile is seen to by the next poll.
    if (this.#progressing) return;
    this.#progressing = true;
    try {
      const { attention } = this.root;
      if (attention !== this.#attended) {
        this.#attended = attention;
        for (const srq of this.#srqs) {
          if (srq.ring.takeLimitReached()) this.raise({ type: 'SRQ_LIMIT_REACHED', srq });
        }
        for (const cq of this.#cqs) if (cq.noticeOverrun()) this.#overrun(cq);
        for (const qp of this.#queuePairs) qp.attend();
      }
      for (const qp of this.#blocked) qp.run();
    } finally {
      this.#progressing = false;
    }
  }

  /** Completions were lost, and with them what the queue pairs promise. */
  #overrun(cq: EmulatedCompletionQueue): void {
    this.raise({ type: 'CQ_ERR', cq });
    failUsersOf(cq, this.#queuePairs, (event) => this.raise(event));
  }

  /** Publishes a queue pair in the table: its fields, then its state, then its number. */
  #writeRow(
    { words, doubles }: QpRows,
    number: number,
    type: number,
    pd: number,
    recvWr: number,
    recvSge: number,
    srq: EmulatedSharedReceiveQueue | undefined,
    receives: Allocation,
    recvCq: EmulatedCompletionQueue,
  ): void {
    const row = rowOf(number);
    words[row + QpField.PD] = pd;
    words[row + QpField.ACCESS] = 0;
    words[row + QpField.DEST_NUMBER] = 0;
    words[row + QpField.TYPE] = type;
    words[row + QpField.QKEY] = 0;
    words[row + QpField.SHARED] = srq === undefined ? 0 : 1;
    words[row + QpField.RECV_WR] = recvWr;
    words[row + QpField.RECV_SGE] = recvSge;
    words[row + QpField.CQE] = recvCq.capacity;
    words[row + QpField.EVENTS] = 0;
    doubles[row / 2 + QpField64.RECV_HANDLE] = receives.handle;
    doubles[row / 2 + QpField64.RECV_BYTES] = receives.byteLength;
    doubles[row / 2 + QpField64.CQ_HANDLE] = recvCq.allocation.handle;
    doubles[row / 2 + QpField64.CQ_BYTES] = recvCq.allocation.byteLength;
    Atomics.store(words, row + QpField.STATE, QpState.RESET);
    Atomics.store(words, row + QpField.NUMBER, number);
  }
}
