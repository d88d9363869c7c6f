/**
 * What RandomAccess costs a rank beside the window's work: the stream, the bins, and verification, per 1,024 updates.
 */

import { bench, run } from 'mitata';
import { Bins } from '../hpcc/bins.ts';
import { Distribution } from '../hpcc/distribution.ts';
import { startOf, step } from '../hpcc/random-stream.ts';
import { Verification } from '../hpcc/verify.ts';

const stream = startOf(0);
const even = new Bins(new Distribution(2 ** 24, 2), () => {});
const uneven = new Bins(new Distribution(2 ** 24, 3), () => {});
const small = new Distribution(2 ** 16, 1);
let verification = new Verification(new BigUint64Array(2 ** 16), small, 0, 'xor');

bench('stream', () => {
  for (let i = 0; i < 1024; i++) step(stream);
});
bench('bins, 2 ranks', () => even.take(stream, 1024));
bench('bins, 3 ranks', () => uneven.take(stream, 1024));
bench('verification, table in the cache', () => {
  if (verification.done === verification.updates)
    verification = new Verification(new BigUint64Array(2 ** 16), small, 0, 'xor');
  verification.advance(1024);
});
bench('a start somewhere in the stream', () => startOf(123456789012345));

await run({ colors: process.stdout.isTTY === true });
