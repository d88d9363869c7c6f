/**
 * What a process of the transform in fft.ts computes, and how in plain TypeScript; fft-wasm.ts does the same with
 * vectors of two doubles.
 *
 * Fourier transforms of complex numbers in typed arrays (real part, imaginary part, and so on): Stockham's way, which
 * needs no reordering. A pass of radix 4 reads one array and writes another; the passes take turns. Each pass does the
 * same for `batch` transforms that lie beside each other, so transforms over the rows of a matrix need no
 * transposition.
 *
 * The numbers e^(−2πi k/n) are tabulated once. The loops allocate nothing, and look nothing up but the table.
 */

/** What a process computes, on arrays of its own. */
export interface Transforms {
  /** This process's m = n/p numbers, which `first` transforms, and their blocks from all processes, for `second`. */
  readonly data: Float64Array;
  readonly blocks: Float64Array;
  /** Transforms `data`, and multiplies result k by e^(−2πi s·k/n). @returns the array with the results */
  first(): Float64Array;
  /** Transforms over the blocks. @returns the array with the results, until `first` is called again */
  second(): Float64Array;
}

/** @param n numbers of all @param p processes @param s this one */
export function typescriptTransforms(n: number, p: number, s: number): Transforms {
  const m = n / p;
  const first = new Fft(m);
  const second = new Fft(p, m / p);
  const factors = twiddles(n, m, s);
  const [data, work, blocks] = [0, 1, 2].map(() => new Float64Array(2 * m));
  return {
    data,
    blocks,
    first() {
      const result = first.run(data, work);
      multiply(result, factors);
      return result;
    },
    second: () => second.run(blocks, work),
  };
}

/** Floating-point operations of `batch` transforms of n numbers, counted as usual: 5 n log2 n each. */
export function operationsOf(n: number, batch = 1): number {
  return 5 * n * Math.log2(n) * batch;
}

/** A transform of a length, a power of two, and its table. */
export class Fft {
  readonly n: number;
  readonly batch: number;
  readonly #table: Float64Array;

  /** @param batch how many transforms lie beside each other: element k of transform b is number k · batch + b */
  constructor(n: number, batch = 1) {
    if (n < 1 || 2 ** Math.round(Math.log2(n)) !== n) throw new RangeError(`${n} is not a power of two`);
    this.n = n;
    this.batch = batch;
    this.#table = roots(n, (3 * n) / 4 + 1);
  }

  /** Transforms `data`. @param work as long as `data`: its contents are lost. @returns the one that has the result */
  run(data: Float64Array, work: Float64Array): Float64Array {
    let [from, to] = [data, work];
    let length = this.n;
    let beside = this.batch;
    while (length >= 4) {
      pass4(from, to, this.#table, length, beside, this.n / length);
      [from, to] = [to, from];
      length /= 4;
      beside *= 4;
    }
    if (length === 2) {
      pass2(from, to, beside);
      [from, to] = [to, from];
    }
    return from;
  }
}

/** e^(−2πi k/n) for k from 0 on. */
export function roots(n: number, count: number): Float64Array {
  const table = new Float64Array(2 * Math.ceil(count));
  for (let k = 0; 2 * k < table.length; k++) {
    const angle = (-2 * Math.PI * k) / n;
    table[2 * k] = Math.cos(angle);
    table[2 * k + 1] = Math.sin(angle);
  }
  return table;
}

/** e^(−2πi s·k/n) for k below m. */
export function twiddles(n: number, m: number, s: number): Float64Array {
  const table = new Float64Array(2 * m);
  for (let k = 0; k < m; k++) {
    const angle = (-2 * Math.PI * s * k) / n;
    table[2 * k] = Math.cos(angle);
    table[2 * k + 1] = Math.sin(angle);
  }
  return table;
}

function multiply(x: Float64Array, factors: Float64Array): void {
  for (let i = 0; i < x.length; i += 2) {
    const r = x[i];
    const j = x[i + 1];
    x[i] = r * factors[i] - j * factors[i + 1];
    x[i + 1] = r * factors[i + 1] + j * factors[i];
  }
}

/** Four quarters become one of four interleaved transforms, each a quarter as long. @param step in the table */
function pass4(x: Float64Array, y: Float64Array, table: Float64Array, n: number, beside: number, step: number): void {
  const quarter = n >> 2;
  const apart = 2 * quarter * beside;
  for (let k = 0; k < quarter; k++) {
    const w1 = 2 * k * step;
    const [w2, w3] = [2 * w1, 3 * w1];
    const w1r = table[w1];
    const w1i = table[w1 + 1];
    const w2r = table[w2];
    const w2i = table[w2 + 1];
    const w3r = table[w3];
    const w3i = table[w3 + 1];
    let at = 2 * k * beside;
    let to = 8 * k * beside;
    const hop = 2 * beside;
    for (let b = 0; b < beside; b++, at += 2, to += 2) {
      const b1 = at + apart;
      const b2 = b1 + apart;
      const b3 = b2 + apart;
      const sr = x[at] + x[b2];
      const si = x[at + 1] + x[b2 + 1];
      const dr = x[at] - x[b2];
      const di = x[at + 1] - x[b2 + 1];
      const tr = x[b1] + x[b3];
      const ti = x[b1 + 1] + x[b3 + 1];
      // −i times the difference of the odd quarters.
      const er = x[b1 + 1] - x[b3 + 1];
      const ei = x[b3] - x[b1];
      y[to] = sr + tr;
      y[to + 1] = si + ti;
      const ar = dr + er;
      const ai = di + ei;
      y[to + hop] = ar * w1r - ai * w1i;
      y[to + hop + 1] = ar * w1i + ai * w1r;
      const br = sr - tr;
      const bi = si - ti;
      y[to + 2 * hop] = br * w2r - bi * w2i;
      y[to + 2 * hop + 1] = br * w2i + bi * w2r;
      const cr = dr - er;
      const ci = di - ei;
      y[to + 3 * hop] = cr * w3r - ci * w3i;
      y[to + 3 * hop + 1] = cr * w3i + ci * w3r;
    }
  }
}

/** The last pass of a length that is no power of four. */
function pass2(x: Float64Array, y: Float64Array, beside: number): void {
  const half = 2 * beside;
  for (let at = 0; at < half; at++) {
    const a = x[at];
    const b = x[at + half];
    y[at] = a + b;
    y[at + half] = a - b;
  }
}
