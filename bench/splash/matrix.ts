/**
 * The matrix: random numbers from -1 to 1, and so much on the diagonal that it dominates. Each element follows from the
 * seed and its place.
 */
import { byColumns, byRows } from './tiles.ts';

/** Spreads the bits of a 32-bit integer (the end of MurmurHash3). */
function scramble(bits: number): number {
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}

/** Element (i, j) of the matrix of n rows, which beyond them goes on as the unit matrix. */
export function elementOf(seed: number, n: number, i: number, j: number): number {
  if (i >= n || j >= n) return i === j ? 1 : 0;
  const random = scramble(scramble(seed + Math.imul(i, 0x9e3779b1)) + Math.imul(j, 0x7feb352d)) / 2 ** 31;
  return i === j ? random + n : random;
}

/**
 * A number that any difference in any bit of the block changes, very likely; those of blocks are combined by exclusive
 * or.
 */
export function digestOf(
  memory: Float64Array,
  at: number,
  block: { readonly i: number; readonly j: number; readonly m: number; readonly n: number; readonly rows: boolean },
): number {
  const { i: firstRow, j: firstColumn, m, n, rows } = block;
  const words = new Int32Array(memory.buffer, memory.byteOffset);
  let digest = 0;
  for (let i = 0; i < m; i++) {
    const row = Math.imul(firstRow + i, 0x9e3779b1);
    for (let j = 0; j < n; j++) {
      const place = 2 * (at + (rows ? byRows(i, j, n) : byColumns(i, j, m)));
      const where = scramble(row + firstColumn + j);
      digest ^= scramble(scramble(where + words[place]) + words[place + 1]);
    }
  }
  return digest;
}
