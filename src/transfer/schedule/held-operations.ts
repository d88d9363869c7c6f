/**
 * Puts and gets that wait until something completes them, to be posted then in the order of a schedule. MPI allows it:
 * within an epoch only a flush orders them (MPI 4.1, 12.7).
 *
 * Updates are not held. They are unordered with puts and gets of the epoch, and keep their order among themselves as
 * their calls have posted them.
 *
 * What waits takes some 100 bytes and no copy: an origin stays the library's until its operation is complete anyway.
 * The list is bounded for time's sake, since nothing moves while it waits.
 */
import type { TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import { byteLengthOf } from '../../intrinsics.ts';
import { lostError } from '../requests/lost-arrays.ts';
import { FOLDED_BYTES } from './aggregate.ts';
import type { Schedulable } from './schedule-kind.ts';
import type { Schedule } from './schedule-kinds.ts';

/** Operations that are held at most: as many as may be outstanding on a connection (connections.ts). */
export const HELD_OPERATIONS = 128;
/** Bytes that they move at most: some tens of milliseconds on the links that schedules are for. */
export const HELD_BYTES = 2 ** 26;

/** Where an operation is posted. */
export interface Poster {
  put(origin: TypedArray, from: Side, at: number, to: Side): void;
  get(origin: TypedArray, from: Side, at: number, to: Side): void;
  /** That of what is issued now (operation-failures.ts). */
  turn: number;
  /** Is told why one could not be posted: a call that waits for operations to the rank says it. */
  failed(error: unknown): void;
}

export interface HeldOperation extends Schedulable {
  readonly poster: Poster;
  readonly rank: number;
  readonly origin: TypedArray;
  readonly from: Side;
  readonly at: number;
  readonly to: Side;
  /** In which it was issued. */
  readonly turn: number;
}

export class HeldOperations {
  readonly #schedule: Schedule;
  #held: HeldOperation[] = [];
  #bytes = 0;
  /** Listeners that are told when all that is held now has been posted. */
  #followers: (() => void)[] = [];

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  /** Whether operations wait for an order; otherwise only for the message that completes their epoch. */
  get orders(): boolean {
    return this.#schedule.orders;
  }

  /** Whether small operations may leave with the message that completes their epoch. */
  get folds(): boolean {
    return this.#schedule.folds !== undefined;
  }

  get isEmpty(): boolean {
    return this.#held.length === 0;
  }

  /** What completes operations that were held before says what is wrong with them. */
  hold(operation: HeldOperation): void {
    const { bytes } = operation.from;
    if (this.#held.length === HELD_OPERATIONS || this.#bytes + bytes > HELD_BYTES) this.#postAll();
    const others = this.orders ? undefined : this.#toRank(operation.rank);
    this.#held.push(operation);
    this.#bytes += bytes;
    // What neither has an order nor travels with a message has no reason to wait.
    if (others !== undefined && (others.length > 0 || !this.#mayTravel(operation)))
      this.#postThese([...others, operation]);
  }

  /** Whether an operation may leave with the message that completes its epoch, if it is alone. */
  #mayTravel({ puts, from }: HeldOperation): boolean {
    return this.#schedule.folds?.[puts ? 'puts' : 'gets'] === true && from.bytes <= FOLDED_BYTES;
  }

  /** Calls back when all that is held now has been posted, or was taken away. */
  whenPosted(follower: () => void): void {
    if (this.isEmpty) follower();
    else this.#followers.push(follower);
  }

  /**
   * Posts all but operations that may travel with a message, are the only ones to their ranks, and that `takes` takes:
   * those are no longer held.
   */
  postAllBut(takes: (operation: HeldOperation) => boolean): readonly HeldOperation[] {
    const taken = this.#held.filter(
      (operation) => this.#mayTravel(operation) && this.#toRank(operation.rank).length === 1 && takes(operation),
    );
    this.#remove(taken);
    this.post();
    return taken;
  }

  #toRank(rank: number): readonly HeldOperation[] {
    return this.#held.filter((operation) => operation.rank === rank);
  }

  #remove(operations: readonly HeldOperation[]): void {
    this.#held = this.#held.filter((operation) => !operations.includes(operation));
    for (const { from } of operations) this.#bytes -= from.bytes;
  }

  /** Posts all that is held. One that cannot be posted has failed, and does not keep the others from it. */
  post(): void {
    if (!this.isEmpty) this.#postAll();
  }

  #postAll(): void {
    const held = this.#held;
    const followers = this.#followers;
    this.#held = [];
    this.#bytes = 0;
    this.#followers = [];
    this.#postInOrder(held);
    for (const follower of followers) follower();
  }

  #postThese(operations: readonly HeldOperation[]): void {
    this.#remove(operations);
    this.#postInOrder(operations);
  }

  #postInOrder(held: readonly HeldOperation[]): void {
    for (const operation of this.#schedule.order(held)) {
      const { poster, puts, origin, from, at, to } = operation;
      const { turn } = poster;
      poster.turn = operation.turn;
      try {
        refuseLost(operation);
        if (puts) poster.put(origin, from, at, to);
        else poster.get(origin, from, at, to);
      } catch (error) {
        poster.failed(error);
      } finally {
        poster.turn = turn;
      }
    }
  }
}

/** Whether the program has taken the origin away since the call. */
export function isLost({ origin, from }: HeldOperation): boolean {
  return byteLengthOf(origin) < from.high;
}

/** Errors: `ERR_BUFFER` if the origin is lost. */
function refuseLost(operation: HeldOperation): void {
  if (isLost(operation)) throw lostError('origin', operation.puts ? 'a put' : 'a get', operation.rank);
}
