/**
 * A request on its way to the other end and back, as events:
 *
 *     ARRIVE    its first packet has come; it is taken in when those before it are:
 *               `Network.arrive`, `atomic`
 *     EXECUTE   it is checked and carried out, in the order of its queue pair; bytes are moved:          `Responder`
 *     RETURN    the answer of a read or an atomic has come back:
 *               `Network.arrive`
 *     DONE      the sender knows; so it does in REFUSED (no receive was posted) and TIMEOUT (no answer has come)
 *
 * A request has at most one transit that counts. When the receiver was not ready, or no answer came, what was sent
 * behind that request is out of sequence, and discarded: those transits do not count any more, wherever they are, and
 * the requests are sent again. The same happens when a queue pair forgets its requests (ERR, RESET).
 *
 * What a read finds is kept on its way back, since later requests may change what it has found.
 */
import { WcStatus } from '../../verbs/completion-queue.ts';
import { WrOpcode } from '../../verbs/queue-pair.ts';
import type { WorkRequestRing } from '../../verbs/work-request-ring.ts';
import { Mapping } from '../core/mapped-memory.ts';
import type { FabricEvent } from './event-queue.ts';
import type { Fabric } from './fabric-numbers.ts';
import type { Faults } from './faults.ts';
import type { Network } from './network.ts';
import type { Simulator } from './simulator.ts';

/** The responder's answer, besides statuses: no receive was posted; no responder is there. */
export const NOT_READY = -2;
const NO_ANSWER = -3;

const Stage = Object.freeze({ ARRIVE: 0, EXECUTE: 1, RETURN: 2, DONE: 3, REFUSED: 4, TIMEOUT: 5 });

const NOTHING_FOUND = new Mapping(new ArrayBuffer(8));

/** What a transit passes. */
export interface TransitFabric {
  readonly fabric: Fabric;
  readonly network: Network;
  readonly faults: Faults;
  readonly simulator: Simulator;
  /** It is over. */
  giveBack(transit: Transit): void;
}

/** The queue pair at the other end. */
export interface TransitPeer {
  readonly isReady: boolean;
  readonly receiveQueue: { readonly nextEntries: number };
  readonly responder: {
    readonly lastPlaced: number;
    /** @returns its status, or `NOT_READY`: then nothing has happened */
    carryOut(transit: Transit): number;
  };
}

/** The way there, and how far what was sent before has come on it. */
interface Way {
  readonly destMember: number;
  lastGone: number;
  lastArrival: number;
  lastExecuted: number;
  heldUntil: number;
  peer(): TransitPeer | undefined;
  goesByMemory(opcode: number): boolean;
}

/** Whose request it is. */
export interface TransitSender {
  readonly member: number;
  readonly ring: WorkRequestRing;
  readonly connection: Way;
  /** Whether this is the transit of its request that counts. */
  counts(transit: Transit): boolean;
  /** Resolves into `local` what a request gathers from or scatters to. */
  findLocal(w: number, right: number): number;
  tookEffect(request: number): void;
  /** What was sent behind a request is out of sequence. */
  discardBehind(request: number): void;
  // What has become of it.
  done(transit: Transit): void;
  refused(transit: Transit): void;
  timeOut(transit: Transit): void;
}

export class Transit implements FabricEvent {
  requester!: TransitSender;
  request = 0;
  opcode = 0;
  /** Of the message; an answer of a read has as many. */
  bytes = 0;
  status = 0;
  /** Entries of this end's memory that the answer of a read is scattered to. */
  entries = 1;
  /** It does not only ask whether something has changed. */
  counted = false;
  #stage: number = Stage.ARRIVE;
  #found = NOTHING_FOUND;
  readonly #shared: TransitFabric;

  constructor(shared: TransitFabric) {
    this.#shared = shared;
  }

  /** What a read or an atomic has found, from byte 0 on. */
  get found(): Mapping {
    return this.#found;
  }

  /** Makes room for what is found. */
  keep(bytes: number): Mapping {
    if (this.#found === NOTHING_FOUND || this.#found.u8.length < bytes) {
      this.#found = new Mapping(new ArrayBuffer(Math.max(64, 2 ** Math.ceil(Math.log2(bytes)))));
    }
    return this.#found;
  }

  /** Leaves the sender's adapter. @param entries pieces that the adapter gathers */
  depart(entries: number): void {
    const bytes = this.#sent();
    const { network, faults, simulator, fabric } = this.#shared;
    const { connection, member } = this.requester;
    const { now } = simulator;
    const { latency, gap } = fabric.node;
    const arrival = connection.goesByMemory(this.opcode)
      ? now + latency + bytes * gap
      : network.depart(now, member, connection.destMember, bytes, entries);
    if (!network.isShort(bytes)) connection.lastGone = network.freeToSend(member, bytes);
    connection.lastArrival = Math.max(arrival + faults.drawDelay(), connection.lastArrival);
    this.#at(Stage.ARRIVE, connection.lastArrival, connection.destMember);
  }

  /** The message is lost: the sender learns that no answer comes. */
  lose(): void {
    const { simulator, fabric } = this.#shared;
    simulator.lost();
    this.#at(Stage.TIMEOUT, simulator.now + fabric.retry.timeout, this.requester.member);
  }

  happen(): void {
    if (!this.requester.counts(this)) {
      this.#shared.giveBack(this);
      return;
    }
    switch (this.#stage) {
      case Stage.ARRIVE:
        this.#arrive();
        return;
      case Stage.EXECUTE:
        this.#execute();
        return;
      case Stage.RETURN:
        this.#return();
        return;
      case Stage.DONE:
        this.#done();
        return;
      case Stage.REFUSED:
        this.requester.refused(this);
        return;
      default:
        this.requester.timeOut(this);
    }
  }

  /** Entries of the receive that a message will fill, as far as is known when it arrives. */
  #scattered(): number {
    const { opcode, requester } = this;
    const isMessage = opcode === WrOpcode.SEND || opcode === WrOpcode.SEND_WITH_IMM;
    return isMessage ? (requester.connection.peer()?.receiveQueue.nextEntries ?? 1) : 1;
  }

  #arrive(): void {
    const { network, simulator } = this.#shared;
    const { connection } = this.requester;
    const { opcode } = this;
    const dest = connection.destMember;
    let time = connection.goesByMemory(opcode)
      ? simulator.now
      : network.arrive(simulator.now, dest, this.#sent(), this.#scattered());
    time = Math.max(time, connection.lastExecuted);
    if (opcode > WrOpcode.RDMA_READ) time = network.atomic(time, dest);
    connection.lastExecuted = time;
    this.#at(Stage.EXECUTE, time, dest);
  }

  #execute(): void {
    const { network, simulator, fabric, faults } = this.#shared;
    const { requester, opcode, bytes } = this;
    const { connection, member } = requester;
    const { now } = simulator;
    const dest = connection.destMember;
    const peer = connection.peer();
    const placed = faults.placement > 0 && opcode !== WrOpcode.RDMA_WRITE ? (peer?.responder.lastPlaced ?? 0) : 0;
    const time = Math.max(placed, connection.heldUntil);
    if (time > now) {
      // What is seen after this must be in memory. What comes behind it comes here before that time, and so is put off
      // to it as well, but later: events of one time and rank take place in the order in which they were made.
      connection.heldUntil = time;
      simulator.at(time, dest, this);
      return;
    }
    const status = peer?.isReady ? peer.responder.carryOut(this) : NO_ANSWER;
    this.status = status;
    const byMemory = connection.goesByMemory(opcode);
    if (status === WcStatus.SUCCESS && opcode >= WrOpcode.RDMA_READ) {
      // The answer is sent by the other adapter, with the data.
      const { latency, gap } = fabric.node;
      const time = byMemory
        ? now + latency + bytes * gap
        : network.depart(now + fabric.adapter.read, dest, member, bytes, bytes > 0 ? 1 : 0);
      this.#at(Stage.RETURN, time + faults.drawDelay(), member);
      return;
    }
    if (status === NO_ANSWER) {
      requester.discardBehind(this.request);
      this.#at(Stage.TIMEOUT, now + fabric.retry.timeout, member);
      return;
    }
    if (status === NOT_READY) requester.discardBehind(this.request);
    const taken = byMemory || status === NOT_READY ? now : network.follow(now, dest, fabric.adapter.afterReceive);
    const known = taken + (byMemory ? fabric.node.latency : network.acknowledgement(dest, member));
    this.#at(status === NOT_READY ? Stage.REFUSED : Stage.DONE, known, member);
  }

  #return(): void {
    const { network, simulator } = this.#shared;
    const { connection, member } = this.requester;
    const { now } = simulator;
    const byMemory = connection.goesByMemory(this.opcode);
    this.#at(Stage.DONE, byMemory ? now : network.arrive(now, member, this.bytes, this.entries), member);
  }

  #done(): void {
    const { network, simulator, fabric } = this.#shared;
    const { connection, member } = this.requester;
    if (this.opcode < WrOpcode.RDMA_READ && !connection.goesByMemory(this.opcode))
      network.follow(simulator.now, member, fabric.adapter.afterSend);
    this.requester.done(this);
  }

  /** Bytes that go to the other end. */
  #sent(): number {
    return this.opcode >= WrOpcode.RDMA_READ ? 0 : this.bytes;
  }

  #at(stage: number, time: number, member: number): void {
    this.#stage = stage;
    this.#shared.simulator.at(time, member, this);
  }
}
