/**
 * Prefix reductions on control messages, by recursive doubling: ⌈log2 p⌉ exchanges of the whole vector, for any p.
 *
 * After the exchange with the partner whose rank differs in bit k, a rank has the combination of its run of 2^(k+1)
 * ranks. What comes from a lower partner belongs to its result as well. A run that the number of ranks cuts off has no
 * ranks above it, so no rank needs its combination.
 */
import { reduceInto } from '../datatype/arithmetic.ts';
import { bytesOf, type TypedArray } from '../datatype/base-types.ts';
import type { Channel } from '../message/message-channel.ts';
import type { Step } from './collectives.ts';
import { receive } from './receive.ts';
import { sameType } from './same-type.ts';

/**
 * @param result becomes the combination of the `send` of all ranks before this one, and of this one's own if `own`.
 * Without it, that of rank 0 stays as it is
 * @param call for messages
 */
export function* scan(
  channel: Channel,
  call: string,
  send: TypedArray,
  result: TypedArray,
  op: number,
  own: boolean,
): Step {
  const { rank, size } = channel;
  channel.processor.reduction();
  const run = send.slice() as TypedArray;
  if (own) bytesOf(result).set(bytesOf(send));
  let isEmpty = !own;
  for (let mask = 1; mask < size; mask *= 2) {
    const partner = rank ^ mask;
    if (partner >= size) continue;
    channel.send(partner, bytesOf(run));
    const theirs = sameType(run, yield* receive(channel, partner, run.byteLength, call));
    if (partner < rank) {
      if (isEmpty) bytesOf(result).set(bytesOf(theirs));
      else {
        channel.processor.combine(run.byteLength);
        reduceInto(op, result, theirs);
      }
      isEmpty = false;
    }
    channel.processor.combine(run.byteLength);
    reduceInto(op, run, theirs);
  }
}
