/**
 * Datatypes: where the elements of a buffer lie, relative to a starting point, and of which base types they are (MPI
 * 4.1, chapter 5).
 *
 * A datatype is flattened when it is made, into runs of bytes and a signature, and never looked at as a tree again.
 */
import { totalmem } from 'node:os';
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { arrayOver, bytesOf, checkBuffer, DATA_SIZES, TYPE_NAMES, TYPE_SIZES, type TypedArray } from './base-types.ts';
import { copyPlaces, type Places } from './copy.ts';
import {
  checkBlocks,
  checkCount,
  checkInteger,
  checkLengths,
  checkOrder,
  copyOf,
  integersOf,
  isInt32Array,
} from './datatype-arguments.ts';
import { type Distribution, ownedBlocks } from './distribution.ts';
import { arrayPart, type Bounds, exact, type Flat, type Order, placed, regular, sized, structure } from './flatten.ts';
import { type Field, fieldsOf, type Viewer, viewerOf } from './record-type.ts';
import { Runs } from './runs.ts';
import { MIXED, Signature } from './signature.ts';
import { TypeCode } from './type-codes.ts';

/** The named fields of a record type, in order: the argument of `Datatype.struct`. */
export type Fields = Readonly<Record<string, Datatype>>;
/** The type of a record's view: `Datatype.struct({ x: Datatype.FLOAT64, … }).view(…)` returns `{ x: number, … }`. */
export type RecordOf<F extends Fields> = { -readonly [K in keyof F]: F[K] extends Datatype<infer V> ? V : never };

declare const VALUE: unique symbol;

/**
 * Describes where the elements of a buffer lie, relative to a starting point, and which base types they have (MPI 4.1,
 * chapter 5). A datatype never changes and needs no commit.
 * @typeParam V the JavaScript type of an instance: a number, a bigint, a record
 */
export class Datatype<V = unknown> {
  /** For the type checker only. */
  declare readonly [VALUE]?: V;
  /** Only what the constructor has made has it. */
  readonly #made = true;
  /** @internal */
  readonly runs: Runs;
  /** @internal */
  readonly signature: Signature;
  /** @internal */
  readonly bounds: Bounds;
  readonly #description: string;
  #viewer: Viewer | undefined;
  /** `KeptSides`, which only kept-sides.ts puts here and reads. */
  #kept: object | undefined;
  /** @internal Of a record. */
  readonly fields: readonly Field[] | undefined;
  /**
   * @internal Whether its bounds were given, by `resized` or as the whole of an array, in itself or in what it is made
   * of: MPI's markers of the lower and the upper bound. In a struct only such bounds count, if there are any (MPI 4.1,
   * 5.1.6).
   */
  readonly marked: boolean;

  private constructor(
    runs: Runs,
    signature: Signature,
    bounds: Bounds,
    description: string,
    marked: boolean,
    fields?: readonly Field[],
  ) {
    this.runs = runs;
    this.signature = signature;
    this.bounds = bounds;
    this.#description = description;
    this.marked = marked;
    this.fields = fields;
  }

  /** A signed 8-bit integer (`MPI_INT8_T`). */
  static readonly INT8 = Datatype.#named<number>(TypeCode.INT8);
  /** An unsigned 8-bit integer (`MPI_UINT8_T`). */
  static readonly UINT8 = Datatype.#named<number>(TypeCode.UINT8);
  /** A signed 16-bit integer (`MPI_INT16_T`). */
  static readonly INT16 = Datatype.#named<number>(TypeCode.INT16);
  /** An unsigned 16-bit integer (`MPI_UINT16_T`). */
  static readonly UINT16 = Datatype.#named<number>(TypeCode.UINT16);
  /** A signed 32-bit integer (`MPI_INT32_T`). */
  static readonly INT32 = Datatype.#named<number>(TypeCode.INT32);
  /** An unsigned 32-bit integer (`MPI_UINT32_T`). */
  static readonly UINT32 = Datatype.#named<number>(TypeCode.UINT32);
  /** A signed 64-bit integer (`MPI_INT64_T`). */
  static readonly INT64 = Datatype.#named<bigint>(TypeCode.INT64);
  /** An unsigned 64-bit integer (`MPI_UINT64_T`). */
  static readonly UINT64 = Datatype.#named<bigint>(TypeCode.UINT64);
  /** A 32-bit floating-point number (`MPI_FLOAT`). */
  static readonly FLOAT32 = Datatype.#named<number>(TypeCode.FLOAT32);
  /** A 64-bit floating-point number (`MPI_DOUBLE`). */
  static readonly FLOAT64 = Datatype.#named<number>(TypeCode.FLOAT64);
  /** A byte without a numeric meaning (`MPI_BYTE`). */
  static readonly BYTE = Datatype.#named<number>(TypeCode.BYTE);
  /**
   * A pair of a FLOAT32 value and an INT32 index: 8 bytes. Pairs are for `Op.MINLOC` and `Op.MAXLOC` (MPI 4.1, 6.9.4)
   * and have the layout of C.
   */
  static readonly FLOAT_INT = Datatype.#named<{ value: number; index: number }>(TypeCode.FLOAT_INT);
  /** A pair of a FLOAT64 value and an INT32 index: 12 bytes of data and 4 of padding. */
  static readonly DOUBLE_INT = Datatype.#named<{ value: number; index: number }>(TypeCode.DOUBLE_INT);
  /** A pair of an INT64 value and an INT32 index: 12 bytes of data and 4 of padding. */
  static readonly LONG_INT = Datatype.#named<{ value: bigint; index: number }>(TypeCode.LONG_INT);
  /** A pair of an INT16 value and an INT32 index, with 2 bytes of padding between them: 8 bytes. */
  static readonly SHORT_INT = Datatype.#named<{ value: number; index: number }>(TypeCode.SHORT_INT);
  /** A pair of an INT32 value and an INT32 index (`MPI_2INT`): 8 bytes. */
  static readonly TWO_INT = Datatype.#named<{ value: number; index: number }>(TypeCode.TWO_INT);

  /** @internal Whether `value` is a datatype; runs no code of the caller's. */
  static is(value: unknown): value is Datatype {
    return typeof value === 'object' && value !== null && #made in value;
  }

  /** @internal What was kept at a datatype (kept-sides.ts); `undefined` of anything else. */
  static keptAt(type: unknown): object | undefined {
    return Datatype.is(type) ? type.#kept : undefined;
  }

  /** @internal */
  static keepAt(type: Datatype, sides: object): void {
    type.#kept = sides;
  }

  /** @internal The `TypeCode` of all elements, or `MIXED`. */
  get base(): number {
    return this.signature.base;
  }

  /** The number of base elements of an instance. */
  get elements(): number {
    return this.signature.elements;
  }

  /** The number of data bytes of an instance, without gaps (`MPI_Type_size`). */
  get size(): number {
    return this.runs.bytes;
  }

  /** The lower bound: where an instance begins, in bytes from the starting point (`MPI_Type_get_extent`). */
  get lb(): number {
    return this.bounds[0];
  }

  /** The upper bound: where an instance ends, in bytes from the starting point. */
  get ub(): number {
    return this.bounds[1];
  }

  /** The number of bytes from one instance to the next: `ub - lb`. */
  get extent(): number {
    return this.bounds[1] - this.bounds[0];
  }

  /** The offset of the first data byte from the starting point (`MPI_Type_get_true_extent`). */
  get trueLb(): number {
    return this.runs.low;
  }

  /** The number of bytes from the first data byte to the last. */
  get trueExtent(): number {
    return this.runs.high - this.runs.low;
  }

  /** Describes the datatype in words, in about 160 characters at most. */
  toString(): string {
    return this.#description;
  }

  /**
   * Returns whether both datatypes have the same elements at the same offsets in the same order, and the same bounds,
   * regardless of how they were made. Cost: proportional to the number of runs of consecutive bytes.
   */
  equals(other: Datatype): boolean {
    checkType('equals', other);
    if (other === this) return true;
    if (this.lb !== other.lb || this.ub !== other.ub || this.size !== other.size) return false;
    return this.signature.equals(other.signature) && this.runs.equals(other.runs);
  }

  /**
   * Copies `count` instances in `memory` into a new array without gaps (`MPI_Pack`): `count * size` bytes.
   * Errors: `ERR_BUFFER` (memory is too short or detached), `ERR_SIZE` (the result does not fit into memory).
   */
  pack(memory: TypedArray, count = 1): Uint8Array {
    const [bytes, places] = this.#within('pack', 'memory', memory, count);
    const packed = room('pack', places.bytes);
    copyPlaces(places, bytes, 0, consecutive(places.bytes), packed, 0, undefined);
    return packed;
  }

  /**
   * Copies `count * size` packed bytes back to their offsets in `memory` (`MPI_Unpack`), and leaves the gaps unchanged.
   * Errors: as `pack`, and `ERR_TRUNCATE` (the length of `packed` is wrong).
   */
  unpack(packed: TypedArray, memory: TypedArray, count = 1): void {
    checkBuffer('unpack', 'packed', packed);
    const source = bytesOf(packed);
    const [bytes, places] = this.#within('unpack', 'memory', memory, count);
    if (source.length !== places.bytes) {
      throw new RmaError(
        'ERR_TRUNCATE',
        `unpack: ${count} × ${this} needs ${places.bytes} bytes, but packed has ${source.length}`,
      );
    }
    // A copy: the two may be parts of one buffer.
    copyPlaces(consecutive(places.bytes), source.slice(), 0, places, bytes, 0, undefined);
  }

  #within(call: string, name: string, memory: TypedArray, count: number): [Uint8Array, Places] {
    checkBuffer(call, name, memory);
    const all = bytesOf(memory);
    checkCount(call, 'count', count);
    const { bytes, low, high } = this.span(call, count);
    if (low < 0 || high > all.length) {
      throw argumentRangeError(
        `${call}: ${count} × ${this} covers bytes ${low} … ${high - 1}, but ${name} has ${all.length} bytes`,
        'ERR_BUFFER',
      );
    }
    return [all, { bytes, runs: this.runs, count, stride: this.extent }];
  }

  /** @internal Of `count` instances: bytes of data, and the lowest byte and one past the highest. */
  span(call: string, count: number): { bytes: number; low: number; high: number } {
    const { runs, extent } = this;
    const bytes = count * runs.bytes;
    if (bytes === 0) return { bytes, low: 0, high: 0 };
    const shift = (count - 1) * extent;
    const low = runs.low + Math.min(0, shift);
    const high = runs.high + Math.max(0, shift);
    if (!Number.isSafeInteger(bytes) || !Number.isSafeInteger(low) || !Number.isSafeInteger(high)) {
      throw argumentRangeError(`${call}: ${count} × ${this} exceeds 2^53 − 1 bytes`);
    }
    return { bytes, low, high };
  }

  /**
   * Returns instance `index` in `memory` as an object with the fields of `Datatype.struct`, or, for a pair, `value` and
   * `index`. Reading or writing a field loads or stores the memory directly; nothing is copied.
   * Errors: `ERR_TYPE` (not a record type), `ERR_BUFFER` (a byte of the instance lies outside of the memory; or, when
   * it is read, a field that is an array in memory that is not aligned to it).
   */
  view(memory: TypedArray | ArrayBufferLike, index = 0): V {
    this.#viewer ??= viewerOf(this);
    if (this.#viewer === undefined) {
      throw new RmaError(
        'ERR_TYPE',
        `view: ${this} has no named fields; create it with Datatype.struct({ name: type, … })`,
      );
    }
    const { buffer, byteOffset, byteLength } = arrayOver('view', memory);
    if (!Number.isSafeInteger(index) || index < 0) {
      throw argumentRangeError(`view: the index must be a non-negative integer, not ${show(index)}`);
    }
    const at = index * this.extent;
    // With a lower bound or an extent of one's own, fields may lie anywhere.
    const low = Math.min(at, at + this.runs.low);
    const high = Math.max(at + this.extent, at + this.runs.high);
    if (!(low >= 0 && high <= byteLength)) {
      throw argumentRangeError(
        `view: instance ${index} of ${this} covers bytes ${low} … ${high - 1}, but memory has ${byteLength} bytes`,
        'ERR_BUFFER',
      );
    }
    return this.#viewer(new DataView(buffer, byteOffset, byteLength), at) as V;
  }

  /** Creates a datatype of `count` consecutive instances of `type` (`MPI_Type_contiguous`). */
  static contiguous(count: number, type: Datatype): Datatype<TypedArray> {
    checkType('contiguous', type);
    checkCount('contiguous', 'count', count);
    return Datatype.#make('contiguous', `contiguous(${count}, ${type})`, () => regular(type, 1, 0, count));
  }

  /**
   * Creates a datatype of `count` blocks of `blockLength` instances (`MPI_Type_vector`). Blocks begin `stride`
   * instances apart; `stride` may be negative.
   */
  static vector(count: number, blockLength: number, stride: number, type: Datatype): Datatype {
    checkType('vector', type);
    checkBlocks('vector', count, blockLength, stride);
    const words = `vector(${count}, ${blockLength}, ${stride}, ${type})`;
    return Datatype.#make('vector', words, () => regular(type, count, stride * type.extent, blockLength));
  }

  /** Creates a datatype like `vector`, with `stride` in bytes (`MPI_Type_create_hvector`). */
  static hvector(count: number, blockLength: number, stride: number, type: Datatype): Datatype {
    checkType('hvector', type);
    checkBlocks('hvector', count, blockLength, stride);
    const words = `hvector(${count}, ${blockLength}, ${stride} bytes, ${type})`;
    return Datatype.#make('hvector', words, () => regular(type, count, stride, blockLength));
  }

  /**
   * Creates a datatype of blocks of `blockLengths[i]` instances at `displacements[i]`, in units of instances
   * (`MPI_Type_indexed`).
   */
  static indexed(blockLengths: ArrayLike<number>, displacements: ArrayLike<number>, type: Datatype): Datatype {
    return Datatype.#indexed('indexed', blockLengths, displacements, type, true);
  }

  /** Creates a datatype like `indexed`, with displacements in bytes (`MPI_Type_create_hindexed`). */
  static hindexed(blockLengths: ArrayLike<number>, displacements: ArrayLike<number>, type: Datatype): Datatype {
    return Datatype.#indexed('hindexed', blockLengths, displacements, type, false);
  }

  /**
   * Creates a datatype of blocks of `blockLength` instances at `displacements`, in units of instances
   * (`MPI_Type_create_indexed_block`). The displacements are copied.
   * Cost: proportional to their number; if they are an `Int32Array` and `type` is a base type, the copy is the only
   * allocation.
   */
  static indexedBlock(blockLength: number, displacements: ArrayLike<number>, type: Datatype): Datatype {
    const call = 'indexedBlock';
    checkType(call, type);
    checkCount(call, 'blockLength', blockLength);
    const { size } = type;
    const contiguous = type.runs.isDense && type.lb === 0 && type.extent === size;
    if (isInt32Array(displacements) && contiguous && type.base !== MIXED) {
      return sized(call, `indexedBlock of ${displacements.length}`, (words) => {
        const runs = Runs.blocks(copyOf(displacements), size, blockLength * size);
        const signature = Signature.of(type.base, runs.count * blockLength * type.elements);
        return new Datatype(runs, signature, [runs.low, runs.high], words, type.marked && runs.count * blockLength > 0);
      });
    }
    return Datatype.#indexedBlock(call, blockLength, displacements, type, true);
  }

  /** Creates a datatype like `indexedBlock`, with displacements in bytes (`MPI_Type_create_hindexed_block`). */
  static hindexedBlock(blockLength: number, displacements: ArrayLike<number>, type: Datatype): Datatype {
    checkType('hindexedBlock', type);
    checkCount('hindexedBlock', 'blockLength', blockLength);
    return Datatype.#indexedBlock('hindexedBlock', blockLength, displacements, type, false);
  }

  /**
   * Creates a record type with named fields and the layout of a C compiler: fields are in order, each aligned to its
   * type, with padding at the end so that instances can follow each other. `view` reads and writes instances.
   *
   *     const Particle = Datatype.struct({ x: Datatype.FLOAT64, y: Datatype.FLOAT64, tag: Datatype.INT32 });
   *     Particle.view(win.local, 3).tag = 7;
   */
  static struct<const F extends Fields>(fields: F): Datatype<RecordOf<F>>;
  /**
   * Creates a datatype of `blockLengths[i]` instances of `types[i]` at `displacements[i]`, in bytes
   * (`MPI_Type_create_struct`). The extent is padded to the alignment of the strictest base type, as in C; `resized`
   * sets another extent. If some of the types have explicit bounds, from `resized`, `subarray` or `darray`, the extent
   * reaches from the lowest to the highest of these and is not padded (MPI 4.1, 5.1.6).
   */
  static struct(
    blockLengths: ArrayLike<number>,
    displacements: ArrayLike<number>,
    types: readonly Datatype[],
  ): Datatype;
  static struct(
    first: Fields | ArrayLike<number>,
    displacements?: ArrayLike<number>,
    types?: readonly Datatype[],
  ): Datatype {
    if (displacements === undefined && types === undefined && typeof first === 'object' && first !== null) {
      return Datatype.#record(first as Fields);
    }
    const lengths = integersOf('struct', 'blockLengths', first as ArrayLike<number>);
    const places = integersOf('struct', 'displacements', displacements as ArrayLike<number>);
    checkLengths('struct', lengths);
    if (!Array.isArray(types)) {
      throw argumentTypeError(`Datatype.struct: types must be an array of datatypes, not ${show(types)}`, 'ERR_TYPE');
    }
    const list = reading('Datatype.struct', 'types', () => Array.from(types));
    for (const type of list) checkType('struct', type);
    if (lengths.length !== places.length || lengths.length !== list.length) {
      throw argumentRangeError(
        `Datatype.struct: ${lengths.length} blockLengths, ${places.length} displacements and ${list.length} ` +
          'types; their numbers must be equal',
      );
    }
    const words = `struct of ${list.length} blocks`;
    return Datatype.#make('struct', words, () => structure(lengths, places, list, false));
  }

  /**
   * Creates a datatype for a subarray of an array (`MPI_Type_create_subarray`): the indices `starts` … `starts +
   * subsizes - 1` of an array of `sizes` instances. Its extent is that of the whole array, so that consecutive
   * instances are consecutive arrays.
   * @param order whether the last index varies fastest (`'C'`, the default) or the first (`'F'`)
   */
  static subarray(
    sizes: ArrayLike<number>,
    subsizes: ArrayLike<number>,
    starts: ArrayLike<number>,
    type: Datatype,
    order: Order = 'C',
  ): Datatype {
    const call = 'subarray';
    checkType(call, type);
    checkOrder(call, order);
    const all = integersOf(call, 'sizes', sizes);
    const some = integersOf(call, 'subsizes', subsizes);
    const begins = integersOf(call, 'starts', starts);
    if (all.length === 0 || some.length !== all.length || begins.length !== all.length) {
      throw argumentRangeError(
        `Datatype.subarray: ${all.length} sizes, ${some.length} subsizes and ${begins.length} starts; ` +
          'their numbers must be equal and at least 1',
      );
    }
    for (let d = 0; d < all.length; d++) {
      if (all[d] >= 1 && some[d] >= 1 && begins[d] >= 0 && begins[d] + some[d] <= all[d]) continue;
      throw argumentRangeError(
        `Datatype.subarray: in dimension ${d}, a subsize of ${some[d]} at start ${begins[d]} does not fit into a ` +
          `size of ${all[d]}; sizes and subsizes must be at least 1`,
      );
    }
    const words = `subarray([${some}] of [${all}] at [${begins}], ${type})`;
    const blocks = some.map((length, d) => [[begins[d], length]] as const);
    return Datatype.#make(call, words, () => arrayPart(type, all, blocks, order));
  }

  /**
   * Creates a datatype for the part of process `rank` of a global array of `gsizes` instances, distributed over a grid
   * of `psizes` processes (`MPI_Type_create_darray`).
   * @param distribs for each dimension, `'block'`, `'cyclic'` or `'none'`
   * @param dargs for each dimension, the block size or `'default'`
   */
  static darray(
    size: number,
    rank: number,
    gsizes: ArrayLike<number>,
    distribs: readonly Distribution[],
    dargs: readonly (number | 'default')[],
    psizes: ArrayLike<number>,
    type: Datatype,
    order: Order = 'C',
  ): Datatype {
    const call = 'darray';
    checkType(call, type);
    checkOrder(call, order);
    const all = integersOf(call, 'gsizes', gsizes);
    const grid = integersOf(call, 'psizes', psizes);
    const blocks = sized(call, `darray of [${all}]`, () => ownedBlocks(size, rank, all, distribs, dargs, grid));
    const words = `darray(part ${rank} of ${size}, [${all}] on a grid of [${grid}], ${type})`;
    return Datatype.#make(call, words, () => arrayPart(type, all, blocks, order));
  }

  /**
   * Creates a copy of a datatype with another lower bound and extent, in bytes (`MPI_Type_create_resized`). The extent
   * determines where the next instance begins.
   */
  static resized<V>(type: Datatype<V>, lowerBound: number, extent: number): Datatype<V> {
    checkType('resized', type);
    checkInteger('resized', 'lowerBound', lowerBound);
    checkInteger('resized', 'extent', extent);
    const { runs, signature, fields } = type;
    const bounds: Bounds = [lowerBound, lowerBound + extent];
    const words = `resized(${type}, ${lowerBound}, ${extent})`;
    return Datatype.#make('resized', words, () => ({ runs, signature, bounds, marked: true }), fields);
  }

  /** Creates a copy of a datatype (`MPI_Type_dup`): another object that describes the same elements. */
  static dup<V>(type: Datatype<V>): Datatype<V> {
    checkType('dup', type);
    return new Datatype<V>(type.runs, type.signature, type.bounds, String(type), type.marked, type.fields);
  }

  static #named<V>(code: number): Datatype<V> {
    const runs =
      code === TypeCode.SHORT_INT
        ? Runs.joined([
            [Runs.dense(2), 0],
            [Runs.dense(4), 4],
          ])
        : Runs.dense(DATA_SIZES[code]);
    return new Datatype<V>(runs, Signature.of(code, 1), [0, TYPE_SIZES[code]], TYPE_NAMES[code], false);
  }

  /** Errors: `ERR_TYPE` (too large). */
  static #make<V>(call: string, description: string, flatten: () => Flat, fields?: readonly Field[]): Datatype<V> {
    return sized(call, description, (words) => {
      const { runs, signature, bounds, marked } = exact(flatten());
      return new Datatype<V>(runs, signature, bounds, words, marked, fields);
    });
  }

  /** @internal The base type of this code. */
  static ofCode(code: number): Datatype {
    return NAMED[code];
  }

  static #indexed(
    call: string,
    blockLengths: ArrayLike<number>,
    displacements: ArrayLike<number>,
    type: Datatype,
    inInstances: boolean,
  ): Datatype {
    checkType(call, type);
    const lengths = integersOf(call, 'blockLengths', blockLengths);
    const places = integersOf(call, 'displacements', displacements);
    checkLengths(call, lengths);
    if (lengths.length !== places.length) {
      throw argumentRangeError(
        `Datatype.${call}: ${lengths.length} blockLengths and ${places.length} displacements; ` +
          'their numbers must be equal',
      );
    }
    const words = `${call} of ${lengths.length} blocks of ${type}`;
    const unit = inInstances ? type.extent : 1;
    return Datatype.#make(call, words, () => placed(type, (i) => lengths[i], places, unit));
  }

  static #indexedBlock(
    call: string,
    blockLength: number,
    displacements: ArrayLike<number>,
    type: Datatype,
    inInstances: boolean,
  ): Datatype {
    const places = integersOf(call, 'displacements', displacements);
    const words = `${call} of ${places.length} × ${blockLength} ${type}`;
    const unit = inInstances ? type.extent : 1;
    return Datatype.#make(call, words, () => placed(type, () => blockLength, places, unit));
  }

  static #record(given: Fields): Datatype {
    const fields = fieldsOf(given, checkType);
    const types = fields.map(({ type }) => type as Datatype);
    const words = `struct { ${fields.map(({ name, type }) => `${name}: ${type}`).join(', ')} }`;
    const places = fields.map(({ offset }) => offset);
    const lengths = new Array<number>(types.length).fill(1);
    return Datatype.#make('struct', words, () => structure(lengths, places, types, true), fields);
  }
}

const NAMED: readonly Datatype[] = [
  Datatype.INT8,
  Datatype.UINT8,
  Datatype.INT16,
  Datatype.UINT16,
  Datatype.INT32,
  Datatype.UINT32,
  Datatype.INT64,
  Datatype.UINT64,
  Datatype.FLOAT32,
  Datatype.FLOAT64,
  Datatype.BYTE,
  Datatype.FLOAT_INT,
  Datatype.DOUBLE_INT,
  Datatype.LONG_INT,
  Datatype.SHORT_INT,
  Datatype.TWO_INT,
];

/** Asks for no more than the machine has: Node 26 ends a worker thread whose request cannot be met. */
function room(call: string, bytes: number): Uint8Array {
  try {
    if (bytes > totalmem()) throw new RangeError(`this machine has ${totalmem()} bytes of memory`);
    return new Uint8Array(bytes);
  } catch (cause) {
    throw new RmaError('ERR_SIZE', `${call}: cannot allocate ${bytes} bytes`, { cause });
  }
}

function consecutive(bytes: number): Places {
  return { bytes, runs: undefined, count: 1, stride: 0 };
}

function checkType(call: string, type: unknown): asserts type is Datatype {
  if (!Datatype.is(type))
    throw argumentTypeError(`Datatype.${call}: type must be a Datatype, not ${show(type)}`, 'ERR_TYPE');
}
