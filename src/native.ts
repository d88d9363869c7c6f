/**
 * The addon: what it offers. (addon.ts: where it is found.)
 *
 * It maps memory, waits in the kernel and does bulk work worth a call; everything else is TypeScript. It needs Linux,
 * and no RDMA library. Without it ranks can only be worker threads, so loading it never throws: {@link nativeStatus}
 * says why it is missing. Every argument is checked in C++: wrong ones throw a `TypeError` or `RangeError` with code
 * `ERR_ARG`, a refusal of the operating system an `Error` whose code is the errno's name.
 */
import { type AddonAttempt, type AddonFound, findAddon } from './addon.ts';

/** What ended a wait on a futex. Any wait may also end early, with `WOKEN`. */
export const FutexResult = Object.freeze({
  WOKEN: 0,
  /** The word did not hold the expected value. */
  CHANGED: 1,
  TIMED_OUT: 2,
});

/** A futex wait that leaves the event loop free: a thread of its own waits, started by the first `begin`. */
export interface Parker {
  /**
   * Starts a sleep while `words[index] === expected`; the constructor's callback gets its `FutexResult`. Keeps the
   * event loop alive and `words` from being collected until then. Throws `EBUSY` if a sleep is pending.
   * @param timeoutMs 0 or more, or `Infinity`
   * @param keepAlive false: the event loop may end before the sleep does
   */
  begin(words: Int32Array, index: number, expected: number, timeoutMs: number, keepAlive?: boolean): void;
  /** Ends the pending sleep without calling back. @returns whether there was one */
  interrupt(): boolean;
  /** Stops the thread. Idempotent; also done when the environment (worker, process) ends. */
  close(): void;
}

/** Rings a word when processes end (native/process_watch.cc): adds 1, and wakes all that sleep on it. */
export interface ProcessWatch {
  /** @returns whether the end of the process will ring; false: the kernel cannot tell */
  add(pid: number): boolean;
  /** Idempotent. */
  close(): void;
}

/**
 * A thread that serves other ranks' requests on private memory, without V8: see native/server.cc. It sleeps in the
 * kernel while there are none, and does not keep the event loop alive.
 */
export interface Server {
  /**
   * Serves these bytes from now on, and pins them: they stay where they are even if their buffer is detached.
   * @returns a number for `remove`
   */
  add(memory: NativeBytes): number;
  /** When it returns, nothing there is touched any more. */
  remove(number: number): void;
  /** Ends the thread and lets go of all memory. Idempotent. */
  close(): void;
}

/** A port of an RDMA device. */
export interface RdmaPort {
  /** The port's number, from 1. */
  readonly port: number;
  /** `ACTIVE`, `DOWN`, …: the end of `IBV_PORT_…`. */
  readonly state: string;
  /** The network that the port is connected to. */
  readonly linkLayer: 'Ethernet' | 'InfiniBand';
  /** The local identifier in an InfiniBand subnet; 0 on Ethernet. */
  readonly lid: number;
  /** The MTU in use, in bytes. */
  readonly activeMtu: number;
  /** The longest message, in bytes. */
  readonly maxMessageBytes: number;
  /** The port's GIDs. */
  readonly gids: readonly {
    /** The GID's index in the port's table. */
    readonly index: number;
    /** Eight groups of four hexadecimal digits. */
    readonly gid: string;
    /** `RoCE v2`, `IB/RoCE v1`, or what else the kernel reports. */
    readonly type: string;
  }[];
}

/** The limits that an RDMA device reports (`ibv_device_attr`). */
export interface RdmaLimits {
  /** Queue pairs. */
  readonly maxQp: number;
  /** Outstanding work requests in one queue. */
  readonly maxQpWr: number;
  /** Scatter/gather entries of one work request. */
  readonly maxSge: number;
  /** Completion queues. */
  readonly maxCq: number;
  /** Entries of one completion queue. */
  readonly maxCqe: number;
  /** Memory regions. */
  readonly maxMr: number;
  /** Bytes of one memory region. */
  readonly maxMrSize: number;
  /** Protection domains. */
  readonly maxPd: number;
  /** Shared receive queues. */
  readonly maxSrq: number;
  /** Outstanding receives in one shared receive queue. */
  readonly maxSrqWr: number;
  /** Scatter entries of one receive in a shared receive queue. */
  readonly maxSrqSge: number;
  /** Address handles. */
  readonly maxAh: number;
  /** Multicast groups that queue pairs can be attached to; 0: there are none. */
  readonly maxMcastGrp: number;
  /** Queue pairs that can be attached to one multicast group. */
  readonly maxMcastQpAttach: number;
  /** Attachments of queue pairs to multicast groups, altogether. */
  readonly maxTotalMcastQpAttach: number;
  /** RDMA reads and atomics that one queue pair can have outstanding as initiator. */
  readonly maxQpInitRdAtom: number;
  /** RDMA reads and atomics that a peer can have outstanding at one queue pair. */
  readonly maxQpRdAtom: number;
  /** The device's atomicity: the value of `IBV_ATOMIC_NONE` (0), `IBV_ATOMIC_HCA` (1) or `IBV_ATOMIC_GLOB` (2). */
  readonly atomics: number;
}

/** An RDMA device of this machine, and why it cannot be used if so. */
export interface RdmaDevice {
  /** The device's name: `mlx5_0`. */
  readonly name: string;
  /** `InfiniBand`, which includes RoCE, or `iWARP`. */
  readonly transport: string;
  /** The device's file: `/dev/infiniband/uverbs0`. */
  readonly file: string;
  /** Why the device cannot be opened; absent if it can. */
  readonly refused?: string;
  /** The name of the errno of that: `EACCES`. */
  readonly refusedCode?: string;
  /** The version of the firmware; absent if the device cannot be opened. */
  readonly firmware?: string;
  /** The device's limits; absent if it cannot be opened. */
  readonly limits?: RdmaLimits;
  /** The device's ports; absent if it cannot be opened. */
  readonly ports?: readonly RdmaPort[];
}

/** An `ibv_qp_init_attr`; objects are named by their numbers. */
export interface QpInit {
  readonly pd: number;
  readonly sendCq: number;
  readonly recvCq: number;
  readonly srq?: number | undefined;
  readonly maxSendWr: number;
  /** This and `maxRecvSge` count without a shared receive queue. */
  readonly maxRecvWr: number;
  readonly maxSendSge: number;
  readonly maxRecvSge: number;
  readonly maxInlineData: number;
  readonly signalAll?: boolean;
  readonly datagrams?: boolean;
}

/** An `ibv_qp_attr`: what a move to `state` takes; anything else is ignored. */
export interface QpChange {
  readonly state: number;
  /** Absent: as before. */
  readonly access?: number | undefined;
  readonly gid?: string;
  readonly lid?: number;
  readonly destQp?: number;
  readonly maxDestRdAtomic?: number;
  /** As its code. */
  readonly minRnrTimer?: number;
  /** Absent in a move to RTS: only `access` changes. */
  readonly rnrRetry?: number;
  readonly retryCount?: number;
  readonly maxRdAtomic?: number;
  readonly timeout?: number;
  /** An `ibv_mtu`. */
  readonly mtu?: number;
  /** Of the first packet that comes, in a move to RTR, or that goes, in one to RTS. */
  readonly psn?: number | undefined;
  readonly qkey?: number;
}

/** An endpoint of libfabric: native/fabric_engine.h. */
export interface FabricEndpoint {
  /** libfabric's name of the provider: `tcp;ofi_rxm`. */
  readonly provider: string;
  /** Where it is, in the provider's own format. */
  readonly name: Uint8Array;
  /** 64 random bits that stand in every message to it: the upper and the lower half. */
  readonly tag: readonly [number, number];
  readonly atomicsAgree: boolean;
  /** The provider keeps the order of writes and messages; if not, each waits for those before it. */
  readonly ordered: boolean;
  /** Why a peer is not reached, if that is known. */
  readonly trouble?: string;
}

/** A provider of libfabric that has what the library needs. */
export interface FabricOffer {
  readonly provider: string;
  /** Of a network or device: `eth0`. */
  readonly domain: string;
  /** An address of IP, or empty. */
  readonly address: string;
}

/**
 * An open device: native/rdma.cc and the files beside it, whose comments give the arguments. Objects are named by
 * numbers. Errors of the library are errors with the errno's name.
 */
export interface RdmaContext {
  describe(): RdmaLimits & {
    readonly gid: string;
    readonly lid: number;
    /** An `ibv_mtu`. */
    readonly mtu: number;
    readonly portState: string;
    readonly ethernet: boolean;
    readonly maxMsgSize: number;
  };
  /** Of its port, now: `ACTIVE`, `DOWN`, … */
  portState(): string;
  /** What it is, where it is an endpoint of libfabric. Throws `EOPNOTSUPP` for others. */
  endpoint(): FabricEndpoint;
  /** Of libfabric: the GID by which queue pairs name the endpoint that has this name and tag. */
  addPeer(name: Uint8Array, tagHigh: number, tagLow: number): string;
  /** Of libfabric: acknowledges what was received and was not acknowledged yet. */
  acknowledge(): void;
  allocPd(): number;
  deallocPd(pd: number): void;
  regMr(pd: number, memory: NativeBytes, offset: number, length: number, access: number): [number, number, number];
  deregMr(mr: number): void;
  createCq(cqe: number): [number, number];
  destroyCq(cq: number): void;
  /**
   * Functions of the data path, for one queue: `words` say what they do next, and what they have done
   * (native/rdma_data_path.cc).
   */
  poller(cq: number, words: Uint32Array): () => void;
  sender(qp: number, ring: Uint8Array, slotBytes: number, words: Uint32Array): () => void;
  receiver(shared: boolean, queue: number, entries: Float64Array, words: Uint32Array): () => void;
  reqNotifyCq(cq: number, solicitedOnly: boolean): boolean;
  createSrq(pd: number, maxWr: number, maxSge: number): [number, number, number];
  armSrq(srq: number, limit: number): void;
  destroySrq(srq: number): void;
  createQp(init: QpInit): [number, number, number, number];
  modifyQp(qp: number, change: QpChange): void;
  queryQp(qp: number): number;
  destroyQp(qp: number): void;
  /** native/rdma_helper.h. @returns the helper, its completion queue, and the queue's capacity */
  createHelper(
    pd: number,
    address: number,
    bytes: number,
    lkey: number,
    entries: number,
    lanes: number,
  ): [number, number, number];
  addLane(helper: number, control: number, data: number): void;
  startHelper(helper: number): void;
  /** The helper's queue pairs can be destroyed after this, and not before. */
  stopHelper(helper: number): void;
  destroyHelper(helper: number): void;
  /** native/rdma_barrier.h. @param loss for tests @returns its queue pair's number, and the key of that */
  createBarriers(news: Int32Array, loss: number, seed: number): [number, number];
  joinBarrier(rank: number, nanoseconds: number, schedule: Int32Array, words: Int32Array): number;
  connectBarrier(
    group: number,
    rank: number,
    gid: string,
    lid: number,
    queuePair: number,
    qkey: number,
    theirGroup: number,
  ): void;
  enterBarrier(group: number): void;
  leaveBarrier(group: number): void;
  createAh(pd: number, gid: string, lid: number): number;
  destroyAh(ah: number): void;
  attachMcast(qp: number, gid: string, lid: number): void;
  detachMcast(qp: number, gid: string, lid: number): void;
  asyncEvent(): [number, number] | undefined;
  wait(milliseconds: number): number;
  beginWait(milliseconds: number): number;
  takeEvents(): number;
  interrupt(release: boolean): void;
  close(): void;
}

/**
 * A typed array, over an `ArrayBuffer` or a `SharedArrayBuffer`, or an `ArrayBuffer`. (No `DataView`, and no
 * `SharedArrayBuffer` itself.)
 */
export type NativeBytes = ArrayBufferView | ArrayBuffer;

export interface Native {
  readonly pageBytes: number;
  /** The most bytes that `memoryMap` maps at once: 4 GiB on Node 20, 2^53 − 1 later. */
  readonly maxMapBytes: number;

  /** Makes an empty memory file (memfd): owner only, closed on exec, never shrinks. @returns its descriptor */
  memoryCreate(name: string): number;
  /** Grows a memory file; the new bytes are zero and take no memory until touched. */
  memoryResize(fd: number, bytes: number): void;
  /**
   * Maps a part of a memory file that `memoryCreate` made here or elsewhere. `byteOffset` is a multiple of `pageBytes`.
   * The buffer is without the first `before` bytes of it (default: 0).
   */
  memoryMap(fd: number, byteOffset: number, bytes: number, before?: number): ArrayBuffer;
  /**
   * Unmaps now and detaches `buffer`; without it that happens when `buffer` is collected. Idempotent.
   * @returns whether nothing in this process can reach the memory by this mapping any more: not if it is pinned, or
   * `buffer` was detached before
   */
  memoryUnmap(buffer: ArrayBuffer): boolean;
  /** Gives the memory of a range back; it reads as zeros then, in every mapping. */
  memoryPunch(fd: number, byteOffset: number, bytes: number): void;
  /**
   * Whether an `ArrayBuffer` of this program's own can be remapped: nothing else stands in its pages
   * (native/remapped_memory.cc).
   * @returns the bytes of these pages, and how many of them stand before the buffer's first
   */
  memoryRemappable(buffer: ArrayBuffer): readonly [pageBytes: number, before: number] | undefined;
  /**
   * Exchanges the pages of such a buffer for a range of a memory file that is zero so far, and copies what was in them:
   * every process that maps the range sees the buffer. Costs about 0.4 ns a byte that is not zero. No other thread may
   * be storing there meanwhile; what a `Server` has is refused.
   * @returns a number for `memoryReclaim`
   */
  memoryRemap(fd: number, byteOffset: number, buffer: ArrayBuffer): number;
  /**
   * Makes the memory private again.
   * @returns false if it stays as it is: its buffer was detached, so that another thread may have it, a `Server` has
   * it, or there was no memory
   */
  memoryReclaim(remapped: number): boolean;

  /**
   * Blocks this thread while `words[index] === expected`, for at most `timeoutMs` (0 or more, or `Infinity`).
   * @returns a `FutexResult`
   */
  futexWait(words: Int32Array, index: number, expected: number, timeoutMs: number): number;
  /** Wakes up to `count` sleepers on the word, in all processes that map it. @returns how many */
  futexWake(words: Int32Array, index: number, count: number): number;
  readonly Parker: new (callback: (result: number) => void) => Parker;
  readonly ProcessWatch: new (words: Int32Array, index: number) => ProcessWatch;

  /**
   * Tries to lock a file or directory against all other descriptors that lock it (`flock`). The kernel unlocks it when
   * the descriptor is closed, however its process ends.
   * @returns whether it is locked now
   */
  fileLock(fd: number): boolean;

  schedYield(): void;
  /** Enters this process among those that `membarrier` reaches. @returns whether the kernel can do it */
  membarrierRegister(): boolean;
  /**
   * Every core that runs a registered process passes a full memory barrier before this returns. A microsecond or two.
   */
  membarrier(): void;
  /**
   * Has the kernel send `signal` to this process when the thread that started it ends (0: not any more): start ranks
   * from a thread that lives as long as the launcher. Not sent if that thread is already gone.
   * @returns the parent's PID, to be compared with the launcher's
   */
  parentDeathSignal(signal: number): number;

  /** The address of the first byte in this process. It does not change until the memory is given back. */
  addressOf(memory: NativeBytes): number;
  /** Lets other processes of this user attach to this one where the kernel asks for that (Yama). */
  allowAttach(): void;
  /**
   * Copies `bytes` bytes at `address` of process `pid` (which may be this one) into `memory`, at `offset`: one system
   * call, about 0.5 µs and 0.1 ns a byte. Throws `ESRCH` (no such process), `EPERM` (it may not be attached to),
   * `EFAULT` (no memory there; some of it may have been copied).
   */
  processRead(pid: number, address: number, memory: NativeBytes, offset: number, bytes: number): void;
  /** The other way round. */
  processWrite(pid: number, address: number, memory: NativeBytes, offset: number, bytes: number): void;
  /**
   * The same for `count` pieces, in order: `segments` holds three numbers for each: the offset in `memory`, that from
   * `address` (it may be negative), and the bytes. One system call for 256.
   */
  processReadSegments(pid: number, address: number, memory: NativeBytes, segments: Float64Array, count: number): void;
  processWriteSegments(pid: number, address: number, memory: NativeBytes, segments: Float64Array, count: number): void;
  /**
   * @param words a line of 32 words and `slots` slots, as in src/transfer/served/memory-server.ts: shared with all that
   * ask
   */
  readonly Server: new (
    words: Int32Array,
    slots: number,
  ) => Server;

  /**
   * `target[i] = target[i] op origin[i]`, each element with one hardware atomic: exact against every other process that
   * updates the same elements with atomics, here or in JavaScript. Everything is checked before anything is written.
   *
   * Integers wrap as two's complement. `MIN` and `MAX` of floats are NaN if either is. Logical operations give 1 or 0.
   * About 5 ns an element (uncontended) and 100 ns a call.
   * @param op an `OpCode`
   * @param type a `TypeCode`; `op` must be defined on it
   * @param targetByte offset in the view `target`; the element must be aligned to its size
   * @param originByte offset in the view `origin`. Nothing is read by `NO_OP`.
   * @param count elements
   * @param result gets the previous values, if given
   */
  accumulate(
    op: number,
    type: number,
    target: NativeBytes,
    targetByte: number,
    origin: NativeBytes,
    originByte: number,
    count: number,
    result?: NativeBytes,
  ): void;
  /**
   * `target[displacements[i]] = target[displacements[i]] op origin[i]`, atomically as in `accumulate`; displacements
   * count elements from `targetByte`. All are checked before anything is written: a `RangeError` with the `index` of
   * the first that is wrong.
   * @param count how many of the displacements (default: all)
   * @param limit they must be less than this (default: the elements in `target`)
   */
  accumulateIndexed(
    op: number,
    type: number,
    target: NativeBytes,
    targetByte: number,
    displacements: Int32Array,
    origin: NativeBytes,
    count?: number,
    limit?: number,
  ): void;
  /**
   * `accumulate` of any type and layout: `BulkKernels` in transfer/loads/accumulate.ts. Offsets are an `Int32Array` in
   * elements, a `Float64Array` in bytes, or absent for elements one after the other. Floating-point numbers and pairs
   * are updated under the stripes of transfer/loads/stripes.ts.
   * @returns how many elements are done: fewer than all if a stripe stayed locked for some milliseconds
   */
  accumulateAt(
    op: number,
    type: number,
    target: NativeBytes,
    targetByte: number,
    targets: Int32Array | Float64Array | undefined,
    origin: NativeBytes | undefined,
    sources: Int32Array | Float64Array | undefined,
    result: NativeBytes | undefined,
    sinks: Int32Array | Float64Array | undefined,
    count: number,
    stripes: Int32Array,
    base: number,
    me: number,
  ): number;
  /** Why there is no libpmix, if so. */
  pmixReason(): string | undefined;
  /**
   * Connects to the PMIx server that the environment names, through libpmix: once in a process. Throws `ENOTCONN` with
   * the library's reason.
   */
  pmixInit(): { rank: number; size: number };
  /**
   * What each of `size` ranks has given as its card. Collective; ends the connection. Rejects with the library's
   * reason.
   */
  pmixExchange(prefix: string, card: string, size: number): Promise<string[]>;
  /** Why there is no `rdmaDevices`: what was missing when the addon was built. */
  readonly rdmaReason?: string;
  /** All RDMA devices of this machine. Throws `ENOENT` where libibverbs is not installed. */
  readonly rdmaDevices?: () => RdmaDevice[];
  readonly RdmaContext?: new (
    device: string,
    port: number,
    gidIndex: number,
    callback: (generation: number) => void,
    /** The device is libfabric's: `provider` or `provider|address`. */
    libfabric?: boolean,
  ) => RdmaContext;
  /** Why there is no `fabricOffers`. */
  readonly fabricReason?: string;
  /** Which libfabric there is, and what it offers. Throws `ENOENT` where there is none. */
  readonly fabricOffers?: () => {
    readonly version: string;
    readonly file: string;
    readonly offers: readonly FabricOffer[];
  };
  /** Consecutive elements under stripes, as `accumulatePlan` says: `BulkKernels` in transfer/loads/accumulate.ts. */
  accumulateRun(
    target: NativeBytes,
    origin: NativeBytes | undefined,
    stripes: Int32Array,
    result: NativeBytes | undefined,
  ): number;
  readonly accumulatePlan: Float64Array;
  /** Blocks in nested loops, as `copyPlan` says: `CopyKernels` in datatype/copy.ts. */
  copyNest(to: NativeBytes, from: NativeBytes): void;
  readonly copyPlan: Float64Array;
  /**
   * Blocks at places of a list: `CopyKernels` in datatype/copy.ts. A `RangeError` comes after those that were before
   * the wrong one.
   */
  copyBlocks(
    to: NativeBytes,
    toAt: number,
    from: NativeBytes,
    fromAt: number,
    starts: Int32Array,
    unit: number,
    block: number,
    gather: boolean,
  ): void;
}

export interface NativeStatus {
  readonly loaded: boolean;
  readonly path?: string;
  /** Why it is not loaded, and where it was looked for. One line. */
  readonly reason?: string;
  /** Every place that was looked at, in this order. */
  readonly attempts: readonly AddonAttempt[];
}

let found: AddonFound | undefined;

/** The addon, or `undefined` where there is none. Looked for once. */
export function loadNative(): Native | undefined {
  found ??= findAddon();
  return found.addon as Native | undefined;
}

/** Whether the addon is loaded (it is, if possible), from where, or why not. */
export function nativeStatus(): NativeStatus {
  const { addon, ...status } = (found ??= findAddon());
  return { loaded: addon !== undefined, ...status };
}
