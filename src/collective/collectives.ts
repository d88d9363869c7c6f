/**
 * Collectives on control messages. Each is a generator: `yield` means that a message is not there yet. All ranks of a
 * communicator call the same collectives in the same order, and messages from one source arrive in order, so no tags
 * are needed; the channel refuses a message of another call (collective-channel.ts).
 */

import { reduceInto } from '../datatype/arithmetic.ts';
import { bytesOf, type TypedArray } from '../datatype/base-types.ts';
import { Op } from '../datatype/op.ts';
import type { Channel } from '../message/message-channel.ts';
import { receive } from './receive.ts';
import { sameType } from './same-type.ts';
import { allgatherShared, alltoallShared, broadcastShared, SHARED_FROM } from './shared-collectives.ts';
import { EXCHANGED_FROM, reduceShared } from './shared-reductions.ts';

export { EXCHANGED_FROM };
export type Step<T = void> = Generator<void, T>;

const NOTHING = new Uint8Array(0);
const SOMETHING = new Uint8Array(1);

/** Dissemination: ⌈log2 p⌉ rounds; in round k a rank notifies the one 2^k further on. */
export function* barrier(channel: Channel): Step {
  const { rank, size } = channel;
  for (let distance = 1; distance < size; distance *= 2) {
    channel.send((rank + distance) % size, NOTHING);
    yield* receive(channel, (rank - distance + size) % size, 0, 'barrier');
  }
}

/** A barrier that says whether any rank `says` so. @param before is called before each message is sent */
export function* anyOf(channel: Channel, says: boolean, before: () => void): Generator<void, boolean> {
  const { rank, size } = channel;
  let any = says;
  for (let distance = 1; distance < size; distance *= 2) {
    before();
    channel.send((rank + distance) % size, any ? SOMETHING : NOTHING);
    const message = yield* receive(channel, (rank - distance + size) % size, -1, 'finalize');
    any ||= message.length > 0;
  }
  return any;
}

/** Binomial tree from `root`: ⌈log2 p⌉ steps. */
export function* broadcast(channel: Channel, buffer: TypedArray, root: number): Step {
  const { rank, size, shared } = channel;
  if (shared !== undefined && size > 1 && buffer.byteLength >= SHARED_FROM) {
    yield* broadcastShared(channel, shared, bytesOf(buffer), root);
    return;
  }
  const relative = (rank - root + size) % size;
  let mask = 1;
  while (mask < size) {
    if (relative & mask) {
      const message = yield* receive(channel, (relative - mask + root) % size, buffer.byteLength, 'broadcast');
      bytesOf(buffer).set(message);
      break;
    }
    mask *= 2;
  }
  for (mask >>= 1; mask > 0; mask >>= 1) {
    if (relative + mask < size) channel.send((relative + mask + root) % size, bytesOf(buffer));
  }
}

/**
 * Recursive doubling, ⌈log2 p⌉ exchanges of the whole vector (two more if p is no power of two). All operations
 * commute, so every rank computes bit for bit the same result: the two partners of an exchange combine the same two
 * partial results.
 * @param buffer has the result in the end
 * @param operand this rank's, if it is not in `buffer`
 */
export function* allreduce(channel: Channel, buffer: TypedArray, op: number, operand?: TypedArray): Step {
  const { rank, size, shared } = channel;
  if (shared !== undefined && size > 1 && buffer.byteLength >= EXCHANGED_FROM) {
    const starts = partsOf(buffer.length, size);
    const own = buffer.subarray(starts[rank], starts[rank + 1]) as TypedArray;
    const all = { call: 'allreduce', op, operand: operand ?? buffer, starts, first: 0, own, result: buffer };
    yield* reduceShared(channel, shared, { ...all, wanted: 'all' });
    return;
  }
  if (operand !== undefined) bytesOf(buffer).set(bytesOf(operand));
  channel.processor.reduction();
  const combine = function* (source: number): Step {
    const message = yield* receive(channel, source, buffer.byteLength, 'allreduce');
    channel.processor.combine(buffer.byteLength);
    reduceInto(op, buffer, sameType(buffer, message));
  };
  const power = 2 ** Math.floor(Math.log2(size));
  const extra = size - power;
  // The first 2 × extra ranks pair up, so that a power of two goes on: the even ones hand over and wait for the result.
  let position: number;
  if (rank < 2 * extra) {
    if (rank % 2 === 0) {
      channel.send(rank + 1, bytesOf(buffer));
      bytesOf(buffer).set(yield* receive(channel, rank + 1, buffer.byteLength, 'allreduce'));
      return;
    }
    yield* combine(rank - 1);
    position = (rank - 1) / 2;
  } else position = rank - extra;
  const rankAt = (p: number): number => (p < extra ? 2 * p + 1 : p + extra);
  for (let mask = 1; mask < power; mask *= 2) {
    const partner = rankAt(position ^ mask);
    channel.send(partner, bytesOf(buffer));
    yield* combine(partner);
  }
  if (rank < 2 * extra) channel.send(rank - 1, bytesOf(buffer));
}

/**
 * Recursive halving, ⌈log2 p⌉ exchanges of one half of what is left (two messages more if p is no power of two): a rank
 * hands over the parts of the partner's half of the ranks, and goes on with its own.
 */
export function* reduceScatter(
  channel: Channel,
  send: TypedArray,
  receiveInto: TypedArray,
  counts: readonly number[],
  op: number,
): Step {
  const { rank, size, shared } = channel;
  const starts = prefix([...counts, 0]);
  if (shared !== undefined && size > 1 && send.byteLength >= EXCHANGED_FROM) {
    const mine = { call: 'reduceScatter', op, operand: send, starts, first: 0, own: receiveInto, result: undefined };
    yield* reduceShared(channel, shared, { ...mine, wanted: 'none' });
    return;
  }
  channel.processor.reduction();
  const sums = send.slice() as TypedArray;
  const parts = (from: number, to: number): TypedArray => sums.subarray(starts[from], starts[to]) as TypedArray;
  const hand = (target: number, from: number, to: number): void => channel.send(target, bytesOf(parts(from, to)));
  const combine = function* (source: number, from: number, to: number): Step {
    const mine = parts(from, to);
    const message = yield* receive(channel, source, mine.byteLength, 'reduceScatter');
    channel.processor.combine(mine.byteLength);
    reduceInto(op, mine, sameType(mine, message));
  };
  const power = 2 ** Math.floor(Math.log2(size));
  const extra = size - power;
  // The first 2 × extra ranks pair up, as in allreduce: position p < extra stands for ranks 2p and 2p + 1.
  const paired = rank < 2 * extra;
  if (paired && rank % 2 === 0) {
    hand(rank + 1, 0, size);
    bytesOf(receiveInto).set(yield* receive(channel, rank + 1, receiveInto.byteLength, 'reduceScatter'));
    return;
  }
  if (paired) yield* combine(rank - 1, 0, size);
  const position = paired ? (rank - 1) / 2 : rank - extra;
  const rankAt = (p: number): number => (p < extra ? 2 * p + 1 : p + extra);
  const firstOf = (p: number): number => (p < extra ? 2 * p : p + extra);
  let low = 0;
  for (let half = power / 2; half >= 1; half /= 2) {
    const middle = low + half;
    const upper = position >= middle;
    const partner = rankAt(upper ? position - half : position + half);
    const theirs = upper ? low : middle;
    hand(partner, firstOf(theirs), firstOf(theirs + half));
    if (upper) low = middle;
    yield* combine(partner, firstOf(low), firstOf(low + half));
  }
  if (paired) hand(rank - 1, rank - 1, rank);
  bytesOf(receiveInto).set(bytesOf(parts(rank, rank + 1)));
}

/** Gives each rank the sum of all ranks' `counts[rank]`. */
export function* sumForEach(channel: Channel, counts: Int32Array): Step<number> {
  const mine = new Int32Array(1);
  yield* reduceScatter(channel, counts, mine, new Array<number>(channel.size).fill(1), Op.SUM.code);
  return mine[0];
}

/** Bruck's algorithm: ⌈log2 p⌉ steps for any p. `receiveInto` holds p blocks of `block.byteLength` bytes, by rank. */
export function* allgather(channel: Channel, block: Uint8Array, receiveInto: Uint8Array): Step {
  const { rank, size, shared } = channel;
  if (shared !== undefined && size > 1 && block.byteLength >= SHARED_FROM) {
    yield* allgatherShared(channel, shared, block, receiveInto);
    return;
  }
  const n = block.byteLength;
  // In `rotated` this rank's own block comes first, then its successors'.
  const rotated = new Uint8Array(size * n);
  rotated.set(block);
  for (let have = 1; have < size; have *= 2) {
    const count = Math.min(have, size - have);
    channel.send((rank - have + size) % size, rotated.subarray(0, count * n));
    rotated.set(yield* receive(channel, (rank + have) % size, count * n, 'allgather'), have * n);
  }
  for (let i = 0; i < size; i++) receiveInto.set(rotated.subarray(i * n, (i + 1) * n), ((rank + i) % size) * n);
}

/** Each rank gives each other one a block of the same length. */
export function* alltoallOfBlocks(channel: Channel, send: Uint8Array, receiveInto: Uint8Array): Step {
  const { size, shared } = channel;
  const n = send.length / size;
  if (shared !== undefined && size > 1 && n >= SHARED_FROM) {
    yield* alltoallShared(channel, shared, send, receiveInto);
    return;
  }
  const counts = new Array<number>(size).fill(n);
  yield* alltoall(channel, send, counts, receiveInto, counts);
}

/** Pairwise exchange with byte counts and offsets for each rank; the counts may differ from pair to pair. */
export function* alltoall(
  channel: Channel,
  send: Uint8Array,
  sendCounts: readonly number[],
  receiveInto: Uint8Array,
  receiveCounts: readonly number[],
  sendStarts: readonly number[] = prefix(sendCounts),
  receiveStarts: readonly number[] = prefix(receiveCounts),
): Step {
  const { rank, size } = channel;
  receiveInto.set(send.slice(sendStarts[rank], sendStarts[rank] + sendCounts[rank]), receiveStarts[rank]);
  for (let i = 1; i < size; i++) {
    const target = (rank + i) % size;
    channel.send(target, send.subarray(sendStarts[target], sendStarts[target] + sendCounts[target]));
  }
  for (let i = 1; i < size; i++) {
    const source = (rank - i + size) % size;
    receiveInto.set(yield* receive(channel, source, receiveCounts[source], 'alltoall'), receiveStarts[source]);
  }
}

/** A vector of so many elements in parts of about the same length: where each begins, and where the last one ends. */
export function partsOf(length: number, parts: number): number[] {
  return Array.from({ length: parts + 1 }, (_, i) => Math.floor((length * i) / parts));
}

/** Where each of some blocks begins that lie one after the other. */
export function prefix(counts: readonly number[]): number[] {
  let sum = 0;
  return counts.map((count) => {
    const start = sum;
    sum += count;
    return start;
  });
}
