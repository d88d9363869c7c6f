/**
 * The kernel in WebAssembly: tiles of 4 × 4 in eight vectors of two doubles, which stay in registers while the loop
 * runs over the inner dimension.
 *
 * A step of that loop takes four elements of a column of A (two vectors) and four of a row of B (each loaded into both
 * halves of a vector): 6 loads, 8 multiplications, 8 subtractions, 32 operations on doubles. Everything is read in the
 * order in which it lies. There is no fused multiply-add: WebAssembly's may round once or twice, as the processor
 * likes, and results would differ between machines.
 */

import {
  add,
  type Code,
  compiled,
  constant,
  get,
  increase,
  lessThan,
  load,
  loadTwice,
  lowerHalves,
  multiply,
  multiplyPairs,
  repeat,
  set,
  shiftLeft,
  store,
  subtractPairs,
  upperHalves,
  type WasmFunction,
  when,
} from '../wasm.ts';
import type { Kernel } from './kernel.ts';
import { TILE } from './tiles.ts';

/** Bytes of four doubles, and of a tile. */
const QUAD = 32;
const TILE_BYTES = 128;

const each = (count: number, body: (i: number) => Code): Code =>
  Array.from({ length: count }, (_, i) => body(i)).flat();

/** Eight vectors hold a tile: `first + 2 j` and the next one hold column j. */
const loadTile = (address: number, first: number): Code =>
  each(8, (i) => [...get(address), ...load(16 * i), ...set(first + i)]);
const storeTile = (address: number, first: number): Code =>
  each(8, (i) => [...get(address), ...get(first + i), ...store(16 * i)]);

/** vector ← vector − other × factor */
const reduce = (target: number, other: number, factor: number): Code => [
  ...get(target),
  ...get(other),
  ...get(factor),
  ...multiplyPairs,
  ...subtractPairs,
  ...set(target),
];

/**
 * tile ← tile − a × b for one step of the inner dimension, and on to the next one. More steps at once would be slower:
 * V8 loads everything that a loop's body needs at its beginning, and the operands of one step are as many as there are
 * registers for.
 */
const step = (a: number, b: number, tile: number, column: number, factor: number): Code => [
  ...each(2, (h) => [...get(a), ...load(16 * h), ...set(column + h)]),
  ...each(TILE, (j) => [
    ...[...get(b), ...loadTwice(8 * j), ...set(factor + j)],
    ...each(2, (h) => reduce(tile + 2 * j + h, column + h, factor + j)),
  ]),
  ...increase(a, constant(QUAD)),
  ...increase(b, constant(QUAD)),
];

/** local × 2^shift, on the stack */
const scaled = (local: number, shift: number): Code => [...get(local), ...constant(shift), ...shiftLeft];
/** Runs the body with the counter from `start`, which is below `end`, up to it. */
const count = (counter: number, start: Code, end: Code, body: Code): Code => [
  ...[...start, ...set(counter)],
  ...repeat([...body, ...increase(counter, constant(1)), ...get(counter), ...end, ...lessThan]),
];

/** Parameters: bytes for places, numbers of tiles for m and n, of steps for k. */
function update(): WasmFunction {
  const [c, a, b, m, n, k] = [0, 1, 2, 3, 4, 5];
  const [aTile, bTile, cTile, s, t, end, aStrip, cStrip] = [6, 7, 8, 9, 10, 11, 12, 13];
  const [tile, column, factor] = [14, 22, 24];
  const reduceTile = [
    ...[...get(b), ...set(bTile)],
    ...[...get(aTile), ...get(aStrip), ...add, ...set(end)],
    ...when(get(k), repeat([...step(aTile, bTile, tile, column, factor), ...get(aTile), ...get(end), ...lessThan])),
  ];
  return {
    parameters: 6,
    integers: 8,
    vectors: 14,
    code: [
      ...[...scaled(k, 5), ...set(aStrip)],
      ...[...scaled(n, 7), ...set(cStrip)],
      ...count(t, constant(0), get(n), [
        ...[...get(a), ...set(aTile)],
        ...[...get(c), ...scaled(t, 7), ...add, ...set(cTile)],
        ...count(s, constant(0), get(m), [
          ...loadTile(cTile, tile),
          ...reduceTile,
          ...storeTile(cTile, tile),
          ...increase(cTile, get(cStrip)),
        ]),
        ...increase(b, get(aStrip)),
      ]),
    ],
  };
}

/** Parameters: bytes for places, numbers of tiles for m, first and end, of steps for k. */
function solve(): WasmFunction {
  const [x, triangle, inverses, m, k, first, last] = [0, 1, 2, 3, 4, 5, 6];
  const [xTile, a, b, s, t, strip] = [7, 8, 9, 10, 11, 12];
  const [tile, column, factor] = [13, 21, 23];
  const reduceTile = [
    ...[...get(x), ...set(a)],
    ...[...get(triangle), ...get(t), ...get(strip), ...multiply, ...add, ...set(b)],
    ...when(get(t), repeat([...step(a, b, tile, column, factor), ...get(a), ...get(xTile), ...lessThan])),
  ];
  // By the four columns of T that b is at then: row p at 32 p.
  const solveTile = each(TILE, (j) => [
    ...each(j, (p) => [
      ...[...get(b), ...loadTwice(QUAD * p + 8 * j), ...set(factor)],
      ...each(2, (h) => reduce(tile + 2 * j + h, tile + 2 * p + h, factor)),
    ]),
    ...[...get(inverses), ...scaled(t, 5), ...add, ...loadTwice(8 * j), ...set(factor)],
    ...each(2, (h) => [...get(tile + 2 * j + h), ...get(factor), ...multiplyPairs, ...set(tile + 2 * j + h)]),
  ]);
  return {
    parameters: 7,
    integers: 6,
    vectors: 14,
    code: [
      ...[...scaled(k, 5), ...set(strip)],
      ...count(s, constant(0), get(m), [
        ...count(t, get(first), get(last), [
          ...[...get(x), ...scaled(t, 7), ...add, ...set(xTile)],
          ...loadTile(xTile, tile),
          ...reduceTile,
          ...solveTile,
          ...storeTile(xTile, tile),
        ]),
        ...increase(x, get(strip)),
      ]),
    ],
  };
}

/** Parameters: bytes for places, numbers of tiles for m and n. */
function turn(): WasmFunction {
  const [to, from, m, n] = [0, 1, 2, 3];
  const [target, s, t, strip] = [4, 5, 6, 7];
  const tile = 8;
  // Columns 0 and 1 are in the vectors 0 to 3, columns 2 and 3 in 4 to 7; row i is in half i % 2 of vector i / 2 of
  // each column.
  const storeTurned = each(8, (i) => {
    const column = tile + 4 * (i % 2) + Math.floor(i / 4);
    const halves = Math.floor(i / 2) % 2 === 0 ? lowerHalves : upperHalves;
    return [...get(target), ...get(column), ...get(column + 2), ...halves, ...store(16 * i)];
  });
  return {
    parameters: 4,
    integers: 4,
    vectors: 8,
    code: [
      ...[...scaled(m, 7), ...set(strip)],
      ...count(s, constant(0), get(m), [
        ...[...get(to), ...scaled(s, 7), ...add, ...set(target)],
        ...count(t, constant(0), get(n), [
          ...loadTile(from, tile),
          ...storeTurned,
          ...increase(from, constant(TILE_BYTES)),
          ...increase(target, get(strip)),
        ]),
      ]),
    ],
  };
}

/** @param length doubles of memory */
export function wasmKernel(length: number): Kernel {
  const { memory, functions } = compiled({ update: update(), solve: solve(), turn: turn() }, 8 * length);
  return {
    memory: new Float64Array(memory, 0, length),
    update(c, a, b, m, n, k) {
      functions.update(8 * c, 8 * a, 8 * b, m / TILE, n / TILE, k);
    },
    solve(x, t, inverses, m, k, first, end) {
      functions.solve(8 * x, 8 * t, 8 * inverses, m / TILE, k, first / TILE, end / TILE);
    },
    turn(to, from, m, n) {
      functions.turn(8 * to, 8 * from, m / TILE, n / TILE);
    },
  };
}
