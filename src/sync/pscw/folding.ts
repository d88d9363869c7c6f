/**
 * Operations that travel with the message that completes their epoch (dissertation §10.2): the schedule `aggregate`.
 *
 *   origin to target   FOLDED and the operation (operation-queue.ts): this rank's epoch is complete there
 *   target to origin   ANSWER and what a get found, or FAILURE and why not
 *
 * The target carries the operation out when the message arrives, in whatever call it is: its part is exposed to the
 * origin until it has seen the message, and `complete` may not wait for its `wait` (MPI 4.1, 12.5.2). Nothing else was
 * issued to that target in the epoch, so there is nothing that the message could overtake; it cannot meet one of
 * another epoch, since the origin's next one begins with a post that follows the target's `wait`.
 */
import type { OwnChannel } from '../../comm/communicator.ts';
import { RmaError } from '../../errors.ts';
import { MESSAGE_HEADER, OperationQueue, type QueuedOperations } from '../../transfer/operation-queue.ts';
import { type HeldOperation, refuseLost } from '../../transfer/schedule/held-operations.ts';

const Message = Object.freeze({ FOLDED: 1, ANSWER: 2, FAILURE: 3 });

export class Folding {
  readonly #channel: OwnChannel;
  readonly #queue: OperationQueue;
  readonly #carryOut: (message: Uint8Array) => Uint8Array;
  /** By origin: its epochs here that such messages have completed. */
  readonly #completed: Int32Array;
  /** By target: what its answer brings. */
  readonly #awaited = new Map<number, { readonly operation: HeldOperation; readonly queued: QueuedOperations }>();
  /** Why an operation of this rank, or one for it, was not carried out. */
  #failure: unknown;
  #refused: unknown;

  /**
   * @param channel `take` is given its messages
   * @param carryOut does so with an operation on this rank's part, and returns what a get finds
   */
  constructor(channel: OwnChannel, carryOut: (message: Uint8Array) => Uint8Array) {
    this.#channel = channel;
    this.#queue = new OperationQueue(channel.size, undefined);
    this.#carryOut = carryOut;
    this.#completed = new Int32Array(channel.size);
  }

  // ---- origin -------------------------------------------------------------------------------------------------------

  /** Sends an operation, and that this rank's epoch is complete at its target. */
  send(operation: HeldOperation): void {
    const { rank, puts, origin, from, at, to } = operation;
    if (puts) this.#queue.put(origin, from, rank, at, to);
    else this.#queue.get(origin, from, rank, at, to);
    const queued = this.#queue.take(rank);
    if (queued.fetches) this.#awaited.set(rank, { operation, queued });
    new Int32Array(queued.message.buffer, 0, 2).set([Message.FOLDED, queued.fetches ? 1 : 0]);
    this.#channel.give(rank, queued.message);
  }

  /** Targets whose answers this rank waits for. */
  get awaited(): readonly number[] {
    return [...this.#awaited.keys()];
  }

  /** Errors: `ERR_BUFFER` (what a get was to fill was lost meanwhile), and those of the target. */
  get isAnswered(): boolean {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) throw failure;
    return this.#awaited.size === 0;
  }

  #answered(target: number, failed: boolean, answer: Uint8Array): void {
    const { operation, queued } = this.#awaited.get(target)!;
    this.#awaited.delete(target);
    try {
      if (failed) throw failureOf(target, answer);
      refuseLost(operation);
      queued.take(answer);
    } catch (error) {
      this.#failure ??= error;
    }
  }

  // ---- target -------------------------------------------------------------------------------------------------------

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
    const [what, fetches] = new Int32Array(message.buffer, message.byteOffset, 2);
    if (what !== Message.FOLDED) {
      this.#answered(source, what === Message.FAILURE, message.subarray(MESSAGE_HEADER));
      return;
    }
    this.#completed[source]++;
    try {
      const found = this.#carryOut(message);
      if (fetches) this.#answer(source, Message.ANSWER, found);
    } catch (error) {
      const { code, message: why } = error as RmaError;
      this.#refused ??= error;
      if (fetches) this.#answer(source, Message.FAILURE, new TextEncoder().encode(`${code}\n${why}`));
    }
  }

  #answer(origin: number, what: number, contents: Uint8Array): void {
    const answer = new Uint8Array(MESSAGE_HEADER + contents.length);
    new Int32Array(answer.buffer, 0, 1)[0] = what;
    answer.set(contents, MESSAGE_HEADER);
    this.#channel.give(origin, answer);
  }
}

function failureOf(target: number, text: Uint8Array): RmaError {
  const [code, why] = new TextDecoder().decode(text).split('\n');
  return new RmaError(code as 'ERR_BUFFER', `rank ${target} could not carry out an operation of this rank: ${why}`);
}
