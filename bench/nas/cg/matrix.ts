/**
 * The matrix of CG (NPB 1, §2.3): the sum of outer products of sparse random vectors, each weighted less than the one
 * before, so that the condition number is about 10; 0.1 and minus the shift on its diagonal.
 *
 * Every rank draws all vectors, which takes far less than one product with the matrix a rank, and keeps its block.
 */
import type { CgClass } from '../classes.ts';
import { fraction, MULTIPLIER, product, SEED } from '../random.ts';

/** The reciprocal of the condition number that the weights make. */
const RECIPROCAL = 0.1;
/** The element of each vector at its own place. */
const OWN = 0.5;

/** From `begin` to before `end`. */
export interface Range {
  readonly begin: number;
  readonly end: number;
}

/** Rows of a block of the matrix: row i has the elements from `starts[i]` to before `starts[i + 1]`. */
export interface Sparse {
  readonly starts: Int32Array;
  /** From the block's first column on. */
  readonly columns: Int32Array;
  readonly values: Float64Array;
}

/** Calls back with each vector: its places, and the values there. */
function eachVector(
  { n, nonzeros }: CgClass,
  use: (places: readonly number[], values: readonly number[]) => void,
): void {
  const bound = 2 ** Math.ceil(Math.log2(n));
  // The benchmark draws a number before it makes the matrix.
  let state = product(SEED, MULTIPLIER);
  const next = (): number => {
    state = product(state, MULTIPLIER);
    return fraction(state);
  };
  for (let own = 0; own < n; own++) {
    const places: number[] = [];
    const values: number[] = [];
    while (places.length < nonzeros) {
      const value = next();
      const place = Math.floor(bound * next());
      if (place >= n || places.includes(place)) continue;
      places.push(place);
      values.push(value);
    }
    const at = places.indexOf(own);
    if (at < 0) {
      places.push(own);
      values.push(OWN);
    } else values[at] = OWN;
    use(places, values);
  }
}

/** The block of some rows and columns. */
export function makeMatrix(of: CgClass, rows: Range, columns: Range): Sparse {
  const inRows = (i: number): boolean => i >= rows.begin && i < rows.end;
  const inColumns = (i: number): boolean => i >= columns.begin && i < columns.end;
  const height = rows.end - rows.begin;
  const counts = new Int32Array(height + 1);
  // Once to count, once to fill: elements of one place come several times, and are added up at the end.
  eachVector(of, (places) => {
    const across = places.filter(inColumns).length;
    if (across > 0) for (const row of places) if (inRows(row)) counts[row - rows.begin + 1] += across;
  });
  for (let i = 0; i < height; i++) if (inColumns(rows.begin + i)) counts[i + 1]++;
  for (let i = 0; i < height; i++) counts[i + 1] += counts[i];
  const next = counts.slice(0, height);
  const where = new Int32Array(counts[height]);
  const what = new Float64Array(counts[height]);
  const add = (row: number, column: number, value: number): void => {
    const at = next[row - rows.begin]++;
    where[at] = column - columns.begin;
    what[at] = value;
  };
  const ratio = RECIPROCAL ** (1 / of.n);
  let weight = 1;
  eachVector(of, (places, values) => {
    for (const [j, column] of places.entries()) {
      if (!inColumns(column)) continue;
      const factor = weight * values[j];
      for (const [i, row] of places.entries()) if (inRows(row)) add(row, column, factor * values[i]);
    }
    weight *= ratio;
  });
  for (let row = rows.begin; row < rows.end; row++) if (inColumns(row)) add(row, row, RECIPROCAL - of.shift);
  return added({ starts: counts, columns: where, values: what }, columns.end - columns.begin);
}

/** The same with the elements of one place added up. */
function added({ starts, columns, values }: Sparse, width: number): Sparse {
  const height = starts.length - 1;
  const merged = new Int32Array(starts.length);
  const sums = new Float64Array(width);
  /** The last row, plus 1, in which a column has been seen. */
  const seen = new Int32Array(width);
  let end = 0;
  // What is written is never ahead of what is read, and of a row is written when it has been read.
  for (let row = 0; row < height; row++) {
    const begin = end;
    for (let at = starts[row]; at < starts[row + 1]; at++) {
      const column = columns[at];
      if (seen[column] !== row + 1) {
        seen[column] = row + 1;
        sums[column] = 0;
        columns[end++] = column;
      }
      sums[column] += values[at];
    }
    for (let at = begin; at < end; at++) values[at] = sums[columns[at]];
    merged[row + 1] = end;
  }
  return { starts: merged, columns: columns.slice(0, end), values: values.slice(0, end) };
}

/** The product with a matrix, of vectors that it has room for. */
export interface Product {
  /** Zeros. */
  doubles(length: number): Float64Array<ArrayBuffer>;
  /** to(i) = Σ matrix(i, j) · vector(j), for some rows; both arrays are of `doubles`. */
  multiply(vector: Float64Array, to: Float64Array, rows: Range): void;
}

export function typescriptProduct({ starts, columns, values }: Sparse): Product {
  return {
    doubles: (length) => new Float64Array(length),
    multiply(vector, to, { begin, end }) {
      for (let row = begin; row < end; row++) {
        let sum = 0;
        for (let at = starts[row], last = starts[row + 1]; at < last; at++) sum += values[at] * vector[columns[at]];
        to[row] = sum;
      }
    },
  };
}
