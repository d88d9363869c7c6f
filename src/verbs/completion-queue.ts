/** Completion queues and work completions (`ibv_create_cq`, `ibv_poll_cq`). */

/** The status that a request completes with (`ibv_wc_status`). */
export const WcStatus = Object.freeze({
  /** The request has succeeded. */
  SUCCESS: 0,
  /** A message was longer than its receive, or than the device carries. */
  LOC_LEN_ERR: 1,
  /** The queue pair could not process the request: for example, a read where `maxRdAtomic` is 0. */
  LOC_QP_OP_ERR: 2,
  /** An error of an end-to-end context; reliable-connected queue pairs have none. */
  LOC_EEC_OP_ERR: 3,
  /** A local key is wrong or revoked, or an entry lies outside its memory region. */
  LOC_PROT_ERR: 4,
  /** The request was dropped because its queue pair went to ERR. */
  WR_FLUSH_ERR: 5,
  /** A memory window could not be bound. */
  MW_BIND_ERR: 6,
  /** The responder sent an unexpected answer. */
  BAD_RESP_ERR: 7,
  /** A protection error at the local end, found while data arrived. */
  LOC_ACCESS_ERR: 8,
  /** The responder refused the request as invalid: for example, a message that does not fit the receive. */
  REM_INV_REQ_ERR: 9,
  /** The remote key is wrong or revoked, lacks the access right, or the range lies outside its memory region. */
  REM_ACCESS_ERR: 10,
  /** The responder could not carry out the request. */
  REM_OP_ERR: 11,
  /** The peer did not answer after `retryCount` tries. */
  RETRY_EXC_ERR: 12,
  /** The peer had no receive posted after `rnrRetry` tries. */
  RNR_RETRY_EXC_ERR: 13,
  /** The device has failed. */
  FATAL_ERR: 20,
  /** Any other error. */
  GENERAL_ERR: 22,
});

/** Returns the name of a status with the `IBV_WC_` prefix: `IBV_WC_WR_FLUSH_ERR`. */
export function wcStatusName(status: number): string {
  for (const [name, value] of Object.entries(WcStatus)) if (value === status) return `IBV_WC_${name}`;
  return `IBV_WC_${status}`;
}

/** The kind of request that has completed (`ibv_wc_opcode`). */
export const WcOpcode = Object.freeze({
  /** A send, with or without immediate data. */
  SEND: 0,
  /** An RDMA write, with or without immediate data. */
  RDMA_WRITE: 1,
  /** An RDMA read. */
  RDMA_READ: 2,
  /** A compare-and-swap. */
  COMP_SWAP: 3,
  /** A fetch-and-add. */
  FETCH_ADD: 4,
  /** A wait (`IBV_WC_DRIVER2`, as what mlx5 calls raw requests completes). */
  WAIT: 136,
  /** A receive, consumed by a send. */
  RECV: 128,
  /** A receive, consumed by an RDMA write with immediate data. */
  RECV_RDMA_WITH_IMM: 129,
});

/** Flags of a work completion (`ibv_wc_flags`). */
export const WcFlag = Object.freeze({
  /**
   * A datagram was received: its data lie behind the `GRH_BYTES` bytes of a global routing header; `srcQp` is valid.
   */
  GRH: 1,
  /** `immData` is valid. */
  WITH_IMM: 2,
});

/**
 * The completions that the last `poll` fetched, as one array per field of `ibv_wc`; entry `i` is valid for
 * `i < poll()`.
 */
export interface WorkCompletions {
  /** The number that the request was posted with. */
  readonly wrId: Float64Array;
  /** One of {@link WcStatus}. In an entry with an error, only `wrId`, `status` and `qpNum` are valid. */
  readonly status: Uint8Array;
  /** One of {@link WcOpcode}. */
  readonly opcode: Uint8Array;
  /** Bits of {@link WcFlag}. */
  readonly flags: Uint8Array;
  /** Bytes that were transferred. */
  readonly byteLen: Uint32Array;
  /** The sender's immediate data, with `WcFlag.WITH_IMM`. */
  readonly immData: Uint32Array;
  /** The number of the local queue pair. */
  readonly qpNum: Uint32Array;
  /** The number of the sender's queue pair, with `WcFlag.GRH`. */
  readonly srcQp: Uint32Array;
}

/** A completion queue (`ibv_cq`). */
export interface CompletionQueue {
  /** The number of completions that the queue can hold: at least the number that was asked for. */
  readonly capacity: number;
  /** The completions that the last `poll` fetched. */
  readonly wc: WorkCompletions;
  /**
   * Fetches up to `max` completions into `wc` and returns their number (`ibv_poll_cq`). It never returns more than
   * `wc`'s arrays hold, so call it until it returns 0. It also retries requests that wait for a receiver. Allocates
   * nothing.
   * Errors: `ERR_VERBS` after an overrun, when completions were lost.
   */
  poll(max: number): number;
  /**
   * Requests one wake-up of this context's `parking` at the next completion (`ibv_req_notify_cq`), or at once if there
   * already is one.
   * @param solicitedOnly only for receives of requests posted with `SendFlag.SOLICITED`, and for completions in error
   */
  reqNotify(solicitedOnly?: boolean): void;
  /**
   * Whether it was asked for a wake-up, and nothing has come since. Absent where to know that takes a call of the
   * device.
   */
  readonly isArmed?: boolean;
  /** Has `Context.news` count the wake-ups of this queue. Absent where there is no such count. */
  announce?(): void;
  /** Destroys the queue (`ibv_destroy_cq`). Idempotent. Errors: `ERR_VERBS` while a queue pair uses it. */
  destroy(): void;
}
