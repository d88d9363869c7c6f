/** BSPlib (`onesided/bsp`) on modelled fabrics. */
import { runTasks } from 'onesided/fabrics';
import { describe, test } from 'vitest';
import { bspCases } from '../ranks/support/bsp-cases.ts';
import { seedOfRun } from '../support/ranks.ts';

const WAYS = [
  { counts: 'all-to-all', headers: 'plain' },
  { counts: 'tree', headers: 'compressed' },
] as const;

describe.each(WAYS)('with %o', (options) => {
  describe.each([1, 2, 4, 7])('on %i tasks', (size) => {
    const cases = bspCases({ ...options, seed: seedOfRun(), programs: 5, blocks: false });
    test.each(Object.entries(cases))('%s', async (_, run) => {
      await runTasks(size, async (world) => void (await run(world)), { fabric: 'infinihost-64', seed: seedOfRun() });
    });
  });
});
