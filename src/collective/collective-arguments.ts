/** Checks of what is given to collectives, before anything is sent: a call that is refused has not begun. */
import { opAllowed, ownView, TYPE_NAMES, type TypedArray, typeCodeOf } from '../datatype/base-types.ts';
import { isOp, MOVES, type Op } from '../datatype/op.ts';
import { POISON, refusePassingOn } from '../datatype/poison.ts';
import { argumentRangeError, argumentTypeError, RmaError, readList, show } from '../errors.ts';
import { showRank } from './group.ts';

/** The ranks that a call is made among. */
export interface Members {
  readonly rank: number;
  readonly size: number;
  /** For messages. */
  readonly name: string;
}

export function checkRank(call: string, { size, name }: Members, rank: number): void {
  if (Number.isInteger(rank) && rank >= 0 && rank < size) return;
  throw argumentRangeError(`${call}: ${showRank(rank)} is not a rank of ${name} (0 … ${size - 1})`, 'ERR_RANK');
}

/** Whether this rank is the root of a call. Errors: `ERR_RANK`. */
export function checkRoot(call: string, members: Members, root: number): boolean {
  checkRank(call, members, root);
  return members.rank === root;
}

/** The buffers of a call as the library's own views, and their `TypeCode`. */
export interface OwnBuffers {
  readonly type: number;
  readonly send: TypedArray;
  readonly receive: TypedArray;
}

/** The one buffer of a call, as the library's own view, and its `TypeCode`. */
export function checkOne(call: string, name: string, given: TypedArray): { type: number; buffer: TypedArray } {
  const buffer = ownView(call, name, given);
  if (POISON) refusePassingOn(call, name, buffer);
  return { type: typeCodeOf(buffer), buffer };
}

/** Two buffers of one type that do not overlap. */
export function checkBuffers(call: string, givenSend: TypedArray, givenReceive: TypedArray): OwnBuffers {
  const { type, buffer: send } = checkOne(call, 'send', givenSend);
  const { type: received, buffer: receive } = checkOne(call, 'receive', givenReceive);
  if (received !== type) throw argumentTypeError(`${call}: send and receive must be of the same type`, 'ERR_TYPE');
  if (
    send.buffer === receive.buffer &&
    send.byteOffset < receive.byteOffset + receive.byteLength &&
    receive.byteOffset < send.byteOffset + send.byteLength
  ) {
    throw argumentRangeError(
      `${call}: send and receive overlap; pass a copy of one, such as send.slice()`,
      'ERR_BUFFER',
    );
  }
  return { type, send, receive };
}

/** @param code `TypeCode` of the operands */
export function checkOp(call: string, op: Op, code: number): void {
  if (!isOp(op)) throw argumentTypeError(`${call}: op must be a member of Op, not ${show(op)}`, 'ERR_OP');
  if ((op.traits & MOVES) !== 0) throw new RmaError('ERR_OP', `${call}: ${op} is for windows only`);
  if (!opAllowed(op.code, code)) throw new RmaError('ERR_OP', `${call}: ${op} is not defined on ${TYPE_NAMES[code]}`);
}

/** Two buffers of which one is the result of a reduction of the other. */
export function checkReduction(call: string, send: TypedArray, receive: TypedArray, op: Op): OwnBuffers {
  const own = checkBuffers(call, send, receive);
  checkOp(call, op, own.type);
  return own;
}

export function checkSameLength(call: string, send: TypedArray, receive: TypedArray): void {
  if (send.length === receive.length) return;
  throw argumentRangeError(
    `${call}: send has ${send.length} elements, but receive has ${receive.length}; both must have the same length`,
    'ERR_BUFFER',
  );
}

/** A buffer with a block for each rank. @param name of the buffer */
export function checkBlocks(call: string, name: string, all: TypedArray, block: TypedArray, { size }: Members): void {
  if (all.length === block.length * size) return;
  throw argumentRangeError(
    `${call}: ${size} ranks with ${block.length} elements each need a ${name} of ${block.length * size} elements, ` +
      `not ${all.length}`,
    'ERR_BUFFER',
  );
}

/** One count of elements for each rank, which add up to a buffer's length. @returns a copy */
export function checkCounts(call: string, { size }: Members, buffer: TypedArray, counts: readonly number[]): number[] {
  const list = readList(call, 'the list of counts', counts) as number[];
  if (list.length !== size) {
    throw argumentTypeError(`${call}: counts must be an array of ${size} numbers, not of ${list.length}`);
  }
  let sum = 0;
  for (const count of list) {
    if (!Number.isInteger(count) || count < 0) {
      throw argumentRangeError(
        `${call}: every count must be a whole number of at least 0, not ${show(count)}; ` +
          `the counts divide ${buffer.length} elements among ${size} ranks`,
      );
    }
    sum += count;
  }
  if (sum !== buffer.length) {
    throw argumentRangeError(
      `${call}: the counts add up to ${sum}, but the buffer has ${buffer.length} elements`,
      'ERR_BUFFER',
    );
  }
  return list;
}

/** The count of one rank, which a buffer of its own must have. @param name of the buffer */
export function checkOwnCount(
  call: string,
  { rank }: Members,
  name: string,
  counts: readonly number[],
  own: TypedArray,
): void {
  if (counts[rank] === own.length) return;
  throw argumentRangeError(
    `${call}: rank ${rank} has a count of ${counts[rank]} elements, but ${name} has ${own.length}`,
    'ERR_BUFFER',
  );
}
