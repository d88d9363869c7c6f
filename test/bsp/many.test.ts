/**
 * Supersteps of 1,024 processes on a modelled fabric, in which each has something for a few others only: with the
 * default delivery, `auto`, and puts that are long enough for it to try both ways; and in datagrams, some of which are
 * lost.
 */
import { type BspOptions, begin } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';

const PROCESSES = 1024;
/** The first one is taken for none that it knows; then it tries each way three times. */
const SUPERSTEPS = 8;
/** Three puts of them are more than 8 KiB. */
const WORDS = 512;

describe('1,024 processes with sparse relations', () => {
  const ways: readonly BspOptions[] = [{}, { delivery: 'datagrams', nackAfter: 1 }];
  test.each(ways)('end supersteps, and find what was put: %o', { timeout: 600_000 }, async (options) => {
    const seconds: number[] = [];
    const right = await runTasks(
      PROCESSES,
      async (world) => {
        const bsp = await begin(world, options);
        const { pid, nprocs } = bsp;
        const x = new Float64Array(3 * WORDS);
        bsp.pushReg(x);
        await bsp.sync();
        for (let step = 0; step < SUPERSTEPS; step++) {
          const began = performance.now();
          for (const [i, distance] of [1, 7, 100].entries()) {
            bsp.put((pid + distance) % nprocs, new Float64Array(WORDS).fill(1000 * step + pid), x, WORDS * i);
          }
          await bsp.sync();
          if (pid === 0) seconds.push((performance.now() - began) / 1000);
        }
        const isRight = [1, 7, 100].every((distance, i) =>
          x
            .subarray(WORDS * i, WORDS * (i + 1))
            .every((value) => value === 1000 * (SUPERSTEPS - 1) + ((pid - distance + nprocs) % nprocs)),
        );
        await bsp.end();
        return isRight;
      },
      { fabric: 'infinihost-64', seed: 1, faults: { datagramLoss: 0.01 } },
    );
    console.log(`supersteps were simulated in ${seconds.map((one) => one.toFixed(1)).join(', ')} s`);
    expect(right.every((one) => one)).toBe(true);
  });
});
