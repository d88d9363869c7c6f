/**
 * Sends chunks in packets (packets.ts), each by one request, and paces these (slots.ts). It is a carrier on top of one
 * that sends packets.
 *
 *     1. Packed delivery says what it will send (`announce`), which goes with the counts: then all processes know how
 *        many of them send, and what the busiest sends (totals.ts). By that each chooses its pace.
 *     2. The first cycle begins when the counts are there (`expect`). Packed delivery gives all chunks at once; they
 *        wait here.
 *     3. `poll` sends the packets that are due, one of each target in turn, in the order of the Latin square. A target
 *        to which nothing can be sent yet is passed over. A turn that comes late sends `BURST` packets at most, so that
 *        a process that was away does not fill the network; the next turn follows at once.
 *
 * Timers on real ranks are coarse: a rank that sleeps wakes up too late for slots below some milliseconds. So it sleeps
 * until `SPIN` before the slot, and looks again and again from then on. In virtual time it looks in time.
 *
 * A packet whose chunk finds no room (`Assembly`) stays in its buffer, with all that come behind it.
 *
 * What the carrier below has lost it sends again in slots, too, before what was not sent yet; after the superstep, in
 * cycles that begin with the first such packet. Then no process is told how much others send again: the slots are those
 * of the superstep.
 */
import type { Communicator } from '../../collective/communicator.ts';
import { CHUNK_BYTES, type Chunk, type ChunkPool } from '../chunks.ts';
import type { Carrier, PacketCarrier, Service } from './carrier.ts';
import type { Buffer, CarrierUser } from './carrier-user.ts';
import type { DatagramStatistics } from './datagram-counts.ts';
import type { Pacer } from './pace-choices.ts';
import { PacingCounts, type PacingStatistics } from './pacing-counts.ts';
import { Assembly, Line, type PacketSize, packetsFor } from './packets.ts';
import { Slots, UNPACED } from './slots.ts';
import { inWord, type Load, type Totals } from './totals.ts';

/** How packets are paced. */
export interface Pacing {
  /** Absent: packets leave as soon as they can. */
  readonly pacer: Pacer | undefined;
  /** Bytes of a packet. */
  readonly packet: number;
  /** Slots are drawn from these numbers. */
  readonly seeds: readonly number[];
}

/** Packets that a turn sends at most. */
const BURST = 4;
/** Milliseconds before a slot from which on a real rank does not sleep. */
const SPIN = 0.1;
/** Microseconds that are no time: clocks are sums of fractions. */
const NO_TIME = 1e-3;
/** Each packet takes a buffer until it is put together with others: so many are enough for those of some turns. */
const FEW_BUFFERS = 16;
/** Whole chunks that wait to be placed, as many as a carrier has buffers. */
const MOST_CHUNKS = 64;

/** A packet for which there was no room, from this byte on. */
interface Held {
  readonly pid: number;
  readonly buffer: Buffer;
  readonly bytes: number;
  from: number;
}

export class PacedCarrier implements Carrier {
  readonly rdma = undefined;
  readonly #comm: Communicator;
  readonly #user: CarrierUser;
  readonly #below: PacketCarrier;
  readonly #pacing: Pacing;
  readonly #size: PacketSize;
  /** Where chunks are not cut. */
  readonly #wholeSize: PacketSize;
  readonly #slots = new Slots();
  #pace = UNPACED;
  /** Of the targets that have packets left, in the order in which their chunks were given: the Latin square's. */
  #lines: Line[] = [];
  readonly #lineTo = new Map<number, Line>();
  /** Whose turn it is. */
  #turn = 0;
  /** Chunks that were announced, and not given yet. */
  #ungiven = 0;
  /** The packet that is due cannot leave, to any target: something comes when one can. */
  #isBlocked = false;
  /** By this process's clock. */
  #began = 0;
  #took = 0;
  #steps = 0;
  readonly #assembly = new Assembly(MOST_CHUNKS);
  #held: Held[] = [];
  readonly #counts = new PacingCounts();
  /** Packets for each process in the superstep that ends. */
  #to: Int32Array | undefined;
  /** Nothing is left to be sent: the next packet begins new cycles. */
  #rests = true;
  readonly service: Service | undefined;

  /** @param below makes what sends packets */
  constructor(comm: Communicator, user: CarrierUser, below: (user: CarrierUser) => PacketCarrier, pacing: Pacing) {
    this.#comm = comm;
    this.#user = user;
    this.#below = below({
      tell: (pid, words) => user.tell(pid, words),
      arrived: (pid, buffer, bytes) => void this.#held.push({ pid, buffer, bytes, from: 0 }),
    });
    this.#pacing = pacing;
    const { mostPieces, headBytes, lossy } = this.#below;
    this.#size = { bytes: pacing.packet - headBytes, pieces: mostPieces };
    this.#wholeSize = { bytes: CHUNK_BYTES, pieces: mostPieces };
    this.service = lossy && { serve: () => this.#serve(), isAskedBy: (cq) => lossy.comeBy(cq) };
  }

  get pool(): ChunkPool {
    return this.#below.pool;
  }

  announce(chunks: readonly (readonly number[] | undefined)[]): Load {
    this.#ungiven = 0;
    let packets = 0;
    const to = new Int32Array(chunks.length);
    for (const [pid, line] of chunks.entries()) {
      if (line === undefined) continue;
      this.#ungiven += line.length;
      to[pid] = packetsFor(line, this.#size);
      packets += to[pid];
    }
    const load = { packets, microseconds: inWord(this.#took) };
    if (this.#below.lossy === undefined) return load;
    this.#to = to;
    return { ...load, to };
  }

  expect(chunks: number, totals: Totals, from?: Int32Array): void {
    const packets = chunks * Math.ceil(CHUNK_BYTES / this.#size.bytes);
    this.#below.expect(Math.max(chunks, Math.min(packets, FEW_BUFFERS)), undefined);
    this.#lineTo.clear();
    this.#counts.senders = totals.senders;
    this.#counts.most = totals.most;
    this.#pace = this.#pacing.pacer?.choose(totals) ?? UNPACED;
    this.#began = this.#comm.now();
    this.#beginSlots();
    this.#below.lossy?.expectPackets(from!, this.#to!, totals, this.#pace.slots * this.#pace.slot);
  }

  #beginSlots(): void {
    this.#slots.begin(this.#comm.now(), this.#pace, ...this.#pacing.seeds, this.#comm.rank, this.#steps);
    this.#rests = false;
  }

  /** They wait here: there is always room. */
  isReady(): boolean {
    return true;
  }

  send(pid: number, chunk: Chunk, bytes: number): void {
    let line = this.#lineTo.get(pid);
    if (line === undefined) {
      line = new Line(pid);
      this.#lines.push(line);
      this.#lineTo.set(pid, line);
      // A connection begins to be made.
      this.#below.isReady(pid);
    }
    line.add(chunk, bytes);
    this.#ungiven--;
  }

  get isSilent(): boolean {
    return this.#lines.length === 0 && this.#below.isSilent;
  }

  release(buffer: Buffer): void {
    this.#assembly.release(buffer);
  }

  heard(pid: number, words: Int32Array): void {
    this.#below.heard(pid, words);
  }

  poll(): void {
    this.#below.poll();
    if (this.#held.length > 0) this.#takeIn();
    if (this.#owes && this.#rests) this.#beginSlots();
    if ((this.#lines.length > 0 && this.#ungiven === 0) || this.#owes) this.#sendDue();
  }

  /** Packets wait to be sent again. */
  get #owes(): boolean {
    return this.#below.lossy?.owes === true;
  }

  /** While this process waits for something else: chunks that are given are not complete yet. */
  #serve(): number {
    this.poll();
    const polling = this.isPolling();
    return typeof polling === 'number' ? polling : polling ? 0 : Number.POSITIVE_INFINITY;
  }

  isPolling(): boolean | number {
    const others = this.#below.isPolling?.() ?? false;
    const isEmpty = this.#lines.length === 0 && !this.#owes;
    if (isEmpty || this.#isBlocked || this.#pace.slot === 0) return others;
    const left = (this.#slots.due - this.#comm.now()) / 1000;
    const wait = Math.max(0, this.#comm.job.processor.isVirtual ? left : left - SPIN);
    return others === false ? wait : others === true ? true : Math.min(others, wait);
  }

  delivered(): void {
    this.#below.delivered?.();
    this.#took = this.#comm.now() - this.#began;
    this.#steps++;
  }

  get statistics(): PacingStatistics | undefined {
    const { pacer } = this.#pacing;
    return pacer && { ...this.#counts, ...this.#pace, isTrying: pacer.isTrying };
  }

  get datagrams(): DatagramStatistics | undefined {
    return this.#below.datagrams;
  }

  get bytes(): number {
    return this.#below.bytes + this.#assembly.bytes;
  }

  close(): void {
    this.#below.close();
    this.#lines.length = this.#held.length = 0;
  }

  // ---- sending ------------------------------------------------------------------------------------------------------

  #sendDue(): void {
    const { slot } = this.#pace;
    if (slot === 0) {
      while (this.#sendOne());
      this.#rests = !this.#isBlocked;
      return;
    }
    const now = this.#comm.now();
    let sent = 0;
    let isLate = false;
    for (; sent < BURST && (this.#lines.length > 0 || this.#owes); sent++) {
      const lateness = now - this.#slots.due;
      if (lateness < -NO_TIME || !this.#sendOne()) break;
      if (this.#counts.left(Math.max(0, lateness), slot)) isLate = true;
      this.#slots.next();
    }
    this.#counts.turned(sent, isLate);
    this.#rests = this.#lines.length === 0 && !this.#owes;
  }

  /** A packet that was lost, or the next one of the first target that can take one. False if there is none. */
  #sendOne(): boolean {
    const lines = this.#lines;
    const { whole } = this.#pace;
    if (this.#resendOne()) return true;
    for (let i = 0; i < Math.min(lines.length, whole ? 1 : lines.length); i++) {
      const at = (this.#turn + i) % lines.length;
      const line = lines[at];
      if (!this.#below.isReady(line.pid)) continue;
      const packet = line.take(whole ? this.#wholeSize : this.#size);
      this.#below.sendPacket(line.pid, packet, !line.isEmpty);
      this.#counts.packets++;
      // The next one has moved to its place.
      if (line.isEmpty) lines.splice(at, 1);
      this.#turn = line.isEmpty ? at : at + 1;
      this.#isBlocked = false;
      return true;
    }
    this.#isBlocked = lines.length > 0 || this.#owes;
    return false;
  }

  #resendOne(): boolean {
    if (!this.#owes || !this.#below.lossy!.resend()) return false;
    this.#isBlocked = false;
    this.#counts.packets++;
    return true;
  }

  // ---- what comes ---------------------------------------------------------------------------------------------------

  /** Puts what has come together, in the order in which it came, as long as there is room. */
  #takeIn(): void {
    const { processor } = this.#comm.job;
    let taken = 0;
    for (const one of this.#held) {
      const { pid, buffer, bytes, from } = one;
      one.from = this.#assembly.add(pid, buffer.u8.subarray(0, bytes), from);
      processor.copy(one.from - from);
      if (one.from < bytes) break;
      this.#below.release(buffer);
      taken++;
    }
    this.#held.splice(0, taken);
    for (const { pid, buffer, bytes } of this.#assembly.whole.splice(0)) this.#user.arrived(pid, buffer, bytes);
  }
}
