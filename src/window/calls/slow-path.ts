/**
 * The slow path of the communication calls: every layout, every type, every check with its message (MPI 4.1, 12.3).
 * Nothing is written before all checks have passed. The target's path decides how the bytes then move (path/paths.ts).
 */
import { bytesOf, checkBuffer, opAllowed, ownView, TYPE_NAMES, type TypedArray } from '../../datatype/base-types.ts';
import {
  alignmentNeeded,
  checkFetch,
  checkSides,
  isAligned,
  isOverlapping,
  refuseEndless,
} from '../../datatype/layout.ts';
import { isOp, Op } from '../../datatype/op.ts';
import { denseExtent, type Extent, type Stretch, sharedBytes } from '../../datatype/overlap.ts';
import type { FetchLayout, Side, TransferLayout } from '../../datatype/sides.ts';
import { MIXED } from '../../datatype/signature.ts';
import { TypeCode } from '../../datatype/type-codes.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../../errors.ts';
import { bufferOf, byteLengthOf, byteOffsetOf, lengthOf } from '../../intrinsics.ts';
import type { Fetch } from '../../transfer/requests/fetch.ts';
import type { Epochs } from '../epochs/epochs.ts';
import type { OwnMemory, Path } from '../path/path.ts';
import type { Paths } from '../path/paths.ts';
import type { Target } from '../path/target.ts';

export class SlowPath {
  readonly #epochs: Epochs;
  readonly #paths: Paths;
  /** Calls so far. */
  calls = 0;

  constructor(epochs: Epochs, paths: Paths) {
    this.#epochs = epochs;
    this.#paths = paths;
  }

  /** A put or get. The caller has seen to it that the window can be used. */
  transfer(
    call: 'put' | 'get',
    given: TypedArray,
    target: number,
    disp: number,
    layout: TransferLayout | undefined,
  ): void {
    this.calls++;
    const origin = ownView(call, 'origin', given);
    const { from, to } = checkSides(call, origin, layout);
    if (call === 'put') refuseTwice(call, 'target', to);
    else refuseTwice(call, 'origin', from);
    this.#transfer(call, origin, from, target, disp, to);
  }

  #transfer(call: 'put' | 'get', origin: TypedArray, from: Side, target: number, disp: number, to: Side): void {
    const t = this.#epochs.access(call, target);
    if (t === undefined) return;
    const at = this.#range(call, t, disp, to);
    if (from.elements === 0) return;
    const pieces = this.#paths.piecesOf(call, t, at, from, to, undefined);
    if (pieces === undefined) {
      this.#transferOne(call, origin, from, t, at, to);
      return;
    }
    for (const { from, to } of pieces) {
      this.#transferOne(call, bytesFrom(origin, from.at), from.side, t, at + to.at, to.side);
    }
  }

  #transferOne(call: 'put' | 'get', origin: TypedArray, from: Side, t: Target, at: number, to: Side): void {
    const epochs = this.#epochs;
    const path = this.#paths.transfers(call, t, at, to);
    this.#refuseOverlap(call, origin, from, t, at, to, path.own);
    const name = call === 'get' ? 'result' : 'origin';
    this.#checkUse(call, t, call === 'get', name, origin, from);
    epochs.note(call, call, t, at, to);
    const own = this.#use(call, t, call === 'get', name, origin, from);
    try {
      if (call === 'put') path.put(origin, from, at, to);
      else path.get(own, from, at, to);
    } catch (error) {
      throw epochs.comm.members.explain(error);
    }
  }

  accumulate(
    call: string,
    given: TypedArray,
    target: number,
    disp: number,
    op: Op,
    layout: TransferLayout | undefined,
  ): void {
    this.calls++;
    this.#epochs.checkUsable(call);
    const origin = ownView(call, 'origin', given);
    const { from, to } = checkSides(call, origin, layout);
    this.#update(call, origin, from, target, disp, to, op, undefined);
  }

  getAccumulate(
    call: string,
    givenOrigin: TypedArray | null,
    givenResult: TypedArray,
    target: number,
    disp: number,
    op: Op,
    layout: FetchLayout | undefined,
  ): void {
    this.calls++;
    this.#epochs.checkUsable(call);
    // NO_OP takes nothing from the origin.
    const origin = op === Op.NO_OP ? undefined : ownView(call, 'origin', givenOrigin as TypedArray);
    const result = ownView(call, 'result', givenResult);
    const { from, to, into } = checkFetch(call, origin, result, layout);
    refuseTwice(call, 'result', into);
    if (origin !== undefined && overlap(origin, from, result, into, 0) !== undefined) {
      throw argumentRangeError(`${call}: result overlaps origin`, 'ERR_BUFFER');
    }
    this.#update(call, origin ?? result, from, target, disp, to, op, { result, side: into });
  }

  /** @param fetch where what was there before goes */
  #update(
    call: string,
    origin: TypedArray,
    from: Side,
    target: number,
    disp: number,
    to: Side,
    op: Op,
    fetch: Fetch | undefined,
  ): void {
    const epochs = this.#epochs;
    checkOp(call, op, to);
    for (const side of [from, to]) refuseEndless(call, side);
    const t = epochs.access(call, target);
    if (t === undefined) return;
    const at = this.#range(call, t, disp, to);
    if (from.elements === 0) return;
    const pieces = this.#paths.piecesOf(call, t, at, from, to, fetch?.side);
    if (pieces === undefined) {
      this.#updateOne(call, origin, from, t, at, to, op, fetch);
      return;
    }
    for (const { from, to, into } of pieces) {
      const result = fetch && into && { result: bytesFrom(fetch.result, into.at), side: into.side };
      this.#updateOne(call, bytesFrom(origin, from.at), from.side, t, at + to.at, to.side, op, result);
    }
  }

  #updateOne(
    call: string,
    origin: TypedArray,
    from: Side,
    t: Target,
    at: number,
    to: Side,
    op: Op,
    fetch: Fetch | undefined,
  ): void {
    const epochs = this.#epochs;
    const path = this.#paths.updates(call, t, at, to);
    this.#refuseUnaligned(call, t, at, path, to);
    this.#refuseOverlap(call, origin, from, t, at, to, path.own);
    if (fetch !== undefined) this.#refuseOverlap(call, fetch.result, fetch.side, t, at, to, path.own, 'result');
    if (op !== Op.NO_OP) this.#checkUse(call, t, false, 'origin', origin, from);
    if (fetch !== undefined) this.#checkUse(call, t, true, 'result', fetch.result, fetch.side);
    epochs.note(call, 'accumulate', t, at, to, op);
    if (op !== Op.NO_OP) this.#use(call, t, false, 'origin', origin, from);
    const fetched = fetch && { ...fetch, result: this.#use(call, t, true, 'result', fetch.result, fetch.side) };
    try {
      path.update(origin, from, at, to, op.code, fetched);
    } catch (error) {
      throw epochs.comm.members.explain(error);
    }
  }

  /** The caller has checked the buffers (`checkSingles`). */
  compareAndSwap(
    givenOrigin: TypedArray,
    givenCompare: TypedArray,
    givenResult: TypedArray,
    target: number,
    disp: number,
  ): void {
    this.calls++;
    const call = 'compareAndSwap';
    const epochs = this.#epochs;
    const origin = ownView(call, 'origin', givenOrigin);
    const compare = ownView(call, 'compare', givenCompare);
    const result = ownView(call, 'result', givenResult);
    const { to } = checkSides(call, origin, undefined);
    if (to.base === TypeCode.FLOAT32 || to.base === TypeCode.FLOAT64) {
      throw new RmaError('ERR_TYPE', `${call}: the elements must be integers or bytes, not ${TYPE_NAMES[to.base]}`);
    }
    const t = epochs.access(call, target);
    if (t === undefined) return;
    const at = this.#range(call, t, disp, to);
    const path = this.#paths.updates(call, t, at, to);
    this.#refuseUnaligned(call, t, at, path, to);
    for (const [name, buffer] of Object.entries({ origin, compare, result })) {
      this.#refuseOverlap(call, buffer, to, t, at, to, path.own, name);
      this.#checkUse(call, t, name === 'result', name, buffer, to);
    }
    epochs.note(call, 'accumulate', t, at, to);
    this.#use(call, t, false, 'origin', origin, to);
    this.#use(call, t, false, 'compare', compare, to);
    const own = this.#use(call, t, true, 'result', result, to);
    try {
      path.swap(origin, compare, own, at, to);
    } catch (error) {
      throw epochs.comm.members.explain(error);
    }
  }

  /** For debugging: refuses arrays that are in use. Errors: `ERR_RMA_CONFLICT`. */
  #checkUse(call: string, t: Target, writes: boolean, name: string, array: TypedArray, side: Side): void {
    const { accesses, what } = this.#epochs;
    accesses?.buffers?.check(`${call} to rank ${t.rank} in ${what}`, name, array, side, writes);
  }

  /**
   * For debugging: an array is used until the call that was just noted is complete.
   * @param writes whether the operation writes it
   * @returns the one that the operation gets
   */
  #use(call: string, t: Target, writes: boolean, name: string, array: TypedArray, side: Side): TypedArray {
    const { accesses, what } = this.#epochs;
    if (accesses === undefined) return array;
    accesses.used(name, t.rank, array, side, writes);
    const { buffers } = accesses;
    if (buffers === undefined) return array;
    return buffers.use(`${call} to rank ${t.rank} in ${what}`, name, t.rank, accesses.calls, array, side, writes);
  }

  /** The byte of a target's part, or, in a dynamic window, the address that a displacement means. */
  byteAt(call: string, target: number, disp: number): number {
    return this.#range(call, this.#epochs.target(call, target), disp, { low: 0, high: this.#paths.bounded ? 0 : 1 });
  }

  /** The byte offset of `disp` in the target's part; all of `to` lies within the part. */
  #range(call: string, t: Target, disp: number, to: Pick<Side, 'low' | 'high'>): number {
    const where = (): string => `${call} to rank ${t.rank} in ${this.#epochs.what}`;
    if (typeof disp !== 'number') {
      throw argumentTypeError(`${where()}: the displacement must be a number, not ${show(disp)}`, 'ERR_DISP');
    }
    if (!Number.isSafeInteger(disp) || disp < 0) {
      throw argumentRangeError(
        `${where()}: the displacement must be a non-negative integer, not ${show(disp)}`,
        'ERR_DISP',
      );
    }
    const at = disp * t.dispUnit;
    // In a dynamic window, what is attached there says more.
    const unbounded = !this.#paths.bounded;
    if (unbounded && Number.isSafeInteger(at + to.low) && Number.isSafeInteger(at + to.high)) return at;
    if (!Number.isSafeInteger(at) || at + to.low < 0 || at + to.high > t.byteLength) {
      throw new RmaError('ERR_RMA_RANGE', `${where()}: ${misfit(t, disp, at, to)}`);
    }
    return at;
  }

  #refuseUnaligned(call: string, t: Target, at: number, path: Path, to: Side): void {
    const needed = alignmentNeeded(to);
    const place = path.aligned(at);
    if (place % needed === 0 && isAligned(to, needed)) return;
    const where = `${call} to rank ${t.rank} in ${this.#epochs.what}`;
    throw new RmaError(
      'ERR_DISP',
      place % needed === 0
        ? `${where}: the target layout has elements that are not aligned to ${TYPE_NAMES[to.base]} (${needed} ` +
            'bytes), as atomic operations require'
        : `${where}: byte ${at} of its part is not aligned to ${TYPE_NAMES[to.base]} (${needed} bytes), ` +
            'as atomic operations require',
    );
  }

  /**
   * Origin and target in the same memory must not overlap (MPI 4.1, 12.3): seen where the target is this rank's own
   * part.
   */
  #refuseOverlap(
    call: string,
    origin: TypedArray,
    from: Side,
    t: Target,
    at: number,
    to: Side,
    own: OwnMemory | undefined,
    name = 'origin',
  ): void {
    if (own === undefined) return;
    const both = overlap(origin, from, own.memory, to, at - own.address);
    if (both === undefined) return;
    const skew = own.address - byteOffsetOf(own.memory);
    throw new RmaError(
      'ERR_RMA_CONFLICT',
      `${call} to rank ${t.rank} in ${this.#epochs.what}: the ${name} overlaps the target bytes ` +
        `${both.low + skew} … ${both.high + skew - 1}`,
    );
  }
}

/** What does not fit into a part: in elements, as displacements count, where they are whole ones, else in bytes. */
function misfit(t: Target, disp: number, at: number, to: Pick<Side, 'low' | 'high'>): string {
  const { dispUnit: unit, byteLength } = t;
  const bytes = `bytes ${at + to.low} … ${at + to.high - 1}`;
  const [first, end, size] = [at + to.low, at + to.high, byteLength].map((place) => place / unit);
  if (unit === 1 || !Number.isSafeInteger(at) || ![first, end, size].every(Number.isInteger) || end === first)
    return `${bytes} do not fit into its part of ${byteLength} bytes (displacement ${disp}, unit ${unit})`;
  const elements = end - first === 1 ? `element ${first} does` : `elements ${first} … ${end - 1} do`;
  return `${elements} not fit into its part of ${size} elements of ${unit} bytes (displacement ${disp})`;
}

/** The bytes of an array from `at` on. */
function bytesFrom(array: TypedArray, at: number): Uint8Array {
  return bytesOf(array).subarray(at);
}

function checkOp(call: string, op: Op, to: Side): void {
  if (!isOp(op)) throw argumentTypeError(`${call}: the operation must be a member of Op, not ${show(op)}`, 'ERR_OP');
  if (to.base === MIXED) {
    if (to.elements === 0) return;
    throw new RmaError('ERR_TYPE', `${call}: all elements must have the same base type, but ${to.type} has several`);
  }
  if (!opAllowed(op.code, to.base)) {
    throw new RmaError('ERR_OP', `${call}: ${op} is not defined on ${TYPE_NAMES[to.base]}`);
  }
}

/** No byte may be written twice (MPI 4.1, 12.3.1): it is open which value would remain. */
function refuseTwice(call: string, name: string, side: Side): void {
  if (!isOverlapping(call, side)) return;
  throw new RmaError(
    'ERR_RMA_CONFLICT',
    `${call}: the ${name} layout, ${side.count} × ${side.type}, would write some bytes twice, ` +
      'and the result would be undefined; use a layout that does not overlap itself',
  );
}

/** All arguments are arrays of one element of one type, and the result overlaps none of the others. */
export function checkSingles(call: string, buffers: Record<string, TypedArray>): void {
  let code = -1;
  for (const [name, buffer] of Object.entries(buffers)) {
    const found = checkBuffer(call, name, buffer);
    if (lengthOf(buffer) !== 1) {
      throw argumentRangeError(`${call}: ${name} must have one element, not ${lengthOf(buffer)}`, 'ERR_BUFFER');
    }
    if (code >= 0 && found !== code) {
      throw new RmaError(
        'ERR_TYPE',
        `${call}: ${name} has the type ${TYPE_NAMES[found]}, but origin has ${TYPE_NAMES[code]}; ` +
          'the types must be the same',
      );
    }
    code = found;
  }
  const { result } = buffers as { result: TypedArray };
  for (const [name, buffer] of Object.entries(buffers)) {
    if (name !== 'result' && overlap(buffer, whole(buffer), result, whole(result), 0) !== undefined) {
      throw argumentRangeError(`${call}: result overlaps ${name}`, 'ERR_BUFFER');
    }
  }
}

const whole = (array: TypedArray): Extent => denseExtent(byteLengthOf(array));

/** What two arguments share, counted in their buffer; that of `b` begins `bSkip` bytes behind the array. */
function overlap(a: TypedArray, of: Extent, b: TypedArray, and: Extent, bSkip: number): Stretch | undefined {
  if (bufferOf(a) !== bufferOf(b)) return undefined;
  return sharedBytes(of, byteOffsetOf(a), and, byteOffsetOf(b) + bSkip);
}
