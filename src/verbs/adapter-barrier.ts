/**
 * Barriers that an adapter carries out by itself (`Capabilities.barrier`; report on NIC-based barriers, §6): the
 * processor tells its adapter once that it has entered, and is told once that all have. Like a helper (helper.ts), this
 * is a service of a context; libibverbs has nothing like it.
 *
 * The protocol, which all providers share. A packet says which group and which barrier of it (32 bits, which wrap), the
 * tag of its step, and what it is: a message, a message that was asked for, or a Nack. Nothing is acknowledged. A
 * member whose awaited message has not come `nackAfter` after the barrier began there asks the sender's adapter for it
 * with a Nack, and asks again after two, four, and then always eight times as long.
 *
 * What a member remembers: the barrier that it is in, how far it has come in its schedule, and for each message that it
 * waits for, the last barrier for which that has come. A Nack is answered if the message has left: if it is of a
 * barrier before this one, or of this one and of a step that is over. If it has not, it will leave, and the Nack is
 * futile: a receiver cannot tell a message that is lost from one that is late.
 *
 * Why the last barrier is enough. No member is more than one barrier ahead of another, since it cannot leave a barrier
 * before all have entered it. A message of the next barrier stands for a lost one of this barrier, too: its sender has
 * left this one, so all have entered it.
 *
 * Why a sender must answer for barriers that it has left: the message may have been the last that the other one waits
 * for, and then nobody else can tell it. So a member stays until the whole group parts.
 */

/** A step: tells a rank, or waits until that rank has told. */
export interface BarrierStep {
  readonly sends: boolean;
  /** The rank that is told, or waited for. */
  readonly peer: number;
  readonly tag: number;
}

/** What one member does in a barrier, from beginning to end. */
export type BarrierSchedule = readonly BarrierStep[];

export interface AdapterBarrierInit {
  /** The same at all members, and at no other group that a member is in: an integer below 2^32. */
  readonly group: number;
  /** The contexts of all ranks. */
  readonly members: readonly number[];
  /** This member's rank. */
  readonly rank: number;
  readonly schedule: BarrierSchedule;
  /** Milliseconds from the beginning of a barrier to the first Nack. */
  readonly nackAfter: number;
}

/** What other members need to reach a member: 32 bits each. */
export interface AdapterBarrierAddress {
  readonly queuePair: number;
  readonly qkey: number;
  /** The number of the group there. */
  readonly group: number;
}

/** What an adapter has done for a group. */
export interface AdapterBarrierStatistics {
  /** Barriers that are complete. */
  readonly barriers: number;
  /** Packets that have left, of all kinds. */
  readonly packets: number;
  readonly nacks: number;
  /** Nacks of others that came before their message had left. */
  readonly futile: number;
  /** Messages that were sent again. */
  readonly resent: number;
  /** Messages that came twice. */
  readonly duplicates: number;
}

export interface AdapterBarrier {
  /**
   * What the members tell each other before the first barrier; absent where the fabric knows. From when it is there,
   * messages for it are taken.
   */
  readonly address?: AdapterBarrierAddress;
  /** Says where a rank is reached: each that the schedule tells or waits for, once. Errors: `ERR_VERBS`. */
  connect?(rank: number, address: AdapterBarrierAddress): void;
  /** This member enters the next barrier; the one before is complete. One entry of a queue. */
  enter(): void;
  /** Barriers that are complete, as far as the processor was told: 32 bits, which wrap. Takes what it is told. */
  complete(): number;
  /** The rank that this member waits for; -1 if for none. */
  awaited(): number;
  readonly statistics: AdapterBarrierStatistics;
  /** The group has parted. Waits for nothing. Idempotent. */
  close(): void;
}
