/**
 * Operations that travel with the message that completes their epoch (dissertation §10.2): the schedules `aggregate`,
 * for puts, and `aggregate-gets`.
 *
 *   origin to target   the operation (operation-queue.ts): this rank's epoch is complete there
 *   target to origin   what a get has asked for (operation-messages.ts)
 *
 * The target carries it out when the message arrives, in whatever call it is: its part is exposed to the origin until
 * it has seen the message. The buffer of a put is copied into the message, so its origin waits for nothing. Nothing
 * else was issued to that target in the epoch, so there is nothing that the message could overtake; it cannot meet one
 * of another epoch, since the origin's next one begins with a post that follows the target's `wait`.
 *
 * A get reads what is there when the target carries it out. That is before the target's `wait` ends, so before
 * anything of its next epoch; and behind what ranks of the same group put, or before it, as MPI leaves it open. The
 * origin's `complete` waits for the answer. The target gives it in any call in which it waits, and behind its `post`
 * there is one, its `wait` (or `test`, again and again). That does not end before all answers have left: a target that
 * computes behind it would keep origins waiting. One answer at most is under way from a target to an origin: the next
 * get follows the next post.
 */
import type { OwnChannel } from '../../collective/communicator.ts';
import type { HeldOperation } from '../../transfer/schedule/held-operations.ts';
import { OperationMessages, Served, takeAnswer } from '../../transfer/served/operation-messages.ts';
import { OperationQueue, type QueuedOperations, type QueueTrace } from '../../transfer/served/operation-queue.ts';
import type { OperationServer } from '../../transfer/served/operation-server.ts';

/** A get whose answer is awaited. */
interface Asked {
  readonly queued: QueuedOperations;
  /** Is told why it has failed. */
  readonly failed: (error: unknown) => void;
}

export class Folding {
  readonly #channel: OwnChannel;
  readonly #messages: OperationMessages;
  readonly #server: OperationServer;
  /** By origin: its epochs here that such messages have completed. */
  readonly #completed: Int32Array;
  /** By target. */
  readonly #asked: (Asked | undefined)[] = [];
  /** Whether this rank has answered since `haveLeft` was true. */
  #hasAnswered = false;
  /** Why a put for this rank was not carried out. */
  #refused: unknown;

  /**
   * @param channel `take` is given its messages
   * @param server carries out operations on this rank's part
   * @param trace in a job that is traced
   */
  constructor(channel: OwnChannel, server: OperationServer, trace: QueueTrace | undefined) {
    this.#channel = channel;
    this.#server = server;
    this.#messages = new OperationMessages(channel, new OperationQueue(channel.size, undefined, trace), server);
    this.#completed = new Int32Array(channel.size);
  }

  /**
   * Sends an operation, and that this rank's epoch is complete at its target.
   * @param failed is told why a get has failed
   */
  send({ puts, rank, origin, from, at, to, turn }: HeldOperation, failed: (error: unknown) => void): void {
    const { queue } = this.#messages;
    if (puts) {
      queue.put(origin, from, rank, at, to, turn);
      this.#channel.give(rank, queue.take(rank).message);
      return;
    }
    queue.get(origin, from, rank, at, to, turn);
    const queued = queue.take(rank);
    this.#asked[rank] = { queued, failed };
    this.#messages.ask(rank, queued, 0);
  }

  /** Whether the answer of a target is awaited. */
  awaits(target: number): boolean {
    return this.#asked[target] !== undefined;
  }

  /** Whether the answers of this rank have left it. */
  get haveLeft(): boolean {
    if (this.#hasAnswered && this.#channel.drained) this.#hasAnswered = false;
    return !this.#hasAnswered;
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
    const [what] = new Int32Array(message.buffer, message.byteOffset, 1);
    switch (what) {
      case Served.OPERATIONS:
        this.#completed[source]++;
        this.#hasAnswered = true;
        this.#messages.serve(source, message);
        break;
      case Served.DONE:
      case Served.FAILURE:
        this.#takeAnswer(source, message);
        break;
      default:
        this.#completed[source]++;
        this.#write(source, message);
    }
  }

  #write(source: number, message: Uint8Array): void {
    try {
      this.#server.serve(message, undefined, this.#messages.queue.carriedOut(source));
    } catch (error) {
      this.#refused ??= error;
    }
  }

  #takeAnswer(source: number, message: Uint8Array): void {
    const asked = this.#asked[source];
    if (asked === undefined) return;
    this.#asked[source] = undefined;
    try {
      takeAnswer(asked.queued, source, message);
    } catch (error) {
      asked.failed(error);
    }
  }
}
