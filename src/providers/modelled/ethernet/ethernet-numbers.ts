/**
 * The numbers of an Ethernet and of the TCP on it, without their sources: two parts of a fabric that only go together.
 * Times are microseconds, costs of bytes microseconds a byte.
 */

/** `EthernetNumbers.kind`. */
export const EthernetKind = Object.freeze({ BUS: 1, SWITCH: 2 });

/** Bytes of a frame around its data: addresses, type and check sum (IEEE 802.3, clause 3). */
const AROUND = 18;
/** Data that a frame has at least; shorter ones are padded. */
const LEAST_DATA = 46;
/** Headers without options: of IP and TCP, of IP and UDP. */
export const TCP_IP_HEADERS = 40;
export const UDP_IP_HEADERS = 28;
/** The largest window of TCP without an option that scales it (RFC 793). */
export const MOST_WINDOW = 65_535;

export interface EthernetNumbers {
  /** 1: a bus that all nodes share; 2: a switch with a full-duplex link to each node. */
  readonly kind: number;
  /** Sending a byte. */
  readonly gap: number;
  /** Sending the preamble of a frame, with its delimiter. */
  readonly preamble: number;
  /** The silence between two frames. */
  readonly interframe: number;
  /** From one station to any other one on a bus; from a station to the switch. */
  readonly propagation: number;
  /** Bytes of the longest IP packet. */
  readonly mtu: number;
  /** From the protocol stack to the adapter, and from the adapter through the stack, without the process's help. */
  readonly driver: number;
  /** A bus: the unit of the back-off. */
  readonly slot?: number;
  /** A bus: sending the jam after a collision. */
  readonly jam?: number;
  /** A bus: collisions after which a station gives a frame up. */
  readonly attempts?: number;
  /** A bus: collisions after which the range of the back-off does not double any more. */
  readonly backoffLimit?: number;
  /** A switch: frames that each of its ports has room for. */
  readonly room?: number;
  /** A switch: from when it has the whole of a frame until it can be sent on. */
  readonly forward?: number;
}

export interface TcpNumbers {
  /** Bytes of the longest segment. */
  readonly mss: number;
  /** Bytes that a receiver offers. */
  readonly window: number;
  /** Bytes of the congestion window of a new connection. */
  readonly window0: number;
  /** How long an acknowledgement is delayed, to go with others or with data. */
  readonly delay: number;
  /** How many segments are not acknowledged at most; 0: each is at once. Bytes are counted, in units of `mss`. */
  readonly segments: number;
  /** 1: segments are counted as they come, however short they are; 0 or absent: their bytes. */
  readonly counted?: number;
  /** 1: delayed acknowledgements go at the ticks of one clock (BSD); 0 or absent: `delay` after the first segment. */
  readonly tick?: number;
  /** The least time until what is not acknowledged is sent again, and that time before any was measured. */
  readonly timeout: number;
  readonly firstTimeout: number;
  /** How often in a row it is sent again before the connection is given up. */
  readonly retries: number;
  /** Bytes that a provider on sockets puts ahead of each message and datagram. */
  readonly header: number;
  /** 1: acknowledgements without data arrive, but take no frame: what do they cost? 0 or absent: they do. */
  readonly silent?: number;
}

/** How long a frame with an IP packet of `bytes` is on the wire. */
export function frameTime({ preamble, gap }: Pick<EthernetNumbers, 'preamble' | 'gap'>, bytes: number): number {
  return preamble + (Math.max(LEAST_DATA, bytes) + AROUND) * gap;
}
