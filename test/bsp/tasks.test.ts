/** BSPlib (`onesided/bsp`) on modelled fabrics. */
import type { BspOptions } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { describe, test } from 'vitest';
import { DELIVERIES, packedKind } from '../../src/bsp/delivery/delivery-kinds.ts';
import { bspCases } from '../ranks/support/bsp-cases.ts';
import { IN_GATE } from '../support/gate.ts';
import { seedOfRun } from '../support/ranks.ts';

const WAYS: BspOptions[] = [
  { delivery: 'packed', counts: 'all-to-all', headers: 'plain' },
  { delivery: 'packed', counts: 'tree' },
  { delivery: 'zero-copy' },
  { delivery: 'auto' },
  { delivery: 'packed', counts: 'multicast' },
  { delivery: 'packed', pacing: { slot: 3, packet: 100 }, counts: 'tree' },
  { delivery: 'packed', pacing: 'auto', counts: 'multicast' },
  { delivery: 'packed', pacing: { slot: 0 }, headers: 'plain' },
  { delivery: 'datagrams', counts: 'all-to-all' },
  { delivery: 'datagrams', counts: 'tree', pacing: { slot: 3, packet: 100 }, headers: 'plain' },
  // Random programs draw what is not given.
  {},
];
for (const delivery of DELIVERIES)
  if (packedKind(delivery) !== undefined && WAYS.every((way) => way.delivery !== delivery)) WAYS.push({ delivery });

/** In the gate, one of each kind. */
const tried = WAYS.filter((_, i) => !IN_GATE || i % 2 === 0 || Object.keys(WAYS[i]).length === 0);

describe.each(tried)('with %o', (options) => {
  describe.each(IN_GATE ? [4] : [1, 2, 4, 7])('on %i tasks', (size) => {
    const cases = bspCases({ ...options, seed: seedOfRun(), programs: IN_GATE ? 2 : 20, blocks: false });
    test.each(Object.entries(cases))('%s', async (_, run) => {
      await runTasks(size, async (world) => void (await run(world)), { fabric: 'infinihost-64', seed: seedOfRun() });
    });
  });
});

const ETHERNETS = IN_GATE ? [] : ['ethernet-10-bus', 'ethernet-100-bus', 'ethernet-100-switch'];
describe.each(ETHERNETS)('on %s, with losses', (fabric) => {
  describe.each(tried)('with %o', (options) => {
    const cases = bspCases({ ...options, seed: seedOfRun(), programs: 10, blocks: false });
    test.each(Object.entries(cases))('%s', async (_, run) => {
      const faults = { loss: 0.05 };
      await runTasks(4, async (world) => void (await run(world)), { fabric, seed: seedOfRun(), faults });
    });
  });
});
