/** BSP2 (`uid`, `units`, `usync`, `uput`, `uget` of `onesided/bsp`): on processes, threads and modelled fabrics. */
import { loadFabric, runTasks } from 'onesided/fabrics';
import { describe, test } from 'vitest';
import { unitCases } from '../ranks/support/bsp-units-cases.ts';
import { describeCases } from '../support/cases.ts';
import { IN_GATE } from '../support/gate.ts';
import { rankRuns, seedOfRun } from '../support/ranks.ts';

/** Nodes of a fabric have so many ranks. */
const NODES = 2;
const nodes = loadFabric('connectx-16-cores');
const fabric = { ...nodes, node: { ...nodes.node, ranks: NODES } };

const TASKS = [
  { units: 'hosts', counts: 'all-to-all' },
  { units: 'hosts', counts: 'tree' },
  { units: 3, counts: 'all-to-all' },
  { units: 2, delivery: 'packed', counts: 'tree', pacing: { slot: 2, packet: 100 } },
  { units: 2, delivery: 'datagrams' },
] as const;

describe.each(TASKS)('with %o', (options) => {
  describe.each(IN_GATE ? [5] : [1, 2, 5, 8])('on %i tasks', (size) => {
    const each = options.units === 'hosts' ? NODES : options.units;
    const runs = { ...options, each: Math.min(each, size), seed: seedOfRun(), programs: IN_GATE ? 3 : 30 };
    const cases = unitCases({ ...runs, blocks: false });
    test.each(Object.entries(cases))('%s', async (_, run) => {
      await runTasks(size, async (world) => void (await run(world)), { fabric, seed: seedOfRun() });
    });
  });
});

const RANKS = {
  'units of two by hand, in shared memory': { args: ['--units=2', '--each=2', '--delivery=shared'] },
  'units of two by hand, by messages': { args: ['--units=2', '--each=2', '--delivery=packed'] },
  'units that are hosts': {
    args: ['--units=hosts', '--each=3', '--delivery=packed', '--counts=tree'],
    env: { ONESIDED_DEBUG: 'nodes:3' },
  },
};

describe.each(Object.entries(RANKS))('BSP2 with %s', (_, { args, ...others }) => {
  for (const { kind, size } of rankRuns([5])) {
    describeCases(`on ${size} ranks as ${kind}`, 'bsp-units', {
      kind,
      size,
      args: [...args, `--seed=${seedOfRun()}`, `--programs=${IN_GATE ? 2 : 20}`],
      ...others,
    });
  }
});
