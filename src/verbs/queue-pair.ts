/** Reliable-connected queue pairs (`ibv_create_qp` with `IBV_QPT_RC`) and their work requests. */
import type { QpAddress } from './device.ts';

/** `ibv_qp_state`. */
export const QpState = Object.freeze({ RESET: 0, INIT: 1, RTR: 2, RTS: 3, SQD: 4, SQE: 5, ERR: 6 });

/** `ibv_wr_opcode`. */
export const WrOpcode = Object.freeze({
  RDMA_WRITE: 0,
  RDMA_WRITE_WITH_IMM: 1,
  SEND: 2,
  SEND_WITH_IMM: 3,
  RDMA_READ: 4,
  ATOMIC_CMP_AND_SWP: 5,
  ATOMIC_FETCH_AND_ADD: 6,
});

/** `ibv_send_flags`. Inline data needs no flag: `wrSetInlineData` says it. */
export const SendFlag = Object.freeze({ FENCE: 1, SIGNALED: 2, SOLICITED: 4 });

/** What a queue pair was made with (`ibv_qp_cap`): at least what was asked for. */
export interface QpCapacity {
  readonly maxSendWr: number;
  readonly maxRecvWr: number;
  readonly maxSendSge: number;
  readonly maxRecvSge: number;
  readonly maxInlineData: number;
}

/** What `modify` needs for each transition; the names are `ibv_qp_attr`'s. What may be left out says its default. */
export interface QpAttributes {
  readonly state: number;
  /** INIT: what the peer may do to this side's memory through this queue pair (bits of `Access`; 0). */
  readonly access?: number;
  /** RTR: the queue pair at the other end. */
  readonly dest?: QpAddress;
  /** RTR: RDMA reads and atomics that the peer may have outstanding here (the device's limit); 0: none at all. */
  readonly maxDestRdAtomic?: number;
  /** RTR: milliseconds that a peer waits before it tries again when no receive was posted (0.01). */
  readonly minRnrTimerMs?: number;
  /** RTR: the number of the first packet that comes, 0 … 2^24 − 1 (a function of both numbers): the peer's `sqPsn`. Where there are no packets it means nothing. */
  readonly rqPsn?: number;
  /** RTS: the number of the first packet that goes. */
  readonly sqPsn?: number;
  /** RTS: tries on receiver-not-ready; 7 means for ever (7). */
  readonly rnrRetry?: number;
  /** RTS: tries on no answer at all, 0 … 7 (7). */
  readonly retryCount?: number;
  /** RTS: RDMA reads and atomics outstanding as initiator (the device's limit); 0: none at all. */
  readonly maxRdAtomic?: number;
}

/**
 * A reliable-connected queue pair.
 *
 * Posting sends follows `ibv_wr_start … ibv_wr_complete`: `wrStart()`; then for each request one builder call
 * (`wrRdmaWrite`, …) and its data (`wrSetSge`, or `wrAddSge` for each of several entries, or `wrSetInlineData`, or nothing for a message
 * of no bytes); then `wrComplete()`, the one doorbell for all of them. Builder calls only write numbers into a ring that the
 * provider shares with native code; nothing is allocated.
 *
 * A builder call that breaks a limit (as `EINVAL`) or finds the queue full (as `ENOMEM`) throws `ERR_VERBS`, and nothing of the batch is
 * posted. So does `wrComplete()` in RESET, INIT and RTR. A request's place in the queue is free again when a completion of it, or of a
 * later request of this queue pair, was polled: so at least one request in `cap.maxSendWr` must be signalled.
 *
 * `wrId` is any integer below 2^53. 64-bit operands are given as two unsigned 32-bit halves, low half first.
 */
export interface QueuePair {
  readonly number: number;
  /** One of {@link QpState}. May become `ERR` at any time through a failed request, of this side or of the peer. */
  readonly state: number;
  readonly cap: QpCapacity;
  readonly maxInlineData: number;
  readonly address: QpAddress;

  /** Moves along RESET → INIT → RTR → RTS, or anything → ERR, RESET (`ibv_modify_qp`). Throws `ERR_VERBS` on other ways. */
  modify(attributes: QpAttributes): void;

  wrStart(): void;
  wrRdmaWrite(wrId: number, flags: number, rkey: number, remoteAddress: number): void;
  wrRdmaWriteImm(wrId: number, flags: number, rkey: number, remoteAddress: number, immData: number): void;
  wrRdmaRead(wrId: number, flags: number, rkey: number, remoteAddress: number): void;
  wrSend(wrId: number, flags: number): void;
  wrSendImm(wrId: number, flags: number, immData: number): void;
  wrAtomicFetchAdd(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    addLo: number,
    addHi: number,
  ): void;
  wrAtomicCmpSwp(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    compareLo: number,
    compareHi: number,
    swapLo: number,
    swapHi: number,
  ): void;
  /** The request's only scatter/gather entry: replaces what was set before. */
  wrSetSge(lkey: number, address: number, length: number): void;
  /** One more scatter/gather entry. */
  wrAddSge(lkey: number, address: number, length: number): void;
  /** Copies `length` bytes from `bytes[offset]` into the request itself: the source may be reused at once. */
  wrSetInlineData(bytes: Uint8Array, offset: number, length: number): void;
  wrComplete(): void;
  /** Drops everything since `wrStart`. */
  wrAbort(): void;

  /**
   * Posts one receive (`ibv_post_recv`), allowed from INIT on; throws `ERR_VERBS` when the queue is full. Its last scatter entry is given
   * here, those before it by `addRecvSge`. `length` 0 needs no region.
   */
  postRecv(wrId: number, lkey: number, address: number, length: number): void;
  /** One scatter entry of the receive that the next `postRecv` posts. */
  addRecvSge(lkey: number, address: number, length: number): void;

  /** Destroys the queue pair; its completions that were not polled are dropped. Idempotent. */
  destroy(): void;
}
