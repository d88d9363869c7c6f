/**
 * Packets as datagrams, which may be lost, doubled, late, or out of order (BSP over TCP/IP, its further work:
 * acknowledgement and recovery at the superstep). As long as nothing is lost, nothing is sent but the data.
 *
 *     1. With the counts, which are messages, each process learns how many packets come from each other one.
 *     2. A packet says its superstep, its source, its number among those to this process, and how many these are. It
 *        is handed over when all before it have been; until then a copy is kept.
 *     3. Nothing is acknowledged. That a process takes part in the counts of the next superstep says that it has all
 *        of this one. Until these counts are there, the sender keeps what it has sent (kept-chunks.ts).
 *     4. A receiver knows when all should have come: `time of the counts + packets × time of a packet + nackAfter`.
 *        Then, and only when nothing new has come from that source for `nackAfter`, it asks the source for what is
 *        missing, by one datagram with a bit for each packet. If nothing comes of it, it asks again after 2, 4, 8, 8, …
 *        `nackAfter`. An ask would come late behind packets that wait at the receiver's own adapter, for much that has
 *        come by then; so it waits until these have left.
 *     5. The source sends those again that were asked for, but not what it has not given to the adapter yet, or what
 *        still waits there: that is on its way. (Asks for everything after any silence, and answers with everything,
 *        would fill a network that is full already, and might never end.)
 *
 * The time of a packet: the least that a superstep ever took by the packet of the busiest process, and no less than the
 * pace allows. The least, since a superstep with losses takes longer, and whoever waited by what that one took would
 * wait longer each time. The packets are those of the busiest process, or those that come here if they are more. Of few
 * packets it is the network's latency, and where each superstep loses something none ever takes less: so what has come
 * in this superstep counts, too: once half of it is there, all should be in the time that is longer in proportion.
 *
 * Which supersteps meet: a process sends packets of superstep n when it has the counts of n, so all have begun to end
 * n, and so each has all of n − 1. What comes is of the superstep that this process is about to end, or late. A process
 * may get packets of n before its own counts of n: it keeps them until it knows whether they are what it expects, at
 * most `MOST_EARLY`. An ask for n comes to a process that has no counts of n + 1 yet. It may have none of n either, or
 * have sent nothing yet: then there is nothing to send again. All other asks are late.
 *
 * A process answers when it looks: while it waits for anything, when its event loop turns (`Carrier.service`), or by
 * its helper. A process that computes for long without a helper answers late. When the computation ends (`Bsp.end`),
 * all meet after the last superstep, so no process is gone while another may ask.
 *
 * What is taken in: datagrams of this computation's number, by the queue pair of the process that they name, of a
 * length that fits; nothing else is looked at. An ask costs at most the packets that it names, each once, and one of a
 * process is answered in `nackAfter`. Numbers of supersteps have 32 bits: a packet that is late by 2^32 supersteps
 * would be mistaken.
 *
 * All is kept by this process's thread; there is nothing to share.
 */
import type { Communicator } from '../../collective/communicator.ts';
import { Fifo } from '../../fifo.ts';
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import { CHUNK_BYTES, type Chunk } from '../chunks.ts';
import type { LossyPackets, PacketCarrier } from './carrier.ts';
import type { Buffer, CarrierUser } from './carrier-user.ts';
import { DatagramCounts, type DatagramStatistics } from './datagram-counts.ts';
import {
  type DatagramPort,
  type Entry,
  HEAD_WORDS as HEAD,
  HEAD_BYTES,
  type Received,
  type Take,
} from './datagram-port.ts';
import { Incoming } from './incoming-packets.ts';
import { KeptChunks } from './kept-chunks.ts';
import type { Piece } from './packets.ts';
import { OwnRegions, SharedChunks, TABLE_WORDS } from './shared-regions.ts';
import type { Totals } from './totals.ts';

/*
 * Words in front of the data: computation, superstep, source, number of the packet, how many there are. In an ask, the
 * number is −1 − n, and words of bits follow, the first bit for packet n.
 */

/** Memory for chunks is first allocated for so many. */
const FIRST_CHUNKS = 4;
/** Packets that are kept before the counts are there. */
const MOST_EARLY = 1024;
/** Microseconds: asking at once, again and again, leaves no time for the answer. */
const LEAST_PATIENCE = 50;
/** Of `nackAfter`. */
const MOST_BACKOFF = 8;
/** Microseconds that are no time: clocks are sums of fractions. */
const NO_TIME = 1e-3;
/** Instead of the place of a buffer that is a copy; it needs no words. */
const COPIED = -1;
const NOTHING = new Int32Array(0);

/** A packet that was sent. */
interface Sent {
  readonly pieces: readonly Piece[];
  /** The number of its last datagram. */
  datagram: number;
  /** It waits to be sent again. */
  isAsked: boolean;
}

/** A packet that was asked for. */
interface Asked {
  readonly pid: number;
  readonly index: number;
}

export class DatagramCarrier implements PacketCarrier, LossyPackets {
  readonly pool: KeptChunks;
  readonly rdma = undefined;
  readonly lossy = this;
  readonly mostPieces: number;
  readonly headBytes = HEAD_BYTES;
  readonly #mostBytes: number;
  readonly #comm: Communicator;
  readonly #user: CarrierUser;
  readonly #port: DatagramPort;
  readonly #takes: Take = (from, received, bytes) => this.#came(from, received, bytes);
  readonly #patience: number;
  readonly #regions: OwnRegions;
  readonly #counts = new DatagramCounts();

  /** The superstep that this process is in, or is about to end; and that of what it has sent last. */
  #step = 0;
  #sentStep = -1;
  /** What was sent to each process, and how many packets go to each. */
  #sent: (Sent[] | undefined)[] = [];
  #to: Int32Array = NOTHING;
  readonly #again = new Fifo<Asked>();
  /** The number of the last datagram that was a packet. */
  #last = 0;
  /** When an ask of each process was answered last. */
  readonly #answeredAt: number[] = [];

  /** What comes from each process, if anything; whether the counts are there; those that something is missing of. */
  #incoming = new Map<number, Incoming>();
  #isKnown = false;
  #incomplete: Incoming[] = [];
  /** Packets that were copied before the counts were there; buffers that the user has. */
  #early = 0;
  #lent = 0;
  /** When the counts were there, how many packets come, and how many have. */
  #since = 0;
  #expected = 0;
  #arrived = 0;
  /** Microseconds from one packet of a process to its next, at least. */
  #cycle = 0;
  /** When all should have come, and when to look next whether to ask. */
  #allAt = 0;
  #lookAt = Number.POSITIVE_INFINITY;
  /** The least microseconds of a packet, and the packets of the busiest process in the superstep before. */
  #least = Number.POSITIVE_INFINITY;
  #mostBefore = 0;

  /**
   * @param port closed with this
   * @param nackAfter milliseconds
   */
  constructor(comm: Communicator, user: CarrierUser, port: DatagramPort, nackAfter: number) {
    this.#comm = comm;
    this.#user = user;
    this.#port = port;
    this.#patience = Math.max(LEAST_PATIENCE, 1000 * nackAfter);
    this.mostPieces = port.entries;
    this.#mostBytes = port.most - HEAD_BYTES;
    const regions = new OwnRegions(comm, new Int32Array(TABLE_WORDS));
    const chunks = () => new SharedChunks(regions, FIRST_CHUNKS * CHUNK_BYTES);
    this.#regions = regions;
    this.pool = new KeptChunks(chunks(), chunks());
  }

  // ---- as a carrier -------------------------------------------------------------------------------------------------

  expect(): void {}

  isReady(): boolean {
    return this.#port.isReady;
  }

  send(pid: number, chunk: Chunk, bytes: number): void {
    this.sendPacket(pid, [{ chunk, from: 0, bytes }]);
  }

  sendPacket(pid: number, pieces: readonly Piece[]): void {
    const sent = (this.#sent[pid] ??= []);
    this.#give(pid, sent.length, pieces);
    sent.push({ pieces, datagram: this.#port.given, isAsked: false });
    this.#counts.packets++;
  }

  /** Packets wait at the adapter. */
  get #isBusy(): boolean {
    return this.#port.left < this.#last;
  }

  #give(pid: number, index: number, pieces: readonly Piece[]): void {
    this.#writeHead(this.#sentStep, index, this.#to[pid]);
    this.#port.send(pid, HEAD, pieces.length, (i) => this.#entryOf(pieces[i]));
    this.#last = this.#port.given;
  }

  #writeHead(step: number, index: number, count: number): Int32Array {
    const { head } = this.#port;
    head[0] = this.#port.computation;
    head[1] = step;
    head[2] = this.#comm.rank;
    head[3] = index;
    head[4] = count;
    return head;
  }

  #entryOf({ chunk, from, bytes }: Piece): Entry {
    const { lkey, address } = this.#regions.regionOf(chunk.id);
    return { lkey, address: address + 4 * chunk.at + from, bytes };
  }

  get isSilent(): boolean {
    return this.#again.length === 0 && this.#port.given === this.#port.left;
  }

  release(buffer: Buffer): void {
    if (buffer.slot === COPIED) return;
    this.#lent--;
    this.#port.release(buffer.slot);
  }

  /** They tell each other nothing by messages. */
  heard(): void {}

  poll(): void {
    this.#port.poll(this.#takes);
    if (this.#incomplete.length > 0) this.#ask();
  }

  isPolling(): boolean | number {
    // When a packet has left, that completes, and this is looked at again.
    if (this.#incomplete.length === 0 || this.#isBusy) return false;
    return Math.max(0, (this.#lookAt - this.#comm.now()) / 1000);
  }

  delivered(): void {
    this.#step = (this.#step + 1) | 0;
    this.#isKnown = false;
    this.#incoming = new Map();
    this.#early = 0;
  }

  get datagrams(): DatagramStatistics {
    return { ...this.#counts };
  }

  get bytes(): number {
    return this.pool.bytes + this.#port.bytes;
  }

  close(): void {
    this.#port.close();
    this.#regions.close();
  }

  // ---- what may be lost ---------------------------------------------------------------------------------------------

  expectPackets(from: Int32Array, to: Int32Array, totals: Totals, cycle: number): void {
    // All have what was sent in the superstep before.
    this.#sent = [];
    this.#to = to;
    this.#sentStep = this.#step;
    while (this.#again.length > 0) this.#again.shift();
    const now = this.#comm.now();
    const all = from.reduce((sum, one) => sum + one, 0);
    this.#port.expect(all);
    if (this.#mostBefore > 0) this.#least = Math.min(this.#least, totals.longest / this.#mostBefore);
    this.#mostBefore = totals.most;
    const each = Math.max(cycle, this.#least === Number.POSITIVE_INFINITY ? 0 : this.#least);
    this.#allAt = now + Math.max(totals.most, all) * each + this.#patience;
    [this.#since, this.#expected, this.#arrived, this.#cycle] = [now, all, 0, cycle];
    this.#isKnown = true;
    const early = this.#incoming;
    this.#incoming = new Map();
    this.#incomplete = [];
    for (let pid = 0; pid < from.length; pid++) {
      if (from[pid] === 0) continue;
      const found = early.get(pid);
      const incoming = found?.count === from[pid] ? found : new Incoming(pid, from[pid]);
      incoming.askAt = now + this.#patience;
      this.#incoming.set(pid, incoming);
      this.#incomplete.push(incoming);
      this.#handOver(incoming);
    }
    this.#incomplete = this.#incomplete.filter((one) => !one.isComplete);
    this.#lookAt = this.#allAt;
  }

  get owes(): boolean {
    return this.#again.length > 0;
  }

  resend(): boolean {
    if (!this.#port.isReady) return false;
    const { pid, index } = this.#again.shift()!;
    const packet = this.#sent[pid]![index];
    packet.isAsked = false;
    this.#give(pid, index, packet.pieces);
    packet.datagram = this.#port.given;
    this.#counts.resent++;
    return true;
  }

  comeBy(cq: CompletionQueue): boolean {
    return this.#port.comesBy(cq);
  }

  // ---- what comes ---------------------------------------------------------------------------------------------------

  /** @returns whether the buffer is kept */
  #came(from: number, { head, data }: Received, bytes: number): boolean {
    const source = head[2];
    const { rank, size } = this.#comm;
    const isOurs =
      bytes > HEAD_BYTES &&
      head[0] === this.#port.computation &&
      source >= 0 &&
      source < size &&
      source !== rank &&
      this.#port.isOf(from, source);
    if (!isOurs) this.#counts.strange++;
    else if (head[3] < 0) this.#asked(head, data, bytes - HEAD_BYTES);
    else return this.#take(head, data, bytes - HEAD_BYTES);
    return false;
  }

  /** A packet. @returns whether its buffer is kept */
  #take([, step, source, index, count]: Int32Array, data: Buffer, bytes: number): boolean {
    const ahead = (step - this.#step) | 0;
    if (ahead < 0) {
      this.#counts.late++;
      return false;
    }
    const incoming = this.#incoming.get(source) ?? (this.#isKnown ? undefined : new Incoming(source, count));
    if (ahead > 0 || incoming?.count !== count || index >= count || bytes > this.#mostBytes) {
      this.#counts.strange++;
      return false;
    }
    if (incoming.has(index)) {
      this.#counts.duplicates++;
      return false;
    }
    if (!this.#isKnown) {
      if (this.#early === MOST_EARLY) return false;
      this.#early++;
      this.#incoming.set(source, incoming);
      this.#hold(incoming, index, data, bytes);
      return false;
    }
    const now = this.#comm.now();
    this.#arrived++;
    this.#hurry(now);
    incoming.askAt = now + this.#patience;
    incoming.backoff = 1;
    // What the user has not placed yet must not take all receives.
    const isLent = index === incoming.next && 2 * this.#lent < this.#port.buffers;
    if (isLent) {
      this.#lent++;
      incoming.next++;
      this.#user.arrived(source, data, bytes);
    } else this.#hold(incoming, index, data, bytes);
    this.#handOver(incoming);
    if (incoming.isComplete) this.#incomplete = this.#incomplete.filter((one) => one !== incoming);
    return isLent;
  }

  #hold(incoming: Incoming, index: number, { u8 }: Buffer, bytes: number): void {
    incoming.hold(index, u8.slice(0, bytes));
    this.#comm.job.processor.copy(bytes);
  }

  /** What is next, and all that is there behind it. */
  #handOver(incoming: Incoming): void {
    for (let u8 = incoming.take(); u8 !== undefined; u8 = incoming.take()) {
      this.#user.arrived(incoming.pid, { i32: NOTHING, u8, slot: COPIED }, u8.length);
    }
  }

  /** All should have come sooner than it was thought, if so much has come by now. Less than half says little. */
  #hurry(now: number): void {
    if (2 * this.#arrived < this.#expected) return;
    const paced = now + (this.#expected - this.#arrived) * this.#cycle;
    const atThisRate = this.#since + ((now - this.#since) * this.#expected) / this.#arrived;
    this.#allAt = Math.min(this.#allAt, Math.max(paced, atThisRate) + this.#patience);
    this.#lookAt = Math.min(this.#lookAt, this.#allAt);
  }

  /** When to ask: once all should have come, and nothing has from there for a while; then again and again. */
  #askAt({ askAt, backoff }: Incoming): number {
    return backoff > 1 ? askAt : Math.max(this.#allAt, askAt);
  }

  // ---- asking, and answering ----------------------------------------------------------------------------------------

  #ask(): void {
    const now = this.#comm.now();
    if (this.#isBusy || now < this.#lookAt - NO_TIME) return;
    this.#lookAt = Number.POSITIVE_INFINITY;
    for (const incoming of this.#incomplete) {
      if (now >= this.#askAt(incoming) - NO_TIME && this.#port.isReady) {
        const head = this.#writeHead(this.#step, -1 - incoming.next, incoming.count);
        this.#port.send(incoming.pid, HEAD + incoming.writeMissing(head.subarray(HEAD)), 0);
        this.#counts.asks++;
        incoming.backoff = Math.min(MOST_BACKOFF, 2 * incoming.backoff);
        incoming.askAt = now + incoming.backoff * this.#patience;
      }
      this.#lookAt = Math.min(this.#lookAt, this.#askAt(incoming));
    }
  }

  /** Somebody asks. Answers by what has left and was not asked for already. */
  #asked([, step, source, first, count]: Int32Array, { i32 }: Buffer, bytes: number): void {
    if (((step - this.#sentStep) | 0) < 0) {
      this.#counts.late++;
      return;
    }
    const from = -1 - first;
    const isNow = step === this.#sentStep;
    const isWhole = from < count && bytes % 4 === 0;
    if (((step - this.#step) | 0) > 0 || (isNow && count !== this.#to[source]) || !isWhole) {
      this.#counts.strange++;
      return;
    }
    // This process does not have the counts yet, or has not sent anything.
    const sent = isNow ? this.#sent[source] : undefined;
    if (sent === undefined) return;
    const now = this.#comm.now();
    if (now < (this.#answeredAt[source] ?? Number.NEGATIVE_INFINITY) + this.#patience - NO_TIME) return;
    let found = false;
    // Those from `sent.length` on were not given to the adapter yet.
    const end = Math.min(sent.length, from + 8 * bytes);
    for (let index = from; index < end; index++) {
      if ((i32[(index - from) >> 5] & (1 << ((index - from) & 31))) === 0) continue;
      const packet = sent[index];
      if (packet.isAsked || packet.datagram > this.#port.left) continue;
      packet.isAsked = found = true;
      this.#again.push({ pid: source, index });
    }
    if (!found) return;
    this.#answeredAt[source] = now;
    this.#counts.answers++;
  }
}
