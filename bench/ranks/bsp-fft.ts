/**
 * A Fourier transform as a bulk-synchronous program, verified: see bench/bsp/fft.ts.
 *
 *   onesided run -n 2 build/programs/bench/ranks/bsp-fft.js -- [--log2n 18] [--samples 10] [--mflops 1000]
 *     [--kernel wasm|typescript] [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--log2n`: 2 to this power complex numbers; `--mflops`: what the arithmetic of a process is charged at on a modelled
 * fabric; `--kernel`: the arithmetic, the same bit by bit.
 */
import { FFT_KERNELS, type FftKernel, fft } from '../bsp/fft.ts';
import { program } from '../patterns/program.ts';

await program(
  {
    numbers: { log2n: [18, 1, 26], samples: [10, 1, 1e6], mflops: [1000, 1, 1e6] },
    words: { kernel: FFT_KERNELS },
    hints: [],
  },
  ({ number, word }) => ({ ...number, kernel: word.kernel as FftKernel }),
  fft,
  ({ n, processes, microseconds, mflops, difference, errors }) =>
    `${n} complex numbers on ${processes} processes: ${microseconds.toFixed(1)} µs, ` +
    `${mflops.toFixed(0)} Mflop/s; differs by ${difference.toExponential(1)} from one ` +
    `process${errors === 0 ? '' : ': WRONG'}`,
);
