/**
 * The verbs interface: devices and their contexts.
 *
 * Nouns and verbs are libibverbs' (`ibv_open_device`, `ibv_query_device`, `ibv_alloc_pd`, …), in camelCase. Everything
 * above this layer is written against these interfaces and asks a context for its {@link Capabilities}, never which
 * provider it has.
 */
import type { RdmaLimits } from '../native.ts';
import type { AdapterBarrier, AdapterBarrierInit } from './adapter-barrier.ts';
import type { MulticastGroup } from './address-handle.ts';
import type { CompletionQueue } from './completion-queue.ts';
import type { Helper } from './helper.ts';
import type { Memory, MemoryRegion, ProtectionDomain, RemotePointer } from './memory.ts';
import type { SharedReceiveQueue } from './shared-receive-queue.ts';

/** The limits of a device, in the terms of `ibv_query_device`. Every provider enforces them. */
export interface DeviceAttributes extends Omit<RdmaLimits, 'maxQpRdAtom' | 'atomics'> {
  /** The device's name. */
  readonly name: string;
  /** Bytes that a work request can carry inline. */
  readonly maxInlineData: number;
  /** Bytes of one message. */
  readonly maxMsgSize: number;
  /** Bytes of one datagram: the port's MTU, without headers (`ibv_query_port`). */
  readonly mtu: number;
  /** Address handles. 0 without `capabilities.datagrams`. */
  readonly maxAh: number;
  /** Multicast groups that queue pairs can be attached to. 0 without `capabilities.multicast`, as the two others. */
  readonly maxMcastGrp: number;
}

/**
 * What a provider guarantees beyond the verbs themselves. The conformance suite tests a provider's claims. Where a
 * capability is missing, a window uses a generic path, which it selects when it is created.
 */
export interface Capabilities {
  /** Remote memory can be mapped for direct loads and stores: {@link Context.remotePointer} works. */
  readonly loadStore: boolean;
  /** Atomic verbs and `Atomics` are atomic with respect to each other on the same word. */
  readonly atomicsAgree: boolean;
  /**
   * When `wrComplete` returns, a request has taken effect in remote memory and is visible to remote CPUs, unless it
   * must wait for a receiver.
   */
  readonly immediateCompletion: boolean;
  /**
   * A write that is complete at its initiator is in remote memory, for a remote processor that learns of the completion
   * on any way. Without it, a processor may find the data only after a later request of the same connection: a read or
   * an atomic that was answered, or a notification there.
   */
  readonly completionImpliesPlacement: boolean;
  /** Memory that the library did not allocate can be registered for remote access. */
  readonly remoteUserMemory: boolean;
  /** Keys of memory regions are random 32-bit numbers, which a peer cannot guess. */
  readonly randomKeys: boolean;
  /**
   * Faults in a peer's request to this side, and overruns of completion queues, raise asynchronous events. Not all
   * devices raise them.
   */
  readonly faultEvents: boolean;
  /** Something beside the program's processor serves other ranks: {@link Context.makeHelper} works. */
  readonly helper: boolean;
  /** There are unreliable datagrams: queue pairs of type UD, and address handles. */
  readonly datagrams: boolean;
  /**
   * Queue pairs of type UD can be attached to multicast groups, which are there without further preparation:
   * {@link Context.multicastGroup} works.
   */
  readonly multicast: boolean;
  /** Requests can wait for a word of this side's memory: `QueuePair.wrWait`. */
  readonly waits: boolean;
  /** The owner of memory carries out updates of elements under a lock: `QueuePair.wrUpdate`. */
  readonly updates: boolean;
  /** The adapter carries out barriers by itself: {@link Context.makeBarrier} works. */
  readonly barrier: boolean;
}

/** An asynchronous event of a context (`ibv_get_async_event`). */
export interface AsyncEvent {
  /** The event's name, without `IBV_EVENT_`. */
  readonly type:
    | 'CQ_ERR'
    | 'QP_FATAL'
    | 'QP_ACCESS_ERR'
    | 'QP_REQ_ERR'
    | 'SRQ_LIMIT_REACHED'
    | 'SRQ_ERR'
    | 'QP_LAST_WQE_REACHED'
    | 'DEVICE_FATAL';
  /** The number of the queue pair that the event concerns. */
  readonly qpNumber?: number;
  /** The shared receive queue that the event concerns. */
  readonly srq?: SharedReceiveQueue;
  /** The completion queue that the event concerns. */
  readonly cq?: CompletionQueue;
}

/**
 * Puts a rank to sleep while it has nothing to do, and wakes it.
 *
 * To lose no wake-up: call `token = arm()`; check once more whether there is something to do; if not, call
 * `sleepSync(token)` or `await sleep(token)`; finally call `disarm()`. A rank that changes something that this rank may
 * wait for first makes the change (sequentially consistent) and then calls `Context.wake(member)`. Armed completion
 * queues wake their rank themselves.
 */
export interface Parking {
  /**
   * Whether `arm` also makes plain stores visible that other ranks made before they checked whether this rank sleeps.
   * Then a waker needs no atomic store, on processors that keep stores in order.
   */
  readonly seesPlainStores: boolean;
  /**
   * Messages and notifications of other ranks that polling has found so far. Absent where waking a sleeper and going to
   * sleep again cost little beside what is waited for: in shared memory, and where time is virtual.
   */
  readonly received?: number;
  /**
   * Announces that this rank is about to sleep, and returns a token for `sleep`. Nests: each `arm` needs one `disarm`.
   */
  arm(): number;
  /**
   * Blocks the thread until a wake-up after the `arm` that returned `token`, or for `timeoutMs` milliseconds. May
   * return early.
   */
  sleepSync(token: number, timeoutMs: number): void;
  /**
   * Does the same without blocking: resolves at a wake-up or after `timeoutMs` milliseconds. Keeps the event loop
   * alive.
   * @param background do not keep the event loop alive: no caller waits, the rank only serves others
   */
  sleep(token: number, timeoutMs: number, background?: boolean): Promise<void>;
  /** Ends what `arm` began. */
  disarm(): void;
}

/**
 * The members of this host, which share memory with this context although requests go through a device. Memory that the
 * library has allocated at one of them can be mapped by the others. The device's atomics need not be atomic with
 * respect to the processor's, as everywhere on that device.
 */
export interface Neighbours {
  /** Whether `member` is on this host. This context itself is. */
  has(member: number): boolean;
  /**
   * Returns a handle for memory of this context that the others can map: an integer below 2^53, or 0 if they cannot map
   * it.
   */
  handleOf(memory: Memory): number;
  /**
   * Maps all `byteLength` bytes of the memory that `handle` names at `member`. Errors: `ERR_VERBS` if there is no such
   * memory, or it was freed.
   */
  map(member: number, handle: number, byteLength: number): RemotePointer;
}

/** An open device (`ibv_context`). */
export interface Context {
  /** The device's name and limits. */
  readonly device: DeviceAttributes;
  /** What this provider guarantees beyond the verbs. */
  readonly capabilities: Capabilities;
  /** The number of this context in its fabric, by which the others reach it: 0, 1, … */
  readonly member: number;
  /** The GID of this context's port, as eight groups of four hexadecimal digits (`ibv_query_gid`). */
  readonly gid: string;
  /** Sleeping and waking of this rank. */
  readonly parking: Parking;
  /**
   * The members of this host; `undefined` where there are none, and where all memory can be mapped
   * (`capabilities.loadStore`).
   */
  readonly neighbours: Neighbours | undefined;

  /**
   * Changes with each wake-up that a completion queue which announces them was asked for and has made, before it makes
   * it. Absent where to know that takes a call of the device.
   */
  readonly news?: number;

  /** Whether a request waits for a receiver that was not ready. If so, sleep only briefly, and poll to retry it. */
  readonly pendingRetry: boolean;

  /**
   * Acknowledges what was received and was not acknowledged yet, for whoever now does something else than to poll: the
   * sends complete sooner. Absent where devices acknowledge at once.
   */
  acknowledge?(): void;

  /**
   * Wakes `member` if it sleeps; nearly free if it does not. A no-op where `capabilities.loadStore` is false.
   */
  wake(member: number): void;

  /**
   * Whether `member` is on this context's node, so that both processors' atomics agree on memory that both map.
   * If this method is absent, all ranks are with `capabilities.loadStore`, and otherwise none.
   */
  near?(member: number): boolean;

  /**
   * Allocates zeroed memory that can be registered for remote access. `Memory.free` frees it. Errors: `ERR_VERBS`.
   * @param bytes at least 1; rounded up to whole pages by most providers
   */
  allocateMemory(bytes: number): Memory;
  /**
   * Makes a buffer of the caller registrable; for remote access only with `capabilities.remoteUserMemory`. Errors:
   * `TypeError` if it is not a buffer.
   */
  adoptMemory(buffer: ArrayBufferLike): Memory;
  /**
   * Lets peers map a buffer of the caller like the library's own memory, where possible: `SharedArrayBuffer`s between
   * threads, large `ArrayBuffer`s between processes. Returns `undefined` where it is not. `Memory.free` ends the
   * sharing; the buffer remains the caller's.
   * @param bytes the number of bytes that peers will access. If it is small, the result is `undefined` too, since
   * sharing costs time for each byte
   */
  exposeMemory(buffer: ArrayBufferLike, bytes: number): Memory | undefined;
  /** Allocates a protection domain (`ibv_alloc_pd`). Errors: `ERR_VERBS` if the device has no room for one more. */
  allocPd(): ProtectionDomain;
  /**
   * Creates a completion queue (`ibv_create_cq`). Errors: `ERR_VERBS`.
   * @param cqe the least number of completions that the queue must hold
   */
  createCq(cqe: number): CompletionQueue;

  /**
   * Maps the memory that `rkey` names at `member` for loads and stores, like `ucp_rkey_ptr` of UCX. Only with
   * `capabilities.loadStore`. Needs no queue pair. The key, the range and the rights are checked once, here; `release`
   * unmaps the memory.
   * Errors: `ERR_VERBS`.
   * @param access the access rights that are needed, bits of `Access`
   */
  remotePointer(member: number, rkey: number, remoteAddress: number, length: number, access: number): RemotePointer;
  /**
   * @internal `remotePointer` where the emulator poses as a device. Memory that none of its requests reaches, which a
   * real device would reach, is served by a thread of its owner, and this maps what one tells that thread. Absent
   * elsewhere.
   */
  readonly pointerToWords?: Context['remotePointer'] | undefined;

  /**
   * Makes a helper that serves a part. Only with `capabilities.helper`. Errors: `ERR_VERBS`.
   * @param region the part; `undefined` if it has no bytes
   * @param lanes at most
   */
  makeHelper?(pd: ProtectionDomain, region: MemoryRegion | undefined, lanes: number): Helper;

  /** Joins a group whose barriers the adapters carry out. Only with `capabilities.barrier`. Errors: `ERR_VERBS`. */
  makeBarrier?(init: AdapterBarrierInit): AdapterBarrier;

  /**
   * Returns the address of a multicast group in the form that the device's network takes: the same for the same number
   * at all contexts of the fabric. Programs that do not know of each other may take the same number: a random one, and
   * random keys, keep them apart. Only with `capabilities.multicast`. Errors: `ERR_VERBS`.
   * @param number 0 … 2^16 − 1
   */
  multicastGroup(number: number): MulticastGroup;

  /**
   * Describes what is wrong with the device or its port now, for messages; `undefined` if nothing is known. Cost: a
   * system call.
   */
  trouble?(): string | undefined;

  /** Returns and removes the next asynchronous event, or returns `undefined` (`ibv_get_async_event`). */
  pollAsyncEvent(): AsyncEvent | undefined;

  /** Closes the device and destroys everything that was created from this context (`ibv_close_device`). Idempotent. */
  close(): void;
}
