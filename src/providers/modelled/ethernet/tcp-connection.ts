/**
 * A TCP connection between two stations, both ways: each end sends (tcp-sender.ts) and receives (tcp-receiver.ts), and
 * each segment with data carries the acknowledgement of the other way.
 *
 * Connections are there when they are used first, without the exchange that opens one, and with the congestion window
 * `window0`: a program that communicates in supersteps opens them before the first. No bytes are modelled, only how
 * many there are; the checksums of frames and segments are taken to find every fault.
 */
import type { EthernetNumbers, TcpNumbers } from './ethernet-numbers.ts';
import type { Agenda, Medium } from './medium.ts';
import { TcpReceiver } from './tcp-receiver.ts';
import { Segment, type SegmentEnd } from './tcp-segment.ts';
import { TcpSender, type Written } from './tcp-sender.ts';

/** What connections stand on. */
export interface TcpHost {
  readonly agenda: Agenda;
  readonly medium: Medium;
  readonly ethernet: EthernetNumbers;
  readonly tcp: TcpNumbers;
}

export class TcpEnd implements SegmentEnd {
  readonly station: number;
  /** Acknowledgements without data that it has sent. */
  acknowledgements = 0;
  /** It was given up: what is written fails. */
  isBroken = false;
  /** Called when nobody at this end wants it any more. What was written is sent all the same. */
  whenForgotten: (() => void) | undefined;
  readonly sender: TcpSender;
  readonly #host: TcpHost;
  readonly #receiver: TcpReceiver;
  #peer!: TcpEnd;

  constructor(host: TcpHost, station: number) {
    const { agenda, tcp } = host;
    this.#host = host;
    this.station = station;
    const emit = (sequence: number, length: number): void => this.#emit(sequence, length);
    this.sender = new TcpSender(agenda, tcp, station, emit, () => this.#giveUp());
    const deliver = (expected: number): void => this.#peer.sender.deliver(expected);
    this.#receiver = new TcpReceiver(agenda, tcp, station, deliver, () => this.#acknowledge());
  }

  get peer(): TcpEnd {
    return this.#peer;
  }

  connect(peer: TcpEnd): void {
    this.#peer = peer;
  }

  /** One write to the socket. What becomes of it is told in later events. */
  write(bytes: number, written: Written): void {
    if (this.isBroken) {
      const { agenda } = this.#host;
      agenda.at(agenda.now, this.station, { happen: () => written.failed() });
    } else this.sender.write(bytes, written);
  }

  forget(): void {
    this.whenForgotten?.();
  }

  take({ sequence, length, acknowledgement }: Segment): void {
    if (this.isBroken) return;
    // First: what is delivered may be the answer to what this acknowledges.
    this.sender.acknowledge(acknowledgement, length === 0);
    if (length > 0) this.#receiver.take(sequence, length);
  }

  lost({ length }: Segment): void {
    if (length > 0) this.sender.noteLoss();
    else this.#peer.sender.noteLoss();
  }

  #emit(sequence: number, length: number): void {
    this.#receiver.acknowledged();
    this.#host.medium.carry(new Segment(this, this.#peer, sequence, length, this.#receiver.expected));
  }

  /** Sends an acknowledgement without data. */
  #acknowledge(): void {
    const { agenda, medium, ethernet, tcp } = this.#host;
    this.#receiver.acknowledged();
    this.acknowledgements++;
    const segment = new Segment(this, this.#peer, 0, 0, this.#receiver.expected);
    if (tcp.silent !== 1) {
      medium.carry(segment);
      return;
    }
    const time = agenda.now + 2 * ethernet.driver + ethernet.propagation;
    agenda.at(time, this.#peer.station, { happen: () => segment.arrived() });
  }

  #giveUp(): void {
    this.isBroken = true;
    this.#peer.isBroken = true;
    this.sender.end();
    this.#peer.sender.end();
  }
}

/** @returns its two ends, that of station `a` first */
export function connectTcp(host: TcpHost, a: number, b: number): readonly [TcpEnd, TcpEnd] {
  const ends = [new TcpEnd(host, a), new TcpEnd(host, b)] as const;
  ends[0].connect(ends[1]);
  ends[1].connect(ends[0]);
  return ends;
}
