/**
 * The Ethernet of a modelled fabric: its medium, a TCP connection for each two queue pairs that are connected, and what
 * is sent on them. Each node is a station.
 */
import { WrOpcode } from '../../../verbs/queue-pair.ts';
import type { Fabric } from '../fabric-numbers.ts';
import { Random } from '../random.ts';
import { CollisionBus } from './collision-bus.ts';
import { EthernetKind, type EthernetNumbers, type TcpNumbers, UDP_IP_HEADERS } from './ethernet-numbers.ts';
import { EthernetSwitch } from './ethernet-switch.ts';
import { type Agenda, type Medium, type MediumFaults, Reception } from './medium.ts';
import { connectTcp, type TcpEnd, type TcpHost } from './tcp-connection.ts';

/** Which of the sequences of a seed back-offs are drawn from. */
const STREAM = 3;
/** Where in memory, with which key, and how many bytes. */
const PLACE_BYTES = 16;
/** The two operands of an atomic. */
const OPERAND_BYTES = 16;

/** How much is written for requests and answers. */
export interface Carrying {
  requestBytes(opcode: number, data: number): number;
  answerBytes(data: number): number;
}

export class Ethernet implements Carrying, TcpHost {
  readonly agenda: Agenda;
  readonly medium: Medium;
  readonly ethernet: EthernetNumbers;
  readonly tcp: TcpNumbers;
  readonly #nodes: { nodeOf(member: number): number };
  /** By the queue pairs at both ends. */
  readonly #connections = new Map<string, readonly [TcpEnd, TcpEnd]>();

  private constructor(
    [ethernet, tcp]: readonly [EthernetNumbers, TcpNumbers],
    simulator: Agenda & { readonly seed: number },
    faults: MediumFaults,
    nodes: { nodeOf(member: number): number },
    ranks: number,
  ) {
    this.agenda = simulator;
    this.ethernet = ethernet;
    this.tcp = tcp;
    this.#nodes = nodes;
    const stations = nodes.nodeOf(ranks - 1) + 1;
    const isBus = ethernet.kind === EthernetKind.BUS;
    const reception = new Reception(simulator, faults, ethernet, stations, isBus);
    this.medium = isBus
      ? new CollisionBus(simulator, ethernet, new Random(simulator.seed, STREAM), reception, stations)
      : new EthernetSwitch(simulator, ethernet, reception, stations);
  }

  /** That of a fabric; undefined if it has none. */
  static of(
    { ethernet, tcp }: Fabric,
    simulator: Agenda & { readonly seed: number },
    faults: MediumFaults,
    nodes: { nodeOf(member: number): number },
    ranks: number,
  ): Ethernet | undefined {
    return ethernet === undefined || tcp === undefined
      ? undefined
      : new Ethernet([ethernet, tcp], simulator, faults, nodes, ranks);
  }

  /**
   * The end of a queue pair of its connection to another queue pair. Whichever asks first, both get the same
   * connection, unless TCP has given it up.
   */
  connect(member: number, number: number, destMember: number, destNumber: number): TcpEnd {
    const isFirst = member < destMember;
    const [here, there] = [`${member}.${number}`, `${destMember}.${destNumber}`];
    const key = isFirst ? `${here} ${there}` : `${there} ${here}`;
    let ends = this.#connections.get(key);
    if (ends === undefined || ends[0].isBroken) {
      const [a, b] = isFirst ? [member, destMember] : [destMember, member];
      const made = connectTcp(this, this.#nodes.nodeOf(a), this.#nodes.nodeOf(b));
      ends = made;
      this.#connections.set(key, made);
      // The other end may have been forgotten before, and there is another connection by now.
      const forget = (): void => {
        if (this.#connections.get(key) === made) this.#connections.delete(key);
      };
      for (const end of made) end.whenForgotten = forget;
    }
    return ends[isFirst ? 0 : 1];
  }

  requestBytes(opcode: number, data: number): number {
    const { header } = this.tcp;
    if (opcode === WrOpcode.SEND || opcode === WrOpcode.SEND_WITH_IMM) return header + data;
    return header + PLACE_BYTES + data + (opcode > WrOpcode.RDMA_READ ? OPERAND_BYTES : 0);
  }

  answerBytes(data: number): number {
    return this.tcp.header + data;
  }

  /** Of the IP packet of a datagram. */
  datagramBytes(data: number): number {
    return UDP_IP_HEADERS + this.tcp.header + data;
  }
}
