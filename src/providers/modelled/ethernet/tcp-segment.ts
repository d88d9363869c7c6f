/** What one end of a TCP connection sends: some bytes of its stream, an acknowledgement of the other's, or both. */
import { TCP_IP_HEADERS } from './ethernet-numbers.ts';
import type { Frame } from './medium.ts';

/** An end of a connection, as its segments see it. */
export interface SegmentEnd {
  readonly station: number;
  /** A segment has come. */
  take(segment: Segment): void;
  /** One that it has sent was lost. */
  lost(segment: Segment): void;
}

export class Segment implements Frame {
  readonly #source: SegmentEnd;
  readonly #target: SegmentEnd;
  /** Its first byte in the stream, and how many it has; 0: it is an acknowledgement only. */
  readonly sequence: number;
  readonly length: number;
  /** The first byte of the other stream that has not come. */
  readonly acknowledgement: number;

  constructor(source: SegmentEnd, target: SegmentEnd, sequence: number, length: number, acknowledgement: number) {
    this.#source = source;
    this.#target = target;
    this.sequence = sequence;
    this.length = length;
    this.acknowledgement = acknowledgement;
  }

  get from(): number {
    return this.#source.station;
  }

  get to(): number {
    return this.#target.station;
  }

  get bytes(): number {
    return this.length + TCP_IP_HEADERS;
  }

  arrived(): void {
    this.#target.take(this);
  }

  lost(): void {
    this.#source.lost(this);
  }
}
