/** The kernel in plain TypeScript: tiles of 4 × 4 in sixteen local variables. */
import type { Kernel } from './kernel.ts';
import { TILE } from './tiles.ts';

/** @param length doubles of memory */
export function typescriptKernel(length: number): Kernel {
  const memory = new Float64Array(length);
  return {
    memory,
    update(c, a, b, m, n, k) {
      for (let t = 0; t < n; t += TILE) {
        for (let s = 0; s < m; s += TILE) reduceTile(memory, c + s * n + TILE * t, a + s * k, b + t * k, k);
      }
    },
    solve(x, t, inverses, m, k, first, end) {
      for (let s = 0; s < m; s += TILE) {
        const strip = x + s * k;
        for (let j = first; j < end; j += TILE) {
          reduceTile(memory, strip + TILE * j, strip, t + j * k, j);
          solveTile(memory, strip + TILE * j, t + j * k + TILE * j, inverses + j);
        }
      }
    },
    turn(to, from, m, n) {
      for (let s = 0; s < m; s += TILE) {
        for (let t = 0; t < n; t += TILE) turnTile(memory, to + t * m + TILE * s, from + s * n + TILE * t);
      }
    },
  };
}

/** The tile at `c` less the product of k columns at `a` and k rows at `b`. */
function reduceTile(memory: Float64Array, c: number, a: number, b: number, k: number): void {
  let c0 = memory[c];
  let c1 = memory[c + 1];
  let c2 = memory[c + 2];
  let c3 = memory[c + 3];
  let c4 = memory[c + 4];
  let c5 = memory[c + 5];
  let c6 = memory[c + 6];
  let c7 = memory[c + 7];
  let c8 = memory[c + 8];
  let c9 = memory[c + 9];
  let c10 = memory[c + 10];
  let c11 = memory[c + 11];
  let c12 = memory[c + 12];
  let c13 = memory[c + 13];
  let c14 = memory[c + 14];
  let c15 = memory[c + 15];
  for (const end = a + TILE * k; a < end; a += TILE, b += TILE) {
    const a0 = memory[a];
    const a1 = memory[a + 1];
    const a2 = memory[a + 2];
    const a3 = memory[a + 3];
    const b0 = memory[b];
    c0 -= a0 * b0;
    c1 -= a1 * b0;
    c2 -= a2 * b0;
    c3 -= a3 * b0;
    const b1 = memory[b + 1];
    c4 -= a0 * b1;
    c5 -= a1 * b1;
    c6 -= a2 * b1;
    c7 -= a3 * b1;
    const b2 = memory[b + 2];
    c8 -= a0 * b2;
    c9 -= a1 * b2;
    c10 -= a2 * b2;
    c11 -= a3 * b2;
    const b3 = memory[b + 3];
    c12 -= a0 * b3;
    c13 -= a1 * b3;
    c14 -= a2 * b3;
    c15 -= a3 * b3;
  }
  memory[c] = c0;
  memory[c + 1] = c1;
  memory[c + 2] = c2;
  memory[c + 3] = c3;
  memory[c + 4] = c4;
  memory[c + 5] = c5;
  memory[c + 6] = c6;
  memory[c + 7] = c7;
  memory[c + 8] = c8;
  memory[c + 9] = c9;
  memory[c + 10] = c10;
  memory[c + 11] = c11;
  memory[c + 12] = c12;
  memory[c + 13] = c13;
  memory[c + 14] = c14;
  memory[c + 15] = c15;
}

/** X·T⁻¹ for one tile: element (p, j) of T is at 4 p + j. */
function solveTile(memory: Float64Array, x: number, t: number, inverses: number): void {
  for (let j = 0; j < TILE; j++) {
    for (let p = 0; p < j; p++) {
      const factor = memory[t + TILE * p + j];
      for (let i = 0; i < TILE; i++) memory[x + TILE * j + i] -= memory[x + TILE * p + i] * factor;
    }
    for (let i = 0; i < TILE; i++) memory[x + TILE * j + i] *= memory[inverses + j];
  }
}

function turnTile(memory: Float64Array, to: number, from: number): void {
  for (let i = 0; i < TILE; i++) for (let j = 0; j < TILE; j++) memory[to + TILE * i + j] = memory[from + TILE * j + i];
}
