/** The types of elements that the fast path takes on. The rest is for the slow path. */
import { UINT8 } from './bytes.ts';
import { FLOAT32, FLOAT64 } from './floats.ts';
import { INT32, UINT32 } from './integers-32.ts';
import { INT64, UINT64 } from './integers-64.ts';
import type { ElementKind } from './kind.ts';

/** By the tag of the array (`tagOf`). A plain object of constants, which V8 compiles into the calls of a program. */
export const KINDS: Readonly<Record<string, ElementKind | undefined>> = {
  Float64Array: FLOAT64,
  Float32Array: FLOAT32,
  BigInt64Array: INT64,
  BigUint64Array: UINT64,
  Int32Array: INT32,
  Uint32Array: UINT32,
  Uint8Array: UINT8,
};
