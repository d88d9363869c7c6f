/**
 * Messages whose parts lie in pieces of memory that all ranks map (shared-pieces.ts). A chunk tells of a part where
 * others have its bytes:
 *
 *     total of the message · length of the part · key and address of its slab · piece · reader · may be kept
 *
 * Parts of one message follow each other on its connection, as chunks do, so order and the end of a message are known
 * in the same way.
 */
import type { ForeignPiece, Piece, SharedPieces } from './shared-pieces.ts';

const PART_NUMBERS = 7;
export const PART_BYTES = 8 * PART_NUMBERS;
/** The length of a part that ends a message early, since its sender has no memory for the rest. */
const ENDS = -1;

/** Where a message goes: the memory may be exchanged while it comes in. */
export interface Place {
  /** Absent if there is no memory for it. Shorter than the message if the program has given it away. */
  bytes: Uint8Array | undefined;
}

/** What a chunk said of a part. */
export interface Part {
  readonly total: number;
  /** Absent if the message ends here. */
  readonly piece: ForeignPiece | undefined;
  /** The reader may release it when it likes. */
  readonly kept: boolean;
}

/** Writes what a chunk tells of a part. @param reader the place of its reader among those of the piece */
export function writePart(numbers: Float64Array, piece: Piece, total: number, length: number, reader: number): void {
  numbers.set([total, length, piece.rkey, piece.address, piece.number, reader, piece.kept ? 1 : 0]);
}

/** Writes that a message ends. */
export function writeEnd(numbers: Float64Array, total: number): void {
  numbers.set([total, ENDS, 0, 0, 0, 0, 0]);
}

/** Errors: `ERR_VERBS` if the memory cannot be mapped. */
export function readPart(pieces: SharedPieces, source: number, buffer: ArrayBufferLike, at: number): Part {
  const [total, length, rkey, address, number, reader, kept] = new Float64Array(buffer, at, PART_NUMBERS);
  const piece = length === ENDS ? undefined : pieces.find(source, rkey, address, number, length, reader);
  return { total, piece, kept: kept === 1 };
}

/** Copies what fits of a head and a payload, from byte `at` of both together on. @returns how much */
export function fillPart(to: Uint8Array, head: Uint8Array, payload: Uint8Array, at: number): number {
  const length = Math.min(to.length, head.length + payload.length - at);
  const ofHead = Math.max(0, Math.min(length, head.length - at));
  if (ofHead > 0) to.set(head.subarray(at, at + ofHead));
  const from = Math.max(0, at - head.length);
  if (length > ofHead) to.set(payload.subarray(from, from + length - ofHead), ofHead);
  return length;
}

/** What is left of a message that waits for pieces. Nobody changes its bytes. */
export class Remainder {
  readonly context: number;
  readonly total: number;
  readonly bytes: Uint8Array;
  /** Bytes of these that have left. */
  at = 0;
  /** Nothing of the message has left before. */
  readonly isWhole: boolean;

  constructor(context: number, total: number, bytes: Uint8Array) {
    this.context = context;
    this.total = total;
    this.bytes = bytes;
    this.isWhole = bytes.length === total;
  }
}
