/**
 * Accumulates of any number of elements, in any layout: in native code where there is an addon and more than a few,
 * else one by one. Integers are updated by atomic instructions (atomic.ts), floating-point numbers and pairs under lock
 * stripes (stripes.ts).
 */
import { combineNumber } from '../../datatype/arithmetic.ts';
import { DATA_SIZES, PAIR_PARTS, partOf, type TypedArray } from '../../datatype/base-types.ts';
import { elementOffsets } from '../../datatype/layout.ts';
import { changesTarget, OpCode, onPairs } from '../../datatype/op.ts';
import { copyScalar, placeOf, readScalar, type Scalar, type ScalarView, writeScalar } from '../../datatype/scalars.ts';
import type { Side } from '../../datatype/sides.ts';
import { TypeCode } from '../../datatype/type-codes.ts';
import { updateBigInt, updateInteger } from './atomic.ts';
import type { RemotePart } from './remote-part.ts';
import type { Stripes } from './stripes.ts';

/** Offsets of elements: in elements, or in bytes; `undefined` if they are one after the other. */
type Offsets = Int32Array | Float64Array | undefined;

/** The kernels of the addon that this needs. */
export interface BulkKernels {
  accumulate(
    op: number,
    type: number,
    target: ArrayBufferView,
    targetByte: number,
    origin: ArrayBufferView,
    originByte: number,
    count: number,
    result?: ArrayBufferView,
  ): void;
  accumulateIndexed(
    op: number,
    type: number,
    target: ArrayBufferView,
    targetByte: number,
    displacements: Int32Array,
    origin: ArrayBufferView,
  ): void;
  /**
   * `accumulateAt` of consecutive elements on all sides, from the beginning of origin and result. The numbers stand in
   * `accumulatePlan`: `[op, type, targetByte, count, base, me]`. For what is under stripes.
   */
  accumulateRun(
    target: ArrayBufferView,
    origin: ArrayBufferView | undefined,
    stripes: Int32Array,
    result: ArrayBufferView | undefined,
  ): number;
  readonly accumulatePlan: Float64Array;
  /** @returns how many elements are done: fewer than all if a stripe stayed locked for some time */
  accumulateAt(
    op: number,
    type: number,
    target: ArrayBufferView,
    targetByte: number,
    targets: Offsets,
    origin: ArrayBufferView | undefined,
    sources: Offsets,
    result: ArrayBufferView | undefined,
    sinks: Offsets,
    count: number,
    stripes: Int32Array,
    base: number,
    me: number,
  ): number;
}

/** A native call costs as much as about this many elements updated here. */
export const NATIVE_FROM = 8;

/** Whether elements of a type are updated under stripes. */
function isUnderStripes(type: number): boolean {
  return type === TypeCode.FLOAT32 || type === TypeCode.FLOAT64 || type > TypeCode.BYTE;
}

/**
 * Combines the elements of `from` in `origin` into those of `to` at byte `at` of the views of `part`; the caller has
 * checked ranges, types, alignment and operation. `result` gets what was there, at the places of `into`. Origin and
 * result may be arrays of bytes, with elements anywhere.
 * Errors: that of a failed rank.
 */
export function accumulateElements(
  part: RemotePart,
  at: number,
  to: Side,
  origin: TypedArray,
  from: Side,
  op: number,
  result: TypedArray | undefined,
  into: Side | undefined,
  stripes: Stripes,
  kernels: BulkKernels | undefined,
): void {
  const { base: type, elements } = to;
  if (kernels !== undefined && elements >= NATIVE_FROM) {
    if (!isUnderStripes(type)) {
      if (isInOrder(from) && isInOrder(to) && isInOrder(into)) {
        kernels.accumulate(op, type, part.u8, at, origin, 0, elements, result);
        return;
      }
      const displacements = displacementsOf(to);
      if (displacements !== undefined && isInOrder(from) && result === undefined) {
        kernels.accumulateIndexed(op, type, part.u8, at, displacements, origin);
        return;
      }
    } else if (isInOrder(from) && isInOrder(to) && isInOrder(into)) {
      const done = accumulateRun(part, at, type, elements, origin, op, result, stripes, kernels);
      if (done < elements) accumulateAt(part, at, to, origin, from, op, result, into, stripes, kernels, done);
      return;
    }
    accumulateAt(part, at, to, origin, from, op, result, into, stripes, kernels, 0);
    return;
  }
  const targets = elementOffsets(to);
  const sources = elementOffsets(from);
  const sinks = into === undefined ? sources : elementOffsets(into);
  const source = placeOf(origin);
  const sink = result === undefined ? undefined : placeOf(result);
  for (let i = 0; i < elements; i++) {
    const place = at + targets[i];
    if (isUnderStripes(type)) updateHeld(part, place, type, op, source, sources[i], sink, sinks[i], stripes);
    else updateWhole(part, place, type, op, source, sources[i], sink, sinks[i]);
  }
}

/**
 * Consecutive elements that are under stripes.
 * @returns how many are done: fewer than all if a stripe stayed locked for some time
 */
function accumulateRun(
  part: RemotePart,
  at: number,
  type: number,
  elements: number,
  origin: TypedArray,
  op: number,
  result: TypedArray | undefined,
  stripes: Stripes,
  kernels: BulkKernels,
): number {
  const plan = kernels.accumulatePlan;
  plan[0] = op;
  plan[1] = type;
  plan[2] = at;
  plan[3] = elements;
  plan[4] = stripes.base - part.skew;
  plan[5] = stripes.me;
  return kernels.accumulateRun(part.u8, changesTarget(op) ? origin : undefined, stripes.words, result);
}

/**
 * The `n` floating-point numbers of `origin`, an array of the program's, one after the other on all sides: what
 * `accumulateElements` does for them, without a look at anything. `at` is a multiple of their size, and the elements
 * lie within the part.
 */
export function accumulateFloats(
  part: RemotePart,
  at: number,
  type: number,
  origin: TypedArray,
  n: number,
  op: number,
  result: TypedArray | undefined,
  stripes: Stripes,
  kernels: BulkKernels,
): void {
  const size = DATA_SIZES[type];
  for (
    let done = accumulateRun(part, at, type, n, origin, op, result, stripes, kernels), round = 1;
    done < n;
    round++
  ) {
    stripes.pause(round);
    const [from, into] = [origin, result].map((array) => array && partOf(array, done, n - done, size));
    done += accumulateRun(part, at + size * done, type, n - done, from!, op, into, stripes, kernels);
  }
}

function accumulateAt(
  part: RemotePart,
  at: number,
  to: Side,
  origin: TypedArray,
  from: Side,
  op: number,
  result: TypedArray | undefined,
  into: Side | undefined,
  stripes: Stripes,
  kernels: BulkKernels,
  begin: number,
): void {
  const targets = offsetsOf(to);
  // The addon counts from its first element, where some of ours may be before `at`; only lists of bytes have such.
  const low = Math.min(0, to.low);
  if (low < 0 && targets !== undefined) for (let i = 0; i < targets.length; i++) targets[i] -= low;
  const sources = changesTarget(op) ? offsetsOf(from) : undefined;
  const sinks = into && offsetsOf(into);
  const { base: type, elements, elementSize } = to;
  const { words, me } = stripes;
  const base = stripes.base - part.skew;
  const later = (offsets: Offsets, done: number): Offsets => offsets?.subarray(done);
  for (let done = begin, round = 1; ; round++) {
    // What is left of sides without offsets begins so many elements later.
    const skipped = (offsets: Offsets): number => (offsets === undefined ? done * elementSize : 0);
    done += kernels.accumulateAt(
      op,
      type,
      part.u8,
      at + low + skipped(targets),
      later(targets, done),
      changesTarget(op) ? bytesFrom(origin, skipped(sources)) : undefined,
      later(sources, done),
      result && bytesFrom(result, skipped(sinks)),
      later(sinks, done),
      elements - done,
      words,
      base,
      me,
    );
    if (done === elements) return;
    stripes.pause(round);
  }
}

function bytesFrom(array: TypedArray, byte: number): TypedArray {
  return byte === 0 ? array : new Uint8Array(array.buffer, array.byteOffset + byte, array.byteLength - byte);
}

/** Whether elements are one after the other, as far apart as in an array. */
function isInOrder(side: Side | undefined): boolean {
  return side === undefined || side.type === undefined;
}

function offsetsOf(side: Side): Offsets {
  return isInOrder(side) ? undefined : (displacementsOf(side) ?? elementOffsets(side));
}

/** The displacements of single elements, if that is what a side is. */
function displacementsOf({ runs, count, elementSize, low, base }: Side): Int32Array | undefined {
  if (runs === undefined || count !== 1 || low < 0 || DATA_SIZES[base] !== elementSize) return undefined;
  if (runs.block !== elementSize || runs.unit !== elementSize) return undefined;
  return runs.starts instanceof Int32Array ? runs.starts : undefined;
}

/** An integer or a byte. */
function updateWhole(
  part: RemotePart,
  at: number,
  type: number,
  op: number,
  origin: ScalarView,
  from: number,
  result: ScalarView | undefined,
  into: number,
): void {
  const operand = changesTarget(op) ? readScalar(origin, type, from) : 0;
  let before: Scalar;
  if (type === TypeCode.INT64 || type === TypeCode.UINT64) {
    before = updateBigInt(part.view(type) as BigInt64Array, at / 8, op, BigInt(operand));
  } else before = updateInteger(part.view(type) as Int32Array, at / DATA_SIZES[type], op, operand as number);
  if (result !== undefined) writeScalar(result, type, into, before);
}

/**
 * A floating-point number or a pair, under its stripe. What is only moved is moved as bits; it becomes a number where
 * there is something to calculate.
 */
function updateHeld(
  part: RemotePart,
  at: number,
  type: number,
  op: number,
  origin: ScalarView,
  from: number,
  result: ScalarView | undefined,
  into: number,
  stripes: Stripes,
): void {
  const { place } = part;
  const isPair = type > TypeCode.BYTE;
  const copy = isPair ? copyPair : copyScalar;
  const stripe = stripes.acquire(at - part.skew);
  if (result !== undefined) copy(result, into, place, at, type);
  if (op === OpCode.REPLACE || (isPair && changesTarget(op) && wins(op, type, place, at, origin, from))) {
    copy(place, at, origin, from, type);
  } else if (!isPair && changesTarget(op)) {
    const view = part.view(type) as Float64Array;
    const index = at / DATA_SIZES[type];
    view[index] = combineNumber(op, view[index], readScalar(origin, type, from) as number);
  }
  stripes.release(stripe);
}

/**
 * Applies `op` to one double and returns what was there. Doubles that are loaded and stored keep their bits, also as
 * numbers (test/transfer/bits.test.ts looks whether they do), singles do not.
 * @param offset of the element in the part, in bytes
 */
export function updateDouble(
  view: Float64Array,
  index: number,
  offset: number,
  op: number,
  value: number,
  stripes: Stripes,
): number {
  const stripe = stripes.acquire(offset);
  const before = view[index];
  if (op !== OpCode.NO_OP) view[index] = combineNumber(op, before, value);
  stripes.release(stripe);
  return before;
}

/**
 * The same for a single that is no NaN, with one that is none.
 * @returns NaN if it is one: it was left as it is, since it would not keep its bits
 */
export function updateSingle(
  view: Float32Array,
  index: number,
  offset: number,
  op: number,
  value: number,
  stripes: Stripes,
): number {
  const stripe = stripes.acquire(offset);
  const before = view[index];
  if (op !== OpCode.NO_OP && !Number.isNaN(before)) view[index] = combineNumber(op, before, value);
  stripes.release(stripe);
  return before;
}

function copyPair(to: ScalarView, toAt: number, from: ScalarView, fromAt: number, type: number): void {
  const [valueType, indexAt] = PAIR_PARTS[type];
  copyScalar(to, toAt, from, fromAt, valueType);
  copyScalar(to, toAt + indexAt, from, fromAt + indexAt, TypeCode.INT32);
}

/**
 * Whether an operation on pairs (`MINLOC`, `MAXLOC`) takes the pair that comes, not the one that is there. A NaN wins,
 * the one that is there first.
 */
function wins(op: number, type: number, target: ScalarView, at: number, origin: ScalarView, from: number): boolean {
  const [valueType, indexAt] = PAIR_PARTS[type];
  const there = readScalar(target, valueType, at);
  const comes = readScalar(origin, valueType, from);
  if (there === comes) {
    return readScalar(origin, TypeCode.INT32, from + indexAt) < readScalar(target, TypeCode.INT32, at + indexAt);
  }
  if (Number.isNaN(there)) return false;
  if (Number.isNaN(comes)) return true;
  return onPairs[op](there, comes);
}
