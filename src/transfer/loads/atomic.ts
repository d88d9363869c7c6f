/**
 * Atomic updates of single integers by this processor, for every operation.
 *
 * All accumulates of integers on a window, from whatever rank and by whatever path (here or in native code), are
 * hardware atomics on the element itself, so they are atomic towards each other. If the hardware has an instruction for
 * an operation, it is that instruction; the rest reads, combines, and compares-and-swaps until no other update came
 * between. 64-bit elements pass through `BigInt`, which costs an allocation of 24 bytes each: bulk goes through native
 * code.
 */
import { combineBigInt, combineInteger } from '../../datatype/arithmetic.ts';
import { OpCode } from '../../datatype/op.ts';

const { SUM } = OpCode;

type IntegerArray = Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array;

/**
 * Applies `op` to one element and returns what was there. Sums by themselves: the compiler inlines what is as small as
 * this into the call of a program, and 64-bit elements need no `BigInt` then.
 */
export function updateInteger(view: IntegerArray, index: number, op: number, value: number): number {
  return op === SUM ? Atomics.add(view, index, value) : updateOtherInteger(view, index, op, value);
}

export function updateBigInt(view: BigInt64Array | BigUint64Array, index: number, op: number, value: bigint): bigint {
  return op === SUM
    ? Atomics.add(view as BigInt64Array, index, value)
    : updateOtherBigInt(view as BigInt64Array, index, op, value);
}

function updateOtherInteger(view: IntegerArray, index: number, op: number, value: number): number {
  return updateOther(view, index, op, value, swapIntegers);
}

function updateOtherBigInt(view: BigInt64Array, index: number, op: number, value: bigint): bigint {
  return updateOther(view as never, index, op, value as never, swapBigInts as never) as unknown as bigint;
}

/**
 * The other instructions, for both kinds of integers: `Atomics` asks for the type anyway. The loops are apart, since
 * they are quicker where they see one kind.
 * @param swap what there is no instruction for
 */
function updateOther(
  view: IntegerArray,
  index: number,
  op: number,
  value: number,
  swap: (view: IntegerArray, index: number, op: number, value: number) => number,
): number {
  switch (op) {
    case OpCode.BAND:
      return Atomics.and(view, index, value);
    case OpCode.BOR:
      return Atomics.or(view, index, value);
    case OpCode.BXOR:
      return Atomics.xor(view, index, value);
    case OpCode.REPLACE:
      return Atomics.exchange(view, index, value);
    case OpCode.NO_OP:
      return Atomics.load(view, index);
    default:
      return swap(view, index, op, value);
  }
}

function swapIntegers(view: IntegerArray, index: number, op: number, value: number): number {
  let seen = Atomics.load(view, index);
  for (;;) {
    const found = Atomics.compareExchange(view, index, seen, combineInteger(op, seen, value));
    if (found === seen) return seen;
    seen = found;
  }
}

function swapBigInts(view: BigInt64Array, index: number, op: number, value: bigint): bigint {
  let seen = Atomics.load(view, index);
  for (;;) {
    const found = Atomics.compareExchange(view, index, seen, combineBigInt(op, seen, value));
    if (found === seen) return seen;
    seen = found;
  }
}
