/** Memory of the fabrics whose members are threads: a `SharedArrayBuffer` for each allocation. */
import { argumentRangeError, RmaError, show } from '../../errors.ts';

/** Errors: `RangeError`, `ERR_VERBS` (no memory). */
export function allocateShared(byteLength: number): SharedArrayBuffer {
  if (!Number.isInteger(byteLength) || byteLength < 1) {
    throw argumentRangeError(`allocate: byteLength must be an integer of at least 1, not ${show(byteLength)}`);
  }
  try {
    return new SharedArrayBuffer(byteLength);
  } catch (cause) {
    throw new RmaError('ERR_VERBS', `allocate: cannot allocate ${byteLength} bytes: ${(cause as Error).message}`, {
      cause,
    });
  }
}
