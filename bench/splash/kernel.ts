/**
 * The arithmetic on blocks. A kernel has three operations, on blocks in its memory; factoring is made of these. Blocks
 * lie as tiles.ts says, places count doubles.
 *
 * There are two kernels, one in WebAssembly with vectors of two doubles, and one in plain TypeScript. Both do the same
 * operations in the same order, so their results are equal bit by bit, and equal to those of bench/peers/lu.c.
 */
import { TILE } from './tiles.ts';

export interface Kernel {
  readonly memory: Float64Array<ArrayBuffer>;
  /** C ← C − A·B: C of m rows and n columns by rows, A of m × k by rows, B of k × n by columns. */
  update(c: number, a: number, b: number, m: number, n: number, k: number): void;
  /**
   * X ← X·T⁻¹ for the columns from `first` up to `end`, those before being done: X of m × k by rows; T of k × k by
   * columns, of which what is above the diagonal counts; `inverses` are 1 / T(j, j), or ones.
   */
  solve(x: number, t: number, inverses: number, m: number, k: number, first: number, end: number): void;
  /** Lays a block of m × n, by rows, out by columns. */
  turn(to: number, from: number, m: number, n: number): void;
}

/**
 * Factors the block of k × k at `d` (by rows) in place, A = L·U, L with ones on its diagonal. Puts the same by columns
 * at `e`, and 1 / U(j, j) at `inverses`.
 *
 * Tile column by tile column: the tile on the diagonal, then those below it and those to its right. The latter are
 * solved in the transpose at `e`, where they are "below" as well, and Lᵀ, in place of U, is what lies at `d`.
 *
 * @param ones where k ones lie
 */
export function factor(kernel: Kernel, d: number, e: number, inverses: number, ones: number, k: number): void {
  const { memory } = kernel;
  const strip = TILE * k;
  kernel.turn(e, d, k, k);
  for (let t = 0; t < k; t += TILE) {
    const left = d + t * k;
    const above = e + t * k;
    const tile = left + TILE * t;
    kernel.update(tile, left, above, TILE, TILE, t);
    factorTile(memory, tile, inverses + t);
    kernel.turn(above + TILE * t, tile, TILE, TILE);
    const below = k - t - TILE;
    if (below === 0) break;
    kernel.solve(left + strip, e, inverses, below, k, t, t + TILE);
    kernel.solve(above + strip, d, ones, below, k, t, t + TILE);
  }
  // What is below the diagonal is finished at d, what is above it at e.
  for (let s = 0; s < k; s += TILE) {
    for (let t = s + TILE; t < k; t += TILE) {
      kernel.turn(d + s * k + TILE * t, e + t * k + TILE * s, TILE, TILE);
      kernel.turn(e + s * k + TILE * t, d + t * k + TILE * s, TILE, TILE);
    }
  }
}

/** Factors one tile: element (i, j) is at 4 j + i. */
function factorTile(memory: Float64Array, tile: number, inverses: number): void {
  for (let p = 0; p < TILE; p++) {
    const inverse = 1 / memory[tile + TILE * p + p];
    memory[inverses + p] = inverse;
    for (let i = p + 1; i < TILE; i++) memory[tile + TILE * p + i] *= inverse;
    for (let j = p + 1; j < TILE; j++) {
      const u = memory[tile + TILE * j + p];
      for (let i = p + 1; i < TILE; i++) memory[tile + TILE * j + i] -= memory[tile + TILE * p + i] * u;
    }
  }
}
