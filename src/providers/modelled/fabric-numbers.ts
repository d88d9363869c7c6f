import type { EthernetNumbers, TcpNumbers } from './ethernet/ethernet-numbers.ts';

/** The numbers of a fabric, without their sources. Times are microseconds; costs of bytes are microseconds per byte. */
export interface Fabric {
  /** The fabric's name. */
  readonly name: string;
  /** What the fabric models. */
  readonly about: string;
  /** Processor time. */
  readonly host: {
    /** Posting the first request of a doorbell. */
    readonly post: number;
    /** Posting each further request of a doorbell. */
    readonly postNext: number;
    /** Posting a receive. */
    readonly postReceive: number;
    /** Taking one completion from a queue. */
    readonly completion: number;
    /** Polling one more connection in use for messages. */
    readonly pollConnection: number;
    /** The number of messages after which a connection counts as in use. */
    readonly pollThreshold: number;
    /** The maximum number of connections in use. */
    readonly pollLimit: number;
    /** Bytes of the longest message that is copied at both ends; a longer one goes by rendezvous, without copies. */
    readonly eager: number;
    /** 1: the receiver of a rendezvous reads the data; 0: the sender writes them. */
    readonly rendezvousByRead: number;
    /** Copying a byte. */
    readonly copy: number;
    /** Packing one put of a superstep, or placing it, besides copying its bytes. */
    readonly record: number;
    /** Combining a byte of two operands. */
    readonly combine: number;
    /** What a reduction costs each rank in addition: temporary memory, the first copy. */
    readonly reduction: number;
    /** The time between two polls of a rank that waits by polling. */
    readonly lookAgain: number;
    /** What handles events of the adapter while a rank computes. 0: nothing; 1: an interrupt; 2: another core. */
    readonly helper: number;
    /** The time from such an event until its handler runs. */
    readonly interrupt: number;
  };
  /** The ranks of a node, which share its adapter, and communication between them through memory. */
  readonly node: {
    /** The number of ranks of a node. */
    readonly ranks: number;
    /** 1: messages between ranks of a node go through memory; 0: through the adapter. */
    readonly messagesByMemory: number;
    /** 1: RDMA between ranks of a node goes through memory; 0: through the adapter. */
    readonly rdmaByMemory: number;
    /** Posting a message that goes through memory. Absent: `host.post` and `host.postNext`, as for the adapter. */
    readonly post?: number;
    /** Taking a completion of one, at both ends. Absent: `host.completion`. */
    readonly completion?: number;
    /** The latency through memory. */
    readonly latency: number;
    /** The cost of each byte through memory. */
    readonly gap: number;
    /** An atomic instruction on a word that another core had last. */
    readonly atomic: number;
    /** What each rank that spins on a word adds when the word changes hands. */
    readonly waiter: number;
  };
  /** Between memory and the adapter. */
  readonly bus: {
    /** 1: reading and writing memory share it (PCI-X); 0: each has its own lanes (PCI-Express). */
    readonly shared: number;
    /** Fetching data that was not posted inline. */
    readonly fetch: number;
    /** Reading a byte from memory. */
    readonly readGap: number;
    /** Writing a byte to memory. */
    readonly writeGap: number;
    /** The latency of a doorbell, from the processor's store to the adapter; 0 if absent. */
    readonly doorbell?: number;
    /** The latency of an event, from the adapter to the processor; 0 if absent. */
    readonly event?: number;
  };
  /** The network adapter: its times and its limits. */
  readonly adapter: {
    /** Sending a message. */
    readonly send: number;
    /** Receiving a message. */
    readonly receive: number;
    /** Each further scatter/gather entry. */
    readonly entry: number;
    /** Serving a read. */
    readonly read: number;
    /** Serving an atomic; the adapter serves one at a time. */
    readonly atomic: number;
    /** Sending an acknowledgement, and receiving it. */
    readonly acknowledge: number;
    /** Replaces link and switch for a message to the same node. */
    readonly loopback: number;
    /** Bytes that a request can carry inline. */
    readonly inline: number;
    /** Scatter/gather entries of a request. */
    readonly maxSge: number;
    /** Reads and atomics that a queue pair can have outstanding. */
    readonly maxReads: number;
    /** Bytes of the longest message. */
    readonly maxMessage: number;
    /** Bytes of a packet, which is stored as a whole before it is forwarded. */
    readonly packet: number;
    /** 1: one processor sends, receives and acknowledges; 0 or absent: sending does not wait for receiving. */
    readonly single?: number;
    /** What the adapter does behind a message that it has received; it delays later ones only. 0 if absent. */
    readonly afterReceive?: number;
    /** The same behind a message that it has sent, when the acknowledgement has come; 0 if absent. */
    readonly afterSend?: number;
    /** The step that ends a wait of a request (`capabilities.waits`); absent where requests cannot wait. */
    readonly step?: number;
    /** Sending a message of a barrier that the adapter carries out (`capabilities.barrier`); absent if it cannot. */
    readonly barrierSend?: number;
    /** Receiving one, and what it triggers. */
    readonly barrierReceive?: number;
  };
  /** A node's link to its switch. */
  readonly link: {
    /** The latency of the cable and its ports. */
    readonly latency: number;
    /** Sending a byte. */
    readonly outGap: number;
    /** Receiving a byte. */
    readonly inGap: number;
  };
  /** The switches: a tree of two levels, whose links messages wait for. */
  readonly switch: {
    /** The latency of a switch. */
    readonly latency: number;
    /** Ports of a leaf switch for nodes. */
    readonly leafPorts: number;
    /** Links of a leaf switch to the upper level. */
    readonly uplinks: number;
    /**
     * The levels of the tree, if there are more than two or the latency of a further switch differs: each level joins
     * `leafPorts` times as many nodes as the one below. The links of higher levels carry all that comes. Absent: 2.
     */
    readonly levels?: number;
    /** The latency of a switch that is not a leaf; `latency` if absent. */
    readonly further?: number;
  };
  /** Retransmission. */
  readonly retry: {
    /** The time after which a request without an answer is sent again. */
    readonly timeout: number;
  };
  /**
   * Absent for most fabrics. With it, nodes are stations of an Ethernet, and bus, link, switch and the times of the
   * adapter apply to nothing but what stays in a node, and to serving reads and atomics.
   */
  readonly ethernet?: EthernetNumbers;
  /** Requests of connected queue pairs go by TCP, datagrams by UDP; there with `ethernet`, absent without it. */
  readonly tcp?: TcpNumbers;
}
