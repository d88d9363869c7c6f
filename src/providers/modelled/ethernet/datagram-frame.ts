/** A datagram on an Ethernet: one frame (UDP), also for a group, and what the receiving ends make of it. */
import { GRH_BYTES } from '../../../verbs/address-handle.ts';
import { QpType } from '../../../verbs/queue-pair.ts';
import type { Datagram } from '../datagram.ts';
import type { ModelledPeer, ModelledShared } from '../modelled-parent.ts';
import type { Frame } from './medium.ts';

/** A queue pair that a datagram is for. */
export interface Receiver {
  readonly member: number;
  readonly number: number;
}

/** It, if it can take a datagram. */
export function datagramPeer({ contexts }: ModelledShared, { member, number }: Receiver): ModelledPeer | undefined {
  const qp = contexts[member]?.queuePairs.get(number);
  return qp !== undefined && qp.qpType === QpType.UD && qp.isReady ? qp : undefined;
}

export class DatagramFrame implements Frame {
  readonly from: number;
  readonly to: readonly number[];
  readonly bytes: number;
  readonly isDatagram = true;
  readonly left: () => void;
  readonly #shared: ModelledShared;
  readonly #message: Datagram;
  /** By the node that they are on. */
  readonly #receivers = new Map<number, Receiver[]>();

  /**
   * @param receivers on other nodes than that of `member`; at least one
   * @param left it has left its station, or was given up there
   */
  constructor(
    shared: ModelledShared,
    message: Datagram,
    member: number,
    receivers: readonly Receiver[],
    left: () => void,
  ) {
    const { network, simulator, ethernet } = shared;
    this.#shared = shared;
    this.#message = message;
    this.from = network.nodeOf(member);
    this.left = left;
    this.bytes = ethernet!.datagramBytes(message.length - GRH_BYTES);
    for (const receiver of receivers) {
      const node = network.nodeOf(receiver.member);
      const there = this.#receivers.get(node);
      if (there === undefined) this.#receivers.set(node, [receiver]);
      else there.push(receiver);
    }
    this.to = [...this.#receivers.keys()];
    simulator.underWay += this.to.length;
  }

  arrived(node: number): void {
    const shared = this.#shared;
    shared.simulator.underWay--;
    for (const one of this.#receivers.get(node)!) datagramPeer(shared, one)?.responder.takeDatagram(this.#message);
  }

  lost(): void {
    const { simulator } = this.#shared;
    simulator.underWay--;
    simulator.lost();
  }
}
