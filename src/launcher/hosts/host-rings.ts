/** What the ranks of several hosts have recorded, by one clock: that of the launcher's host. */
import { FIELDS, Field, type Recording, readRing, ringBytes } from '../../trace/trace-ring.ts';

/** How a host's clock differs from this one's, in nanoseconds: by how much it is ahead, and how sure that is. */
export interface ClockDifference {
  readonly ahead: number;
  readonly within: number;
}

export class HostRings {
  readonly #pieces = new Map<number, Buffer[]>();

  /** @param piece in base64, behind those that were kept */
  keep(rank: number, piece: string): void {
    if (!this.#pieces.has(rank)) this.#pieces.set(rank, []);
    this.#pieces.get(rank)!.push(Buffer.from(piece, 'base64'));
  }

  /** By rank. @param events records of each */
  recordings(size: number, events: number, clockOf: (rank: number) => ClockDifference): Recording[] {
    return Array.from({ length: size }, (_, rank) => {
      const ring = new Uint8Array(ringBytes(events));
      const sent = Buffer.concat(this.#pieces.get(rank) ?? []);
      ring.set(sent.subarray(0, ring.length));
      const recording = readRing(rank, ring.length, (bytes) => ring.slice(0, bytes));
      this.#pieces.delete(rank);
      setBack(recording, clockOf(rank));
      return recording;
    });
  }
}

/** A difference that may be none, as between agents of one host, is left alone. */
function setBack({ records, count }: Recording, { ahead, within }: ClockDifference): void {
  if (Math.abs(ahead) <= within) return;
  for (let i = 0; i < count; i++) records[FIELDS * i + Field.TIME] -= ahead;
}
