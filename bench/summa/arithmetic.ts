/**
 * The arithmetic of a rank: its block of C, and C ← C + A·B for a panel. It is LU's kernel (../splash/kernel.ts), in
 * WebAssembly with vectors of two doubles, for blocks that are laid out in tiles of 4 × 4 (../splash/tiles.ts); what
 * lies by rows is brought into that form first. The kernel subtracts, so A comes with its signs turned. Where edges are
 * not whole tiles, what lies beyond them is left as it is, and reaches nothing but what lies beyond the edges of C.
 * bench/peers/summa.c does the same, with the compiler's vectors.
 */

import type { Kernel } from '../splash/kernel.ts';
import { wasmKernel } from '../splash/kernel-wasm.ts';
import { byRows, TILE } from '../splash/tiles.ts';

/** Rows of A that are multiplied with all of B at once: with panels of 64 columns, they stay in the nearest cache. */
const ROWS = 64;

function padded(length: number): number {
  return Math.ceil(length / TILE) * TILE;
}

export class Arithmetic {
  readonly #height: number;
  readonly #width: number;
  readonly #kernel: Kernel;
  /** Where A and B of a panel lie in the kernel's memory; C lies at its beginning. */
  readonly #a: number;
  readonly #b: number;

  /** @param height rows of C @param width its columns @param depth columns of A in a panel, at most */
  constructor(height: number, width: number, depth: number) {
    this.#height = height;
    this.#width = width;
    this.#a = padded(height) * padded(width);
    this.#b = this.#a + padded(height) * depth;
    this.#kernel = wasmKernel(this.#b + depth * padded(width));
  }

  /** C ← 0. */
  clear(): void {
    this.#kernel.memory.fill(0, 0, this.#a);
  }

  /** Element (i, j) of C. */
  element(i: number, j: number): number {
    return this.#kernel.memory[byRows(i, j, padded(this.#width))];
  }

  /** C ← C + A·B, with A of height × depth and B of depth × width, both by rows. */
  add(a: Float64Array, b: Float64Array, depth: number): void {
    const [m, n] = [padded(this.#height), padded(this.#width)];
    if (m === 0 || n === 0) return;
    this.#packA(a, depth);
    this.#packB(b, depth);
    for (let row = 0; row < m; row += ROWS) {
      const rows = Math.min(ROWS, m - row);
      this.#kernel.update(row * n, this.#a + row * depth, this.#b, rows, n, depth);
    }
  }

  /** By rows of tiles: strips of 4 rows, of each column its 4 elements. */
  #packA(a: Float64Array, depth: number): void {
    const { memory } = this.#kernel;
    for (let i = 0; i < this.#height; i++) {
      const to = this.#a + byRows(i, 0, depth);
      const from = i * depth;
      for (let l = 0; l < depth; l++) memory[to + TILE * l] = -a[from + l];
    }
  }

  /** By columns of tiles: strips of 4 columns, of each row its 4 elements. */
  #packB(b: Float64Array, depth: number): void {
    const { memory } = this.#kernel;
    const width = this.#width;
    const whole = width - (width % TILE);
    for (let l = 0; l < depth; l++) {
      const from = l * width;
      let to = this.#b + TILE * l;
      for (let j = 0; j < whole; j += TILE, to += TILE * depth) {
        memory[to] = b[from + j];
        memory[to + 1] = b[from + j + 1];
        memory[to + 2] = b[from + j + 2];
        memory[to + 3] = b[from + j + 3];
      }
      for (let j = whole; j < width; j++) memory[to + j - whole] = b[from + j];
    }
  }
}
