/**
 * How far L·U is from A: ‖(A − L·U)·X‖ / (ε·n·‖A‖·‖X‖) in Frobenius norms, X being four random vectors. For A − L·U ≠ 0
 * the product is not 0 with probability 1, and a factorization that is stable, as this one is without pivoting where
 * the diagonal dominates, stays below 1.
 *
 * Each rank multiplies its own blocks with plain loops and makes its part of A again from the seed; sums go through
 * allreduce. So neither the kernel nor the window takes part: what they did wrong they cannot hide by doing it again.
 */
import { type Communicator, Op } from 'onesided';
import type { Grid } from './grid.ts';
import { elementOf } from './matrix.ts';
import { byColumns, byRows } from './tiles.ts';

const VECTORS = 4;

/** The finished blocks of one rank. */
export interface Factors {
  readonly memory: Float64Array;
  readonly grid: Grid;
  /** Where a block of this rank lies: those above the diagonal by columns, the others by rows. */
  place(i: number, j: number): number;
}

export async function residualOf(
  world: Communicator,
  { memory, grid, place }: Factors,
  { n, block, seed }: { readonly n: number; readonly block: number; readonly seed: number },
): Promise<number> {
  const x = Float64Array.from({ length: VECTORS * n }, (_, i) => elementOf(seed + 1, 0x7fffffff, i, i + 1));
  /** `y` ← y + (a part of the matrix) · x */
  const multiply = (y: Float64Array, i: number, j: number, factor: number, x: Float64Array): void => {
    for (let v = 0; v < VECTORS; v++) y[v * n + i] += factor * x[v * n + j];
  };
  const product = async (each: (y: Float64Array, i: number, j: number) => void): Promise<Float64Array> => {
    const part = new Float64Array(VECTORS * n);
    for (const i of grid.rowsOf(world.rank, 0)) for (const j of grid.columnsOf(world.rank, 0)) each(part, i, j);
    const all = new Float64Array(VECTORS * n);
    await world.allreduce(part, all, Op.SUM);
    return all;
  };
  /** The elements of block (i, j) that are within the matrix. */
  const within = (i: number, j: number, each: (row: number, column: number, r: number, c: number) => void): void => {
    for (let r = 0; r < Math.min(block, n - i * block); r++) {
      for (let c = 0; c < Math.min(block, n - j * block); c++) each(i * block + r, j * block + c, r, c);
    }
  };
  const ux = await product((y, i, j) => {
    if (i > j) return;
    const at = place(i, j);
    const rows = grid.extent(i);
    within(i, j, (row, column, r, c) => {
      if (row <= column)
        multiply(y, row, column, memory[at + (i === j ? byRows(r, c, rows) : byColumns(r, c, rows))], x);
    });
  });
  const lux = await product((y, i, j) => {
    if (i < j) return;
    const at = place(i, j);
    const columns = grid.extent(j);
    within(i, j, (row, column, r, c) => {
      if (row > column) multiply(y, row, column, memory[at + byRows(r, c, columns)], ux);
      else if (row === column) multiply(y, row, column, 1, ux);
    });
  });
  let squares = 0;
  const ax = await product((y, i, j) => {
    within(i, j, (row, column) => {
      const element = elementOf(seed, n, row, column);
      squares += element * element;
      multiply(y, row, column, element, x);
    });
  });
  const total = new Float64Array(1);
  await world.allreduce(Float64Array.of(squares), total, Op.SUM);
  return norm(ax.map((value, i) => value - lux[i])) / (Number.EPSILON * n * Math.sqrt(total[0]) * norm(x));
}

function norm(values: Float64Array): number {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
}
