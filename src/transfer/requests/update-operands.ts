/**
 * The arrays of an accumulate or a compare-and-swap by requests, as bytes: those that they had when the call was made,
 * and words of 64 bits as two halves.
 */
import type { Side } from '../../datatype/sides.ts';
import { lostError } from './lost-arrays.ts';
import type { RemoteRegion } from './regions.ts';
import type { RemoteWord } from './remote-access.ts';
import type { Reply } from './remote-stripes.ts';

/** Arrays of a call, as bytes: those that it had when it was made. */
export interface Operands {
  readonly origin: Uint8Array;
  readonly from: Side;
  readonly result: Uint8Array | undefined;
  readonly into: Side | undefined;
}

/** Those of a compare-and-swap. */
export interface Arrays {
  readonly origin: Uint8Array;
  readonly compare: Uint8Array;
  readonly result: Uint8Array;
}

export function wordAt(rank: number, { rkey, address }: RemoteRegion, at: number): RemoteWord {
  return { rank, rkey, address: address + at };
}

/** What a reply brought, to a byte of an array. */
export function store(to: DataView, at: number, { lo, hi }: Reply): void {
  to.setUint32(at, lo, true);
  to.setUint32(at + 4, hi, true);
}

/** Replaces the bytes of an element, which no other rank touches meanwhile. */
export function swapBytes(there: Uint8Array, { origin, compare, result }: Arrays): void {
  const equal = there.every((byte, i) => byte === compare[i]);
  // Two of the arrays may be one.
  const wanted = origin.slice();
  result.set(there);
  if (equal) there.set(wanted);
}

/** The same of a word, atomically. */
export function swapWord(words: BigInt64Array, index: number, { origin, compare, result }: Arrays): void {
  const [expected, wanted] = [compare, origin].map((array) => viewOf(array).getBigInt64(0, true));
  viewOf(result).setBigInt64(0, Atomics.compareExchange(words, index, expected, wanted), true);
}

export function viewOf(array: Uint8Array): DataView {
  return new DataView(array.buffer, array.byteOffset, array.byteLength);
}

/** Errors: `ERR_BUFFER` if the program has taken memory of the call away since. */
export function refuseGone({ origin, from, result, into }: Operands, rank: number): void {
  if (origin.length < from.high) throw lostError('origin', 'an accumulate', rank);
  if (result !== undefined && result.length < into!.high) throw lostError('result', 'an accumulate', rank);
}

export function refuseGoneOf(arrays: Arrays, rank: number): void {
  for (const [name, array] of Object.entries(arrays))
    if (array.length === 0) throw lostError(name, 'a compareAndSwap', rank);
}

const exchange = new DataView(new ArrayBuffer(8));

export function halves(value: bigint): [lo: number, hi: number] {
  exchange.setBigInt64(0, BigInt.asIntN(64, value), true);
  return [exchange.getUint32(0, true), exchange.getUint32(4, true)];
}

export function joined(lo: number, hi: number, signed: boolean): bigint {
  exchange.setUint32(0, lo, true);
  exchange.setUint32(4, hi, true);
  return signed ? exchange.getBigInt64(0, true) : exchange.getBigUint64(0, true);
}
