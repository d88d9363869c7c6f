/** What collectives receive. */
import { RmaError } from '../errors.ts';
import type { Channel } from '../message/message-channel.ts';

/** The next message from `source`. @param byteLength how many bytes it must have; -1: any number */
export function* receive(
  channel: Channel,
  source: number,
  byteLength: number,
  call: string,
): Generator<void, Uint8Array> {
  for (;;) {
    const message = channel.receive(source);
    if (message === undefined) {
      channel.awaited = source;
      yield;
      continue;
    }
    channel.awaited = -1;
    if (message.length === byteLength || byteLength < 0) return message;
    throw new RmaError(
      'ERR_TRUNCATE',
      `${call}: rank ${source} sent ${message.length} bytes, but rank ${channel.rank} expects ${byteLength}; ` +
        'all ranks must pass the same sizes',
    );
  }
}
