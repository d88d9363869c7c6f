/** The address of a queue pair, which two sides exchange before they connect (`ibv_qp_attr` and `ah_attr`). */
export interface QpAddress {
  /** Whose the queue pair is: the number of its context in the fabric. */
  readonly member: number;
  /** The number of the queue pair. */
  readonly qpNumber: number;
}
