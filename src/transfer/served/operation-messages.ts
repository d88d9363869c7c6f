/**
 * How a rank asks another to carry out what it has queued for it (operation-queue.ts), and is answered: by what that
 * has fetched, or by why it has failed.
 *
 *   what, id, operations   ->   DONE, id, what was fetched    or FAILURE, id, code and message
 *
 * The users know when a rank asks, what waits for the answer, and when a rank serves: locks with an agent
 * (lock-origin.ts, lock-agent.ts), updates by the target (target-updates.ts). The deferred fence asks and answers in
 * its own way: what fails is said by the target's fence, and only what fetches is answered.
 */
import type { OwnChannel } from '../../collective/communicator.ts';
import { RmaError } from '../../errors.ts';
import { MESSAGE_HEADER, type OperationQueue, type QueuedOperations } from './operation-queue.ts';
import type { OperationServer } from './operation-server.ts';

/** The first word of a message is one of these or of its users' own, below 256. */
export const Served = Object.freeze({ OPERATIONS: 5, DONE: 6, FAILURE: 7 });
/** In the first word of an answer: which it is. What its sender has added begins at `ADDED`. */
const WHAT = 0xff;
const ADDED = 8;

export class OperationMessages {
  readonly queue: OperationQueue;
  readonly #channel: OwnChannel;
  readonly #server: OperationServer;

  /**
   * @param queue what this rank asks others for
   * @param server carries out what others ask for
   */
  constructor(channel: OwnChannel, queue: OperationQueue, server: OperationServer) {
    this.#channel = channel;
    this.queue = queue;
    this.#server = server;
  }

  /**
   * Asks for what was taken from the queue; `takeAnswer` takes the answer. What this rank asks itself for is answered
   * before this returns.
   */
  ask(rank: number, { message }: QueuedOperations, id: number, what: number = Served.OPERATIONS): void {
    new Int32Array(message.buffer).set([what, id]);
    this.#channel.give(rank, message);
  }

  /** Carries out what `source` asks for, and answers. @param added a number that the answer says besides */
  serve(source: number, message: Uint8Array, added = 0): void {
    const { rank, processor } = this.#channel;
    const id = new Int32Array(message.buffer, message.byteOffset, 2)[1];
    let what: number = Served.DONE;
    let answer: Uint8Array;
    try {
      answer = this.#server.serve(message, source === rank ? undefined : processor, this.queue.carriedOut(source));
    } catch (error) {
      what = Served.FAILURE;
      answer = failureText(error);
    }
    const reply = new Uint8Array(MESSAGE_HEADER + answer.length);
    new Int32Array(reply.buffer, 0, 2).set([what | (added << ADDED), id]);
    reply.set(answer, MESSAGE_HEADER);
    this.#channel.give(source, reply);
  }
}

/** What a rank has added to an answer, of which this is the first word. */
export function addedTo(word: number): number {
  return word >> ADDED;
}

/** Puts what was fetched to its places. Errors: what has failed at the rank that has answered, or here. */
export function takeAnswer(queued: QueuedOperations, source: number, message: Uint8Array): void {
  const [word] = new Int32Array(message.buffer, message.byteOffset, 1);
  const contents = message.subarray(MESSAGE_HEADER);
  if ((word & WHAT) === Served.FAILURE) throw failureIn(source, contents);
  queued.take(contents);
}

/** Why something could not be carried out here, for the rank that has asked for it: `failureIn` reads it. */
export function failureText(error: unknown): Uint8Array {
  const { code = 'ERR_BUFFER', message } = error as RmaError;
  return new TextEncoder().encode(`${code}\n${message}`);
}

/** What such an answer from a rank tells, if it has failed. @param answer without its header */
export function failureIn(rank: number, answer: Uint8Array): RmaError {
  const [code, text] = new TextDecoder().decode(answer).split('\n');
  return new RmaError(code as 'ERR_BUFFER', `rank ${rank} could not carry out an operation of this rank: ${text}`);
}
