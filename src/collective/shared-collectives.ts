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
      yield* untilFew(shared);
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

/** Each rank gives each other one a block of the same length. A rank is one segment ahead of what it reads. */
export function* alltoallShared(
  channel: Channel,
  shared: SharedMessages,
  send: Uint8Array,
  receiveInto: Uint8Array,
): Step {
  const { rank, size } = channel;
  const n = send.length / size;
  const most = shared.bytes;
  receiveInto.set(send.subarray(rank * n, (rank + 1) * n), rank * n);
  for (let at = 0; at < n + most; at += most) {
    for (let i = 1; i < size && at < n; i++) {
      const target = (rank + i) % size;
      shared.to(target, send.subarray(target * n + at, target * n + Math.min(at + most, n)));
    }
    const before = at - most;
    if (before < 0) continue;
    for (let i = 1; i < size; i++) {
      const source = (rank - i + size) % size;
      const length = Math.min(most, n - before);
      receiveInto.set(yield* receive(channel, source, length, 'alltoall'), source * n + before);
      shared.release();
    }
  }
}

/** Each rank's block goes to the root, which takes a segment of each in turn. `receiveInto` is written there only. */
export function* gatherShared(
  channel: Channel,
  shared: SharedMessages,
  block: Uint8Array,
  receiveInto: Uint8Array | undefined,
  root: number,
): Step {
  const { rank, size } = channel;
  const { bytes } = shared;
  const n = block.length;
  receiveInto?.set(block, rank * n);
  for (let at = 0; at < n; at += bytes) {
    if (receiveInto === undefined) {
      yield* untilFew(shared);
      shared.to(root, block.subarray(at, at + bytes));
      continue;
    }
    for (let i = 1; i < size; i++) {
      const source = (rank + i) % size;
      receiveInto.set(yield* receive(channel, source, Math.min(bytes, n - at), 'gather'), source * n + at);
      shared.release();
    }
  }
}

/** The root gives each rank its block, a segment of each in turn. `send` is read there only. */
export function* scatterShared(
  channel: Channel,
  shared: SharedMessages,
  send: Uint8Array | undefined,
  block: Uint8Array,
  root: number,
): Step {
  const { rank, size } = channel;
  const { bytes } = shared;
  const n = block.length;
  for (let at = 0; at < n; at += bytes) {
    const length = Math.min(bytes, n - at);
    if (send === undefined) {
      block.set(yield* receive(channel, root, length, 'scatter'), at);
      shared.release();
      continue;
    }
    for (let i = 1; i < size; i++) {
      const target = (rank + i) % size;
      yield* untilFew(shared);
      shared.to(target, send.subarray(target * n + at, target * n + at + length));
    }
  }
  if (send !== undefined) block.set(send.subarray(rank * n, (rank + 1) * n));
}

/** Waits until the others have read most of what this rank has sent. */
function* untilFew(shared: SharedMessages): Step {
  if (shared.unread() >= AHEAD) while (shared.unread() > AHEAD / 2) yield;
}
