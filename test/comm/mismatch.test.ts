/**
 * Ranks that call different collectives: each that can tell gets an error that names both calls, and nobody gets
 * another call's numbers.
 */
import { describe, expect, test } from 'vitest';
import type { RmaError } from '../../src/errors.ts';
import { runTasks } from '../../src/start/tasks.ts';
import { ending, FENCE_MISMATCHES, MISMATCHES, missing } from '../ranks/support/mismatches.ts';

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

describe('tasks that call a fence beside something else are told', () => {
  // A timer of the program's own does not pass in virtual time.
  for (const mismatch of FENCE_MISMATCHES.filter(({ blocks, told }) => !blocks && told[0][0] !== 'done')) {
    test(mismatch.name, async () => {
      const ended = runTasks(mismatch.size, async (world) => ending(mismatch, await world.dup()), {
        fabric: 'infinihost-64',
      });
      // Where no message shows it, all wait, and the job ends with what each waits for.
      const words = await ended.then(
        (endings) => endings.join('\n'),
        (error: RmaError) => `${error.code}: ${error.message}`,
      );
      expect(words).toMatch(/^ERR_(COLLECTIVE|RMA_WOULD_DEADLOCK): /);
      expect(words).not.toMatch(/^done$/m);
      expect(words).toMatch(/rank 1 (called win\.fence\(\) of the 1st window|waits in (fence of window|finalize))/);
    });
  }
});
