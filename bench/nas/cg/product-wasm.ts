/**
 * The product with CG's matrix in WebAssembly. A sum is of one element after the other, as in matrix.ts and
 * bench/peers/cg.c, so that all three are equal bit by bit.
 */
import {
  add,
  addDoubles,
  compiled,
  constant,
  get,
  increase,
  lessThan,
  loadDouble,
  loadInteger,
  multiplyDoubles,
  repeat,
  set,
  shiftLeft,
  storeDouble,
  type WasmFunction,
  when,
  zero,
} from '../../wasm.ts';
import type { Product, Range, Sparse } from './matrix.ts';

const DOUBLE = 8;
const INTEGER = 4;

/**
 * Parameters: bytes for places; `starts` and `to` of the first row, `last` of the row behind the last one. Row after
 * row, `column` and `value` run from where the one before has ended.
 */
function product(): WasmFunction {
  const [starts, last, columns, values, vector, to] = [0, 1, 2, 3, 4, 5];
  const [column, value, end] = [6, 7, 8];
  const sum = 9;
  const address = (start: number, shift: number): readonly number[] => [
    ...[...get(start), ...loadInteger(0), ...constant(shift), ...shiftLeft],
  ];
  return {
    parameters: 6,
    integers: 3,
    vectors: 0,
    doubles: 1,
    code: [
      ...[...get(columns), ...address(starts, 2), ...add, ...set(column)],
      ...[...get(values), ...address(starts, 3), ...add, ...set(value)],
      ...when(
        [...get(starts), ...get(last), ...lessThan],
        repeat([
          ...increase(starts, constant(INTEGER)),
          ...[...get(columns), ...address(starts, 2), ...add, ...set(end)],
          ...[...zero, ...set(sum)],
          ...when(
            [...get(column), ...get(end), ...lessThan],
            repeat([
              ...[...get(sum), ...get(value), ...loadDouble(0)],
              ...[...get(vector), ...address(column, 3), ...add, ...loadDouble(0)],
              ...[...multiplyDoubles, ...addDoubles, ...set(sum)],
              ...increase(column, constant(INTEGER)),
              ...increase(value, constant(DOUBLE)),
              ...[...get(column), ...get(end), ...lessThan],
            ]),
          ),
          ...[...get(to), ...get(sum), ...storeDouble(0)],
          ...increase(to, constant(DOUBLE)),
          ...[...get(starts), ...get(last), ...lessThan],
        ]),
      ),
    ],
  };
}

/** @param length doubles that will be asked for @throws RangeError if there is no room */
export function wasmProduct(matrix: Sparse, length: number): Product {
  const rows = matrix.starts.length;
  const elements = matrix.columns.length;
  const valuesAt = DOUBLE * length;
  const startsAt = valuesAt + DOUBLE * elements;
  const columnsAt = startsAt + INTEGER * rows;
  const { memory, functions } = compiled({ product: product() }, columnsAt + INTEGER * elements);
  new Float64Array(memory, valuesAt, elements).set(matrix.values);
  new Int32Array(memory, startsAt, rows).set(matrix.starts);
  new Int32Array(memory, columnsAt, elements).set(matrix.columns);
  let free = 0;
  return {
    doubles(count) {
      const array = new Float64Array(memory, free, count);
      free += DOUBLE * count;
      return array;
    },
    multiply(vector: Float64Array, to: Float64Array, { begin, end }: Range) {
      const start = startsAt + INTEGER * begin;
      const first = to.byteOffset + DOUBLE * begin;
      functions.product(start, startsAt + INTEGER * end, columnsAt, valuesAt, vector.byteOffset, first);
    },
  };
}
