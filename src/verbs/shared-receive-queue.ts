/** Shared receive queues (`ibv_create_srq`). */

/** A queue of receives that several queue pairs share (`ibv_srq`). */
export interface SharedReceiveQueue {
  /** The number of receives that can be posted at a time: at least the number that was asked for. */
  readonly maxWr: number;
  /** The number of scatter entries that a receive can have: at least the number that was asked for. */
  readonly maxSge: number;
  /**
   * Posts one receive (`ibv_post_srq_recv`). Its last scatter entry is given here, those before it by `addRecvSge`.
   * With `length` 0 it needs no memory region. Errors: `ERR_VERBS` if the queue is full.
   */
  postRecv(wrId: number, lkey: number, address: number, length: number): void;
  /** Adds a scatter entry to the receive that the next `postRecv` posts. */
  addRecvSge(lkey: number, address: number, length: number): void;
  /** The number of receives that are posted and not yet consumed. */
  readonly posted: number;
  /** How many messages found no receive ("receiver not ready"), if the provider counts them. */
  readonly refused?: number;
  /**
   * Arms the low watermark (`ibv_modify_srq` with `IBV_SRQ_LIMIT`). When fewer than `limit` receives are left, the
   * queue raises one `SRQ_LIMIT_REACHED` event and wakes the context. 0 disarms it.
   */
  arm(limit: number): void;
  /** Destroys the queue (`ibv_destroy_srq`). Idempotent. Errors: `ERR_VERBS` while a queue pair uses it. */
  destroy(): void;
}
