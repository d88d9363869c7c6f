/**
 * What the library's calls do, said once more in the plainest way: one element after the other, integers as `BigInt`s
 * that are cut to their width, datatypes as lists of offsets.
 */
import { Datatype, Op, type TypedArray, type TypedArrayConstructor } from 'onesided';
import { MODELS } from './operations.ts';
import type { Random } from './random.ts';

/** A base type, and how its values are made and cut. */
export interface BaseType {
  readonly name: string;
  readonly array: TypedArrayConstructor;
  readonly type: Datatype;
  readonly bits: number;
  readonly kind: 'signed' | 'unsigned' | 'float';
}

export const BASE_TYPES: readonly BaseType[] = [
  { name: 'INT8', array: Int8Array, type: Datatype.INT8, bits: 8, kind: 'signed' },
  { name: 'UINT8', array: Uint8Array, type: Datatype.UINT8, bits: 8, kind: 'unsigned' },
  { name: 'INT16', array: Int16Array, type: Datatype.INT16, bits: 16, kind: 'signed' },
  { name: 'UINT16', array: Uint16Array, type: Datatype.UINT16, bits: 16, kind: 'unsigned' },
  { name: 'INT32', array: Int32Array, type: Datatype.INT32, bits: 32, kind: 'signed' },
  { name: 'UINT32', array: Uint32Array, type: Datatype.UINT32, bits: 32, kind: 'unsigned' },
  { name: 'INT64', array: BigInt64Array, type: Datatype.INT64, bits: 64, kind: 'signed' },
  { name: 'UINT64', array: BigUint64Array, type: Datatype.UINT64, bits: 64, kind: 'unsigned' },
  { name: 'FLOAT32', array: Float32Array, type: Datatype.FLOAT32, bits: 32, kind: 'float' },
  { name: 'FLOAT64', array: Float64Array, type: Datatype.FLOAT64, bits: 64, kind: 'float' },
];

export const OPS: readonly Op[] = Object.values(Op);

export function isAllowed(op: Op, base: BaseType): boolean {
  return MODELS[op.name][base.kind === 'float' ? 'floats' : 'integers'] !== undefined;
}

type Value = number | bigint;

/**
 * Random values: small ones, so that operations have something to say about equality and zero, and now and then the
 * extremes.
 */
export function randomValues(base: BaseType, length: number, random: Random): TypedArray {
  const values = new base.array(new ArrayBuffer(length * (base.bits / 8)));
  for (let i = 0; i < length; i++) setValue(values, i, randomValue(base, random));
  return values;
}

const FLOATS = [0, -0, 1, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 3e38, 1e-40];

function randomValue(base: BaseType, random: Random): Value {
  const whole = BigInt(random.bits()) * 2n ** 32n + BigInt(random.bits());
  if (base.kind === 'float') {
    if (random.chance(0.2)) return random.pick(FLOATS);
    return random.between(-1000, 1000) / 8;
  }
  const small = BigInt(random.between(-3, 3));
  const value = cut(base, random.chance(0.4) ? small : whole);
  return base.bits === 64 ? value : Number(value);
}

function cut(base: BaseType, value: bigint): bigint {
  return base.kind === 'signed' ? BigInt.asIntN(base.bits, value) : BigInt.asUintN(base.bits, value);
}

export function setValue(array: TypedArray, index: number, value: Value): void {
  (array as Float64Array)[index] = value as number;
}

export function valueAt(array: TypedArray, index: number): Value {
  return (array as Float64Array)[index];
}

/** `target op origin`, as MPI 4.1, 6.9.2 defines it on values of one type. */
export function combined(base: BaseType, op: Op, target: Value, origin: Value): Value {
  const { floats, integers } = MODELS[op.name];
  if (base.kind === 'float') {
    const value = floats!(target as number, origin as number);
    return base.bits === 32 ? Math.fround(value) : value;
  }
  const value = cut(base, integers!(BigInt(target), BigInt(origin)));
  return base.bits === 64 ? value : Number(value);
}

/** A layout for the library, and where its elements are, relative to the displacement. */
export interface Place {
  readonly description: string;
  /** Absent: the elements of the whole array, one after the other. */
  readonly layout: { type: Datatype; count: number } | undefined;
  readonly offsets: readonly number[];
}

export const PLACE_KINDS = ['plain', 'contiguous', 'vector', 'indexedBlock'] as const;
export type PlaceKind = (typeof PLACE_KINDS)[number];

/** Where `elements` (an even number) elements of a type lie. No two lie in the same place. */
export function makePlace(kind: PlaceKind, elements: number, type: Datatype, random: Random): Place {
  if (elements % 2 !== 0) throw new Error('an even number is needed');
  const range = (n: number): number[] => Array.from({ length: n }, (_, i) => i);
  if (kind === 'plain') return { description: kind, layout: undefined, offsets: range(elements) };
  if (kind === 'contiguous') {
    return {
      description: `contiguous(2) × ${elements / 2}`,
      layout: { type: Datatype.contiguous(2, type), count: elements / 2 },
      offsets: range(elements),
    };
  }
  if (kind === 'vector') {
    const block = random.chance(0.5) ? 1 : 2;
    const stride = block + random.below(3);
    const blocks = elements / block;
    // Two instances where the blocks divide: the second begins one extent, from first to last element, after the first.
    const count = blocks % 2 === 0 && blocks > 0 ? 2 : 1;
    const perInstance = blocks / count;
    const extent = perInstance === 0 ? 0 : (perInstance - 1) * stride + block;
    const offsets: number[] = [];
    for (let c = 0; c < count; c++)
      for (let b = 0; b < perInstance; b++) for (let i = 0; i < block; i++) offsets.push(c * extent + b * stride + i);
    return {
      description: `vector(${perInstance}, ${block}, ${stride}) × ${count}`,
      layout: { type: Datatype.vector(perInstance, block, stride, type), count },
      offsets,
    };
  }
  const block = random.chance(0.7) ? 1 : 2;
  const starts: number[] = [];
  let at = random.below(3);
  for (let i = 0; i < elements / block; i++) {
    starts.push(at);
    at += block + random.below(3);
  }
  // In an order of their own.
  for (let i = starts.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [starts[i], starts[j]] = [starts[j], starts[i]];
  }
  return {
    description: `indexedBlock(${block}, ${starts.length} displacements)`,
    layout: {
      type: Datatype.indexedBlock(block, random.chance(0.5) ? starts : Int32Array.from(starts), type),
      count: 1,
    },
    offsets: starts.flatMap((start) => range(block).map((i) => start + i)),
  };
}

/** Elements that an array needs to hold a place. */
export function reach(place: Place): number {
  return place.offsets.reduce((most, offset) => Math.max(most, offset + 1), 0);
}

/** The first index at which two arrays differ (NaN equals NaN, −0 is not 0), or −1. */
export function firstDifference(a: TypedArray, b: TypedArray): number {
  if (a.length !== b.length) return Math.min(a.length, b.length);
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return i;
  return -1;
}
