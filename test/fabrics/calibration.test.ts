/** The testbed of chapters 4 and 6, by what the dissertation has measured on it. */
import { describe, expect, test } from 'vitest';
import type { Communicator } from '../../src/comm/communicator.ts';
import { runTasks } from '../../src/comm/tasks.ts';
import { Op } from '../../src/datatype/op.ts';

/** Dissertation, table 6.1: microseconds, by ranks; reductions of 256 bytes. */
const TABLE_6_1 = [
  { ranks: 2, barrier: 3.66, allreduce: 7.75, reduceScatter: 6.84 },
  { ranks: 4, barrier: 10.79, allreduce: 13.78, reduceScatter: 11.27 },
  { ranks: 8, barrier: 18.65, allreduce: 20.9, reduceScatter: 16.26 },
  { ranks: 16, barrier: 27.21, allreduce: 30.34, reduceScatter: 21.99 },
  { ranks: 32, barrier: 37.89, allreduce: 43.15, reduceScatter: 29.19 },
  { ranks: 64, barrier: 44.13, allreduce: 51.9, reduceScatter: 33.18 },
];
const TOLERANCE = 0.2;
/** Calls before the measurement, and in it, as the benchmarks of collectives do. */
const WARM = 20;
const CALLS = 20;

const COLLECTIVES = {
  barrier: (world: Communicator) => world.barrier(),
  allreduce: (world: Communicator) => world.allreduce(new Float64Array(32), new Float64Array(32), Op.SUM),
  reduceScatter: (world: Communicator) =>
    world.reduceScatter(new Float32Array(64), new Float32Array(64 / world.size), Op.SUM),
} as const;

/** Virtual microseconds of one call, averaged over calls and ranks. */
async function measure(ranks: number, call: (world: Communicator) => Promise<void>): Promise<number> {
  const times = await runTasks(
    ranks,
    async (world) => {
      for (let i = 0; i < WARM; i++) await call(world);
      await world.barrier();
      const began = world.now();
      for (let i = 0; i < CALLS; i++) await call(world);
      return (world.now() - began) / CALLS;
    },
    { fabric: 'infinihost-64' },
  );
  return times.reduce((sum, time) => sum + time, 0) / ranks;
}

describe('infinihost-64', () => {
  for (const row of TABLE_6_1) {
    for (const [name, call] of Object.entries(COLLECTIVES)) {
      const expected = row[name as keyof typeof COLLECTIVES];
      test(`table 6.1: ${name} of ${row.ranks} ranks takes ${expected} microseconds, within a fifth`, async () => {
        const found = await measure(row.ranks, call);
        expect(Math.abs(found / expected - 1), `${found} microseconds`).toBeLessThan(TOLERANCE);
      });
    }
  }
});
