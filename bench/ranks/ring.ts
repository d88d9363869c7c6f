/**
 * A message round a ring of ranks that compute: see bench/patterns/ring.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/ring.js -- [--bytes 1024] [--compute 100] [--rounds 20]
 *     [--lock SCHEME] [--lock-defer] [--lock-mode MODE] [--lock-migration POLICY] [--form sync|promise] [--json FILE]
 *     [--quiet]
 *
 * `--compute` is in microseconds a piece of work; `--lock`, `--lock-defer`, `--lock-mode` and `--lock-migration` are
 * the window's hints of those names.
 */
import { inWords, program } from '../patterns/program.ts';
import { ring } from '../patterns/ring.ts';

await program(
  {
    numbers: { bytes: [1024, 4, 2 ** 26], compute: [100, 1, 1e9], rounds: [20, 1, 1e6] },
    hints: ['lock'],
  },
  ({ number: { bytes, compute, rounds }, info }) => ({ bytes: inWords(bytes), compute, rounds, info }),
  ring,
  ({ bytes, compute, rounds, hop }) =>
    `ring, ${rounds} rounds of ${bytes} bytes, work in pieces of ${compute} µs: ${hop.toFixed(1)} µs from rank to rank`,
);
