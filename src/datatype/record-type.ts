/** Records: the fields of `Datatype.struct({ name: type, … })`, and objects that read and write them in memory. */
import { argumentRangeError, argumentTypeError, RmaError, reading, show } from '../errors.ts';
import { arrayOf, PAIR_PARTS, type TypedArray } from './base-types.ts';
import { alignmentOf } from './flatten.ts';
import type { Runs } from './runs.ts';
import { readScalar, type Scalar, writeScalar } from './scalars.ts';
import type { Signature } from './signature.ts';
import { TypeCode } from './type-codes.ts';

/** What this needs to know of the type of a field. */
interface FieldType {
  readonly runs: Runs;
  readonly signature: Signature;
  readonly base: number;
  readonly elements: number;
  readonly bounds: readonly [lower: number, upper: number];
  readonly fields: readonly Field[] | undefined;
  toString(): string;
}

export interface Field {
  readonly name: string;
  readonly type: FieldType;
  /** In bytes. */
  readonly offset: number;
}

/** Makes an object that reads and writes an instance at byte `at` of `data`, in which all bytes of the instance lie. */
export type Viewer = (data: DataView, at: number) => object;

/**
 * The names that an object does not keep in the order in which they were written: JavaScript moves integers to the
 * front.
 */
const INTEGER = /^(0|[1-9]\d*)$/;

/** The fields at the places that a C compiler gives them. Errors: `TypeError` (`ERR_TYPE`, `ERR_ARG`). */
export function fieldsOf(given: object, checkType: (call: string, type: unknown) => void): readonly Field[] {
  const entries = reading('Datatype.struct', 'the fields', () => Object.entries(given) as [string, FieldType][]);
  let end = 0;
  return entries.map(([name, type]) => {
    if (INTEGER.test(name)) {
      throw argumentTypeError(
        `Datatype.struct: the field name ${show(name)} is an integer, ` +
          'and JavaScript does not keep such fields in order; use another name',
      );
    }
    if (name === 'toJSON') {
      throw argumentTypeError(
        'Datatype.struct: the field name "toJSON" is taken: JSON.stringify calls it; use another name',
      );
    }
    checkType('struct', type);
    const alignment = alignmentOf(type);
    // A field lies behind the upper bound of the one before, also what it has before its own origin.
    const [lower, upper] = type.bounds;
    const offset = Math.ceil((end - Math.min(lower, 0)) / alignment) * alignment;
    end = offset + upper;
    return { name, type, offset };
  });
}

/** Reads and writes one value at `at`. */
interface Accessor {
  read(data: DataView, at: number): unknown;
  write(data: DataView, at: number, value: unknown): void;
}

interface Part {
  readonly name: string;
  readonly offset: number;
  readonly accessor: Accessor;
}

/** For a record or a pair; `undefined` for other types. */
export function viewerOf(type: FieldType): Viewer | undefined {
  const { fields, base } = type;
  if (fields !== undefined) {
    return partsViewer(fields.map(({ name, offset, type }) => ({ name, offset, accessor: accessorOf(name, type) })));
  }
  if (type.elements !== 1 || !(base in PAIR_PARTS)) return undefined;
  const [value, indexAt] = PAIR_PARTS[base];
  const { low } = type.runs;
  return partsViewer([
    { name: 'value', offset: low, accessor: scalarAccessor(value) },
    { name: 'index', offset: low + indexAt, accessor: scalarAccessor(TypeCode.INT32) },
  ]);
}

/** One class a type, so that the parts are at fixed places for the compiler too. */
function partsViewer(parts: readonly Part[]): Viewer {
  class View {
    readonly #data: DataView;
    readonly #at: number;

    constructor(data: DataView, at: number) {
      this.#data = data;
      this.#at = at;
    }

    static {
      for (const { name, offset, accessor } of parts) {
        Object.defineProperty(View.prototype, name, {
          get(this: View) {
            return accessor.read(this.#data, this.#at + offset);
          },
          set(this: View, value: unknown) {
            accessor.write(this.#data, this.#at + offset, value);
          },
        });
      }
      // What prints the values, and `JSON.stringify`, see them as they are now.
      Object.defineProperty(View.prototype, 'toJSON', {
        value(this: View) {
          return Object.fromEntries(
            parts.map(({ name, offset, accessor }) => [name, accessor.read(this.#data, this.#at + offset)]),
          );
        },
      });
    }
  }
  return (data, at) => new View(data, at);
}

function accessorOf(name: string, type: FieldType): Accessor {
  const viewer = viewerOf(type);
  if (viewer !== undefined) {
    return { read: viewer, write: (data, at, value) => void Object.assign(viewer(data, at), plain(value)) };
  }
  const { base } = type;
  if (base >= 0 && base <= TypeCode.BYTE && type.runs.isDense) {
    return type.elements === 1 ? scalarAccessor(base) : arrayAccessor(name, base, type.elements);
  }
  const refuse = (): never => {
    throw new RmaError(
      'ERR_TYPE',
      `view: field ${show(name)} is ${type}, which a view does not support; ` +
        'a field must be a base type, a contiguous array of one, a pair or a record',
    );
  };
  return { read: refuse, write: refuse };
}

/** The values of a record: of a view, or of any object that has them. */
function plain(value: unknown): object {
  if (typeof value !== 'object' || value === null) {
    throw argumentTypeError(`view: the value of a record must be an object with its fields, not ${show(value)}`);
  }
  const { toJSON } = value as { toJSON?: () => object };
  return typeof toJSON === 'function' ? toJSON.call(value) : value;
}

/** A typed array over the elements themselves. */
function arrayAccessor(name: string, base: number, length: number): Accessor {
  const Elements = arrayOf(base);
  const read = (data: DataView, at: number): TypedArray => {
    const begin = data.byteOffset + at;
    if (begin % Elements.BYTES_PER_ELEMENT === 0) return new Elements(data.buffer, begin, length);
    throw argumentRangeError(
      `view: field ${show(name)} begins at byte ${begin} of its buffer, where a ${Elements.name} cannot begin; ` +
        `use memory that is aligned to ${Elements.BYTES_PER_ELEMENT} bytes`,
      'ERR_BUFFER',
    );
  };
  return { read, write: (data, at, value) => (read(data, at) as Uint8Array).set(value as ArrayLike<number>) };
}

function scalarAccessor(code: number): Accessor {
  return {
    read: (data, at) => readScalar(data, code, at),
    write: (data, at, value) => writeScalar(data, code, at, value as Scalar),
  };
}
