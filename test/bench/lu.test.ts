/** The parts of LU: kernels, the distribution, and the encoder of WebAssembly, against plain loops. */
import type { Communicator } from 'onesided';
import { describe, expect, it } from 'vitest';
import { Grid } from '../../bench/splash/grid.ts';
import { factor, type Kernel } from '../../bench/splash/kernel.ts';
import { typescriptKernel } from '../../bench/splash/kernel-typescript.ts';
import { wasmKernel } from '../../bench/splash/kernel-wasm.ts';
import { digestOf, elementOf } from '../../bench/splash/matrix.ts';
import { residualOf } from '../../bench/splash/residual.ts';
import { byColumns, byRows } from '../../bench/splash/tiles.ts';

const KERNELS = { wasm: wasmKernel, typescript: typescriptKernel };
type Dense = number[][];

const dense = (m: number, n: number, element: (i: number, j: number) => number): Dense =>
  Array.from({ length: m }, (_, i) => Array.from({ length: n }, (_, j) => element(i, j)));
const random = (seed: number, m: number, n: number): Dense =>
  dense(m, n, (i, j) => elementOf(seed, 2 ** 20, i, j + 1000));

function put(kernel: Kernel, at: number, matrix: Dense, order: 'rows' | 'columns'): void {
  const [m, n] = [matrix.length, matrix[0].length];
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      kernel.memory[at + (order === 'rows' ? byRows(i, j, n) : byColumns(i, j, m))] = matrix[i][j];
    }
  }
}

const take = (kernel: Kernel, at: number, m: number, n: number, order: 'rows' | 'columns'): Dense =>
  dense(m, n, (i, j) => kernel.memory[at + (order === 'rows' ? byRows(i, j, n) : byColumns(i, j, m))]);

/** Left to right, as the kernels do it: results must be equal to the last bit. */
function reference(matrix: Dense): Dense {
  const a = matrix.map((row) => [...row]);
  const n = a.length;
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < n; j++) {
      for (let k = 0; k < Math.min(i, j); k++) a[i][j] -= a[i][k] * a[k][j];
      if (i > j) a[i][j] *= 1 / a[j][j];
    }
  }
  return a;
}

describe.each(Object.entries(KERNELS))('the kernel in %s', (_, make) => {
  const BLOCK = 10_000;
  const kernel = make(5 * BLOCK);
  const [c, a, b, inverses, ones] = [0, 1, 2, 3, 4].map((i) => i * BLOCK);
  kernel.memory.fill(1, ones);

  it.each([
    [4, 4, 4],
    [8, 12, 20],
    [64, 32, 100],
    [4, 8, 0],
  ])('subtracts a product, C of %i × %i over %i', (m, n, k) => {
    const [C, A, B] = [random(1, m, n), random(2, m, k), random(3, Math.max(k, 1), n).slice(0, k)];
    put(kernel, c, C, 'rows');
    if (k > 0) {
      put(kernel, a, A, 'rows');
      put(kernel, b, B, 'columns');
    }
    kernel.update(c, a, b, m, n, k);
    const expected = dense(m, n, (i, j) => A[i].reduce((sum, value, p) => sum - value * B[p][j], C[i][j]));
    expect(take(kernel, c, m, n, 'rows')).toEqual(expected);
  });

  it('writes the block that it is given, and nothing beside it', () => {
    kernel.memory.fill(7);
    kernel.update(c + 100, a, b, 8, 12, 16);
    kernel.turn(c + 1000, a, 8, 12);
    kernel.solve(c + 2000, b, inverses, 8, 16, 4, 12);
    const changed = (from: number, length: number): boolean[] =>
      Array.from({ length }, (_, i) => kernel.memory[from + i] !== 7);
    expect(changed(c + 100, 96)).toEqual(new Array(96).fill(true));
    const solved = Array.from({ length: 128 }, (_, i) => Math.floor(i / 4) % 16 >= 4 && Math.floor(i / 4) % 16 < 12);
    expect(changed(c + 2000, 128)).toEqual(solved);
    for (let i = 0; i < 96; i++) kernel.memory[c + 100 + i] = 7;
    for (let i = 0; i < 128; i++) kernel.memory[c + 2000 + i] = 7;
    expect(changed(0, 5 * BLOCK).indexOf(true)).toBe(-1);
    kernel.memory.fill(1, ones);
  });

  it('turns a block over, and back', () => {
    const A = random(4, 12, 20);
    put(kernel, a, A, 'rows');
    kernel.turn(b, a, 12, 20);
    expect(take(kernel, b, 12, 20, 'columns')).toEqual(A);
    kernel.turn(c, b, 20, 12);
    expect(take(kernel, c, 12, 20, 'rows')).toEqual(A);
  });

  it.each([4, 8, 32, 100])('solves for a triangle of %i rows, at once and in parts', (k) => {
    const X = random(5, 12, k);
    const T = dense(k, k, (i, j) => elementOf(6, k, i, j));
    const expected = X.map((row) => [...row]);
    for (const row of expected) {
      for (let j = 0; j < k; j++) {
        for (let p = 0; p < j; p++) row[j] -= row[p] * T[p][j];
        row[j] *= 1 / T[j][j];
      }
    }
    put(kernel, b, T, 'columns');
    for (let j = 0; j < k; j++) kernel.memory[inverses + j] = 1 / T[j][j];
    for (const parts of [[0, k], Array.from({ length: k / 4 + 1 }, (_, i) => 4 * i)]) {
      put(kernel, a, X, 'rows');
      for (let i = 1; i < parts.length; i++) kernel.solve(a, b, inverses, 12, k, parts[i - 1], parts[i]);
      expect(take(kernel, a, 12, k, 'rows')).toEqual(expected);
    }
  });

  it.each([4, 8, 36, 100])('factors a block of %i rows', (k) => {
    const A = dense(k, k, (i, j) => elementOf(7, k, i, j));
    const LU = reference(A);
    put(kernel, a, A, 'rows');
    factor(kernel, a, b, inverses, ones, k);
    expect(take(kernel, a, k, k, 'rows')).toEqual(LU);
    expect(take(kernel, b, k, k, 'columns')).toEqual(LU);
    expect([...kernel.memory.subarray(inverses, inverses + k)]).toEqual(LU.map((row, i) => 1 / row[i]));
  });
});

describe('memory of WebAssembly', () => {
  it('that a rank’s blocks do not fit into is refused, with what to do', () => {
    expect(() => wasmKernel(2 ** 29 + 1)).toThrow(/4097 MiB, and WebAssembly has at most 4096: use more ranks/);
  });
});

describe('the distribution', () => {
  it.each([
    [1, [1, 1]],
    [2, [1, 2]],
    [6, [2, 3]],
    [7, [1, 7]],
    [64, [8, 8]],
  ])('has a grid of ranks as square as can be: %i', (ranks, grid) => {
    const { rows, columns } = new Grid(1000, 100, ranks);
    expect([rows, columns]).toEqual(grid);
  });

  it.each([
    [1000, 64, 6],
    [1001, 64, 4],
    [5, 8, 3],
    [129, 128, 12],
  ])('gives every block of n = %i, block %i one place at one of %i ranks', (n, block, ranks) => {
    const grid = new Grid(n, block, ranks);
    expect(grid.blocks).toBe(Math.ceil(n / block));
    const seen = new Set<string>();
    for (let rank = 0; rank < ranks; rank++) {
      const { down, across } = grid.share(rank);
      for (const i of grid.rowsOf(rank, 0)) {
        for (const j of grid.columnsOf(rank, 0)) {
          expect(grid.owner(i, j)).toBe(rank);
          expect(grid.hasRow(rank, i) && grid.hasColumn(rank, j)).toBe(true);
          expect(grid.index(i, j)).toBeLessThan(down * across);
          seen.add(`${rank} ${grid.index(i, j)}`);
        }
      }
      expect([...grid.rowsOf(rank, 2)]).toEqual([...grid.rowsOf(rank, 0)].filter((i) => i >= 2));
    }
    expect(seen.size).toBe(grid.blocks ** 2);
  });

  it('has a last block as small as tiles allow', () => {
    const grid = new Grid(130, 64, 1);
    expect([0, 1, 2].map((i) => grid.extent(i))).toEqual([64, 64, 4]);
    expect(new Grid(3, 64, 1).extent(0)).toBe(4);
  });
});

describe('the residual', () => {
  const [n, block, seed] = [100, 16, 3];
  const grid = new Grid(n, block, 1);
  const LU = reference(dense(n, n, (i, j) => elementOf(seed, n, i, j)));
  const alone = {
    rank: 0,
    allreduce: async (send: Float64Array, receive: Float64Array) => receive.set(send),
  } as unknown as Communicator;
  /** Of the factors with one element changed. */
  const residualWith = (row: number, column: number, change: (element: number) => number): Promise<number> => {
    const kernel = typescriptKernel(grid.blocks ** 2 * block ** 2);
    const place = (i: number, j: number): number => grid.index(i, j) * block ** 2;
    for (let i = 0; i < grid.blocks; i++) {
      for (let j = 0; j < grid.blocks; j++) {
        const part = dense(grid.extent(i), grid.extent(j), (r, c) => {
          const [a, b] = [i * block + r, j * block + c];
          return a === row && b === column ? change(LU[a][b]) : LU[a][b];
        });
        put(kernel, place(i, j), part, i < j ? 'columns' : 'rows');
      }
    }
    return residualOf(alone, { memory: kernel.memory, grid, place }, { n, block, seed });
  };

  it('is small for factors as good as they can be', async () => {
    const residual = await residualWith(0, 0, (element) => element);
    expect(residual).toBeGreaterThan(0);
    expect(residual).toBeLessThan(0.05);
  });

  it.each([
    [0, 0],
    [99, 0],
    [0, 99],
    [50, 40],
    [40, 50],
    [99, 99],
  ])('is not small if element (%i, %i) is wrong by little, missing, or no number', async (i, j) => {
    expect(await residualWith(i, j, (element) => element + 1e-6)).toBeGreaterThan(1);
    expect(await residualWith(i, j, () => 0)).toBeGreaterThan(1);
    expect(await residualWith(i, j, () => Number.NaN)).toBeNaN();
  });
});

describe('the matrix', () => {
  it('is dominated by its diagonal, depends on the seed, and goes on as the unit matrix', () => {
    const n = 50;
    for (let i = 0; i < n; i++) {
      const row = Array.from({ length: n }, (_, j) => elementOf(1, n, i, j));
      const others = row.reduce((sum, value, j) => (i === j ? sum : sum + Math.abs(value)), 0);
      expect(Math.abs(row[i])).toBeGreaterThan(others);
    }
    expect(elementOf(2, n, 3, 4)).not.toBe(elementOf(1, n, 3, 4));
    expect(elementOf(1, n, 4, 3)).not.toBe(elementOf(1, n, 3, 4));
    expect([elementOf(1, n, n, n), elementOf(1, n, n, 0), elementOf(1, n, 0, n)]).toEqual([1, 0, 0]);
  });

  it('has a digest that every bit changes, and that blocks and orders do not', () => {
    const A = random(8, 8, 8);
    const kernel = typescriptKernel(200);
    put(kernel, 0, A, 'rows');
    put(kernel, 100, A, 'columns');
    const digest = digestOf(kernel.memory, 0, { i: 0, j: 0, m: 8, n: 8, rows: true });
    expect(digestOf(kernel.memory, 100, { i: 0, j: 0, m: 8, n: 8, rows: false })).toBe(digest);
    let blocks = 0;
    for (const i of [0, 4]) {
      put(kernel, 100, A.slice(i, i + 4), 'rows');
      blocks ^= digestOf(kernel.memory, 100, { i, j: 0, m: 4, n: 8, rows: true });
    }
    expect(blocks).toBe(digest);
    kernel.memory[17] *= 1 + Number.EPSILON;
    expect(digestOf(kernel.memory, 0, { i: 0, j: 0, m: 8, n: 8, rows: true })).not.toBe(digest);
  });
});
