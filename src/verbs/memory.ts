/** Protection domains and memory regions (`ibv_alloc_pd`, `ibv_reg_mr`). */
import type { CompletionQueue } from './completion-queue.ts';
import type { QueuePair } from './queue-pair.ts';
import type { SharedReceiveQueue } from './shared-receive-queue.ts';

/** Access rights of a memory region (`ibv_access_flags`). Local read is always allowed. */
export const Access = Object.freeze({
  LOCAL_WRITE: 1,
  REMOTE_WRITE: 2,
  REMOTE_READ: 4,
  REMOTE_ATOMIC: 8,
});

/** A piece of memory that a context can register. */
export interface Memory {
  readonly buffer: ArrayBufferLike;
  /** The address of its first byte, as work requests name it: an integer below 2^53. */
  readonly address: number;
  readonly byteLength: number;
  /** Whether it came from `allocateMemory`. */
  readonly fromLibrary: boolean;
  /** Gives the memory back; its `buffer` is detached where the platform can do so. Regions over it must be deregistered before. */
  free(): void;
}

/** A registered memory region (`ibv_mr`). */
export interface MemoryRegion {
  readonly memory: Memory;
  readonly address: number;
  readonly length: number;
  readonly access: number;
  readonly lkey: number;
  /** The key a peer must name; 32 bits, random with `capabilities.randomKeys`. */
  readonly rkey: number;
  /** Revokes the keys (`ibv_dereg_mr`): a request that names them afterwards completes with a protection or access error. */
  deregister(): void;
}

export interface QueuePairInit {
  readonly sendCq: CompletionQueue;
  readonly recvCq: CompletionQueue;
  /** Receive from this queue instead of one's own. */
  readonly srq?: SharedReceiveQueue;
  readonly maxSendWr?: number;
  readonly maxRecvWr?: number;
  readonly maxSendSge?: number;
  readonly maxRecvSge?: number;
  readonly maxInlineData?: number;
  /** Every send request makes a completion, signalled or not (`sq_sig_all`). */
  readonly signalAll?: boolean;
}

/** A protection domain (`ibv_pd`). */
export interface ProtectionDomain {
  /**
   * @param memory what to register
   * @param offset first byte of the region in `memory`
   * @param length bytes
   * @param access bits of {@link Access}; `REMOTE_WRITE` and `REMOTE_ATOMIC` need `LOCAL_WRITE`
   */
  registerMemory(memory: Memory, offset: number, length: number, access: number): MemoryRegion;
  createQueuePair(init: QueuePairInit): QueuePair;
  createSharedReceiveQueue(init: { maxWr: number; maxSge?: number }): SharedReceiveQueue;
  /** Throws while something made from it is alive. */
  dealloc(): void;
}

/** Remote memory, mapped: byte `offset` of `buffer` is the address that was asked for. */
export interface RemotePointer {
  readonly buffer: ArrayBufferLike;
  readonly offset: number;
  /** Unmaps it: where the platform can, `buffer` is detached. Idempotent. */
  release(): void;
}
