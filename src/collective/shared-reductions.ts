/**
 * Reductions of long vectors where ranks map each other's memory. A vector is cut into parts, one for
 * each rank, and each part into segments of one shared piece. The owner of a part combines it, so that each rank reads
 * and combines one p-th of everything, segment by segment, while it lies in caches:
 *
 *     step k    gives segment k of each other part to its owner
 *               combines segment k − 1 of its own part, and gives the result to those that want it
 *               takes segment k − 2 of the results of the others
 *
 * Order. What one rank sends another one in step k is received in step k + 1, in the order of the sends: first the
 * operand, then the result. A rank goes on to step k + 1 when it has all that step k waits for, so it is at most two
 * steps ahead of any other, and waits for none that waits for it: what it needs in a step was sent in the step before.
 *
 * Memory: at most three segments for each other rank.
 */
import { reduceInto } from '../datatype/arithmetic.ts';
import { bytesOf, type TypedArray } from '../datatype/base-types.ts';
import type { Channel, SharedMessages } from '../message/message-channel.ts';
import { receive } from './receive.ts';
import { sameType } from './same-type.ts';

type Step = Generator<void, void>;

const NOTHING = new Uint8Array(0);

/** Bytes of a vector from which on this takes less time than whole vectors that are exchanged. */
export const EXCHANGED_FROM = 262_144;
/** The same where only one rank wants the result: of whole vectors, it takes in half as many. */
export const REDUCED_FROM = 2_097_152;

/** A reduction of a long vector. */
export interface Reduction {
  /** For errors. */
  readonly call: string;
  readonly op: number;
  readonly operand: TypedArray;
  /** Where each rank's part begins, in elements, and where the last one ends: parts follow each other. */
  readonly starts: readonly number[];
  /** Operands are combined in rank order, beginning with this rank. */
  readonly first: number;
  /** Where the result of this rank's part goes, if it is wanted here; it may be a part of the operand. */
  readonly own: TypedArray | undefined;
  /** Which ranks want the results of all parts. */
  readonly wanted: 'all' | 'none' | { readonly root: number };
  /** Where they go, here: as long as the operand, which it may be. */
  readonly result: TypedArray | undefined;
}

/** Elements of one segment: whole ones of the widest type, so that operands are aligned. */
function segmentOf(shared: SharedMessages, { BYTES_PER_ELEMENT }: TypedArray): number {
  return (shared.bytes - (shared.bytes % 8)) / BYTES_PER_ELEMENT;
}

export function* reduceShared(channel: Channel, shared: SharedMessages, reduction: Reduction): Step {
  const { rank, size } = channel;
  const { call, op, operand, starts, first, own, wanted, result } = reduction;
  const most = segmentOf(shared, operand);
  /** Segment `k` of a rank's part, in an array that begins at element `from` of the vector; empty behind the end. */
  const segment = (vector: TypedArray, of: number, k: number, from = 0): TypedArray => {
    const begin = Math.min(starts[of] + k * most, starts[of + 1]);
    return vector.subarray(begin - from, Math.min(begin + most, starts[of + 1]) - from) as TypedArray;
  };
  let steps = 0;
  for (let of = 0; of < size; of++) steps = Math.max(steps, Math.ceil((starts[of + 1] - starts[of]) / most));
  const sums = operand.slice(0, Math.min(most, starts[rank + 1] - starts[rank])) as TypedArray;
  for (let k = 0; k < steps + 2; k++) {
    for (let i = 1; i < size; i++) {
      const target = (rank + i) % size;
      const given = segment(operand, target, k);
      if (given.length > 0) shared.to(target, bytesOf(given));
      // Each rank hears of each other's call.
      else if (k === 0) channel.send(target, NOTHING);
    }
    const mine = (k > 0 ? segment(operand, rank, k - 1) : operand.subarray(0, 0)) as TypedArray;
    if (k === 1 && mine.length === 0)
      for (let i = 1; i < size; i++) yield* receive(channel, (rank + i) % size, 0, call);
    if (mine.length > 0) {
      const sum = sums.subarray(0, mine.length) as TypedArray;
      for (let i = 0; i < size; i++) {
        const source = (first + i) % size;
        const theirs = source === rank ? mine : sameType(sum, yield* receive(channel, source, mine.byteLength, call));
        if (i === 0) bytesOf(sum).set(bytesOf(theirs as TypedArray));
        else reduceInto(op, sum, theirs as TypedArray);
        if (source !== rank) shared.release();
      }
      if (own !== undefined) bytesOf(segment(own, rank, k - 1, starts[rank])).set(bytesOf(sum));
      if (wanted === 'all') shared.toOthers(bytesOf(sum));
      else if (wanted !== 'none' && wanted.root !== rank) shared.to(wanted.root, bytesOf(sum));
    }
    if (result === undefined || k < 2) continue;
    for (let i = 1; i < size; i++) {
      const source = (rank + i) % size;
      const there = segment(result, source, k - 2);
      if (there.length === 0) continue;
      bytesOf(there).set(yield* receive(channel, source, there.byteLength, call));
      shared.release();
    }
  }
}
