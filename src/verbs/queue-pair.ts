/**
 * Queue pairs, reliable-connected ones and those of unreliable datagrams (`ibv_create_qp` with `IBV_QPT_RC` or
 * `IBV_QPT_UD`), and their work requests.
 */
import type { AddressHandle } from './address-handle.ts';
import type { QpAddress } from './queue-pair-address.ts';

/** The type of a queue pair (`ibv_qp_type`). */
export const QpType = Object.freeze({
  /** Reliable-connected: to one other queue pair; nothing is lost, doubled or out of order. */
  RC: 2,
  /**
   * Unreliable datagrams: to any queue pair of this type, or to a multicast group. A datagram can be lost, and come
   * later than one that was sent after it. Needs `capabilities.datagrams`.
   */
  UD: 4,
});

/** The state of a queue pair (`ibv_qp_state`). */
export const QpState = Object.freeze({
  /** Just created: nothing can be posted. */
  RESET: 0,
  /** Receives can be posted. */
  INIT: 1,
  /** Ready to receive. */
  RTR: 2,
  /** Ready to send. */
  RTS: 3,
  /** The send queue is drained. Not supported. */
  SQD: 4,
  /** The send queue has an error. Not supported. */
  SQE: 5,
  /** All outstanding requests complete with `WR_FLUSH_ERR`. */
  ERR: 6,
});

/** The kind of a send request (`ibv_wr_opcode`). */
export const WrOpcode = Object.freeze({
  /** Writes to remote memory. */
  RDMA_WRITE: 0,
  /** Writes to remote memory, and consumes a receive of the peer, which gets 32 bits of immediate data. */
  RDMA_WRITE_WITH_IMM: 1,
  /** Sends a message into a receive of the peer. */
  SEND: 2,
  /** Sends a message with 32 bits of immediate data. */
  SEND_WITH_IMM: 3,
  /** Reads from remote memory. */
  RDMA_READ: 4,
  /** Compares and swaps a 64-bit word of remote memory. */
  ATOMIC_CMP_AND_SWP: 5,
  /** Adds to a 64-bit word of remote memory, and fetches its previous value. */
  ATOMIC_FETCH_AND_ADD: 6,
  /** Waits for a word of this side's memory (mlx5 calls it wait on data; libibverbs has no name for it). */
  WAIT: 7,
  /** Updates elements of remote memory under a lock there (this library's own: neither devices nor libibverbs have it). */
  UPDATE: 8,
});

/** Flags of a send request (`ibv_send_flags`). Inline data needs no flag: call `wrSetInlineData`. */
export const SendFlag = Object.freeze({
  /** Starts the request only when all earlier reads and atomics of this queue pair are complete. */
  FENCE: 1,
  /** Creates a completion. */
  SIGNALED: 2,
  /** Marks the peer's completion as solicited: see `reqNotify`. */
  SOLICITED: 4,
});

/** The capacities of a queue pair (`ibv_qp_cap`): each is at least what was asked for. */
export interface QpCapacity {
  /** Outstanding send requests. */
  readonly maxSendWr: number;
  /** Outstanding receives. */
  readonly maxRecvWr: number;
  /** Scatter/gather entries of a send request. */
  readonly maxSendSge: number;
  /** Scatter entries of a receive. */
  readonly maxRecvSge: number;
  /** Bytes that a request can carry inline. */
  readonly maxInlineData: number;
}

/**
 * The attributes for `modify`, by the transition that uses them; the names are `ibv_qp_attr`'s, and defaults are in
 * parentheses.
 */
export interface QpAttributes {
  /** The state to move to, one of {@link QpState}. */
  readonly state: number;
  /** INIT: the peer's access rights to this side's memory through this queue pair, bits of `Access` (0). */
  readonly access?: number;
  /**
   * INIT: the key that datagrams must bring to be taken in, 0 … 2^31 − 1. Queue pairs of type UD need it, others ignore
   * it. (Greater ones are the kernel's.)
   */
  readonly qkey?: number;
  /** RTR: the address of the remote queue pair. Those of type UD have none. */
  readonly dest?: QpAddress;
  /**
   * RTR: the number of RDMA reads and atomics that the peer may have outstanding here (the device's limit). 0 allows
   * none.
   */
  readonly maxDestRdAtomic?: number;
  /** RTR: the milliseconds that the peer waits before it retries a message for which no receive was posted (0.01). */
  readonly minRnrTimerMs?: number;
  /**
   * RTR: the sequence number of the first packet to arrive, 0 … 2^24 − 1: the peer's `sqPsn` (computed from both queue
   * pairs' numbers). Ignored where there are no packets.
   */
  readonly rqPsn?: number;
  /** RTS: the sequence number of the first packet to send. */
  readonly sqPsn?: number;
  /** RTS: the number of retries while the receiver is not ready; 7 means for ever (7). */
  readonly rnrRetry?: number;
  /** RTS: the number of retries while the peer does not answer, 0 … 7 (7). */
  readonly retryCount?: number;
  /**
   * RTS: the number of RDMA reads and atomics that may be outstanding as initiator (the device's limit). 0 allows none.
   */
  readonly maxRdAtomic?: number;
}

/**
 * Is told when a request has taken effect.
 * @param request its number on its queue pair, from 1 on
 * @param time microseconds, by the clock of the run
 */
export type RequestEffect = (request: number, time: number) => void;

/**
 * A queue pair.
 *
 * Send requests are posted as with `ibv_wr_start … ibv_wr_complete`. Call `wrStart()`; then for each request one
 * builder call (`wrRdmaWrite`, …), and set its data (`wrSetSge`, or `wrAddSge` for each of several entries, or
 * `wrSetInlineData`, or nothing for an empty message); then call `wrComplete()`, which rings one doorbell for all of
 * them. Builder calls write only numbers into a ring that the provider shares with native code, and allocate nothing.
 *
 * Errors: a builder call throws `ERR_VERBS` if it exceeds a limit (as `EINVAL`) or if the queue is full (as `ENOMEM`),
 * and the whole batch is dropped. So does `wrComplete()` in RESET, INIT and RTR. A request leaves the queue when a
 * completion of it, or of a later request of this queue pair, is polled; so at least one request in `cap.maxSendWr`
 * must be signalled.
 *
 * In all builder calls, `wrId` is an integer below 2^53 that names the request in its completion, and `flags` are bits
 * of {@link SendFlag}. 64-bit operands are two unsigned 32-bit halves, low half first.
 *
 * A queue pair of type UD only sends (`wrSend`, `wrSendImm`), and each of its requests needs an address
 * (`wrSetUdAddr`). Its requests complete when they have left, whatever becomes of them: a datagram is dropped without a
 * word if it is lost, if no queue pair is there, if the key differs, or if no receive is posted. It carries at most
 * `DeviceAttributes.mtu` bytes: more is refused, or completes with `LOC_LEN_ERR`. At the other end its data lie behind
 * `GRH_BYTES` bytes, the global routing header; the completion's `byteLen` counts both, its `srcQp` is the sender's
 * queue pair. A receive that is too short for both completes with an error, mostly `LOC_LEN_ERR`, and ends its queue
 * pair; or the device drops the datagram.
 */
export interface QueuePair {
  /** The queue pair's number on its device. */
  readonly number: number;
  /** One of {@link QpState}. A failed request of this side or of the peer can change it to `ERR` at any time. */
  readonly state: number;
  /** One of {@link QpType}. */
  readonly qpType: number;
  /** The capacities of its queues. */
  readonly cap: QpCapacity;
  /** The number of bytes that a request can carry inline. */
  readonly maxInlineData: number;
  /** The address that the peer connects to. */
  readonly address: QpAddress;

  /**
   * Moves the queue pair along RESET → INIT → RTR → RTS, or from any state to ERR or RESET (`ibv_modify_qp`). Errors:
   * `ERR_VERBS` for other transitions.
   */
  modify(attributes: QpAttributes): void;

  /** Starts a batch of requests (`ibv_wr_start`). */
  wrStart(): void;
  /** Writes the request's data to remote memory (`ibv_wr_rdma_write`). */
  wrRdmaWrite(wrId: number, flags: number, rkey: number, remoteAddress: number): void;
  /** Writes to remote memory, and consumes a receive of the peer, which gets `immData` (`ibv_wr_rdma_write_imm`). */
  wrRdmaWriteImm(wrId: number, flags: number, rkey: number, remoteAddress: number, immData: number): void;
  /** Reads remote memory into the request's entries (`ibv_wr_rdma_read`). */
  wrRdmaRead(wrId: number, flags: number, rkey: number, remoteAddress: number): void;
  /** Sends the request's data into a receive of the peer (`ibv_wr_send`). */
  wrSend(wrId: number, flags: number): void;
  /** Sends a message with 32 bits of immediate data (`ibv_wr_send_imm`). */
  wrSendImm(wrId: number, flags: number, immData: number): void;
  /**
   * Adds to a 64-bit word of remote memory, and stores its previous value in the request's entry of 8 bytes
   * (`ibv_wr_atomic_fetch_add`).
   */
  wrAtomicFetchAdd(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    addLo: number,
    addHi: number,
  ): void;
  /**
   * Swaps a 64-bit word of remote memory if it equals the operand, and stores its previous value in the request's entry
   * of 8 bytes (`ibv_wr_atomic_cmp_swp`).
   */
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
  /**
   * Later requests of this queue pair wait until the 32-bit word at `address` of this side's memory is `value` or a
   * later one: `word − value ≥ 0` in wrapping arithmetic. The word is one that requests of peers change; a change by
   * this side's processor may go unseen. Several waits in a row are a conjunction. Requests behind a wait read their
   * data when it is over, except inline data. A wait that is over already costs a step of the adapter and nothing else.
   * The request has no data, counts in `maxSendWr`, and completes when it is over; with `LOC_PROT_ERR` if `lkey` names
   * no region with that word, or if `address` is no multiple of 4. Only in queue pairs of type RC. Needs
   * `capabilities.waits`. Errors: `ERR_VERBS` without it (as `ENOTSUP`).
   */
  wrWait(wrId: number, flags: number, lkey: number, address: number, value: number): void;
  /**
   * Has the owner update elements of its memory under a lock that is a 64-bit word there, if nobody has the lock. The
   * request's entry is memory of this side: 8 bytes, and behind them the elements that the update is made with. When it
   * is complete, the first word is 0 if it was carried out, and then the elements are those that were there before, if
   * they are fetched; it is 1 if the lock was not 0: then nothing was done, and nothing is by updates of this queue
   * pair that have the same round, until one comes with the next. At most 4,096 bytes of elements, of a type without
   * padding. Needs `capabilities.updates`. Errors: `ERR_VERBS` without it (as `ENOTSUP`).
   * @param update the operation (its number, or 255: compare and swap, with the new element and the expected one), the
   * type's number × 2^8, 2^16 to fetch, the round (0 … 255) × 2^24
   * @param lockAddress 0: there is no lock, for 64-bit integers, which agree with atomics of the device
   * @param lockRkey the key of the lock's region
   * @param holder what the lock is meanwhile, 1 … 2^32 − 1; whatever is added to its upper half stays
   */
  wrUpdate?(
    wrId: number,
    flags: number,
    rkey: number,
    remoteAddress: number,
    update: number,
    lockRkey: number,
    lockAddress: number,
    holder: number,
  ): void;
  /**
   * Sets where the request's datagram goes (`ibv_wr_set_ud_addr`). Only in queue pairs of type UD.
   * @param ah an address handle of the same protection domain
   * @param remoteQpn the number of the queue pair there, 1 … 2^24 − 1; of no meaning for a multicast group
   * @param remoteQkey the key of the queue pairs there, 0 … 2^31 − 1
   */
  wrSetUdAddr(ah: AddressHandle, remoteQpn: number, remoteQkey: number): void;
  /** Sets the request's only scatter/gather entry, and replaces what was set before (`ibv_wr_set_sge`). */
  wrSetSge(lkey: number, address: number, length: number): void;
  /** Adds a scatter/gather entry. */
  wrAddSge(lkey: number, address: number, length: number): void;
  /**
   * Copies `length` bytes, from `bytes[offset]` on, into the request itself, so that the source can be reused at once
   * (`ibv_wr_set_inline_data`).
   */
  wrSetInlineData(bytes: Uint8Array, offset: number, length: number): void;
  /** Posts all requests of the batch (`ibv_wr_complete`). */
  wrComplete(): void;
  /** Drops all requests since `wrStart` (`ibv_wr_abort`). */
  wrAbort(): void;

  /**
   * Posts one receive (`ibv_post_recv`), in every state but RESET. Its last scatter entry is given here, those before
   * it by `addRecvSge`. With `length` 0 it needs no memory region. Errors: `ERR_VERBS` if the queue is full.
   */
  postRecv(wrId: number, lkey: number, address: number, length: number): void;
  /** Adds a scatter entry to the receive that the next `postRecv` posts. */
  addRecvSge(lkey: number, address: number, length: number): void;

  /**
   * Has datagrams for a multicast group come to this queue pair, of type UD, in any state (`ibv_attach_mcast`). All
   * queue pairs that are attached get one, that of the sender too. It has come into force when the call returns; on a
   * network of several switches, they may learn of it later. Idempotent. Needs `capabilities.multicast`.
   * Errors: `ERR_VERBS` if the group is none, if the device has no room, or for other types of queue pairs.
   * @param gid the group's GID
   * @param lid its local identifier in an InfiniBand subnet; 0 on Ethernet
   */
  attachMulticast(gid: string, lid: number): void;
  /**
   * Ends that (`ibv_detach_mcast`). Datagrams that have come before still complete receives. Errors: `ERR_VERBS` if the
   * queue pair is not attached to the group.
   */
  detachMulticast(gid: string, lid: number): void;

  /**
   * Has `effect` told of each request that does what it was posted to do: a write or an atomic when it is in the other
   * end's memory, a read when its answer is here. That is before its completion. For traces; absent where the device
   * does not say it.
   */
  watch?(effect: RequestEffect): void;

  /**
   * Destroys the queue pair, and drops its completions that were not polled (`ibv_destroy_qp`). Idempotent. Errors:
   * `ERR_VERBS` while it is attached to a multicast group.
   */
  destroy(): void;
}
