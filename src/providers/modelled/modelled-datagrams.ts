/**
 * Datagrams on a modelled fabric.
 *
 * The adapter takes requests of type UD from the queue, one at a time. It reads the data then, and the request
 * completes when it has left the adapter: there is no answer. On its way a datagram meets what messages meet
 * (network.ts), but keeps no order with others: each is delayed by a time of its own (`faults.delay`), and a share of
 * them (`faults.datagramLoss`) is lost for good, where a connection would send again. One for a group is copied by the
 * switches; each copy is delayed and lost by itself, on the last of its links. At the receiver it is taken in as a
 * message is, or dropped (`Responder.takeDatagram`).
 *
 * On an Ethernet a datagram is one frame (UDP), also one for a group. Its request completes when the frame has left its
 * station, or was given up there: until then it may still wait for the bus.
 */

import { Fifo } from '../../fifo.ts';
import { GRH_BYTES } from '../../verbs/address-handle.ts';
import { WcFlag, WcStatus } from '../../verbs/completion-queue.ts';
import { parseGid } from '../../verbs/gid.ts';
import { QpState, SendFlag, WrOpcode } from '../../verbs/queue-pair.ts';
import { WrField } from '../../verbs/work-request-ring.ts';
import type { AddressHandleCore } from '../core/address-handles.ts';
import { writeGrh } from '../core/grh.ts';
import { Mapping } from '../core/mapped-memory.ts';
import type { Datagram } from './datagram.ts';
import { DatagramFrame, datagramPeer, type Receiver } from './ethernet/datagram-frame.ts';
import type { Ethernet } from './ethernet/ethernet.ts';
import type { FabricEvent } from './event-queue.ts';
import { gather, local } from './local-pieces.ts';
import type { ModelledParent, ModelledShared } from './modelled-parent.ts';
import { type Sending, SendQueue } from './send-queue.ts';

/** One copy, on its way to one queue pair: it has come to the adapter, then it is in memory. */
class Copy implements FabricEvent {
  readonly #shared: ModelledShared;
  readonly #message: Datagram;
  readonly #member: number;
  readonly #number: number;
  readonly #byMemory: boolean;
  #taken = false;

  constructor(shared: ModelledShared, message: Datagram, member: number, number: number, byMemory: boolean) {
    this.#shared = shared;
    this.#message = message;
    this.#member = member;
    this.#number = number;
    this.#byMemory = byMemory;
  }

  /** It comes to the adapter at this time, unless it is lost or delayed. */
  comeAt(time: number): void {
    const { simulator, faults } = this.#shared;
    if (faults.drawDatagramLoss()) {
      simulator.lost();
      return;
    }
    simulator.underWay++;
    simulator.at(time + faults.drawDelay(), this.#member, this);
  }

  happen(): void {
    const { simulator, network } = this.#shared;
    const message = this.#message;
    const qp = datagramPeer(this.#shared, { member: this.#member, number: this.#number });
    if (qp === undefined) {
      simulator.underWay--;
      return;
    }
    if (this.#taken || this.#byMemory) {
      simulator.underWay--;
      qp.responder.takeDatagram(message);
      return;
    }
    this.#taken = true;
    const bytes = message.length - GRH_BYTES;
    const time = network.arrive(simulator.now, this.#member, bytes, qp.receiveQueue.nextEntries);
    simulator.at(time, this.#member, this);
  }
}

/** A request whose datagram may not have left: what becomes of it then. */
interface Leaving {
  readonly status: number;
  hasLeft: boolean;
}

export class DatagramSender extends SendQueue implements FabricEvent {
  readonly #gid: Uint32Array;
  /**
   * The doorbells whose requests were not sent: the count of the first request, and the time when the doorbell rang.
   */
  #doorbells: { readonly first: number; readonly time: number }[] = [];
  /** Times that the requests were forgotten: their completions are not wanted any more. */
  #forgotten = 0;
  /** On an Ethernet, those that are not complete, in their order. */
  #leaving = new Fifo<Leaving>();

  constructor(context: ModelledParent, qp: Sending, signalAll: boolean) {
    super(context, qp, signalAll);
    this.#gid = parseGid('open a device', context.gid);
  }

  /** Nothing is retried, and nothing read. */
  limit(): void {}

  /** Takes note of requests that were posted, from `first` to the ring's tail. */
  post(first: number): void {
    const { cpu, fabric } = this.context;
    this.#doorbells.push({ first, time: cpu.time + (fabric.bus.doorbell ?? 0) });
    this.#sendNext();
  }

  /** When a request was posted. */
  #postedAt(request: number): number {
    const doorbells = this.#doorbells;
    while (doorbells.length > 1 && ((request - doorbells[1].first) | 0) >= 0) doorbells.shift();
    return doorbells[0].time;
  }

  /** Has the next request sent, when the adapter comes to it. */
  #sendNext(): void {
    const { ring, member } = this;
    if (this.sending || this.next === ring.tail || this.qp.state !== QpState.RTS) return;
    this.sending = true;
    const { simulator, shared } = this.context;
    const bytes = ring.u32[ring.wordsOf(this.next) + WrField.MESSAGE_LENGTH];
    const free = shared.network.freeToSend(member, bytes);
    simulator.at(Math.max(this.#postedAt(this.next), free), member, this);
  }

  /** Sends one request. */
  happen(): void {
    this.sending = false;
    const { ring } = this;
    const { simulator, cpu, shared, handles, device } = this.context;
    if (this.next === ring.tail || this.qp.state !== QpState.RTS || cpu.dead) return;
    const request = this.next;
    // What was to be sent is flushed or forgotten, and this one has come since: not before its time.
    if (this.#postedAt(request) > simulator.now) {
      this.#sendNext();
      return;
    }
    this.next = (request + 1) | 0;
    const w = ring.wordsOf(request);
    let status = this.source.find(w, 0);
    const handle = handles.get(ring.u32[w + WrField.AH]);
    const { length } = local;
    if (status === WcStatus.SUCCESS && length > device.mtu) status = WcStatus.LOC_LEN_ERR;
    // Destroyed since it was named.
    if (status === WcStatus.SUCCESS && handle === undefined) status = WcStatus.LOC_QP_OP_ERR;
    const { ethernet } = shared;
    if (ethernet !== undefined) {
      this.#sendOn(ethernet, w, handle, status);
      return;
    }
    if (status === WcStatus.SUCCESS) this.#depart(w, handle!);
    const { member } = this;
    const forgotten = this.#forgotten;
    simulator.underWay++;
    simulator.at(Math.max(simulator.now, shared.network.freeToSend(member, length)), member, {
      happen: () => {
        simulator.underWay--;
        if (forgotten === this.#forgotten) this.completeOldest(status);
      },
    });
    if (status === WcStatus.SUCCESS) this.#sendNext();
  }

  #depart(w: number, handle: AddressHandleCore): void {
    const { shared, simulator, fabric } = this.context;
    const { network } = shared;
    const { u32 } = this.ring;
    const entries = u32[w + WrField.INLINE_LENGTH] > 0 ? 0 : local.count;
    const bytes = local.length;
    const message = this.#messageOf(w, handle);
    const { member } = handle;
    if (handle.isMulticast) {
      const group = shared.groups.of(handle.words);
      const nodes = [...new Set(group.map((one) => network.nodeOf(one.member)))];
      const arrivals: number[] = [];
      network.departToGroup(simulator.now, this.member, nodes, handle.words[3], bytes, entries, arrivals);
      for (const one of group) {
        const time = arrivals[nodes.indexOf(network.nodeOf(one.member))];
        new Copy(shared, message, one.member, one.number, false).comeAt(time);
      }
      return;
    }
    const byMemory = fabric.node.messagesByMemory === 1 && this.context.near(member);
    const time = byMemory
      ? simulator.now + fabric.node.latency + bytes * fabric.node.gap
      : network.depart(simulator.now, this.member, member, bytes, entries);
    new Copy(shared, message, member, u32[w + WrField.REMOTE_QPN], byMemory).comeAt(time);
  }

  /** Sends what goes to other nodes as one frame, and the rest by the memory of this one. */
  #sendOn(ethernet: Ethernet, w: number, handle: AddressHandleCore | undefined, status: number): void {
    const { simulator, shared } = this.context;
    const { member } = this;
    const request: Leaving = { status, hasLeft: false };
    const leaving = this.#leaving;
    leaving.push(request);
    simulator.underWay++;
    const left = (): void => {
      simulator.underWay--;
      request.hasLeft = true;
      if (leaving === this.#leaving) this.#settle();
    };
    if (status !== WcStatus.SUCCESS) {
      simulator.at(simulator.now, member, { happen: left });
      return;
    }
    const message = this.#messageOf(w, handle!);
    const receivers = this.#receiversOf(w, handle!);
    const far = receivers.filter((one) => !this.context.near(one.member));
    if (far.length > 0) ethernet.medium.carry(new DatagramFrame(shared, message, member, far, left));
    else simulator.at(simulator.now, member, { happen: left });
    const { node, adapter } = this.context.fabric;
    const time = node.messagesByMemory === 1 ? node.latency + local.length * node.gap : adapter.loopback;
    for (const one of receivers) {
      if (this.context.near(one.member))
        new Copy(shared, message, one.member, one.number, true).comeAt(simulator.now + time);
    }
    this.#sendNext();
  }

  #receiversOf(w: number, { isMulticast, words, member }: AddressHandleCore): readonly Receiver[] {
    if (isMulticast) return this.context.shared.groups.of(words);
    return [{ member, number: this.ring.u32[w + WrField.REMOTE_QPN] }];
  }

  /** Completes requests whose datagrams have left, in order. */
  #settle(): void {
    const leaving = this.#leaving;
    while (leaving.first?.hasLeft === true) if (!this.completeOldest(leaving.shift()!.status)) return;
  }

  /** The data that `local` names, taken now, behind their header. */
  #messageOf(w: number, handle: AddressHandleCore): Datagram {
    const { u32 } = this.ring;
    const length = GRH_BYTES + local.length;
    const data = new Mapping(new ArrayBuffer(8 * Math.ceil(length / 8)));
    writeGrh(data.u8, local.length, this.#gid, handle.words);
    gather(data, GRH_BYTES);
    const withImm = u32[w + WrField.OPCODE] === WrOpcode.SEND_WITH_IMM;
    return {
      ...{ data, length },
      qkey: u32[w + WrField.REMOTE_QKEY],
      source: this.qp.number,
      flags: WcFlag.GRH | (withImm ? WcFlag.WITH_IMM : 0),
      immediate: withImm ? u32[w + WrField.IMM_DATA] : 0,
      solicited: (u32[w + WrField.FLAGS] & SendFlag.SOLICITED) !== 0,
    };
  }

  /** What has left goes on; its request completes as flushed, or not at all. */
  forgetTransits(): void {
    this.#forgotten++;
    this.#leaving = new Fifo();
  }
}
