/** Memory that programs get from the library (`MPI_Alloc_mem`, `MPI_Free_mem`): what `allocMem` and `freeMem` do. */
import {
  isTypedArrayConstructor,
  type TypedArray,
  type TypedArrayConstructor,
  typeCodeOf,
} from '../datatype/base-types.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { bufferOf } from '../intrinsics.ts';
import type { Job } from '../job/job.ts';

/** Errors: `ERR_SIZE`, `TypeError` */
export function allocateArray<T extends TypedArray>(job: Job, type: TypedArrayConstructor<T>, length: number): T {
  if (!isTypedArrayConstructor(type)) {
    throw argumentTypeError(`allocMem: the first argument must be a typed-array constructor, not ${show(type)}`);
  }
  checkLength('allocMem', length);
  const bytes = Math.max(1, length * type.BYTES_PER_ELEMENT);
  try {
    return new type(job.allocateMemory(bytes).buffer, 0, length);
  } catch (cause) {
    throw new RmaError('ERR_SIZE', `allocMem: cannot allocate ${bytes} bytes of shared memory`, { cause });
  }
}

/** Errors: `ERR_BUFFER` */
export function freeArray(job: Job, array: TypedArray): void {
  const buffer = typeCodeOf(array) < 0 ? undefined : bufferOf(array);
  const memory = buffer && job.libraryMemory.get(buffer);
  if (buffer === undefined || memory === undefined)
    throw argumentTypeError(`freeMem: allocMem did not allocate ${show(array)}`, 'ERR_BUFFER');
  job.origins.forget(buffer);
  try {
    memory.free();
  } catch (cause) {
    throw new RmaError('ERR_BUFFER', `freeMem: ${show(array)} is part of a window; free the window first`, { cause });
  }
  job.libraryMemory.delete(buffer);
}

export function checkLength(call: string, length: number): void {
  if (typeof length !== 'number')
    throw argumentTypeError(`${call}: length must be a number, not ${show(length)}`, 'ERR_SIZE');
  if (!Number.isSafeInteger(length) || length < 0) {
    throw argumentRangeError(`${call}: length must be a whole number of elements, not ${show(length)}`, 'ERR_SIZE');
  }
}
