/**
 * Collectives with a root, on control messages: reduce, gather and scatter along a binomial tree, their forms with
 * counts by direct messages, since only the root knows the counts. As in collectives.ts, each is a generator that
 * yields while a message is missing.
 *
 * The tree is that of broadcast: ranks are counted from the root. The parent of a rank is its number without the lowest
 * bit that is set. Its subtree is the run of ranks that begins with the rank itself and whose other members differ from
 * it in lower bits only.
 */
import { reduceInto } from '../datatype/arithmetic.ts';
import { bytesOf, type TypedArray } from '../datatype/base-types.ts';
import type { Channel } from '../message/message-channel.ts';
import { partsOf, prefix, type Step } from './collectives.ts';
import { receive } from './receive.ts';
import { sameType } from './same-type.ts';
import { gatherShared, SHARED_FROM, scatterShared } from './shared-collectives.ts';
import { REDUCED_FROM, reduceShared } from './shared-reductions.ts';

/** A rank in the tree. */
interface Node {
  /** Counted from the root. */
  readonly relative: number;
  /** Ranks in its subtree, itself included. */
  readonly span: number;
  /** The rank that stands `relative` behind the root. */
  rankAt(relative: number): number;
}

function nodeOf({ rank, size }: Channel, root: number): Node {
  const relative = (rank - root + size) % size;
  const span = relative === 0 ? size : Math.min(relative & -relative, size - relative);
  return { relative, span, rankAt: (other) => (other + root) % size };
}

const parentOf = (relative: number): number => relative & (relative - 1);

/** ⌈log2 p⌉ rounds; each rank sends one message of the whole vector. `result` is written at the root only. */
export function* reduce(
  channel: Channel,
  send: TypedArray,
  result: TypedArray | undefined,
  op: number,
  root: number,
): Step {
  const { rank, size, shared } = channel;
  if (shared !== undefined && size > 1 && send.byteLength >= REDUCED_FROM) {
    const starts = partsOf(send.length, size);
    const own = result?.subarray(starts[rank], starts[rank + 1]) as TypedArray | undefined;
    const all = { call: 'reduce', op, operand: send, starts, first: root, own, result };
    yield* reduceShared(channel, shared, { ...all, wanted: { root } });
    return;
  }
  const { relative, span, rankAt } = nodeOf(channel, root);
  channel.processor.reduction();
  // A leaf has nothing to add, and needs no copy.
  const sums = result ?? (span === 1 ? send : (send.slice() as TypedArray));
  if (result !== undefined) bytesOf(result).set(bytesOf(send));
  for (let mask = 1; mask < span; mask *= 2) {
    const message = yield* receive(channel, rankAt(relative + mask), sums.byteLength, 'reduce');
    channel.processor.combine(sums.byteLength);
    reduceInto(op, sums, sameType(sums, message));
  }
  if (relative !== 0) channel.send(rankAt(parentOf(relative)), bytesOf(sums));
}

/**
 * ⌈log2 p⌉ rounds; each rank sends its subtree's blocks in one message. `receiveInto` is written at the root only: p
 * blocks, by rank.
 */
export function* gather(channel: Channel, block: Uint8Array, receiveInto: Uint8Array | undefined, root: number): Step {
  const { size, shared } = channel;
  if (shared !== undefined && size > 1 && block.byteLength >= SHARED_FROM) {
    yield* gatherShared(channel, shared, block, receiveInto, root);
    return;
  }
  const { relative, span, rankAt } = nodeOf(channel, root);
  const n = block.byteLength;
  // By the order of the tree, this rank's own first.
  const blocks = span === 1 ? block : new Uint8Array(span * n);
  if (span > 1) blocks.set(block);
  for (let mask = 1; mask < span; mask *= 2) {
    const theirs = Math.min(mask, span - mask) * n;
    blocks.set(yield* receive(channel, rankAt(relative + mask), theirs, 'gather'), mask * n);
  }
  if (receiveInto === undefined) channel.send(rankAt(parentOf(relative)), blocks);
  else {
    for (let i = 0; i < span; i++) receiveInto.set(blocks.subarray(i * n, (i + 1) * n), rankAt(i) * n);
  }
}

/**
 * ⌈log2 p⌉ rounds; each rank gets its subtree's blocks in one message, and passes on what is not its own. `send` is
 * read at the root only.
 */
export function* scatter(channel: Channel, send: Uint8Array | undefined, block: Uint8Array, root: number): Step {
  const { size, shared } = channel;
  if (shared !== undefined && size > 1 && block.byteLength >= SHARED_FROM) {
    yield* scatterShared(channel, shared, send, block, root);
    return;
  }
  const { relative, span, rankAt } = nodeOf(channel, root);
  const n = block.byteLength;
  let blocks: Uint8Array;
  if (send === undefined) blocks = yield* receive(channel, rankAt(parentOf(relative)), span * n, 'scatter');
  else {
    blocks = new Uint8Array(span * n);
    for (let i = 0; i < span; i++) blocks.set(send.subarray(rankAt(i) * n, (rankAt(i) + 1) * n), i * n);
  }
  // The largest subtree first: its ranks have the longest way.
  for (let mask = 2 ** Math.ceil(Math.log2(span) - 1); mask >= 1; mask /= 2) {
    const theirs = Math.min(mask, span - mask);
    channel.send(rankAt(relative + mask), blocks.subarray(mask * n, (mask + theirs) * n));
  }
  block.set(blocks.subarray(0, n));
}

/**
 * p − 1 messages to the root.
 * @param into at the root: the buffer, and the bytes of each rank, which lie one after the other
 */
export function* gatherv(
  channel: Channel,
  block: Uint8Array,
  into: { readonly all: Uint8Array; readonly lengths: readonly number[] } | undefined,
  root: number,
): Step {
  const { rank, size } = channel;
  if (into === undefined) {
    channel.send(root, block);
    return;
  }
  const starts = prefix(into.lengths);
  into.all.set(block, starts[rank]);
  for (let source = 0; source < size; source++) {
    if (source !== rank) into.all.set(yield* receive(channel, source, into.lengths[source], 'gatherv'), starts[source]);
  }
}

/**
 * p − 1 messages from the root.
 * @param from at the root: the buffer, and the bytes for each rank, which lie one after the other
 */
export function* scatterv(
  channel: Channel,
  from: { readonly all: Uint8Array; readonly lengths: readonly number[] } | undefined,
  block: Uint8Array,
  root: number,
): Step {
  const { rank, size } = channel;
  if (from === undefined) {
    block.set(yield* receive(channel, root, block.byteLength, 'scatterv'));
    return;
  }
  const starts = prefix(from.lengths);
  const partOf = (target: number): Uint8Array =>
    from.all.subarray(starts[target], starts[target] + from.lengths[target]);
  for (let target = 0; target < size; target++) if (target !== rank) channel.send(target, partOf(target));
  block.set(partOf(rank));
}
