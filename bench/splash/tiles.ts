/**
 * How a block of the matrix lies in memory: in tiles of 4 × 4, so that whatever the innermost loops read is
 * consecutive.
 *
 * - by *rows*: strips of 4 rows, one after the other; within a strip, for each column its 4 elements. Left factors and
 *   everything that is not finished lie so.
 * - by *columns*: strips of 4 columns; within a strip, for each row its 4 elements. Right factors lie so.
 *
 * A block by columns is its transpose by rows, byte for byte. Rows and columns are multiples of 4.
 */

/** Rows and columns of a tile. */
export const TILE = 4;

/** Where element (i, j) of a block of so many columns lies, by rows. */
export function byRows(i: number, j: number, columns: number): number {
  return (i - (i % TILE)) * columns + TILE * j + (i % TILE);
}

/** Where element (i, j) of a block of so many rows lies, by columns. */
export function byColumns(i: number, j: number, rows: number): number {
  return byRows(j, i, rows);
}
