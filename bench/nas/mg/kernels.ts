/**
 * The arithmetic of multigrid (NPB 1, §2.4; RNR-94-007): a stencil of 27 points, with one weight each for the centre
 * and its 6, 12 and 8 neighbours, which is the operator, the smoother and the restriction, and trilinear interpolation.
 *
 * Sums over the four neighbours in y and z are made once for a row and used at three points of it, as NPB does it
 * (rows.ts).
 */
import { type Block, type Box, pointsIn, type Triple } from './grid.ts';
import type { Rows, Weights } from './rows.ts';

/** The operator A, with its sign turned: r = v − A u. */
export const MINUS_A: Weights = [8 / 3, 0, -1 / 6, -1 / 12];
export const RESTRICTION: Weights = [1 / 2, 1 / 4, 1 / 8, 1 / 16];

/**
 * Additions and multiplications of a point: 6 for the row's sums (12 where only every second one is used), and what its
 * weights that are not zero take. With them an iteration has 59 for each point of the finest grid, where NPB counts 58.
 */
export const OPERATIONS = { residual: 15, smooth: 16, restrict: 24, interpolate: 4.5 } as const;

const NONE: Triple = [0, 0, 0];

/**
 * to(j) = base(j) + Σ weights · from(step · j − offset + neighbour), for the points j of a box; the step is 2 if there
 * is no base, and 1 otherwise.
 * @param base of the lengths of `to`, and may be the same; none: 0
 */
export function stencil(
  rows: Rows,
  to: Block,
  base: Block | undefined,
  from: Block,
  weights: Weights,
  box: Box,
  offset: Triple = NONE,
): void {
  if (pointsIn(box) === 0) return;
  const step = base === undefined ? 2 : 1;
  const row = from.lengths[0];
  const plane = row * from.lengths[1];
  const [low, count] = [box.low[0], box.high[0] - box.low[0] + 1];
  for (let z = box.low[2]; z <= box.high[2]; z++) {
    for (let y = box.low[1]; y <= box.high[1]; y++) {
      const start = plane * (step * z - offset[2]) + row * (step * y - offset[1]) + step * low - offset[0];
      const out = to.lengths[0] * (y + to.lengths[1] * z) + low;
      rows.stencil(to.data!, out, base?.data, from.data!, start, row, plane, count, weights);
    }
  }
}

/**
 * Adds to all of a fine block, ghosts as well, what the coarse one has there. Along an axis, index i of the fine block
 * lies on index (i + shift) / 2 of the coarse one, or between the two around that.
 */
export function interpolate(rows: Rows, fine: Block, coarse: Block, shift: Triple): void {
  const [width, height, depth] = fine.lengths;
  const [across, down] = coarse.lengths;
  for (let z = 0; z < depth; z++) {
    const [front, back] = [(z + shift[2]) >> 1, (z + shift[2] + 1) >> 1];
    for (let y = 0; y < height; y++) {
      const [above, below] = [(y + shift[1]) >> 1, (y + shift[1] + 1) >> 1];
      const places = [
        across * (above + down * front),
        across * (below + down * front),
        across * (above + down * back),
        across * (below + down * back),
      ] as const;
      rows.interpolate(fine.data!, width * (y + height * z), width, coarse.data!, places, across, shift[0]);
    }
  }
}

/** The sum of squares of a block without its ghosts. */
export function squares({ data, lengths }: Block, { low, high }: Box): number {
  let sum = 0;
  for (let z = low[2]; z <= high[2]; z++) {
    for (let y = low[1]; y <= high[1]; y++) {
      const start = lengths[0] * (y + lengths[1] * z);
      for (let x = low[0]; x <= high[0]; x++) sum += data![start + x] ** 2;
    }
  }
  return sum;
}

/** Copies a box out of a block, row by row. @returns how many numbers */
export function pack({ data, lengths }: Block, { low, high }: Box, to: Float64Array, at: number): number {
  const length = high[0] - low[0] + 1;
  let place = at;
  for (let z = low[2]; z <= high[2]; z++) {
    for (let y = low[1]; y <= high[1]; y++) {
      const start = lengths[0] * (y + lengths[1] * z) + low[0];
      if (data !== undefined) for (let x = 0; x < length; x++) to[place + x] = data[start + x];
      place += length;
    }
  }
  return place - at;
}

/** Copies into a box of a block what `pack` has copied out of one of the same lengths. */
export function unpack({ data, lengths }: Block, { low, high }: Box, from: Float64Array, at: number): number {
  const length = high[0] - low[0] + 1;
  let place = at;
  for (let z = low[2]; z <= high[2]; z++) {
    for (let y = low[1]; y <= high[1]; y++) {
      const start = lengths[0] * (y + lengths[1] * z) + low[0];
      if (data !== undefined) for (let x = 0; x < length; x++) data[start + x] = from[place + x];
      place += length;
    }
  }
  return place - at;
}
