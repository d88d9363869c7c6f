/**
 * Chunks of messages: two words, the message's context and its length, then its bytes. Where a chunk comes from and
 * belongs is known by its connection, and by what came before. In place of a length, a chunk may say what follows.
 */
export const HEADER_BYTES = 8;
/** The message is too long for 32 bits: a number of 64 bits before its head says its length. */
export const LONG = 0xffffffff;
/** The message comes in the place of a long one, whose number follows. */
export const INSTEAD = 0xfffffffe;
export const LENGTH_BYTES = 8;
/** A part of the message lies in a piece of shared memory. */
export const IN_PIECE = 0xfffffff9;
/** Numbers of a chunk of the handshake. */
export const HANDSHAKE_BYTES = 32;

/** What comes before the payload where a number follows the header: a length, or that of a request. */
export function withNumber(number: number, head: Uint8Array): Uint8Array {
  const all = new Uint8Array(LENGTH_BYTES + head.length);
  new Float64Array(all.buffer, 0, 1)[0] = number;
  all.set(head, LENGTH_BYTES);
  return all;
}
