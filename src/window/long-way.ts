/**
 * The long way of the communication calls: every layout, every type, every check with its message (MPI 4.1, 12.3). Nothing is
 * written before all checks have passed.
 */
import { bytesOf, checkBuffer, opAllowed, ownView, TYPE_NAMES, type TypedArray } from '../datatype/base.ts';
import { TypeCode } from '../datatype/codes.ts';
import { copyPlaces } from '../datatype/copy.ts';
import {
  alignmentNeeded,
  checkFetch,
  checkSides,
  type FetchLayout,
  isAligned,
  isOverlapping,
  refuseEndless,
  type Side,
  type TransferLayout,
} from '../datatype/layout.ts';
import { isOp, Op } from '../datatype/op.ts';
import { type Piece, piecesOf } from '../datatype/pieces.ts';
import { MIXED } from '../datatype/signature.ts';
import { argumentRangeError, argumentTypeError, RmaError, show } from '../errors.ts';
import { bufferOf, byteLengthOf, byteOffsetOf, lengthOf, tagOf } from '../intrinsics.ts';
import { accumulateElements } from '../transfer/accumulate.ts';
import type { OperationQueue } from '../transfer/operation-queue.ts';
import type { RemoteRegion } from '../transfer/regions.ts';
import type { RemotePart } from '../transfer/remote-part.ts';
import type { Stripes } from '../transfer/stripes.ts';
import type { UserMemory } from '../transfer/user-memory.ts';
import type { Attached } from './attachments.ts';
import type { WindowParts } from './creation/parts.ts';
import { type Epochs, FENCE, LOCK_ALL } from './epochs.ts';
import { LOCKED, REQUESTS, type Target } from './target.ts';

/** The way to the target's memory. */
interface Reach {
  /** Where it is loaded and stored. */
  readonly part: RemotePart;
  /** Where in the views of `part`; by user memory, the address; by requests, as aligned as the address. */
  readonly place: number;
  readonly stripes: Stripes | undefined;
  readonly userMemory: UserMemory | undefined;
  /** Where requests reach it, if that is not the target's part. */
  readonly region?: RemoteRegion | undefined;
  /** The memory itself and the displacement of its first byte, if it is this rank's. */
  readonly memory: { readonly memory: TypedArray; readonly address: number } | undefined;
}

export class LongWay {
  #parts: WindowParts;
  #epochs: Epochs;

  /** Everything goes by requests, at once, and nobody notes the accesses. */
  readonly #plain: boolean;

  constructor(parts: WindowParts, epochs: Epochs) {
    this.#parts = parts;
    this.#epochs = epochs;
    const { requests, userMemory, attachments, deferred, passive } = parts;
    const all =
      userMemory === undefined && attachments === undefined && deferred === undefined && passive === undefined;
    this.#plain = requests !== undefined && all && epochs.accesses === undefined;
  }

  /** Where operations of the open epoch wait for the target to carry them out; `undefined` if they leave at once. */
  queueFor(t: Target): OperationQueue | undefined {
    const { deferred, passive } = this.#parts;
    if (deferred === undefined && passive === undefined) return undefined;
    const { open } = this.#epochs;
    if (open === FENCE) return deferred;
    return open === LOCK_ALL || (t.held & LOCKED) !== 0 ? passive?.queue : undefined;
  }

  put(given: TypedArray, target: number, disp: number, layout: TransferLayout | undefined): void {
    const epochs = this.#epochs;
    epochs.checkUsable('put');
    if (this.#plain && layout === undefined && this.#putPlain(given, target, disp)) return;
    const origin = ownView('put', 'origin', given);
    const { from, to } = checkSides('put', origin, layout);
    refuseTwice('put', 'target', to);
    const t = epochs.access('put', target);
    if (t === undefined) return;
    const at = this.#range('put', t, disp, to);
    if (from.elements === 0) return;
    const pieces = this.#piecesOf('put', t, at, from, to);
    if (pieces === undefined) this.#put(origin, from, t, at, to);
    else for (const { from, to } of pieces) this.#put(bytesFrom(origin, from.at), from.side, t, at + to.at, to.side);
  }

  /**
   * All of an array, by one request. It decides nothing: what it does not take on (it then returns false and has done nothing) goes on in the long way, which also writes the error
   * messages. To this rank's own part, the long way looks for overlaps.
   */
  #putPlain(origin: TypedArray, target: number, disp: number): boolean {
    const epochs = this.#epochs;
    const t = this.#plainTarget(origin, target, disp);
    if (t === undefined) return false;
    try {
      const fenced = epochs.open === FENCE;
      if (!this.#parts.requests!.putPlain(origin, t.rank, disp * t.dispUnit, fenced)) return false;
    } catch (error) {
      throw epochs.comm.job.explain(error);
    }
    epochs.used = true;
    return true;
  }

  #getPlain(origin: TypedArray, target: number, disp: number): boolean {
    const epochs = this.#epochs;
    const t = this.#plainTarget(origin, target, disp);
    if (t === undefined) return false;
    try {
      if (!this.#parts.requests!.getPlain(origin, t.rank, disp * t.dispUnit)) return false;
    } catch (error) {
      throw epochs.comm.job.explain(error);
    }
    epochs.used = true;
    return true;
  }

  /** The target, if the caller may access it, and all of `origin` has its place there. */
  #plainTarget(origin: TypedArray, target: number, disp: number): Target | undefined {
    const epochs = this.#epochs;
    const t = epochs.find(target);
    if (t === undefined || (epochs.open | t.held) === 0 || t.rank === epochs.comm.rank) return undefined;
    if (t.way !== REQUESTS) return undefined;
    if (!isPlain(origin) || !Number.isSafeInteger(disp) || disp < 0) return undefined;
    const bytes = byteLengthOf(origin);
    const within = bytes > 0 && disp * t.dispUnit + bytes <= t.byteLength;
    return within ? t : undefined;
  }

  #put(origin: TypedArray, from: Side, t: Target, at: number, to: Side): void {
    const epochs = this.#epochs;
    const { part, place, userMemory, region, memory } = this.#reach('put', t, at, to, t.way === REQUESTS);
    this.#refuseOverlap('put', origin, from, t, at, to, memory);
    epochs.note('put', 'put', t, at, to);
    const { requests, kernels } = this.#parts;
    const queue = this.queueFor(t);
    if (queue !== undefined) {
      queue.put(origin, from, t.rank, at, to);
      return;
    }
    if (userMemory !== undefined) {
      epochs.attempt(() => userMemory.put(bytesOf(origin), from, t.rank, place, to));
      return;
    }
    if (requests !== undefined && t.way === REQUESTS) {
      epochs.attempt(() => requests.put(bytesOf(origin), from, t.rank, at, to, epochs.open === FENCE, region));
      return;
    }
    copyPlaces(from, origin, 0, to, part.u8, place, kernels);
    epochs.dirty = true;
  }

  get(given: TypedArray, target: number, disp: number, layout: TransferLayout | undefined): void {
    const epochs = this.#epochs;
    epochs.checkUsable('get');
    if (this.#plain && layout === undefined && this.#getPlain(given, target, disp)) return;
    const origin = ownView('get', 'origin', given);
    const { from, to } = checkSides('get', origin, layout);
    refuseTwice('get', 'origin', from);
    const t = epochs.access('get', target);
    if (t === undefined) return;
    const at = this.#range('get', t, disp, to);
    if (from.elements === 0) return;
    const pieces = this.#piecesOf('get', t, at, from, to);
    if (pieces === undefined) this.#get(origin, from, t, at, to);
    else for (const { from, to } of pieces) this.#get(bytesFrom(origin, from.at), from.side, t, at + to.at, to.side);
  }

  #get(origin: TypedArray, from: Side, t: Target, at: number, to: Side): void {
    const epochs = this.#epochs;
    const { part, place, userMemory, region, memory } = this.#reach('get', t, at, to, t.way === REQUESTS);
    this.#refuseOverlap('get', origin, from, t, at, to, memory);
    epochs.note('get', 'get', t, at, to);
    const { requests, kernels } = this.#parts;
    const queue = this.queueFor(t);
    if (queue !== undefined) {
      queue.get(origin, from, t.rank, at, to);
      return;
    }
    if (userMemory !== undefined) {
      epochs.attempt(() => userMemory.get(bytesOf(origin), from, t.rank, place, to));
      return;
    }
    if (requests !== undefined && t.way === REQUESTS) {
      epochs.attempt(() => requests.get(bytesOf(origin), from, t.rank, at, to, region));
      return;
    }
    copyPlaces(to, part.u8, place, from, origin, 0, kernels);
  }

  accumulate(
    call: string,
    given: TypedArray,
    target: number,
    disp: number,
    op: Op,
    layout: TransferLayout | undefined,
  ): void {
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
    this.#epochs.checkUsable(call);
    // NO_OP takes nothing from the origin.
    const origin = op === Op.NO_OP ? undefined : ownView(call, 'origin', givenOrigin as TypedArray);
    const result = ownView(call, 'result', givenResult);
    const { from, to, into } = checkFetch(call, origin, result, layout);
    refuseTwice(call, 'result', into);
    if (origin !== undefined && overlap(origin, from.low, from.high, result, into.low, into.high)) {
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
    fetch: { readonly result: TypedArray; readonly side: Side } | undefined,
  ): void {
    const epochs = this.#epochs;
    checkOp(call, op, to);
    for (const side of [from, to]) refuseEndless(call, side);
    const t = epochs.access(call, target);
    if (t === undefined) return;
    const at = this.#range(call, t, disp, to);
    if (from.elements === 0) return;
    const pieces = this.#piecesOf(call, t, at, from, to, fetch?.side);
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
    fetch: { readonly result: TypedArray; readonly side: Side } | undefined,
  ): void {
    const epochs = this.#epochs;
    const { updates } = this.#parts;
    const { part, place, stripes, userMemory, region, memory } = this.#reach(call, t, at, to, updates !== undefined);
    this.#refuseUnaligned(call, t, at, place, to);
    this.#refuseOverlap(call, origin, from, t, at, to, memory);
    if (fetch !== undefined) this.#refuseOverlap(call, fetch.result, fetch.side, t, at, to, memory, 'result');
    epochs.note(call, 'accumulate', t, at, to, op === Op.NO_OP);
    const queue = this.queueFor(t);
    if (queue !== undefined) {
      queue.accumulate(origin, from, t.rank, at, to, op.code, fetch);
      return;
    }
    if (userMemory !== undefined) {
      const bytes = fetch === undefined ? undefined : bytesOf(fetch.result);
      epochs.attempt(() =>
        userMemory.accumulate(bytesOf(origin), from, t.rank, place, to, op.code, bytes, fetch?.side),
      );
      return;
    }
    if (updates !== undefined) {
      epochs.attempt(() => updates.accumulate(origin, from, t.rank, at, to, op.code, fetch, region));
      return;
    }
    const { kernels } = this.#parts;
    const [sink, into] = [fetch?.result, fetch?.side];
    epochs.attempt(() => accumulateElements(part, place, to, origin, from, op.code, sink, into, stripes!, kernels));
  }

  /** The caller has checked the buffers (`checkSingles`). */
  compareAndSwap(
    givenOrigin: TypedArray,
    givenCompare: TypedArray,
    givenResult: TypedArray,
    target: number,
    disp: number,
  ): void {
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
    const { updates } = this.#parts;
    const { part, place, userMemory, region, memory } = this.#reach(call, t, at, to, updates !== undefined);
    this.#refuseUnaligned(call, t, at, place, to);
    for (const [name, buffer] of Object.entries({ origin, compare, result })) {
      this.#refuseOverlap(call, buffer, to, t, at, to, memory, name);
    }
    epochs.note(call, 'accumulate', t, at, to);
    const queue = this.queueFor(t);
    if (queue !== undefined) {
      queue.compareAndSwap(origin, compare, result, t.rank, at, to.base);
      return;
    }
    if (userMemory !== undefined) {
      epochs.attempt(() => userMemory.compareAndSwap(origin, compare, result, t.rank, place, to.base));
      return;
    }
    if (updates !== undefined) {
      epochs.attempt(() => updates.compareAndSwap(origin, compare, result, t.rank, at, to, region));
      return;
    }
    const view = part.view(to.base) as Int32Array;
    result[0] = Atomics.compareExchange(view, place / to.elementSize, compare[0] as number, origin[0] as number);
  }

  /**
   * In a dynamic window, an access may reach over several of the target's regions (MPI 4.1, 12.2.4: displacements are addresses). Then it is cut at their
   * borders; all regions are looked for before a byte moves. `undefined` if it is within one region, as everywhere else.
   */
  #piecesOf(call: string, t: Target, at: number, from: Side, to: Side, into?: Side): readonly Piece[] | undefined {
    const { attachments } = this.#parts;
    if (attachments === undefined || to.elements === 0) return undefined;
    const epochs = this.#epochs;
    const has = (low: number, high: number): boolean => epochs.attempt(() => attachments.has(t.rank, low, high));
    if (has(at + to.low, at + to.high)) return undefined;
    // Of what has no gaps, both ends are looked for first: it is seldom that regions meet, and the message is to name all of it.
    const [low, high] = [at + to.low, at + to.high];
    if (to.runs === undefined && !(has(low, low + 1) && has(high - 1, high))) return undefined;
    const where = `${call} to rank ${t.rank} in ${epochs.what}`;
    return piecesOf(call, from, to, into, (low, high) => {
      const region = epochs.attempt(() => attachments.find(where, t.rank, at + low, at + high));
      return region.address + region.bytes - at;
    });
  }

  /** In a dynamic window, what is attached at a displacement; undefined in others. */
  attachedAt(call: string, target: number, disp: number): Attached | undefined {
    const { attachments } = this.#parts;
    if (attachments === undefined) return undefined;
    const epochs = this.#epochs;
    const t = epochs.target(call, target);
    const at = this.#range(call, t, disp, { low: 0, high: 1 });
    const where = `${call} of rank ${target} in ${epochs.what}`;
    return epochs.attempt(() => attachments.find(where, target, at, at + 1));
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
    if (
      this.#parts.attachments !== undefined &&
      Number.isSafeInteger(at + to.low) &&
      Number.isSafeInteger(at + to.high)
    ) {
      return at;
    }
    if (!Number.isSafeInteger(at) || at + to.low < 0 || at + to.high > t.byteLength) {
      throw new RmaError(
        'ERR_RMA_RANGE',
        `${where()}: bytes ${at + to.low} … ${at + to.high - 1} do not fit into its part of ${t.byteLength} bytes (displacement ${disp}, unit ${t.dispUnit})`,
      );
    }
    return at;
  }

  /**
   * The way to byte `at` of the target's part, from which on all of `to` is accessed. Not mapped if it is accessed by requests.
   * @param byRequests whether there are requests for what the caller does
   */
  #reach(call: string, t: Target, at: number, to: Side, byRequests: boolean): Reach {
    const epochs = this.#epochs;
    const { attachments, userMemory, requests, updates, local } = this.#parts;
    if (attachments !== undefined) {
      const where = `${call} to rank ${t.rank} in ${epochs.what}`;
      const found = epochs.attempt(() => attachments.find(where, t.rank, at + to.low, at + to.high));
      const { part, stripes, region, address, memory } = found;
      const own = memory && { memory, address };
      if (region !== undefined) {
        const place = at + region.address;
        return { part: t.part, place, stripes: undefined, userMemory: undefined, region, memory: own };
      }
      if (part === undefined) return { part: t.part, place: at, stripes, userMemory, memory: undefined };
      return { part, place: at - address + part.skew, stripes, userMemory: undefined, memory: own };
    }
    const memory = t.rank === epochs.comm.rank ? { memory: local, address: 0 } : undefined;
    if (userMemory?.reaches(t.rank)) {
      return { part: t.part, place: userMemory.baseOf(t.rank) + at, stripes: undefined, userMemory, memory };
    }
    if (byRequests && requests !== undefined) {
      const place = at + (updates?.skewOf(t.rank) ?? 0);
      return { part: t.part, place, stripes: undefined, userMemory: undefined, memory };
    }
    epochs.map(t);
    return { part: t.part, place: at + t.part.skew, stripes: t.stripes, userMemory: undefined, memory };
  }

  #refuseUnaligned(call: string, t: Target, at: number, place: number, to: Side): void {
    const needed = alignmentNeeded(to);
    if (place % needed === 0 && isAligned(to, needed)) return;
    const where = `${call} to rank ${t.rank} in ${this.#epochs.what}`;
    throw new RmaError(
      'ERR_DISP',
      place % needed === 0
        ? `${where}: the target layout has elements that are not aligned to ${TYPE_NAMES[to.base]} (${needed} bytes), as atomic operations require`
        : `${where}: byte ${at} of its part is not aligned to ${TYPE_NAMES[to.base]} (${needed} bytes), as atomic operations require`,
    );
  }

  /** Origin and target in the same memory must not overlap (MPI 4.1, 12.3): seen where the target is this rank's own part. */
  #refuseOverlap(
    call: string,
    origin: TypedArray,
    from: Side,
    t: Target,
    at: number,
    to: Side,
    own: Reach['memory'],
    name = 'origin',
  ): void {
    if (own === undefined) return;
    const start = at - own.address;
    if (!overlap(origin, from.low, from.high, own.memory, start + to.low, start + to.high)) return;
    throw new RmaError(
      'ERR_RMA_CONFLICT',
      `${call} to rank ${t.rank} in ${this.#epochs.what}: the ${name} overlaps the target bytes ${at + to.low} … ${at + to.high - 1}`,
    );
  }
}

/** The bytes of an array from `at` on. */
function bytesFrom(array: TypedArray, at: number): Uint8Array {
  return bytesOf(array).subarray(at);
}

/** The common types. */
function isPlain(origin: TypedArray): boolean {
  const tag = tagOf(origin);
  return tag === 'Float64Array' || tag === 'Uint8Array' || tag === 'Int32Array' || tag === 'BigInt64Array';
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

/** What is written must not be written twice (MPI 4.1, 12.3.1): it is open what would remain. */
function refuseTwice(call: string, name: string, side: Side): void {
  if (!isOverlapping(call, side)) return;
  throw new RmaError(
    'ERR_RMA_CONFLICT',
    `${call}: the ${name} layout, ${side.count} × ${side.type}, would write some bytes twice, and the result would be undefined; use a layout that does not overlap itself`,
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
        `${call}: ${name} has the type ${TYPE_NAMES[found]}, but origin has ${TYPE_NAMES[code]}; the types must be the same`,
      );
    }
    code = found;
  }
  const { result } = buffers as { result: TypedArray };
  for (const [name, buffer] of Object.entries(buffers)) {
    if (name !== 'result' && overlap(buffer, 0, byteLengthOf(buffer), result, 0, byteLengthOf(result))) {
      throw argumentRangeError(`${call}: result overlaps ${name}`, 'ERR_BUFFER');
    }
  }
}

function overlap(a: TypedArray, aLow: number, aHigh: number, b: TypedArray, bLow: number, bHigh: number): boolean {
  if (bufferOf(a) !== bufferOf(b)) return false;
  const [aAt, bAt] = [byteOffsetOf(a), byteOffsetOf(b)];
  return aAt + aLow < bAt + bHigh && bAt + bLow < aAt + aHigh;
}
