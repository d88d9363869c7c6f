/** Completion queues and work completions (`ibv_create_cq`, `ibv_poll_cq`). */

/** `ibv_wc_status`: the value that a request completes with. */
export const WcStatus = Object.freeze({
  SUCCESS: 0,
  LOC_LEN_ERR: 1,
  LOC_QP_OP_ERR: 2,
  LOC_EEC_OP_ERR: 3,
  LOC_PROT_ERR: 4,
  WR_FLUSH_ERR: 5,
  MW_BIND_ERR: 6,
  BAD_RESP_ERR: 7,
  LOC_ACCESS_ERR: 8,
  REM_INV_REQ_ERR: 9,
  REM_ACCESS_ERR: 10,
  REM_OP_ERR: 11,
  RETRY_EXC_ERR: 12,
  RNR_RETRY_EXC_ERR: 13,
  FATAL_ERR: 20,
  GENERAL_ERR: 22,
});

/** The name of a status, as `ibv_wc_status_str` gives it, with the `IBV_WC_` prefix. */
export function wcStatusName(status: number): string {
  for (const [name, value] of Object.entries(WcStatus)) if (value === status) return `IBV_WC_${name}`;
  return `IBV_WC_${status}`;
}

/** `ibv_wc_opcode`. */
export const WcOpcode = Object.freeze({
  SEND: 0,
  RDMA_WRITE: 1,
  RDMA_READ: 2,
  COMP_SWAP: 3,
  FETCH_ADD: 4,
  RECV: 128,
  RECV_RDMA_WITH_IMM: 129,
});

/** `ibv_wc_flags`. */
export const WcFlag = Object.freeze({ WITH_IMM: 2 });

/** The completions that the last `poll` fetched, one array a field (`ibv_wc`); entry `i` is valid for `i < poll()`. */
export interface WorkCompletions {
  readonly wrId: Float64Array;
  readonly status: Uint8Array;
  readonly opcode: Uint8Array;
  readonly flags: Uint8Array;
  readonly byteLen: Uint32Array;
  readonly immData: Uint32Array;
  readonly qpNum: Uint32Array;
}

export interface CompletionQueue {
  /** Completions that it can hold: at least what was asked for. */
  readonly capacity: number;
  readonly wc: WorkCompletions;
  /**
   * Fetches up to `max` completions into `wc` and returns how many (`ibv_poll_cq`); never more than `wc`'s arrays hold, so call it until it
   * returns 0. Allocates nothing. Also gives requests that wait for a receiver their next try.
   * Throws `ERR_VERBS` after an overrun, when completions were lost.
   */
  poll(max: number): number;
  /**
   * Asks for one wake-up of this context's `parking` at the next completion (`ibv_req_notify_cq`), or at once if there is one already.
   * @param solicitedOnly only for receives of requests posted with `SendFlag.SOLICITED`, and for completions in error
   */
  reqNotify(solicitedOnly?: boolean): void;
  /** Throws `ERR_VERBS` while a queue pair uses it. Idempotent. */
  destroy(): void;
}
