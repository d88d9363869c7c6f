/** BSPlib (`onesided/bsp`) on modelled fabrics. */
import { runTasks } from 'onesided/fabrics';
import { describe, test } from 'vitest';
import { bspCases } from '../ranks/support/bsp-cases.ts';
import { IN_GATE } from '../support/gate.ts';
import { seedOfRun } from '../support/ranks.ts';

const WAYS = [
  { delivery: 'packed', counts: 'all-to-all', headers: 'plain' },
  { delivery: 'packed', counts: 'tree' },
  { delivery: 'zero-copy' },
  { delivery: 'auto' },
  { delivery: 'packed', counts: 'multicast' },
  // Random programs draw what is not given.
  {},
] as const;

/** In the gate, one of each kind. */
const tried = WAYS.filter((_, i) => !IN_GATE || i % 2 === 0 || i === WAYS.length - 1);

describe.each(tried)('with %o', (options) => {
  describe.each(IN_GATE ? [4] : [1, 2, 4, 7])('on %i tasks', (size) => {
    const cases = bspCases({ ...options, seed: seedOfRun(), programs: IN_GATE ? 2 : 20, blocks: false });
    test.each(Object.entries(cases))('%s', async (_, run) => {
      await runTasks(size, async (world) => void (await run(world)), { fabric: 'infinihost-64', seed: seedOfRun() });
    });
  });
});
