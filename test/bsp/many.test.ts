/** Supersteps of 1,024 processes on a modelled fabric, in which each has something for a few others only. */
import { begin } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';

const PROCESSES = 1024;
const SUPERSTEPS = 2;

describe('1,024 processes with sparse relations', () => {
  test.each(['auto'] as const)('end supersteps, and find what was put: %s', { timeout: 600_000 }, async (delivery) => {
    let seconds = 0;
    const right = await runTasks(
      PROCESSES,
      async (world) => {
        const bsp = await begin(world, { delivery });
        const { pid, nprocs } = bsp;
        const x = new Float64Array(3 * 64);
        bsp.pushReg(x);
        await bsp.sync();
        for (let step = 0; step < SUPERSTEPS; step++) {
          const began = performance.now();
          for (const [i, distance] of [1, 7, 100].entries()) {
            bsp.put((pid + distance) % nprocs, new Float64Array(64).fill(1000 * step + pid), x, 64 * i);
          }
          await bsp.sync();
          if (pid === 0) seconds = (performance.now() - began) / 1000;
        }
        const isRight = [1, 7, 100].every((distance, i) =>
          x
            .subarray(64 * i, 64 * (i + 1))
            .every((value) => value === 1000 * (SUPERSTEPS - 1) + ((pid - distance + nprocs) % nprocs)),
        );
        await bsp.end();
        return isRight;
      },
      { fabric: 'infinihost-64', seed: 1 },
    );
    console.log(`${delivery}: the last superstep was simulated in ${seconds.toFixed(1)} s`);
    expect(right.every((one) => one)).toBe(true);
  });
});
