/**
 * Rows of multigrid in WebAssembly: points two by two, the last of an odd number alone. Operations are those of
 * rows.ts, in their order.
 *
 * In loops, `x` counts bytes from the beginnings of rows. Loads two by two may reach one point beyond a row, which is
 * memory all the same, and what comes of it is not stored.
 */
import {
  add,
  addDoubles,
  addPairs,
  type Code,
  compiled,
  constant,
  get,
  increase,
  lessThan,
  load,
  loadDouble,
  loadTwice,
  multiplyDoubles,
  multiplyPairs,
  repeat,
  set,
  store,
  storeDouble,
  storeFirst,
  subtract,
  type WasmFunction,
  when,
} from '../../wasm.ts';
import type { Rows } from './rows.ts';

const DOUBLE = 8;
/** Bytes of two doubles. */
const PAIR = 16;
/** Where the weights lie, and an eighth. */
const WEIGHTS = 0;
const EIGHTH = 32;
const SCRATCH = 64;

const sum = (terms: readonly Code[], plus: Code): Code =>
  terms.flatMap((term, i) => (i === 0 ? term : [...term, ...plus]));
/** local ← a ± b */
const place = (local: number, a: number, operation: Code, b: number): Code => [
  ...[...get(a), ...get(b), ...operation, ...set(local)],
];
/** Runs the body with x from 0 to before the end, by two doubles. */
const pairs = (x: number, end: number, body: Code): Code => [
  ...[...constant(0), ...set(x)],
  ...when(
    [...get(x), ...get(end), ...lessThan],
    repeat([...body, ...increase(x, constant(PAIR)), ...get(x), ...get(end), ...lessThan]),
  ),
];
/** Two doubles at x bytes from where a local says. */
const at = (local: number, x: number, offset = 0): Code => [...get(local), ...get(x), ...add, ...load(offset)];

/** The sums of rows.ts: f and e from point `data` on, up to byte `end`. */
function sums(): WasmFunction {
  const [data, row, plane, f, e, end] = [0, 1, 2, 3, 4, 5];
  const [x, above, below, front, back] = [6, 7, 8, 9, 10];
  const [frontAbove, frontBelow, backAbove, backBelow] = [11, 12, 13, 14];
  const four = (to: number, from: readonly number[]): Code => [
    ...[...get(to), ...get(x), ...add],
    ...sum(
      from.map((one) => at(one, x)),
      addPairs,
    ),
    ...store(0),
  ];
  return {
    parameters: 6,
    integers: 9,
    vectors: 0,
    code: [
      ...place(above, data, subtract, row),
      ...place(below, data, add, row),
      ...place(front, data, subtract, plane),
      ...place(back, data, add, plane),
      ...place(frontAbove, front, subtract, row),
      ...place(frontBelow, front, add, row),
      ...place(backAbove, back, subtract, row),
      ...place(backBelow, back, add, row),
      ...pairs(x, end, [
        ...four(f, [above, below, front, back]),
        ...four(e, [frontAbove, frontBelow, backAbove, backBelow]),
      ]),
    ],
  };
}

/** With a step of 1: `from`, f and e begin one point before; whole pairs up to `end`, then perhaps one more. */
function every(): WasmFunction {
  const [to, base, from, f, e, end, odd] = [0, 1, 2, 3, 4, 5, 6];
  const [x, weights] = [7, 8];
  const terms: Code = sum(
    [
      at(base, x),
      [...at(from, x, DOUBLE), ...get(weights), ...multiplyPairs],
      [
        ...sum([at(from, x), at(from, x, 2 * DOUBLE), at(f, x, DOUBLE)], addPairs),
        ...get(weights + 1),
        ...multiplyPairs,
      ],
      [...sum([at(f, x), at(f, x, 2 * DOUBLE), at(e, x, DOUBLE)], addPairs), ...get(weights + 2), ...multiplyPairs],
      [...sum([at(e, x), at(e, x, 2 * DOUBLE)], addPairs), ...get(weights + 3), ...multiplyPairs],
    ],
    addPairs,
  );
  const point = (keep: Code): Code => [...get(to), ...get(x), ...add, ...terms, ...keep];
  return {
    parameters: 7,
    integers: 1,
    vectors: 4,
    code: [
      ...[0, 1, 2, 3].flatMap((i) => [...constant(WEIGHTS), ...loadTwice(DOUBLE * i), ...set(weights + i)]),
      ...pairs(x, end, point(store(0))),
      ...when(get(odd), point(storeFirst(0))),
    ],
  };
}

/** With a step of 2, and without a base: every second point, up to byte `end` of `to`. */
function everySecond(): WasmFunction {
  const [to, from, f, e, end] = [0, 1, 2, 3, 4];
  const weights = 5;
  const one = (local: number, offset: number): Code => [...get(local), ...loadDouble(DOUBLE * offset)];
  const weighted = (i: number, terms: readonly Code[]): Code => [
    ...sum(terms, addDoubles),
    ...get(weights + i),
    ...multiplyDoubles,
  ];
  const terms = sum(
    [
      weighted(0, [one(from, 1)]),
      weighted(1, [one(from, 0), one(from, 2), one(f, 1)]),
      weighted(2, [one(f, 0), one(f, 2), one(e, 1)]),
      weighted(3, [one(e, 0), one(e, 2)]),
    ],
    addDoubles,
  );
  return {
    parameters: 5,
    integers: 0,
    vectors: 0,
    doubles: 4,
    code: [
      ...[0, 1, 2, 3].flatMap((i) => [...constant(WEIGHTS), ...loadDouble(DOUBLE * i), ...set(weights + i)]),
      ...when(
        [...get(to), ...get(end), ...lessThan],
        repeat([
          ...[...get(to), ...terms, ...storeDouble(0)],
          ...increase(to, constant(DOUBLE)),
          ...[from, f, e].flatMap((local) => increase(local, constant(PAIR))),
          ...[...get(to), ...get(end), ...lessThan],
        ]),
      ),
    ],
  };
}

/** The sums of four rows up to byte `end`. */
function four(): WasmFunction {
  const [to, a, b, c, d, end] = [0, 1, 2, 3, 4, 5];
  const x = 6;
  const rows = [a, b, c, d].map((row) => at(row, x));
  return {
    parameters: 6,
    integers: 1,
    vectors: 0,
    code: pairs(x, end, [...get(to), ...get(x), ...add, ...sum(rows, addPairs), ...store(0)]),
  };
}

/**
 * Fine points two by two, of which one lies on a coarse point and one between two: to each pair, the coarse pair at
 * `around` and the coarse point at `on` twice.
 */
function spread(): WasmFunction {
  const [to, around, on, end, odd] = [0, 1, 2, 3, 4];
  const eighth = 5;
  const point = (keep: Code): Code => [
    ...get(to),
    ...[...get(to), ...load(0)],
    ...[...get(around), ...load(0), ...get(on), ...loadTwice(0), ...addPairs, ...get(eighth), ...multiplyPairs],
    ...[...addPairs, ...keep],
  ];
  return {
    parameters: 5,
    integers: 0,
    vectors: 1,
    code: [
      ...[...constant(EIGHTH), ...loadTwice(0), ...set(eighth)],
      ...when(
        [...get(to), ...get(end), ...lessThan],
        repeat([
          ...point(store(0)),
          ...increase(to, constant(PAIR)),
          ...increase(around, constant(DOUBLE)),
          ...increase(on, constant(DOUBLE)),
          ...[...get(to), ...get(end), ...lessThan],
        ]),
      ),
      ...when(get(odd), point(storeFirst(0))),
    ],
  };
}

/** Arrays begin at multiples of two doubles, with two beyond their end. */
function room(length: number): number {
  return PAIR * (Math.ceil(length / 2) + 1);
}

/**
 * @param longest points of a row, at most
 * @param lengths of all arrays that will be asked for
 */
export function wasmRows(longest: number, lengths: readonly number[]): Rows {
  const f = SCRATCH;
  const e = f + room(longest);
  let free = e + room(longest);
  const bytes = lengths.reduce((all, length) => all + room(length), free);
  const { memory, functions } = compiled(
    { sums: sums(), every: every(), everySecond: everySecond(), four: four(), spread: spread() },
    bytes,
  );
  const weightsInMemory = new Float64Array(memory, WEIGHTS, 4);
  new Float64Array(memory, EIGHTH, 1)[0] = 1 / 8;
  const address = (array: Float64Array, index: number): number => array.byteOffset + DOUBLE * index;
  return {
    doubles(length) {
      const array = new Float64Array(memory, free, length);
      free += room(length);
      return array;
    },
    stencil(to, out, base, from, start, row, plane, count, weights) {
      for (let i = 0; i < 4; i++) weightsInMemory[i] = weights[i];
      const first = address(from, start - 1);
      const target = address(to, out);
      const step = base === undefined ? 2 : 1;
      functions.sums(first, DOUBLE * row, DOUBLE * plane, f, e, DOUBLE * (step * (count - 1) + 3));
      if (base === undefined) functions.everySecond(target, first, f, e, target + DOUBLE * count);
      else functions.every(target, address(base, out), first, f, e, DOUBLE * (count - (count & 1)), count & 1);
    },
    interpolate(to, out, width, from, [a, b, c, d], across, shift) {
      functions.four(f, address(from, a), address(from, b), address(from, c), address(from, d), DOUBLE * across);
      const target = address(to, out);
      functions.spread(target, f, f + DOUBLE * shift, target + DOUBLE * (width - (width & 1)), width & 1);
    },
  };
}
