/**
 * What moves packed chunks from process to process, and tells when they have come: the network, as packed delivery
 * (packed-delivery.ts) sees it. How fast chunks leave is the carrier's, too: it says when it takes another one.
 *
 * Each chunk comes once and whole. Those of one process to another come in the order in which they were given. All is
 * called from this process's thread; what has come is handed over in `poll` only.
 */
import type { CompletionQueue } from '../../verbs/completion-queue.ts';
import type { Chunk, ChunkPool } from '../chunks.ts';
import type { Buffer } from './carrier-user.ts';
import type { DatagramStatistics } from './datagram-counts.ts';
import type { Links } from './links.ts';
import type { PacingStatistics } from './pacing-counts.ts';
import type { Piece } from './packets.ts';
import type { OwnRegions } from './shared-regions.ts';
import type { Load, Totals } from './totals.ts';

/** By which processes read and write each other's memory beside the chunks. */
export interface Rdma {
  readonly links: Links;
  /** Of the chunks. */
  readonly regions: OwnRegions;
}

/** What a process does for the others while it waits for anything else, or for nothing. */
export interface Service {
  /** As `poll`. @returns the milliseconds after which it must be called again even if nothing comes */
  serve(): number;
  /** Whether what the others ask comes by this queue. */
  isAskedBy(cq: CompletionQueue): boolean;
}

export interface Carrier {
  /** Chunks that it sends; also for what else the superstep packs. */
  readonly pool: ChunkPool;
  /** Absent where chunks are all that it moves. */
  readonly rdma: Rdma | undefined;
  /**
   * Chunks of these bytes will be sent to each process in this superstep: what all processes are to know of that before
   * `expect`. Absent where they need know nothing.
   */
  announce?(chunks: readonly (readonly number[] | undefined)[]): Load;
  /**
   * So many chunks come in this superstep.
   * @param totals of what was announced
   * @param from packets that come from each process, if these were announced
   * Errors: `ERR_VERBS`.
   */
  expect(chunks: number, totals: Totals | undefined, from?: Int32Array): void;
  /** Whether a chunk can be sent to a process now. If not, it is asked again. */
  isReady(pid: number): boolean;
  /**
   * Sends a chunk of the pool, which stays as it is until `isSilent`. `isReady` has said that it can.
   * @param more another chunk to the same process follows in this superstep
   */
  send(pid: number, chunk: Chunk, bytes: number, more: boolean): void;
  /** Everything that was sent has left. */
  readonly isSilent: boolean;
  /** A buffer is free again. */
  release(buffer: Buffer): void;
  /** A message from the carrier of a process. */
  heard(pid: number, words: Int32Array): void;
  /** Takes in what has come. Errors: `ERR_VERBS` (no connection, or a lost one), from then on. */
  poll(): void;
  /** As `Operation.isPolling`, while chunks are sent or come: until when nothing need be looked at. */
  isPolling?(): boolean | number;
  /** All of the superstep has been delivered. */
  delivered?(): void;
  /** What the others may need of this process beside its `sync`; absent where they need nothing. */
  readonly service?: Service | undefined;
  readonly statistics?: PacingStatistics | undefined;
  readonly datagrams?: DatagramStatistics | undefined;
  /** Bytes of memory for chunks and buffers. */
  readonly bytes: number;
  close(): void;
}

/**
 * A carrier that sends parts of its chunks, too. They come as they were sent: each once, and those of one process in
 * order.
 */
export interface PacketCarrier extends Carrier {
  /** Parts that a packet has at most. */
  readonly mostPieces: number;
  /** Bytes that it adds to a packet. */
  readonly headBytes: number;
  /** Sends them as one packet, if `isReady`. @param more another one to that process follows in this superstep */
  sendPacket(pid: number, pieces: readonly Piece[], more: boolean): void;
  /** Absent where no packet is ever lost. */
  readonly lossy?: LossyPackets;
}

/** Of a carrier whose network loses packets: it sends them again. Chunks stay as they are meanwhile. */
export interface LossyPackets {
  /**
   * All processes have come to the end of the superstep, and packets can be sent.
   * @param from how many come from each process
   * @param to how many go to each, all of which will be sent
   * @param cycle microseconds from one packet of a process to its next, at least
   * Errors: `ERR_VERBS`, `ERR_SIZE`.
   */
  expectPackets(from: Int32Array, to: Int32Array, totals: Totals, cycle: number): void;
  /** Packets wait to be sent again. */
  readonly owes: boolean;
  /** Sends one of them, if it can now. */
  resend(): boolean;
  /** Whether packets come by this queue. */
  comeBy(cq: CompletionQueue): boolean;
}
