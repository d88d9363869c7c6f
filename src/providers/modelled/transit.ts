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
 *
 * On an Ethernet (ethernet/ethernet.ts) a request is a message that the connection's TCP carries, and comes with its
 * last byte. What has an answer is answered by another one, the other way: reads and atomics, what was refused or is
 * wrong, and what its sender wants a completion of. The rest is known to be complete when TCP has acknowledged it: so
 * of a row of requests only the last one costs a frame more, and each has been carried out when it completes.
 */
import { WcStatus } from '../../verbs/completion-queue.ts';
import { WrOpcode } from '../../verbs/queue-pair.ts';
import type { WorkRequestRing } from '../../verbs/work-request-ring.ts';
import { Mapping } from '../core/mapped-memory.ts';
import type { Carrying } from './ethernet/ethernet.ts';
import type { TcpEnd } from './ethernet/tcp-connection.ts';
import type { Written } from './ethernet/tcp-sender.ts';
import type { FabricEvent } from './event-queue.ts';
import type { Fabric } from './fabric-numbers.ts';
import type { Faults } from './faults.ts';
import type { Network } from './network.ts';
import type { Simulator } from './simulator.ts';

/** The responder's answer, besides statuses: no receive was posted; no responder is there. */
export const NOT_READY = -2;
const NO_ANSWER = -3;

const Stage = Object.freeze({
  ARRIVE: 0,
  EXECUTE: 1,
  RETURN: 2,
  DONE: 3,
  REFUSED: 4,
  TIMEOUT: 5,
  // On an Ethernet: the other adapter has found the answer; it waits for TCP's acknowledgement; TCP has given up.
  ANSWER: 6,
  UNANSWERED: 7,
  BROKEN: 8,
});

const NOTHING_FOUND = new Mapping(new ArrayBuffer(8));

/** What a transit passes. */
export interface TransitFabric {
  readonly fabric: Fabric;
  readonly network: Network;
  readonly faults: Faults;
  readonly simulator: Simulator;
  /** What carries requests between nodes in the place of the network. */
  readonly ethernet: Carrying | undefined;
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
  readonly tcp: TcpEnd | undefined;
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
  /** Whether a request has a completion of its own when it succeeds. */
  isSignaled(request: number): boolean;
  // What has become of it.
  done(transit: Transit): void;
  refused(transit: Transit): void;
  timeOut(transit: Transit): void;
  /** It was given up, and may have been carried out. */
  broken(transit: Transit): void;
}

/** A request or an answer that TCP carries, as long as the transit does not carry another one. */
class Carried implements Written {
  readonly #transit: Transit;
  isAcknowledged = false;

  constructor(transit: Transit) {
    this.#transit = transit;
  }

  delivered(): void {
    this.#transit.come(this);
  }

  acknowledged(): void {
    this.isAcknowledged = true;
    this.#transit.settle(this);
  }

  failed(): void {
    this.#transit.fail(this);
  }
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
  /** Entries of this end's memory that what it sends was gathered from. */
  #gathered = 1;
  /** It does not only ask whether something has changed. */
  counted = false;
  #stage: number = Stage.ARRIVE;
  #found = NOTHING_FOUND;
  #carried: Carried | undefined;
  /** An event of it is in the queue. */
  #isQueued = false;
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
    this.#gathered = entries;
    const { network, faults, simulator, fabric, ethernet } = this.#shared;
    const { connection, member } = this.requester;
    const { now } = simulator;
    const { latency, gap } = fabric.node;
    const { tcp } = connection;
    if (tcp !== undefined) {
      this.#write(tcp, Stage.ARRIVE, ethernet!.requestBytes(this.opcode, bytes));
      return;
    }
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

  /** Nothing of it is on its way any more. */
  retire(): void {
    this.#carried = undefined;
  }

  // ---- what TCP carries ---------------------------------------------------------------------------------------------

  #write(tcp: TcpEnd, stage: number, bytes: number): void {
    this.#stage = stage;
    this.#carried = new Carried(this);
    tcp.write(bytes, this.#carried);
  }

  /** All of it has come. */
  come(carried: Carried): void {
    if (carried === this.#carried) this.happen();
  }

  /** TCP has acknowledged it: if it was carried out, no answer will come. */
  settle(carried: Carried): void {
    if (carried === this.#carried && this.#stage === Stage.UNANSWERED) this.happen();
  }

  /** TCP has given up. */
  fail(carried: Carried): void {
    // What has come is answered all the same: by another connection.
    if (carried !== this.#carried || this.#isQueued) return;
    this.#stage = Stage.BROKEN;
    this.happen();
  }

  /** The other adapter has carried a request out, or refused it. */
  #answer(tcp: TcpEnd, status: number): void {
    const { simulator, fabric } = this.#shared;
    const { requester, opcode, request } = this;
    if (status === WcStatus.SUCCESS && opcode >= WrOpcode.RDMA_READ) {
      this.#at(Stage.ANSWER, simulator.now + fabric.adapter.read, requester.connection.destMember);
      return;
    }
    const needsAnswer = status !== WcStatus.SUCCESS || requester.isSignaled(request) || this.#carried!.isAcknowledged;
    if (needsAnswer) this.#sendAnswer(tcp, status === NOT_READY ? Stage.REFUSED : Stage.DONE, 0);
    else this.#stage = Stage.UNANSWERED;
  }

  #sendAnswer(tcp: TcpEnd, stage: number, bytes: number): void {
    this.#write(tcp.peer, stage, this.#shared.ethernet!.answerBytes(bytes));
  }

  happen(): void {
    this.#isQueued = false;
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
      case Stage.ANSWER:
        this.#sendAnswer(this.requester.connection.tcp!, Stage.DONE, this.bytes);
        return;
      case Stage.UNANSWERED:
        this.#done();
        return;
      case Stage.BROKEN:
        this.requester.broken(this);
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
    let time =
      connection.tcp !== undefined || connection.goesByMemory(opcode)
        ? simulator.now
        : network.arrive(simulator.now, dest, this.#sent(), this.#scattered(), this.#gathered);
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
      this.#at(Stage.EXECUTE, time, dest);
      return;
    }
    const status = peer?.isReady ? peer.responder.carryOut(this) : NO_ANSWER;
    this.status = status;
    const { tcp } = connection;
    if (tcp !== undefined && status !== NO_ANSWER) {
      if (status === NOT_READY) requester.discardBehind(this.request);
      this.#answer(tcp, status);
      return;
    }
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
    this.#isQueued = true;
    this.#shared.simulator.at(time, member, this);
  }
}
