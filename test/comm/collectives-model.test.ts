/** Random programs of collectives against plain JavaScript, on tasks. On processes and threads: collectives.test.ts. */
import { describe, expect, test } from 'vitest';
import { runTasks } from '../../src/start/tasks.ts';
import { tryCollectives } from '../ranks/support/collective-model.ts';
import { IN_GATE } from '../support/gate.ts';
import { seedOfRun } from '../support/ranks.ts';

const seed = seedOfRun();
const STEPS = IN_GATE ? 40 : 150;

describe('collectives give what plain JavaScript gives', () => {
  for (const size of [1, 2, 3, 4, 5, 6, 7]) {
    test(`among ${size} tasks`, async () => {
      const done = await runTasks(size, (world) => tryCollectives(world, seed + size, STEPS, false), {
        fabric: 'infinihost-64',
        order: 'random',
        seed,
      });
      expect(done).toHaveLength(size);
    });
  }
});
