/**
 * Ranks that call different collectives: each that can tell gets an error that names both calls, and nobody gets
 * another call's numbers.
 */
import { describe, expect, test } from 'vitest';
import { runTasks } from '../../src/comm/tasks.ts';
import { ending, MISMATCHES, missing } from '../ranks/support/mismatches.ts';

describe('tasks that call different collectives are told', () => {
  for (const mismatch of MISMATCHES) {
    for (const order of ['ranks', 'random'] as const) {
      test(`${mismatch.name}, in the order ${order}`, async () => {
        const run = (seed: number): Promise<string[]> =>
          runTasks(mismatch.size, async (world) => ending(mismatch, await world.dup()), {
            fabric: 'infinihost-64',
            order,
            seed,
          });
        for (let seed = 1; seed <= (order === 'random' ? 5 : 1); seed++) {
          expect(missing(mismatch, await run(seed)), `seed ${seed}`).toEqual([]);
        }
      });
    }
  }
});
