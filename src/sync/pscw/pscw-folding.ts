/**
 * Puts that travel with the message that completes their epoch (dissertation §10.2): the schedule `aggregate`.
 *
 *   origin to target   the put (operation-queue.ts): this rank's epoch is complete there
 *
 * The target carries it out when the message arrives, in whatever call it is: its part is exposed to the origin until
 * it has seen the message. The origin's buffer is copied into the message, so it waits for nothing. Nothing else was
 * issued to that target in the epoch, so there is nothing that the message could overtake; it cannot meet one of
 * another epoch, since the origin's next one begins with a post that follows the target's `wait`.
 *
 * A get does not travel like that. Its answer would be one more message, made by a processor, where an adapter answers
 * the read; and `complete` does not wait for the notification that it would save (pscw-by-requests.ts). On the fabrics
 * of §10.3 such a get takes 15 and 18 % longer than a read (figure D10.3 measures it with plain messages).
 */
import type { OwnChannel } from '../../collective/communicator.ts';
import type { HeldOperation } from '../../transfer/schedule/held-operations.ts';
import { OperationQueue, type QueueTrace } from '../../transfer/served/operation-queue.ts';

/** Carries out the operations of a message. @param carriedOut as of `OperationServer.serve` */
export type CarryOut = (message: Uint8Array, carriedOut: (() => void) | undefined) => void;

export class Folding {
  readonly #channel: OwnChannel;
  readonly #queue: OperationQueue;
  readonly #carryOut: CarryOut;
  /** By origin: its epochs here that such messages have completed. */
  readonly #completed: Int32Array;
  /** Why a put for this rank was not carried out. */
  #refused: unknown;

  /**
   * @param channel `take` is given its messages
   * @param carryOut does so with a put to this rank's part
   * @param trace in a job that is traced
   */
  constructor(channel: OwnChannel, carryOut: CarryOut, trace: QueueTrace | undefined) {
    this.#channel = channel;
    this.#queue = new OperationQueue(channel.size, undefined, trace);
    this.#carryOut = carryOut;
    this.#completed = new Int32Array(channel.size);
  }

  /** Sends a put, and that this rank's epoch is complete at its target. */
  send({ rank, origin, from, at, to, turn }: HeldOperation): void {
    this.#queue.put(origin, from, rank, at, to, turn);
    this.#channel.give(rank, this.#queue.take(rank).message);
  }

  /** How many epochs of an origin such messages have completed. */
  completedBy(origin: number): number {
    return this.#completed[origin];
  }

  /** Errors: what was put here since the last call could not be written, since this rank's part is gone. */
  refuse(): void {
    const refused = this.#refused;
    this.#refused = undefined;
    if (refused !== undefined) throw refused;
  }

  /** Takes a message in. */
  take(source: number, message: Uint8Array): void {
    this.#completed[source]++;
    try {
      this.#carryOut(message, this.#queue.carriedOut(source));
    } catch (error) {
      this.#refused ??= error;
    }
  }
}
