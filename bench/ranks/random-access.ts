/**
 * RandomAccess with an epoch for each update: see bench/hpcc/epochs.ts.
 *
 *   onesided run -n 4 build/programs/bench/ranks/random-access.js -- [--way get-modify-put|accumulate|packed|direct]
 *     [--words 4096] [--ahead 1024] [--epochs exclusive|shared|unchecked] [--update SCHEME] [--lock SCHEME]
 *     [--lock-defer] [--lock-mode MODE] [--lock-migration POLICY] [--form sync|promise] [--json FILE] [--quiet]
 *
 * `--epochs unchecked` promises that no lock conflicts, so none is taken: what is atomic by itself needs none.
 */
import { type EpochsOptions, LOCK_KINDS, randomAccess, WAYS } from '../hpcc/epochs.ts';
import { program } from '../patterns/program.ts';

await program(
  {
    numbers: { words: [4096, 1, 2 ** 31], ahead: [1024, 1, 1024] },
    words: { way: WAYS, epochs: LOCK_KINDS },
    hints: ['lock', 'update'],
  },
  ({ number: { words, ahead }, word: { way, epochs }, info }) => ({
    ...{ words, ahead, info },
    way: way as EpochsOptions['way'],
    lock: epochs as EpochsOptions['lock'],
  }),
  randomAccess,
  ({ way, words, updates, microseconds, rate, lost }) =>
    `RandomAccess by ${way}: ${(1e3 * rate).toFixed(1)} updates a millisecond, ` +
    `${(microseconds / 1e3).toFixed(2)} ms for ` +
    `${updates} of ${words} words; ${lost} words lost updates`,
);
