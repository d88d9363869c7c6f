/**
 * What instrumented modules call. An access whose buffer nobody looks at costs one look-up; all others go to the rank
 * that knows the buffer (watch/tracked-memory.ts).
 */
import { fileURLToPath } from 'node:url';
import type { RaceRuntime } from '../watch/tracked-memory.ts';
import { preludeOf } from './module-prelude.ts';
import { LIBRARY_CALLS, type Touched, touchedBy } from './program-methods.ts';

const CODES: Readonly<Record<string, number>> = {
  ...{ Int8Array: 0, Uint8Array: 1, Int16Array: 2, Uint16Array: 3, Int32Array: 4, Uint32Array: 5 },
  ...{ BigInt64Array: 6, BigUint64Array: 7 },
};

type Methods = Record<string, (...args: unknown[]) => unknown>;

/** The object of one module. */
class ProgramCalls {
  /** The index that was used last: read again at once. */
  key: PropertyKey = 0;
  /** What stands before `?.`: read again at once. */
  it: unknown;
  readonly #runtime: RaceRuntime;
  /** Number of its first place. */
  readonly #first: number;

  constructor(runtime: RaceRuntime, first: number) {
    this.#runtime = runtime;
    this.#first = first;
  }

  #index(array: unknown, index: unknown, place: number, reads: boolean, writes: boolean): void {
    if (typeof array !== 'object' || array === null || !ArrayBuffer.isView(array)) return;
    const memory = this.#runtime.memories.get(array.buffer);
    if (memory === undefined) return;
    const { length, BYTES_PER_ELEMENT: size } = array as Uint8Array;
    const i = typeof index === 'number' ? index : typeof index === 'string' ? Number(index) : -1;
    if (!(i >= 0 && i < length)) return;
    const low = array.byteOffset + i * size;
    if (reads) memory.touch(low, low + size, 0, this.#first + place, 'load', -1);
    if (writes) memory.touch(low, low + size, 1, this.#first + place, 'store', -1);
  }

  get(array: Record<PropertyKey, unknown>, index: PropertyKey, place: number): unknown {
    this.#index(array, index, place, true, false);
    return array[index];
  }

  put(array: unknown, index: PropertyKey, place: number): unknown {
    this.#index(array, index, place, false, true);
    this.key = index;
    return array;
  }

  both(array: unknown, index: PropertyKey, place: number): unknown {
    this.#index(array, index, place, true, true);
    this.key = index;
    return array;
  }

  assign(array: Record<PropertyKey, unknown>, index: PropertyKey, place: number, value: unknown): unknown {
    this.#index(array, index, place, false, true);
    array[index] = value;
    return value;
  }

  call(object: Methods, name: string, place: number, ...args: unknown[]): unknown {
    // Node would name `object[name]`, which the program has not.
    if (typeof object[name] !== 'function') throw new TypeError(`${name} is not a function`);
    if ((object as unknown) === Atomics) return this.#atomic(object, name, place, args);
    if (!LIBRARY_CALLS.has(name) || ArrayBuffer.isView(object)) {
      touchedBy(object, name, args, (touched) => this.#touch(touched, place, `${name}()`));
      return object[name](...args);
    }
    const runtime = this.#runtime;
    const before = runtime.site;
    runtime.site = this.#first + place;
    try {
      return object[name](...args);
    } finally {
      runtime.site = before;
    }
  }

  /** A change is told before it is made, and a look after it: others may see the one and make the other between. */
  #atomic(object: Methods, name: string, place: number, args: readonly unknown[]): unknown {
    const call = `Atomics.${name}()`;
    touchedBy(object, name, args, (touched) => {
      if (touched.writes !== 0) this.#touch({ ...touched, writes: 1 }, place, call);
    });
    const result = object[name](...args);
    touchedBy(object, name, args, (touched) => {
      if (touched.writes !== 1) this.#touch({ ...touched, writes: 0 }, place, call);
    });
    return result;
  }

  /** All of it is read, if it is an array of numbers. */
  all(value: unknown, place: number): unknown {
    if (ArrayBuffer.isView(value))
      this.#touch({ array: value, low: 0, high: value.byteLength, writes: 0 }, place, 'load');
    else if (isPlain(value)) for (const one of arraysIn(value)) this.all(one, place);
    return value;
  }

  /** So many elements are read; −1: all. */
  some(value: unknown, place: number, count: number): unknown {
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
      const bytes = count < 0 ? value.byteLength : count * (value as Uint8Array).BYTES_PER_ELEMENT;
      this.#touch({ array: value, low: 0, high: Math.min(bytes, value.byteLength), writes: 0 }, place, 'load');
    }
    return value;
  }

  /** The elements of these names are read; the module's other names are no numbers. */
  picked(value: unknown, place: number, ...indices: readonly number[]): unknown {
    for (const index of indices) this.#index(value, index, place, true, false);
    return value;
  }

  #touch({ array, low, high, writes, isAtomic }: Touched, place: number, call: string): void {
    if (high <= low) return;
    const memory = this.#runtime.memories.get(array.buffer);
    if (memory === undefined) return;
    const base = array.byteOffset;
    const end = Math.min(high, array.byteLength);
    const type = isAtomic === true ? (CODES[array.constructor.name] ?? 4) : -1;
    memory.touch(base + low, base + end, writes, this.#first + place, call, type);
  }
}

/** An object or array literal, as what is printed may be: looked into once. */
function isPlain(value: unknown): value is object {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === Array.prototype;
}

/** Those of few values. Nothing of the program's is called for them. */
function arraysIn(value: object): ArrayBufferView[] {
  const names = Object.keys(value);
  if (names.length >= 16) return [];
  const values = names.map((name): unknown => Object.getOwnPropertyDescriptor(value, name)?.value);
  return values.filter((one) => ArrayBuffer.isView(one));
}

/** Columns as they were. @param shifts line and column of the first statement, and of each place how much was added */
function columnsOf(prelude: number, shifts: readonly number[]): (line: number, column: number) => number {
  const [first, begin] = shifts;
  return (line, column) => {
    let at = column;
    // From the left: a place is where it was, once what is to its left is taken away.
    if (line === first && at > begin + prelude) at -= prelude;
    for (let i = 2; i + 2 < shifts.length; i += 3) {
      if (shifts[i] !== line) continue;
      if (at - 1 <= shifts[i + 1]) break;
      at = Math.max(shifts[i + 1] + 1, at - shifts[i + 2]);
    }
    return at;
  };
}

/** Makes the object of a module. @param places lines and columns, with blanks between */
export function programCalls(runtime: RaceRuntime): (url: string, places: string, shifts: string) => ProgramCalls {
  return (url, places, shifts) => {
    const first = runtime.sites.length;
    const file = fileURLToPath(url);
    for (const place of places.split(' ')) runtime.sites.push(`${file}:${place}`);
    runtime.columns.set(url, columnsOf(preludeOf(url, places, shifts).length, shifts.split(' ').map(Number)));
    return new ProgramCalls(runtime, first);
  };
}
