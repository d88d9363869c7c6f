/** Address handles of datagrams (`ibv_create_ah`), and multicast groups. */

/** The bytes that a datagram's receive has in front of its data: the global routing header (`ibv_grh`). */
export const GRH_BYTES = 40;

/**
 * Where datagrams go (`ibv_ah_attr`): to a context by its number in the fabric, or to the port or the multicast group
 * of a GID.
 */
export type AhAttributes =
  | {
      /** The number of a context in its fabric. */
      readonly member: number;
    }
  | {
      /** The GID of a port or a multicast group, in the notation of IPv6 addresses. */
      readonly gid: string;
      /** Its local identifier in an InfiniBand subnet (0). Ethernet has none. */
      readonly lid?: number;
    };

/** The address of a multicast group. */
export interface MulticastGroup {
  /** Its GID: one that begins with `ff`, or `::ffff:` and an IPv4 multicast address. */
  readonly gid: string;
  /** Its local identifier in an InfiniBand subnet. Ethernet has none: 0. */
  readonly lid: number;
}

/** Where datagrams go (`ibv_ah`). Made by `ProtectionDomain.createAh`, for queue pairs of the same domain. */
export interface AddressHandle {
  /** The GID of what it leads to, as eight groups of four hexadecimal digits. */
  readonly gid: string;
  /** Its local identifier in an InfiniBand subnet; 0 on Ethernet. */
  readonly lid: number;
  /**
   * Destroys it (`ibv_destroy_ah`). Idempotent. Requests that name it must have completed: those that have not may be
   * lost, or complete with `LOC_QP_OP_ERR`.
   */
  destroy(): void;
}
