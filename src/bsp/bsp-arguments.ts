/** Checks of what calls of a BSP computation name: processes, places of variables, elements of arrays. */
import { TYPE_SIZES, type TypedArray, typeCodeOf } from '../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { lengthOf, tagOf } from '../intrinsics.ts';
import type { Part } from './element-words.ts';
import type { Slot } from './slot.ts';

const BYTES = 'Uint8Array';

/** Whether it can be a place or a number of elements. Mostly, it is a small integer. */
export function isCount(value: number): boolean {
  return typeof value === 'number' && value >= 0 && ((value | 0) === value || Number.isSafeInteger(value));
}

/** Errors: `ERR_RANK`. */
export function checkPid(call: string, pid: number, nprocs: number): void {
  if (typeof pid === 'number' && (pid | 0) === pid && pid >= 0 && pid < nprocs) return;
  if (typeof pid !== 'number') {
    throw argumentTypeError(`${call}: ${show(pid)} is not the number of a process`, 'ERR_RANK');
  }
  throw argumentRangeError(`${call}: ${pid} is not the number of a process (0 … ${nprocs - 1})`, 'ERR_RANK');
}

/**
 * Elements of an array that go to or come from a variable.
 * @param part is filled
 * @param name of the array, in messages
 * @param count the rest of the array if absent
 * Errors: `ERR_TYPE`, `ERR_BUFFER`.
 */
export function readPart(
  part: Part,
  call: string,
  name: string,
  array: TypedArray,
  start: number,
  count: number | undefined,
  slot: Slot,
): Part {
  const tag = tagOf(array);
  const length = tag === undefined ? 0 : lengthOf(array);
  const n = count ?? (isCount(start) ? length - start : 0);
  const width = tag === slot.tag ? slot.width : otherWidth(call, name, array, tag, slot);
  if (!isCount(start) || !isCount(n) || start + n > length) {
    throw argumentRangeError(
      `${call}: ${show(n)} elements from element ${show(start)} on are not part of ${name}, ` +
        `which has ${lengthOf(array)}`,
      'ERR_BUFFER',
    );
  }
  part.array = array;
  part.tag = tag!;
  part.width = width;
  part.start = start;
  part.count = n;
  return part;
}

/** Bytes of an element of an array that is not of the variable's type. Errors: `ERR_TYPE`, `ERR_BUFFER`. */
function otherWidth(call: string, name: string, array: TypedArray, tag: string | undefined, slot: Slot): number {
  if (tag === undefined) {
    throw argumentTypeError(`${call}: ${name} must be a typed array, not ${show(array)}`, 'ERR_BUFFER');
  }
  if (tag !== BYTES && slot.tag !== BYTES) {
    throw argumentTypeError(
      `${call}: ${name} is a ${tag}, the variable a ${slot.tag}; use arrays of one type, or a Uint8Array to copy bytes`,
      'ERR_TYPE',
    );
  }
  return TYPE_SIZES[typeCodeOf(array)];
}

/**
 * A place of a variable at a process.
 * @param offset in elements of this process's variable
 * Errors: `ERR_RANK`, `ERR_DISP`, `ERR_RMA_RANGE`.
 */
export function checkPlace(call: string, pid: number, nprocs: number, slot: Slot, offset: number, bytes: number): void {
  checkPid(call, pid, nprocs);
  if (!isCount(offset)) throw argumentRangeError(`${call}: the offset must be a whole number from 0 on`, 'ERR_DISP');
  const { lengths } = slot;
  const length = typeof lengths === 'number' ? lengths : lengths[pid];
  const at = offset * slot.width;
  if (at + bytes <= length) return;
  throw new RmaError(
    'ERR_RMA_RANGE',
    length < 0
      ? `${call}: process ${pid} has registered null, not a variable`
      : `${call}: bytes ${at} to ${at + bytes - 1} are beyond the variable at process ${pid}, ` +
          `which has ${length} bytes`,
  );
}
