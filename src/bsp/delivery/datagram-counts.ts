/** What has been counted of supersteps that go in datagrams, at a process. */

/** Since the computation began; it is in `BspStatistics`. */
export interface DatagramStatistics {
  /** Packets that were sent, each for the first time. */
  readonly packets: number;
  /** Packets that were sent again. */
  readonly resent: number;
  /** How often this process has asked another one for packets that had not come. */
  readonly asks: number;
  /** Asks of others that this process has answered, by packets that it sent again. */
  readonly answers: number;
  /** Packets that had come already. */
  readonly duplicates: number;
  /** Packets and asks of supersteps that are over. */
  readonly late: number;
  /** Datagrams that were dropped unread: they are not of this computation, or not what it expects. */
  readonly strange: number;
}

export class DatagramCounts implements DatagramStatistics {
  packets = 0;
  resent = 0;
  asks = 0;
  answers = 0;
  duplicates = 0;
  late = 0;
  strange = 0;
}
