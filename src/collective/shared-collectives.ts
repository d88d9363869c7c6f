/**
 * Collectives of long messages where ranks map each other's memory (shared-pieces.ts): a rank copies each part of what
 * it has into memory once, and all others copy it from there, while the next part is written. So what each rank gets
 * goes through two copies at once, whatever the number of ranks, in memory that stays in caches.
 *
 * All ranks take the same way: it depends on sizes only, which the signature of the call compares.
 */
import type { Channel, SharedMessages } from '../message/message-channel.ts';
import { receive } from './receive.ts';

/** Bytes from which on this takes less time than messages along a tree. */
export const SHARED_FROM = 65_536;

/** Parts that are not read yet, when the next one waits. */
const AHEAD = 32;

type Step = Generator<void, void>;

export function* broadcastShared(channel: Channel, shared: SharedMessages, buffer: Uint8Array, root: number): Step {
  const { bytes } = shared;
  for (let at = 0; at < buffer.length; at += bytes) {
    const part = buffer.subarray(at, at + bytes);
    if (channel.rank === root) {
      if (shared.unread() >= AHEAD) while (shared.unread() > AHEAD / 2) yield;
      shared.toOthers(part);
    } else {
      part.set(yield* receive(channel, root, part.length, 'broadcast'));
      shared.release();
    }
  }
}

/** A rank is one part ahead of what it reads, so no rank waits for a rank that waits for it. */
export function* allgatherShared(
  channel: Channel,
  shared: SharedMessages,
  block: Uint8Array,
  receiveInto: Uint8Array,
): Step {
  const { rank, size } = channel;
  const { bytes } = shared;
  const n = block.length;
  for (let at = 0; at < n + bytes; at += bytes) {
    if (at < n) {
      const part = block.subarray(at, at + bytes);
      shared.toOthers(part);
      receiveInto.set(part, rank * n + at);
    }
    const before = at - bytes;
    if (before < 0) continue;
    for (let i = 1; i < size; i++) {
      const source = (rank + i) % size;
      const length = Math.min(bytes, n - before);
      receiveInto.set(yield* receive(channel, source, length, 'allgather'), source * n + before);
      shared.release();
    }
  }
}
