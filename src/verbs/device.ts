/**
 * The verbs interface: devices and their contexts.
 *
 * Nouns and verbs are libibverbs' (`ibv_open_device`, `ibv_query_device`, `ibv_alloc_pd`, …), in camelCase. Everything
 * above this floor is written against these interfaces and asks a context for its {@link Capabilities}, never which
 * provider it has.
 */
import type { CompletionQueue } from './completion-queue.ts';
import type { Memory, ProtectionDomain, RemotePointer } from './memory.ts';
import type { SharedReceiveQueue } from './shared-receive-queue.ts';

/** What a device can do, in the words of `ibv_query_device`. Limits are enforced by every provider. */
export interface DeviceAttributes {
  readonly name: string;
  readonly maxQp: number;
  /** Outstanding work requests in one queue. */
  readonly maxQpWr: number;
  /** Scatter/gather entries of one work request. */
  readonly maxSge: number;
  readonly maxCq: number;
  /** Entries of one completion queue. */
  readonly maxCqe: number;
  readonly maxMr: number;
  /** Bytes of one memory region. */
  readonly maxMrSize: number;
  readonly maxPd: number;
  readonly maxSrq: number;
  readonly maxSrqWr: number;
  readonly maxSrqSge: number;
  /** Bytes that a work request can carry inline. */
  readonly maxInlineData: number;
  /** RDMA reads and atomics that one queue pair may have outstanding as initiator. */
  readonly maxQpInitRdAtom: number;
  /** Bytes of one message. */
  readonly maxMsgSize: number;
}

/**
 * What the floors above may rely on beyond the verbs themselves. A provider's claims are tested by the conformance suite; a
 * capability that is missing has a generic path, chosen when a window is made.
 */
export interface Capabilities {
  /** Remote memory can be mapped and loaded and stored directly: {@link Context.remotePointer} works. */
  readonly loadStore: boolean;
  /** Atomic verbs and `Atomics` on the same word agree with each other. */
  readonly atomicsAgree: boolean;
  /** A request has taken effect in remote memory, visible to remote CPUs, when `wrComplete` returns (if it can proceed). */
  readonly immediateCompletion: boolean;
  /** Memory that the library did not allocate can be registered for remote access. */
  readonly remoteUserMemory: boolean;
  /** Keys of memory regions are random numbers of 32 bits: who was not given one does not guess it. */
  readonly randomKeys: boolean;
  /** A fault that a peer's request finds here, and an overrun of a completion queue, raise asynchronous events. Not all devices do. */
  readonly faultEvents: boolean;
}

/** Where a queue pair can be reached: what two sides exchange before they connect (`ibv_qp_attr` and `ah_attr`). */
export interface QpAddress {
  /** The context at the other end: its local identifier in the fabric. */
  readonly lid: number;
  readonly qpNumber: number;
}

/** An asynchronous event of a context (`ibv_get_async_event`). */
export interface AsyncEvent {
  readonly type:
    | 'CQ_ERR'
    | 'QP_FATAL'
    | 'QP_ACCESS_ERR'
    | 'QP_REQ_ERR'
    | 'SRQ_LIMIT_REACHED'
    | 'SRQ_ERR'
    | 'QP_LAST_WQE_REACHED'
    | 'DEVICE_FATAL';
  /** The number of the queue pair, or the object concerned. */
  readonly qpNumber?: number;
  readonly srq?: SharedReceiveQueue;
  readonly cq?: CompletionQueue;
}

/**
 * Where a rank sleeps when it has nothing to do, and who wakes it.
 *
 * The protocol that loses no wake-up: `token = arm()`; look once more whether there is something to do; if not,
 * `sleepSync(token)` or `await sleep(token)`; finally `disarm()`. Whoever changes something that this rank may be waiting for
 * changes it first (sequentially consistent) and calls `Context.wake(lid)` after; armed completion queues do that by themselves.
 */
export interface Parking {
  /**
   * Whether `arm` also makes visible what others have stored plainly before they looked whether this rank sleeps: then a waker need not spend an
   * atomic access on its store (where the processor keeps stores in order).
   */
  readonly seesPlainStores: boolean;
  /** Announces that this rank is about to sleep. Nests: each `arm` needs one `disarm`. */
  arm(): number;
  /** Blocks the thread until woken after `arm` returned `token`, or for `timeoutMs` (may wake early). */
  sleepSync(token: number, timeoutMs: number): void;
  /**
   * The same without blocking: keeps the event loop alive, resolves when woken or after `timeoutMs`.
   * @param background it does not keep the event loop alive: nobody waits for what it will find, it is there to serve others
   */
  sleep(token: number, timeoutMs: number, background?: boolean): Promise<void>;
  disarm(): void;
}

/**
 * The rank's processor, where its time is part of a model: what the floors above do besides the verbs takes time there only if they say so. Times are microseconds.
 */
export interface ProcessorTime {
  spend(microseconds: number): void;
  /** Bytes were copied from memory to memory. */
  copy(bytes: number): void;
  /** Bytes of two operands were combined. */
  combine(bytes: number): void;
  /** A reduction was begun: temporary memory, the first copy. */
  reduction(): void;
  /** An atomic instruction on memory that the ranks of the node share. */
  atomic(): void;
  /**
   * Whether what is done now has its place in the order of virtual time. What a rank's own task does between two waits has not: tasks that go on at one time run one after the other as it
   * happens. Memory that ranks of a node share is touched in order only.
   */
  readonly inOrder: boolean;
  /** Does something in order: at once, or when the task's step is over, and then looks again at what the rank waits for. */
  touch(access: () => void): void;
  /**
   * What is posted next only asks whether something has changed: if it has not, the rank asks again, and nobody gets on by that. It is one request. A rank that waits like this may do so for ever, and who models time
   * can tell.
   */
  asks(): void;
  /** Lets the next thing happen, in a call that must not return before its requests are answered. Tasks that it wakes go on after this one. */
  letPass(): void;
}

/**
 * Members that share memory with this one although requests go through a device: those of the same host. What the library has allocated at one of them can be
 * mapped by the others. Its device's atomics and the processor's may not agree, as everywhere on that device.
 */
export interface Neighbours {
  /** Whether the member at `lid` is one; this context itself is. */
  has(lid: number): boolean;
  /** Names memory of this context to them: an integer below 2^53, 0 if they cannot map it. */
  handleOf(memory: Memory): number;
  /** Maps the whole of what `handle` names at `lid`, which is of `byteLength` bytes. Errors: `ERR_VERBS` if there is no such memory (any more). */
  map(lid: number, handle: number, byteLength: number): RemotePointer;
}

/** An open device (`ibv_context`). */
export interface Context {
  readonly device: DeviceAttributes;
  readonly capabilities: Capabilities;
  /** This context's address in its fabric. */
  readonly lid: number;
  readonly parking: Parking;
  /** Absent where processor time passes by itself. */
  readonly processor?: ProcessorTime;
  /** Absent where there are none, and where all memory can be mapped (`capabilities.loadStore`). */
  readonly neighbours: Neighbours | undefined;

  /** Whether a request waits for a receiver that was not ready: whoever sleeps must come back soon to try it again. */
  readonly pendingRetry: boolean;

  /** Wakes the rank at `lid` if it sleeps; nearly free if it does not. A no-op where `capabilities.loadStore` is false. */
  wake(lid: number): void;

  /**
   * Whether the rank at `lid` is on this rank's node: its processor's atomics and this one's agree, on memory that both map. Without it, all are with
   * `capabilities.loadStore`, and else none.
   */
  near?(lid: number): boolean;

  /**
   * Memory that may be registered for remote access, zeroed. Released by `Memory.free`.
   * @param bytes at least 1; rounded up to whole pages by most providers
   */
  allocateMemory(bytes: number): Memory;
  /** Wraps memory of this process so that it can be registered (for remote access only with `capabilities.remoteUserMemory`). */
  adoptMemory(buffer: ArrayBufferLike): Memory;
  /**
   * Makes memory of the caller's own such that peers can map it like the library's, where that is possible: `SharedArrayBuffer`s between threads, large `ArrayBuffer`s between processes.
   * `undefined` where it is not. `Memory.free` ends it; the memory stays the caller's.
   * @param bytes how much of it peers are to reach: `undefined` is given as well if that is little, and exposing takes time for each byte
   */
  exposeMemory(buffer: ArrayBufferLike, bytes: number): Memory | undefined;
  allocPd(): ProtectionDomain;
  /** @param cqe the least number of completions that the queue must hold */
  createCq(cqe: number): CompletionQueue;

  /**
   * Maps the memory that `rkey` names at the context `lid`, for loads and stores: what `ucp_rkey_ptr` is to UCX. Only with
   * `capabilities.loadStore`. Needs no queue pair. The key, the range and the rights are checked once, here; `release` unmaps.
   * @param access rights wanted, bits of `Access`
   */
  remotePointer(lid: number, rkey: number, remoteAddress: number, length: number, access: number): RemotePointer;

  /** What is wrong with the device or its port now, for messages; absent or `undefined` if nothing is known. Cost: a system call. */
  trouble?(): string | undefined;

  /** Takes the next asynchronous event, if there is one. */
  pollAsyncEvent(): AsyncEvent | undefined;

  /** Destroys everything made from this context. Idempotent. */
  close(): void;
}
