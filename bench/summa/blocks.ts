/** A matrix that is cut into as many blocks as a grid has ranks, each stored by rows; and the panels of a product. */

export interface Grid {
  readonly rows: number;
  readonly columns: number;
}

/** As square as the number of ranks allows, and not higher than wide. */
export function gridOf(size: number): Grid {
  let rows = Math.floor(Math.sqrt(size));
  while (size % rows !== 0) rows--;
  return { rows, columns: size / rows };
}

/** Where part `i` of `parts` of `n` begins. */
export function beginOf(n: number, parts: number, i: number): number {
  return Math.floor((i * n) / parts);
}

/** The part of `n` that `at` is in. */
function partOf(n: number, parts: number, at: number): number {
  let part = Math.floor((at * parts) / n);
  while (beginOf(n, parts, part + 1) <= at) part++;
  return part;
}

/** Consecutive columns of the first matrix and rows of the second, each of one block. */
export interface Panel {
  readonly begin: number;
  readonly width: number;
  /** The column of the grid that has these columns, and the row that has these rows. */
  readonly gridColumn: number;
  readonly gridRow: number;
}

/** The panels of `k` columns, `width` at most, cut where blocks end. */
export function panelsOf(k: number, grid: Grid, width: number): Panel[] {
  const panels: Panel[] = [];
  for (let begin = 0; begin < k; ) {
    const gridColumn = partOf(k, grid.columns, begin);
    const gridRow = partOf(k, grid.rows, begin);
    const end = Math.min(begin + width, beginOf(k, grid.columns, gridColumn + 1), beginOf(k, grid.rows, gridRow + 1));
    panels.push({ begin, width: end - begin, gridColumn, gridRow });
    begin = end;
  }
  return panels;
}

/** An element of matrix `which`: a small whole number, so that sums of products have no rounding. */
export function elementOf(which: number, i: number, j: number): number {
  const mixed = Math.imul(i * 31 + which, 0x9e3779b1) ^ Math.imul(j + 7, 0x85ebca6b);
  return ((Math.imul(mixed ^ (mixed >>> 15), 0x27d4eb2f) >>> 20) % 15) - 7;
}
