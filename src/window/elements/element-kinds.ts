/** The types of elements that the fast path takes on. The rest is for the slow path. */
import { UINT8 } from './bytes.ts';
import type { ElementKind } from './element-kind.ts';
import { FLOAT32, FLOAT64 } from './floats.ts';
import { INT32, UINT32 } from './integers-32.ts';
import { INT64, UINT64 } from './integers-64.ts';

/** By the tag of the array (`tagOf`). */
const KINDS: Readonly<Record<string, ElementKind | undefined>> = {
  Float64Array: FLOAT64,
  Float32Array: FLOAT32,
  BigInt64Array: INT64,
  BigUint64Array: UINT64,
  Int32Array: INT32,
  Uint32Array: UINT32,
  Uint8Array: UINT8,
};

/**
 * The kind of an array by its tag. V8 compiles a look into the table into the calls of a program that uses one type;
 * one that uses several asks the table each time, which costs as much as a put. So the most frequent types are compared
 * first, each in a function that is small enough to become part of any call (27 bytes of bytecode).
 */
export function kindOf(tag: string | undefined): ElementKind | undefined {
  return tag === 'Float64Array' ? FLOAT64 : kindOfOthers(tag);
}

/** The same for all but doubles. */
export function kindOfOthers(tag: string | undefined): ElementKind | undefined {
  return tag === 'BigInt64Array' ? INT64 : kindOfRest(tag);
}

function kindOfRest(tag: string | undefined): ElementKind | undefined {
  return tag === 'Int32Array' ? INT32 : KINDS[tag!];
}
