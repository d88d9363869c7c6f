/**
 * Which rank has which block: SPLASH's two-dimensional scatter decomposition. The ranks are a grid, as square as their
 * number allows, which is laid over the blocks again and again, so that everybody has something to do until the end.
 */
import { TILE } from './tiles.ts';

export class Grid {
  /** Blocks in a row or column of the matrix. */
  readonly blocks: number;
  /** Rows and columns of the grid of ranks. */
  readonly rows: number;
  readonly columns: number;
  readonly #padded: number;
  readonly #block: number;

  /** @param n rows of the matrix; they are padded to whole tiles */
  constructor(n: number, block: number, ranks: number) {
    this.#padded = Math.ceil(n / TILE) * TILE;
    this.#block = block;
    this.blocks = Math.ceil(n / block);
    let rows = Math.floor(Math.sqrt(ranks));
    while (ranks % rows !== 0) rows--;
    this.rows = rows;
    this.columns = ranks / rows;
  }

  /** Rows of the blocks in a row of blocks, or columns of those in a column: `block`, except in the last one. */
  extent(i: number): number {
    return Math.min(this.#block, this.#padded - i * this.#block);
  }

  owner(i: number, j: number): number {
    return (i % this.rows) * this.columns + (j % this.columns);
  }

  /** Whether the rank has blocks in a row of blocks, or in a column. */
  hasRow(rank: number, i: number): boolean {
    return i % this.rows === Math.floor(rank / this.columns);
  }

  hasColumn(rank: number, j: number): boolean {
    return j % this.columns === rank % this.columns;
  }

  /** How many blocks the rank has in a column of blocks, if it has any there, and in a row. */
  share(rank: number): { readonly down: number; readonly across: number } {
    return {
      down: countOf(this.blocks, Math.floor(rank / this.columns), this.rows),
      across: countOf(this.blocks, rank % this.columns, this.columns),
    };
  }

  /** The number of a block among those of its owner. */
  index(i: number, j: number): number {
    const { across } = this.share(this.owner(i, j));
    return Math.floor(i / this.rows) * across + Math.floor(j / this.columns);
  }

  /** The rows (or columns) of blocks from `start` on in which a rank has blocks. */
  *rowsOf(rank: number, start: number): Generator<number> {
    yield* every(Math.floor(rank / this.columns), this.rows, start, this.blocks);
  }

  *columnsOf(rank: number, start: number): Generator<number> {
    yield* every(rank % this.columns, this.columns, start, this.blocks);
  }
}

/** How many of 0 … end - 1 are `first` and so many steps on. */
function countOf(end: number, first: number, step: number): number {
  return Math.max(0, Math.ceil((end - first) / step));
}

function* every(first: number, step: number, start: number, end: number): Generator<number> {
  for (let i = first + step * countOf(start, first, step); i < end; i += step) yield i;
}
