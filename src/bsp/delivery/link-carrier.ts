/** Chunks by connections of the computation's own (links.ts), each by one request from the memory it was packed in. */
import type { Communicator } from '../../collective/communicator.ts';
import { CHUNK_BYTES, type Chunk } from '../chunks.ts';
import type { PacketCarrier, Rdma } from './carrier.ts';
import type { Buffer, CarrierUser } from './carrier-user.ts';
import { Links, SENDS } from './links.ts';
import type { Piece } from './packets.ts';
import { OwnRegions, SharedChunks, TABLE_WORDS } from './shared-regions.ts';

/** Memory for chunks is first allocated for so many. */
const FIRST_CHUNKS = 4;
/** Entries of a scatter list; more of them cost memory of the device for each place of a queue. */
const MOST_ENTRIES = 60;

export class LinkCarrier implements PacketCarrier {
  readonly pool: SharedChunks;
  readonly rdma: Rdma | undefined;
  readonly mostPieces: number;
  readonly headBytes = 0;
  readonly #links: Links;
  readonly #regions: OwnRegions;

  /**
   * @param readsAndWrites whether memory is read and written, too
   * @param mostPieces of a packet, at least 1; not more than the device allows
   */
  constructor(comm: Communicator, user: CarrierUser, readsAndWrites: boolean, mostPieces = 1) {
    const { device } = comm.job.context;
    this.#regions = new OwnRegions(comm, new Int32Array(TABLE_WORDS));
    this.pool = new SharedChunks(this.#regions, FIRST_CHUNKS * CHUNK_BYTES);
    this.mostPieces = Math.min(mostPieces, device.maxSge);
    this.#links = new Links(comm, readsAndWrites ? Math.min(MOST_ENTRIES, device.maxSge) : 0, user, this.mostPieces);
    this.rdma = readsAndWrites ? { links: this.#links, regions: this.#regions } : undefined;
  }

  expect(chunks: number): void {
    this.#links.expect(chunks);
  }

  isReady(pid: number): boolean {
    return this.#links.isReady(pid, SENDS);
  }

  send(pid: number, { id, at }: Chunk, bytes: number, more: boolean): void {
    const { lkey, address } = this.#regions.regionOf(id);
    this.#links.post(
      pid,
      SENDS,
      (qp, flags) => {
        qp.wrSend(0, flags);
        qp.wrSetSge(lkey, address + 4 * at, bytes);
      },
      undefined,
      more,
    );
  }

  sendPacket(pid: number, pieces: readonly Piece[], more: boolean): void {
    this.#links.post(
      pid,
      SENDS,
      (qp, flags) => {
        qp.wrSend(0, flags);
        for (const { chunk, from, bytes } of pieces) {
          const { lkey, address } = this.#regions.regionOf(chunk.id);
          qp.wrAddSge(lkey, address + 4 * chunk.at + from, bytes);
        }
      },
      undefined,
      more,
    );
  }

  get isSilent(): boolean {
    return this.#links.isSilent;
  }

  release(buffer: Buffer): void {
    this.#links.release(buffer);
  }

  heard(pid: number, words: Int32Array): void {
    this.#links.heard(pid, words);
  }

  poll(): void {
    this.#links.poll();
  }

  get bytes(): number {
    return this.pool.bytes + this.#links.bytes;
  }

  close(): void {
    this.#links.close();
    this.#regions.close();
  }
}
