/**
 * How much computation hides behind communication: see bench/patterns/overlap.ts.
 *
 *   onesided run -n 2 build/programs/bench/ranks/overlap.js -- [--side sender|receiver|fence] [--operation put|get]
 *   [--bytes 32768] [--operations 1]
 *     [--samples 20] [--compute 20000] [--pieces 1] [--lock SCHEME] [--lock-defer] [--lock-mode MODE] [--lock-migration
 *     POLICY] [--fence SCHEME] [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--compute` is in microseconds, and the receiver's, which computes in `--pieces`; `--lock`, `--lock-defer`,
 * `--lock-mode`, `--lock-migration` and `--fence` are the window's hints of those names.
 */
import { overlap } from '../patterns/overlap.ts';
import { inWords, program } from '../patterns/program.ts';

await program(
  {
    numbers: {
      bytes: [32768, 4, 2 ** 26],
      operations: [1, 1, 4096],
      samples: [20, 1, 1e6],
      compute: [20_000, 1, 1e9],
      pieces: [1, 1, 1e6],
    },
    words: { side: ['sender', 'receiver', 'fence'], operation: ['put', 'get'] },
    hints: ['lock', 'fence'],
  },
  ({ number: { bytes, operations, samples, compute, pieces }, word: { side, operation }, info }) => ({
    side: side as 'sender' | 'receiver' | 'fence',
    operation: operation as 'put' | 'get',
    bytes: inWords(bytes),
    operations,
    samples,
    compute,
    pieces,
    info,
  }),
  overlap,
  (result) =>
    result.side === 'receiver'
      ? `overlap at the receiver, ${result.origins} origins, ${result.bytes} bytes: ` +
        `${result.slowdown.toFixed(2)} times as long, ${result.accesses} accesses of ${result.access.toFixed(2)} µs`
      : `overlap at the ${result.side}, ${result.operations} × ${result.operation} of ${result.bytes} bytes: ` +
        `${result.overlap.toFixed(0)} % of ${result.base.toFixed(2)} µs`,
);
