/** Shared receive queues (`ibv_create_srq`). */
export interface SharedReceiveQueue {
  /** Receives that can be posted at a time: at least what was asked for. */
  readonly maxWr: number;
  readonly maxSge: number;
  /**
   * Posts one receive (`ibv_post_srq_recv`); throws `ERR_VERBS` when full. Its last scatter entry is given here, those before it by
   * `addRecvSge`. `length` 0 needs no region.
   */
  postRecv(wrId: number, lkey: number, address: number, length: number): void;
  /** One scatter entry of the receive that the next `postRecv` posts. */
  addRecvSge(lkey: number, address: number, length: number): void;
  /** Receives that are posted and not yet consumed. */
  readonly posted: number;
  /** How often a message has come and found no receive ("receiver not ready"), where the provider counts that. */
  readonly refused?: number;
  /**
   * Arms the low watermark (`ibv_modify_srq` with `IBV_SRQ_LIMIT`): when fewer than `limit` receives are left, one
   * `SRQ_LIMIT_REACHED` event is raised and the context woken. 0 disarms.
   */
  arm(limit: number): void;
  /** Throws `ERR_VERBS` while a queue pair uses it. Idempotent. */
  destroy(): void;
}
