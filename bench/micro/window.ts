/**
 * What calls on a window cost in one process: a world of one, whose only target is itself, so that no other core's
 * cache takes part. Every check is on. Run with `npm run bench -- --micro`.
 */

import { bench, do_not_optimize, group, run } from 'mitata';
import { Datatype, init, Lock, Op, RmaError, Window } from 'onesided';

const world = await init();
const doubles = await Window.allocate(world, Float64Array, 1 << 16);
const words = await Window.allocate(world, BigInt64Array, 1 << 16);
const bytes = await Window.allocate(world, Uint8Array, 1 << 20);
for (const window of [doubles, words, bytes]) window.lockAllSync();

const double = Float64Array.of(1);
const word = BigInt64Array.of(1n);
const zero = BigInt64Array.of(0n);
const result = new BigInt64Array(1);

group('8 bytes', () => {
  bench('put', () => doubles.put(double, 0, 7));
  bench('put, flush', () => {
    doubles.put(double, 0, 7);
    doubles.flushSync(0);
  });
  bench('put, await flush', async () => {
    doubles.put(double, 0, 7);
    await doubles.flush(0);
  });
  bench('get', () => doubles.get(double, 0, 7));
  bench('accumulate SUM, int64', () => words.accumulate(word, 0, 7, Op.SUM));
  bench('accumulate SUM, double', () => doubles.accumulate(double, 0, 7, Op.SUM));
  bench('fetchAndOp SUM', () => words.fetchAndOp(word, result, 0, 7, Op.SUM));
  bench('compareAndSwap', () => words.compareAndSwap(word, zero, result, 0, 7));
});

group('bytes', () => {
  for (const size of [64, 1024, 65536, 1048576]) {
    const origin = new Uint8Array(size);
    const copy = new Uint8Array(size);
    bench(`put ${size}`, () => bytes.put(origin, 0, 0));
    bench(`get ${size}`, () => bytes.get(origin, 0, 0));
    bench(`TypedArray.set ${size}`, () => copy.set(origin));
  }
});

group('512 scattered words', () => {
  const displacements = Int32Array.from({ length: 512 }, (_, i) => (i * 40503) & 0xffff);
  const values = new BigInt64Array(512).fill(1n);
  const type = Datatype.indexedBlock(1, displacements, Datatype.INT64);
  bench('make the datatype', () => do_not_optimize(Datatype.indexedBlock(1, displacements, Datatype.INT64)));
  bench('accumulate BXOR', () => words.accumulate(values, 0, 0, Op.BXOR, { target: { type, count: 1 } }));
});

group('a call that is refused', () => {
  bench('put past the end', () => {
    try {
      doubles.put(double, 0, 1 << 16);
    } catch (error) {
      if (!(error instanceof RmaError)) throw error;
    }
  });
});

const quiet = await Window.allocate(world, Float64Array, 8);
group('synchronization, alone', () => {
  bench('lock, unlock exclusive', () => {
    quiet.lockSync(0, Lock.EXCLUSIVE);
    quiet.unlockSync(0);
  });
  bench('lock, unlock shared', () => {
    quiet.lockSync(0, Lock.SHARED);
    quiet.unlockSync(0);
  });
  bench('await lock, await unlock', async () => {
    await quiet.lock(0, Lock.EXCLUSIVE);
    await quiet.unlock(0);
  });
  bench('fence', () => quiet.fenceSync());
  bench('await fence', async () => quiet.fence());
  bench('barrier', () => world.barrierSync());
});

await run({ colors: process.stdout.isTTY === true });
for (const window of [doubles, words, bytes]) window.unlockAllSync();
await world.finalize();
