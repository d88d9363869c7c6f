/**
 * Accumulates that the target's processor carries out: a message with the operations, and an answer with what they
 * fetch (dissertation §7.2.2; operation-messages.ts). Both ends of it.
 *
 * The first operation to a rank leaves at once. What is issued until its answer is here leaves together, in the order
 * of the calls, in the next message: so a rank has at most one message under way to each other rank, and many small
 * operations share a few messages.
 *
 * Each message is a task of the window's requests (request-tasks.ts): flush, fence, complete and requests wait for it
 * as for any other. A task holds nothing that others wait for, so a wait that ends early leaves it where it is.
 *
 * Atomic: one thread of the target carries out all updates of its part, its own too, message by message.
 *
 * The target serves while it waits in the library, whatever it waits for, when its event loop turns, and now and then
 * in calls of the window that do not wait.
 */
import type { OwnChannel } from '../../collective/communicator.ts';
import type { TypedArray } from '../../datatype/base-types.ts';
import type { Side } from '../../datatype/sides.ts';
import type { Fetch } from '../requests/fetch.ts';
import type { RequestTransfer } from '../requests/request-transfer.ts';
import { type OperationMessages, Served, takeAnswer } from './operation-messages.ts';

export class TargetUpdates {
  readonly #operations: OperationMessages;
  readonly #requests: RequestTransfer;
  /** Brings messages in: serves others, too. */
  readonly poll: () => void;
  readonly #stop: () => void;
  /** By rank: the answer that has come and was not taken. */
  readonly #answers: (Uint8Array | undefined)[] = [];

  /**
   * @param channel nothing else goes through it
   * @param operations by this channel; nothing else is queued there
   * @param poll brings messages in
   */
  constructor(channel: OwnChannel, operations: OperationMessages, requests: RequestTransfer, poll: () => void) {
    this.#operations = operations;
    this.#requests = requests;
    this.poll = poll;
    this.#stop = channel.listen((source, message) => this.#take(source, message));
  }

  /** The arguments are those of `RequestUpdates.accumulate`. */
  accumulate(
    origin: TypedArray,
    from: Side,
    rank: number,
    at: number,
    to: Side,
    op: number,
    fetch: Fetch | undefined,
  ): void {
    const leaves = !this.#operations.queue.has(rank);
    this.#operations.queue.accumulate(origin, from, rank, at, to, op, fetch);
    if (leaves) this.#requests.begin(rank, this.#sent(rank));
  }

  compareAndSwap(
    origin: TypedArray,
    compare: TypedArray,
    result: TypedArray,
    rank: number,
    at: number,
    base: number,
  ): void {
    const leaves = !this.#operations.queue.has(rank);
    this.#operations.queue.compareAndSwap(origin, compare, result, rank, at, base);
    if (leaves) this.#requests.begin(rank, this.#sent(rank));
  }

  /** Sends all that is queued for a rank; ends when that is carried out and what it fetches is here. */
  *#sent(rank: number): Generator<void, void> {
    const queued = this.#operations.queue.take(rank);
    this.#operations.ask(rank, queued, 0);
    for (;;) {
      const answer = this.#answers[rank];
      if (answer !== undefined) {
        this.#answers[rank] = undefined;
        takeAnswer(queued, rank, answer);
        return;
      }
      yield;
      if (this.#answers[rank] === undefined) this.poll();
    }
  }

  #take(source: number, message: Uint8Array): void {
    const [what] = new Int32Array(message.buffer, message.byteOffset, 1);
    if (what === Served.OPERATIONS) this.#operations.serve(source, message);
    else this.#answers[source] = message;
  }

  close(): void {
    this.#stop();
  }
}
