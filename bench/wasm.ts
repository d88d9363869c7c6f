/**
 * A small encoder for WebAssembly modules (core specification 2.0, chapter 5): just the instructions that numerical
 * kernels need, and functions over one memory that is imported as `memory.memory`.
 */

/** What is used of the platform's `WebAssembly`, which TypeScript's library of ES2023 does not know. */
declare const WebAssembly: {
  readonly Memory: new (limits: { initial: number; maximum: number }) => { readonly buffer: ArrayBuffer };
  readonly Module: new (bytes: Uint8Array<ArrayBuffer>) => object;
  readonly Instance: new (module: object, imports: object) => { readonly exports: object };
};

/** Bytes of a page of WebAssembly's memory. */
const PAGE = 65536;
/** So many there can be. */
const PAGES = 65536;

/** Instructions in their binary form. */
export type Code = readonly number[];

const I32 = 0x7f;
const F64 = 0x7c;
const V128 = 0x7b;
/** Of a block without a value. */
const EMPTY = 0x40;

/** An unsigned integer, as LEB128. */
function unsigned(value: number): number[] {
  const bytes: number[] = [];
  for (;;) {
    const low = value & 0x7f;
    value >>>= 7;
    if (value === 0) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

/** A signed 32-bit integer, as LEB128. */
function signed(value: number): number[] {
  const bytes: number[] = [];
  for (;;) {
    const low = value & 0x7f;
    value >>= 7;
    if ((value === 0 && (low & 0x40) === 0) || (value === -1 && (low & 0x40) !== 0)) return [...bytes, low];
    bytes.push(low | 0x80);
  }
}

const vector = (opcode: number): number[] => [0xfd, ...unsigned(opcode)];
/** Address on the stack; `align` is the power of two that it is known to be a multiple of. */
const access = (opcode: Code, align: number, offset: number): Code => [...opcode, align, ...unsigned(offset)];

export const get = (local: number): Code => [0x20, ...unsigned(local)];
export const set = (local: number): Code => [0x21, ...unsigned(local)];
export const constant = (value: number): Code => [0x41, ...signed(value)];
export const add: Code = [0x6a];
export const subtract: Code = [0x6b];
export const multiply: Code = [0x6c];
export const shiftLeft: Code = [0x74];
/** Unsigned. */
export const lessThan: Code = [0x49];

/** local ← local + what the code leaves on the stack */
export const increase = (local: number, by: Code): Code => [...get(local), ...by, ...add, ...set(local)];

/** A 32-bit integer from memory. */
export const loadInteger = (offset: number): Code => access([0x28], 2, offset);
/** A double from memory, and back. */
export const loadDouble = (offset: number): Code => access([0x2b], 3, offset);
export const storeDouble = (offset: number): Code => access([0x39], 3, offset);
export const zero: Code = [0x44, 0, 0, 0, 0, 0, 0, 0, 0];
export const addDoubles: Code = [0xa0];
export const multiplyDoubles: Code = [0xa2];

/** Runs the body again as long as it leaves something other than 0 on the stack. */
export const repeat = (body: Code): Code => [0x03, EMPTY, ...body, 0x0d, 0, 0x0b];
/** Runs the body if there is something other than 0 on the stack. */
export const when = (condition: Code, body: Code): Code => [...condition, 0x04, EMPTY, ...body, 0x0b];

/** Two doubles from memory. */
export const load = (offset: number): Code => access(vector(0x00), 3, offset);
/** One double from memory, twice. */
export const loadTwice = (offset: number): Code => access(vector(0x0a), 3, offset);
export const store = (offset: number): Code => access(vector(0x0b), 3, offset);
/** The first of two doubles alone. */
export const storeFirst = (offset: number): Code => [...access(vector(0x5b), 3, offset), 0];
/** The lower doubles of two vectors, and the upper ones. */
export const lowerHalves: Code = [...vector(0x0d), 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
export const upperHalves: Code = [...vector(0x0d), 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31];
export const addPairs: Code = vector(0xf0);
export const subtractPairs: Code = vector(0xf1);
export const multiplyPairs: Code = vector(0xf2);

/**
 * A function without a result; parameters are 32-bit integers and come first among the locals, then further integers,
 * then vectors, then doubles.
 */
export interface WasmFunction {
  readonly parameters: number;
  readonly integers: number;
  readonly vectors: number;
  readonly doubles?: number;
  readonly code: Code;
}

/** The binary form of a module that exports these functions. */
function moduleOf(functions: Readonly<Record<string, WasmFunction>>): Uint8Array<ArrayBuffer> {
  const list = Object.entries(functions);
  const counted = (items: readonly Code[]): number[] => [...unsigned(items.length), ...items.flat()];
  const sized = (bytes: Code): number[] => [...unsigned(bytes.length), ...bytes];
  const section = (id: number, items: readonly Code[]): number[] => [id, ...sized(counted(items))];
  const name = (text: string): number[] => sized([...new TextEncoder().encode(text)]);
  return Uint8Array.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(
      1,
      list.map(([, { parameters }]) => [0x60, ...counted(new Array(parameters).fill([I32])), 0]),
    ),
    ...section(2, [[...name('memory'), ...name('memory'), 0x02, 0x00, ...unsigned(0)]]),
    ...section(
      3,
      list.map((_, i) => unsigned(i)),
    ),
    ...section(
      7,
      list.map(([exported], i) => [...name(exported), 0x00, ...unsigned(i)]),
    ),
    ...section(
      10,
      list.map(([, { integers, vectors, doubles = 0, code }]) =>
        sized([
          ...counted([
            [...unsigned(integers), I32],
            [...unsigned(vectors), V128],
            [...unsigned(doubles), F64],
          ]),
          ...code,
          0x0b,
        ]),
      ),
    ),
  ]);
}

/** Functions over a memory of their own; places are bytes. */
export interface Compiled<N extends string> {
  readonly memory: ArrayBuffer;
  readonly functions: Readonly<Record<N, (...parameters: number[]) => void>>;
}

/** @throws RangeError if WebAssembly has no memory of so many bytes */
export function compiled<N extends string>(functions: Readonly<Record<N, WasmFunction>>, bytes: number): Compiled<N> {
  const pages = Math.ceil(bytes / PAGE);
  if (pages > PAGES)
    throw new RangeError(
      `a rank's blocks and buffers need ${Math.ceil(bytes / 2 ** 20)} MiB, and WebAssembly has at most 4096: ` +
        "use more ranks, or the kernel 'typescript'",
    );
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  const instance = new WebAssembly.Instance(new WebAssembly.Module(moduleOf(functions)), { memory: { memory } });
  return { memory: memory.buffer, functions: instance.exports as Compiled<N>['functions'] };
}
