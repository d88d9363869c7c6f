/** The answer to a message of queued operations (operation-queue.ts): what they fetch, or why they failed. */
import type { OwnChannel } from '../../collective/communicator.ts';
import { RmaError } from '../../errors.ts';
import { MESSAGE_HEADER } from './operation-queue.ts';
import type { OperationServer } from './operation-server.ts';

/**
 * Carries out the operations of a message.
 * @param done and @param failed the first word of the answer
 * @param channel by which it has come from `source`
 * @param carriedOut as of `OperationServer.serve`
 * @returns the answer; its second word is that of the message
 */
export function answerTo(
  server: OperationServer,
  { rank, processor }: OwnChannel,
  source: number,
  message: Uint8Array,
  done: number,
  failed: number,
  carriedOut: (() => void) | undefined,
): Uint8Array {
  const id = new Int32Array(message.buffer, message.byteOffset, 2)[1];
  let what = done;
  let answer: Uint8Array;
  try {
    answer = server.serve(message, source === rank ? undefined : processor, carriedOut);
  } catch (error) {
    what = failed;
    answer = failureText(error);
  }
  const reply = new Uint8Array(MESSAGE_HEADER + answer.length);
  new Int32Array(reply.buffer, 0, 2).set([what, id]);
  reply.set(answer, MESSAGE_HEADER);
  return reply;
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
