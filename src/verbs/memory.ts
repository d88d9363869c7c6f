/** Protection domains and memory regions (`ibv_alloc_pd`, `ibv_reg_mr`). */
import type { AddressHandle, AhAttributes } from './address-handle.ts';
import type { CompletionQueue } from './completion-queue.ts';
import type { QueuePair } from './queue-pair.ts';
import type { SharedReceiveQueue } from './shared-receive-queue.ts';

/** Access rights of a memory region (`ibv_access_flags`). Local reads are always allowed. */
export const Access = Object.freeze({
  /** Local requests and receives may write. */
  LOCAL_WRITE: 1,
  /** Peers may write. Needs `LOCAL_WRITE`. */
  REMOTE_WRITE: 2,
  /** Peers may read. */
  REMOTE_READ: 4,
  /** Peers may use atomics. Needs `LOCAL_WRITE`. */
  REMOTE_ATOMIC: 8,
});

/** Memory that a context can register. */
export interface Memory {
  /** The bytes, for loads and stores. */
  readonly buffer: ArrayBufferLike;
  /** The address of the first byte in work requests: an integer below 2^53. */
  readonly address: number;
  /** The length in bytes. */
  readonly byteLength: number;
  /** Whether `allocateMemory` has allocated it. */
  readonly fromLibrary: boolean;
  /**
   * Frees the memory, and detaches `buffer` where the platform can. Errors: `ERR_VERBS` while memory regions are
   * registered over it.
   */
  free(): void;
}

/** A registered memory region (`ibv_mr`). */
export interface MemoryRegion {
  /** The memory that the region is a part of. */
  readonly memory: Memory;
  /** The address of the region's first byte. */
  readonly address: number;
  /** The length in bytes. */
  readonly length: number;
  /** Bits of {@link Access}. */
  readonly access: number;
  /** The key for local requests and receives. */
  readonly lkey: number;
  /** The key for a peer's requests; 32 bits, random with `capabilities.randomKeys`. */
  readonly rkey: number;
  /**
   * Revokes the keys (`ibv_dereg_mr`). Requests that name them afterwards complete with a protection or access error.
   */
  deregister(): void;
}

/** The completion queues and capacities of a new queue pair (`ibv_qp_init_attr`). */
export interface QueuePairInit {
  /** One of `QpType`: reliable-connected if it is not given (`qp_type`). */
  readonly qpType?: number;
  /** The completion queue of send requests. */
  readonly sendCq: CompletionQueue;
  /** The completion queue of receives. */
  readonly recvCq: CompletionQueue;
  /** Takes receives from this queue instead of a queue of the queue pair's own. */
  readonly srq?: SharedReceiveQueue;
  /** The least number of outstanding send requests. */
  readonly maxSendWr?: number;
  /** The least number of outstanding receives. */
  readonly maxRecvWr?: number;
  /** The least number of scatter/gather entries of a send request. */
  readonly maxSendSge?: number;
  /** The least number of scatter entries of a receive. */
  readonly maxRecvSge?: number;
  /** The least number of bytes that a request can carry inline. */
  readonly maxInlineData?: number;
  /** Every send request creates a completion, signalled or not (`sq_sig_all`). */
  readonly signalAll?: boolean;
}

/** A protection domain (`ibv_pd`). */
export interface ProtectionDomain {
  /**
   * Registers memory for requests (`ibv_reg_mr`). Errors: `ERR_VERBS`.
   * @param memory the memory to register
   * @param offset the first byte of the region in `memory`
   * @param length the number of bytes
   * @param access bits of {@link Access}; `REMOTE_WRITE` and `REMOTE_ATOMIC` need `LOCAL_WRITE`
   */
  registerMemory(memory: Memory, offset: number, length: number, access: number): MemoryRegion;
  /** Creates a queue pair in RESET (`ibv_create_qp`). Errors: `ERR_VERBS`. */
  createQueuePair(init: QueuePairInit): QueuePair;
  /**
   * Creates a shared receive queue (`ibv_create_srq`) for `maxWr` receives of `maxSge` scatter entries. Errors:
   * `ERR_VERBS`.
   */
  createSharedReceiveQueue(init: { maxWr: number; maxSge?: number }): SharedReceiveQueue;
  /**
   * Creates an address handle (`ibv_create_ah`), for requests of this domain's queue pairs of type UD. Needs
   * `capabilities.datagrams`. Errors: `ERR_VERBS` if there is no such address, or no way to it.
   */
  createAh(attributes: AhAttributes): AddressHandle;
  /**
   * Deallocates the protection domain (`ibv_dealloc_pd`). Errors: `ERR_VERBS` while something that it has created is
   * not destroyed.
   */
  dealloc(): void;
}

/** Remote memory that is mapped into this process. */
export interface RemotePointer {
  /** The bytes, for loads and stores. */
  readonly buffer: ArrayBufferLike;
  /** The byte of `buffer` at the address that was requested. */
  readonly offset: number;
  /** Unmaps the memory, and detaches `buffer` where the platform can. Idempotent. */
  release(): void;
}
