/** A put or a get of a layout that is under way, whatever its way is; and the task that ends with it. */
import type { Side } from '../../datatype/sides.ts';
import { byteLengthOf } from '../../intrinsics.ts';
import { lostError } from '../requests/lost-arrays.ts';

export class Moving {
  readonly puts: boolean;
  readonly origin: Uint8Array;
  readonly from: Side;
  readonly rank: number;
  readonly at: number;
  readonly to: Side;
  /** Bytes that have been sent or asked for, and the messages, or groups of them, that are not through. */
  begun = 0;
  left = 0;
  /** Why nothing more of it is begun. */
  protected error: unknown;

  /** The arguments are those of `RequestTransfer.put` and `get`. */
  constructor(puts: boolean, origin: Uint8Array, from: Side, rank: number, at: number, to: Side) {
    this.puts = puts;
    this.origin = origin;
    this.from = from;
    this.rank = rank;
    this.at = at;
    this.to = to;
  }

  /** All of it has been sent or asked for. */
  get isBegun(): boolean {
    return this.begun === this.from.bytes;
  }

  /** Nothing more happens to it. */
  get isDone(): boolean {
    return this.left === 0 && this.isBegun;
  }

  /** Why it could not be carried out. */
  get failure(): unknown {
    return this.error;
  }

  /** Whether the origin's bytes are where they were when it began. */
  get isThere(): boolean {
    return byteLengthOf(this.origin) >= this.from.high;
  }

  /** Nothing more of it is begun. */
  giveUp(error: unknown): void {
    this.error ??= error;
    this.begun = this.from.bytes;
  }

  lost(): Error {
    return lostError('origin', this.puts ? 'a put' : 'a get', this.rank);
  }
}

/** Its task. @param look brings answers in */
export function* steps(moving: Moving, look: () => void): Generator<void, void> {
  while (!moving.isDone) {
    yield;
    if (!moving.isDone) look();
  }
  if (moving.failure !== undefined) throw moving.failure;
}
