/**
 * The Fourier transform of n complex numbers as a bulk-synchronous program with one superstep that communicates (BSP-IB
 * §4.2 measures a transform of BSPedupack). Process s has the numbers s, s + p, s + 2p, …, transforms them by itself,
 * multiplies each by a power of e^(−2πi/n), and puts a block of n/p² to each other process; which then transforms over
 * the p blocks that it has. With number j of process s and place k1 + (n/p)·k2 of the result:
 *
 *     X[k1 + (n/p)·k2] = Σ_s e^(−2πi s·k2/p) · e^(−2πi s·k1/n) · Σ_j e^(−2πi j·k1/(n/p)) · x[s + p·j]
 *
 * Process t ends with the places k1 from t·n/p² up to (t + 1)·n/p², for all k2. Needs p² ≤ n, powers of two.
 *
 * All that is registered and tabulated is so before the time is taken, as in the paper. The result is compared with the
 * transform of one process.
 */
import { type Communicator, Op } from 'onesided';
import { type BspOptions, begin } from 'onesided/bsp';
import type { Machine } from '../patterns/machine.ts';
import { Fft, operationsOf, roots, type Transforms, typescriptTransforms } from './fft-kernel.ts';
import { fitsVectors, wasmTransforms } from './fft-wasm.ts';
import { type Measured, median } from './measured.ts';

/** The arithmetic in WebAssembly, or in plain TypeScript: the same results, bit by bit. */
export const FFT_KERNELS = ['wasm', 'typescript'] as const;
export type FftKernel = (typeof FFT_KERNELS)[number];

export interface FftOptions extends BspOptions {
  /** Complex numbers: 2 to this power. */
  readonly log2n: number;
  readonly samples: number;
  /** Million operations a second that the arithmetic is charged at, where time is virtual. */
  readonly mflops: number;
  /** `wasm` if absent. Small parts of a process are transformed in TypeScript, whatever this says. */
  readonly kernel?: FftKernel;
}

export interface FftResult extends Measured {
  readonly n: number;
  /** Microseconds of each run, of the process that took longest. */
  readonly samples: readonly number[];
  /** The largest difference to the transform of one process, over the largest number of that. */
  readonly difference: number;
}

/** Errors beyond this are mistakes: they grow with log n, from 1e-16. */
const TOLERANCE = 1e-12;

/** The numbers, by place. */
const real = (k: number): number => ((k * 7919) % 1000) / 500 - 1;
const imaginary = (k: number): number => ((k * 104729) % 997) / 498.5 - 1;

/** Collective. Errors: `RangeError` if n and the processes do not fit. */
export async function fft(world: Communicator, options: FftOptions, machine: Machine): Promise<FftResult> {
  const { log2n, samples, mflops, kernel = 'wasm', ...given } = options;
  const n = 2 ** log2n;
  const { size: p, rank: s } = world;
  if (2 ** Math.round(Math.log2(p)) !== p || p * p > n) {
    throw new RangeError(
      `a transform of 2^${log2n} needs a power of two of processes up to ${2 ** (log2n >> 1)}, not ${p}`,
    );
  }
  const bsp = await begin(world, given);
  const m = n / p;
  const block = m / p;
  const makeTransforms = kernel === 'wasm' && fitsVectors(m, p) ? wasmTransforms : typescriptTransforms;
  const transforms: Transforms = makeTransforms(n, p, s);
  const { data, blocks } = transforms;
  bsp.pushReg(blocks);
  await bsp.sync();
  const times: number[] = [];
  let result: Float64Array = data;
  const sync = machine.form === 'sync' ? () => bsp.syncSync() : () => bsp.sync();
  for (let sample = -1; sample < samples; sample++) {
    for (let j = 0; j < m; j++) {
      data[2 * j] = real(s + p * j);
      data[2 * j + 1] = imaginary(s + p * j);
    }
    await sync();
    const began = machine.now();
    const own = transforms.first();
    await machine.charge((operationsOf(m) + 6 * m) / mflops);
    for (let k = 1; k <= p; k++) {
      const t = (s + k) % p;
      bsp.put(t, own, blocks, 2 * block * s, 2 * block, 2 * block * t);
    }
    await sync();
    result = transforms.second();
    await machine.charge(operationsOf(p, block) / mflops);
    if (sample >= 0) times.push(machine.now() - began);
  }
  const longest = new Float64Array(samples);
  await world.allreduce(Float64Array.from(times), longest, Op.MAX);
  const difference = new Float64Array(1);
  await world.allreduce(Float64Array.of(differenceOf(result, n, p, s)), difference, Op.MAX);
  await bsp.end();
  return {
    ...{ n, processes: p, microseconds: median([...longest]), samples: [...longest], difference: difference[0] },
    mflops: (5 * n * log2n) / median([...longest]),
    errors: difference[0] < TOLERANCE ? 0 : 1,
  };
}

/** Of this process's part and that of a transform by one process. */
function differenceOf(part: Float64Array, n: number, p: number, t: number): number {
  const all = new Float64Array(2 * n);
  for (let k = 0; k < n; k++) {
    all[2 * k] = real(k);
    all[2 * k + 1] = imaginary(k);
  }
  const expected = new Fft(n).run(all, new Float64Array(2 * n));
  const m = n / p;
  const block = m / p;
  let [most, difference] = [0, 0];
  for (let i = 0; i < 2 * n; i++) most = Math.max(most, Math.abs(expected[i]));
  for (let k2 = 0; k2 < p; k2++) {
    const from = 2 * (t * block + m * k2);
    for (let i = 0; i < 2 * block; i++) {
      difference = Math.max(difference, Math.abs(part[2 * block * k2 + i] - expected[from + i]));
    }
  }
  return difference / most;
}

/** The transform as its definition says, for tests. */
export function slowly(x: Float64Array): Float64Array {
  const n = x.length / 2;
  const table = roots(n, n);
  const y = new Float64Array(2 * n);
  for (let k = 0; k < n; k++) {
    for (let j = 0; j < n; j++) {
      const w = 2 * ((j * k) % n);
      y[2 * k] += x[2 * j] * table[w] - x[2 * j + 1] * table[w + 1];
      y[2 * k + 1] += x[2 * j] * table[w + 1] + x[2 * j + 1] * table[w];
    }
  }
  return y;
}
