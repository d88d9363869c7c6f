/**
 * The transforms of a process in WebAssembly: the passes of fft-kernel.ts, two numbers at a time.
 *
 * Between passes, two numbers lie as their two real parts and then their two imaginary parts, so that a product of
 * complex numbers needs no rearrangement: the first pass takes numbers apart, the last one puts them together. The last
 * one also multiplies by the factors, for which the numbers would have to be read once more otherwise.
 *
 * What a pass multiplies by is tabulated for it in the order in which it reads: w, w², w³ for each k, real parts and
 * imaginary parts. Operations are those of fft-kernel.ts in their order, so results are equal bit by bit.
 */
import {
  add,
  addPairs,
  type Code,
  compiled,
  constant,
  get,
  increase,
  lessThan,
  load,
  loadTwice,
  lowerHalves,
  multiplyPairs,
  repeat,
  set,
  store,
  subtractPairs,
  upperHalves,
  type WasmFunction,
} from '../wasm.ts';
import { roots, type Transforms, twiddles } from './fft-kernel.ts';

const DOUBLE = 8;
/** Bytes of a number, of two, and of what a pass multiplies by for one k. */
const NUMBER = 16;
const TWO = 32;
const POWERS = 6 * DOUBLE;
/** Arrays begin at multiples of a cache line, with one between them. */
const LINE = 64;

/** Locals of the real parts and of the imaginary parts of two numbers. */
type Pair = readonly [real: number, imaginary: number];
/** The same as they are computed. */
type Parts = readonly [real: Code, imaginary: Code];

const each = (locals: readonly number[], body: (local: number, i: number) => Code): Code => locals.flatMap(body);
/** Locals from `first` on. */
const locals = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first + i);
const two = (a: number, operation: Code, b: number): Code => [...get(a), ...get(b), ...operation];
const keep = ([real, imaginary]: Pair, parts: Parts): Code => [
  ...[...parts[0], ...set(real)],
  ...[...parts[1], ...set(imaginary)],
];

const sum = ([a, b]: Pair, [c, d]: Pair): Parts => [two(a, addPairs, c), two(b, addPairs, d)];
const difference = ([a, b]: Pair, [c, d]: Pair): Parts => [two(a, subtractPairs, c), two(b, subtractPairs, d)];
/** −i (x − y) */
const turned = ([a, b]: Pair, [c, d]: Pair): Parts => [two(b, subtractPairs, d), two(c, subtractPairs, a)];
const product = ([a, b]: Pair, [c, d]: Pair): Parts => [
  [...two(a, multiplyPairs, c), ...two(b, multiplyPairs, d), ...subtractPairs],
  [...two(a, multiplyPairs, d), ...two(b, multiplyPairs, c), ...addPairs],
];

/** Two numbers at an address: as they lie between passes, or apart. */
const read = (address: number, [real, imaginary]: Pair): Code => [
  ...[...get(address), ...load(0), ...set(real)],
  ...[...get(address), ...load(NUMBER), ...set(imaginary)],
];
const readApart = (address: number, [real, imaginary]: Pair): Code => {
  const both: Code = [...get(address), ...load(0), ...get(address), ...load(NUMBER)];
  return [...both, ...lowerHalves, ...set(real), ...both, ...upperHalves, ...set(imaginary)];
};
const write = (address: number, [real, imaginary]: Parts): Code => [
  ...[...get(address), ...real, ...store(0)],
  ...[...get(address), ...imaginary, ...store(NUMBER)],
];
/** The first numbers of each of two pairs, and the second ones, are written beside each other. */
const writeTogether = (address: number, offset: number, a: number, b: number): Code => [
  ...[...get(address), ...two(a, lowerHalves, b), ...store(offset)],
  ...[...get(address), ...two(a, upperHalves, b), ...store(offset + NUMBER)],
];

/** How numbers lie that a pass reads and writes: as in the program's arrays, or as between passes. */
interface Edges {
  readonly apart: boolean;
  readonly together: boolean;
  /** Multiplies by the factors. */
  readonly scaled: boolean;
}
const MIDDLE: Edges = { apart: false, together: false, scaled: false };
const LAST: Edges = { apart: false, together: true, scaled: true };
const ALONE: Edges = { apart: true, together: true, scaled: false };

/** Writes results of a pass, perhaps multiplied by the factors at another address. @param spare locals */
function writer({ together, scaled }: Edges, kept: Pair, spare: Pair, to: number, factors: number, parts: Parts): Code {
  if (!together) return write(to, parts);
  const [real, imaginary] = scaled ? spare : kept;
  return [
    ...keep(kept, parts),
    ...(scaled ? [...readApart(factors, spare), ...keepProduct(kept, spare)] : []),
    ...writeTogether(to, 0, real, imaginary),
  ];
}

/** other ← one × other */
const keepProduct = (one: Pair, other: Pair): Code => {
  const [real, imaginary] = product(one, other);
  return [...real, ...imaginary, ...set(other[1]), ...set(other[0])];
};

/** The butterfly of four numbers, w, w² and w³ given. The inputs are overwritten. @param put writes result j */
function butterfly(
  x: readonly Pair[],
  w: readonly Pair[],
  spare: readonly Pair[],
  put: (j: number, parts: Parts) => Code,
) {
  const [a, b, c, d] = x;
  const [s, t] = spare;
  return [
    ...keep(s, sum(a, c)),
    ...keep(a, difference(a, c)),
    ...keep(t, sum(b, d)),
    ...keep(c, turned(b, d)),
    ...put(0, sum(s, t)),
    ...keep(s, difference(s, t)),
    ...keep(b, sum(a, c)),
    ...keep(a, difference(a, c)),
    ...put(1, product(b, w[0])),
    ...put(2, product(s, w[1])),
    ...put(3, product(a, w[2])),
  ];
}

/** Eight locals as four pairs, and so on. */
const pairs = (first: number, count: number): Pair[] =>
  locals(first, count).map((_, i): Pair => [first + 2 * i, first + 2 * i + 1]);

/**
 * A pass of radix 4 over numbers that lie beside each other, an even number for each k. Parameters in bytes: from, to,
 * table and its end, the distance of the quarters, the numbers of a k, factors.
 */
function pass4(edges: Edges): WasmFunction {
  const [from, to, table, tableEnd, apart, beside, factors] = locals(0, 7);
  const sources = [from, ...locals(7, 3)];
  const targets = [to, ...locals(10, 3)];
  const scales = [factors, ...locals(13, 3)];
  const end = 16;
  const x = pairs(17, 4);
  const w = pairs(25, 3);
  const spare = pairs(31, 4);
  const further = (all: readonly number[], distance: number): Code =>
    all.slice(1).flatMap((local, i) => [...two(all[i], add, distance), ...set(local)]);
  const outputs = edges.scaled ? [...targets, ...scales] : targets;
  return {
    parameters: 7,
    integers: 10,
    vectors: 22,
    code: [
      ...further(sources, apart),
      ...further(targets, beside),
      ...(edges.scaled ? further(scales, beside) : []),
      ...repeat([
        ...each(w.flat(), (local, i) => [...get(table), ...loadTwice(DOUBLE * i), ...set(local)]),
        ...[...two(from, add, beside), ...set(end)],
        ...repeat([
          ...x.flatMap((pair, i) => (edges.apart ? readApart : read)(sources[i], pair)),
          ...butterfly(x, w, spare, (j, parts) => writer(edges, spare[2], spare[3], targets[j], scales[j], parts)),
          ...each([...sources, ...outputs], (local) => increase(local, constant(TWO))),
          ...two(from, lessThan, end),
        ]),
        ...each(outputs, (local) => [...increase(local, get(beside)), ...increase(local, get(beside))]),
        ...each(outputs, (local) => increase(local, get(beside))),
        ...increase(table, constant(POWERS)),
        ...two(table, lessThan, tableEnd),
      ]),
    ],
  };
}

/**
 * The first pass of one transform, whose numbers have none beside them: for two k at a time, which have two tables that
 * lie like numbers between passes. Parameters in bytes: from, to, table and its end, the distance of the quarters.
 */
function first4(): WasmFunction {
  const [from, to, table, tableEnd, apart] = locals(0, 5);
  const sources = [from, ...locals(5, 3)];
  const x = pairs(8, 4);
  const w = pairs(16, 3);
  const spare = pairs(22, 2);
  const results = pairs(26, 4);
  // Results 0 to 3 of one k lie beside each other, then those of the next one.
  const halves = [lowerHalves, upperHalves].flatMap((half, k) =>
    [0, 2].flatMap((j) =>
      [0, 1].flatMap((part) => [
        ...[...get(to), ...two(results[j][part], half, results[j + 1][part])],
        ...store(2 * TWO * k + NUMBER * (j + part)),
      ]),
    ),
  );
  return {
    parameters: 5,
    integers: 3,
    vectors: 26,
    code: [
      ...sources.slice(1).flatMap((local, i) => [...two(sources[i], add, apart), ...set(local)]),
      ...repeat([
        ...x.flatMap((pair, i) => readApart(sources[i], pair)),
        ...each(w.flat(), (local, i) => [...get(table), ...load(NUMBER * i), ...set(local)]),
        ...butterfly(x, w, spare, (j, parts) => keep(results[j], parts)),
        ...halves,
        ...each(sources, (local) => increase(local, constant(TWO))),
        ...increase(to, constant(4 * TWO)),
        ...increase(table, constant(2 * POWERS)),
        ...two(table, lessThan, tableEnd),
      ]),
    ],
  };
}

/** A pass of radix 2, over numbers of a length of 2. Parameters in bytes: from, its middle, to, its middle, factors. */
function pass2(edges: Edges): WasmFunction {
  const [from, middle, to, half, factors] = locals(0, 5);
  const [other, behind, scale] = locals(5, 3);
  const [a, b, kept, spare] = pairs(8, 4);
  const put = (target: number, at: number, parts: Parts): Code => writer(edges, kept, spare, target, at, parts);
  return {
    parameters: 5,
    integers: 3,
    vectors: 8,
    code: [
      ...[...get(middle), ...set(other)],
      ...[...two(to, add, half), ...set(behind)],
      ...[...two(factors, add, half), ...set(scale)],
      ...repeat([
        ...[from, other].flatMap((address, i) => (edges.apart ? readApart : read)(address, [a, b][i])),
        ...put(to, factors, sum(a, b)),
        ...put(behind, scale, difference(a, b)),
        ...each([from, other, to, behind, factors, scale], (local) => increase(local, constant(TWO))),
        ...two(from, lessThan, middle),
      ]),
    ],
  };
}

/** Whether a process's part is long enough for vectors: two numbers lie beside each other in every pass. */
export function fitsVectors(m: number, p: number): boolean {
  return m >= 8 && m >= 2 * p;
}

interface Pass {
  readonly length: number;
  readonly beside: number;
  readonly table: number;
}

/** @param n numbers of all @param p processes @param s this one; errors: `RangeError` if there is not so much memory */
export function wasmTransforms(n: number, p: number, s: number): Transforms {
  const m = n / p;
  const block = m / p;
  const [data, work, blocks, factors, tables] = [0, 1, 2, 3, 4].map((i) => LINE + i * (NUMBER * m + LINE));
  const { memory, functions } = compiled(
    {
      ...{ first: first4(), middle: pass4(MIDDLE), last4: pass4(LAST), last2: pass2(LAST) },
      ...{ alone4: pass4(ALONE), alone2: pass2(ALONE) },
    },
    tables + NUMBER * (m + p),
  );
  const numbers = (at: number): Float64Array<ArrayBuffer> => new Float64Array(memory, at, 2 * m);
  numbers(factors).set(twiddles(n, m, s));
  let free = tables;
  /** The passes of radix 4 of a transform, with their tables. @param interleaved how many begin with one number */
  const passesOf = (length: number, batch: number): Pass[] => {
    const passes: Pass[] = [];
    const all = roots(length, (3 * length) / 4 + 1);
    for (let left = length, beside = batch; left >= 4; left /= 4, beside *= 4) {
      const powers = new Float64Array(memory, free, (6 * left) / 4);
      for (let k = 0; k < left / 4; k++) {
        for (let i = 0; i < 6; i++) {
          // Root k·(1, 2 or 3), real or imaginary part; for two k beside each other where numbers have none.
          const at = beside === 1 ? 12 * (k >> 1) + 2 * i + (k & 1) : 6 * k + i;
          powers[at] = all[2 * (k * (1 + (i >> 1)) * (length / left)) + (i & 1)];
        }
      }
      passes.push({ length: left, beside, table: free });
      free += powers.byteLength;
    }
    return passes;
  };
  const own = passesOf(m, 1);
  const over = passesOf(p, block);
  const pass = (run: (...bytes: number[]) => void, { length, beside, table }: Pass, from: number, to: number): void => {
    const end = table + (POWERS * length) / 4;
    run(from, to, table, end, (NUMBER * length * beside) / 4, NUMBER * beside, factors);
  };
  const arrays = [numbers(data), numbers(work), numbers(blocks)];
  const [places, middle] = [[data, work, blocks], (NUMBER * m) / 2];
  return {
    data: arrays[0],
    blocks: arrays[2],
    first() {
      let [from, to] = [0, 1];
      for (const one of own) {
        const run = one.beside === 1 ? functions.first : one.length === 4 ? functions.last4 : functions.middle;
        pass(run, one, places[from], places[to]);
        [from, to] = [to, from];
      }
      if (own[own.length - 1].length === 4) return arrays[from];
      functions.last2(places[from], places[from] + middle, places[to], middle, factors);
      return arrays[to];
    },
    second() {
      let [from, to] = [2, 1];
      for (const one of over) {
        pass(functions.alone4, one, places[from], places[to]);
        [from, to] = [to, from];
      }
      if (p === 1 || over.at(-1)?.length === 4) return arrays[from];
      functions.alone2(places[from], places[from] + middle, places[to], middle, 0);
      return arrays[to];
    },
  };
}
