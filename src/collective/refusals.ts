/**
 * If something fails at one rank before an exchange, that rank says so in the exchange: a rank that has no memory for
 * its part would otherwise keep the others waiting for ever. Once a rank has said that it failed, and all ranks know
 * it, it says why.
 */

import type { Channel } from '../message/message-channel.ts';
import { broadcast } from './collectives.ts';

/** A rank that could not do its part. */
export interface Refusal {
  readonly rank: number;
  /** Its error, in words. */
  readonly why: string;
}

const MOST_BYTES = 512;

/**
 * Collective among the ranks of a channel.
 * @param rank which rank failed: all know it
 * @param error its error; the others' does not matter
 */
export function* hearWhy(channel: Channel, rank: number, error: unknown): Generator<void, string> {
  const text = new Uint8Array(MOST_BYTES);
  // Whole characters only.
  if (channel.rank === rank) new TextEncoder().encodeInto(messageOf(error), text);
  yield* broadcast(channel, text, rank);
  const end = text.indexOf(0);
  return new TextDecoder().decode(text.subarray(0, end < 0 ? MOST_BYTES : end));
}

/** Of an error that may have been made by the program. */
function messageOf(error: unknown): string {
  try {
    return String((error as Error).message);
  } catch {
    return 'its error has no message';
  }
}
