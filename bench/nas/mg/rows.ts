/**
 * What multigrid computes along a row of points. There are two kinds, one in WebAssembly with vectors of two doubles,
 * and this one in plain TypeScript, which is quicker to start and needs no memory of its own. Both do the same
 * operations in the same order, so their results are equal bit by bit, and equal to those of bench/peers/mg.c.
 */
export type Weights = readonly [centre: number, faces: number, edges: number, corners: number];

export interface Rows {
  /** Zeros, where all arrays lie that are passed to the functions below. @throws RangeError if there is no room */
  doubles(length: number): Float64Array<ArrayBuffer>;
  /**
   * to(out + i) = base(out + i) + Σ weights · from(start + step · i + neighbour), for i from 0 to before `count`; with
   * a step of 2, there is no base and it counts as 0. Rows of `from` have `row` points, planes have `plane`.
   */
  stencil(
    to: Float64Array,
    out: number,
    base: Float64Array | undefined,
    from: Float64Array,
    start: number,
    row: number,
    plane: number,
    count: number,
    weights: Weights,
  ): void;
  /**
   * Adds to `width` points of a fine row an eighth of the sum of the two points, or twice the one, that lie around them
   * on the sums of four coarse rows of `across` points each. Index i lies on index (i + shift) / 2.
   */
  interpolate(
    to: Float64Array,
    out: number,
    width: number,
    from: Float64Array,
    rows: readonly [number, number, number, number],
    across: number,
    shift: number,
  ): void;
}

/** @param longest points of a row, at most */
export function typescriptRows(longest: number): Rows {
  const f = new Float64Array(longest);
  const e = new Float64Array(longest);
  return {
    doubles: (length) => new Float64Array(length),
    stencil(to, out, base, from, start, row, plane, count, [centre, faces, edges, corners]) {
      const step = base === undefined ? 2 : 1;
      // Sums of the four neighbours in y and z, and of the four at the edges, are used at three points each.
      for (let x = 0, at = start - 1; x < step * (count - 1) + 3; x++, at++) {
        f[x] = from[at - row] + from[at + row] + from[at - plane] + from[at + plane];
        e[x] = from[at - plane - row] + from[at - plane + row] + from[at + plane - row] + from[at + plane + row];
      }
      for (let i = 0, x = 1; i < count; i++, x += step) {
        const at = start + x - 1;
        to[out + i] =
          (base === undefined ? 0 : base[out + i]) +
          centre * from[at] +
          faces * (from[at - 1] + from[at + 1] + f[x]) +
          edges * (f[x - 1] + f[x + 1] + e[x]) +
          corners * (e[x - 1] + e[x + 1]);
      }
    },
    interpolate(to, out, width, from, [a, b, c, d], across, shift) {
      for (let x = 0; x < across; x++) f[x] = from[a + x] + from[b + x] + from[c + x] + from[d + x];
      for (let x = 0; x < width; x++) {
        const at = x + shift;
        to[out + x] += (f[at >> 1] + f[(at + 1) >> 1]) / 8;
      }
    },
  };
}
