/** The option `barrier` of BSP computations: what ends supersteps of `delivery: 'shared'`. */
import type { BspOptions } from 'onesided/bsp';
import { begin } from 'onesided/bsp';
import { runTasks } from 'onesided/fabrics';
import { describe, expect, test } from 'vitest';
import { describeCases } from '../support/cases.ts';
import { rankRuns, seedOfRun } from '../support/ranks.ts';

const WAYS = [
  ['--barrier=words'],
  ['--barrier=messages'],
  ['--barrier=waits'],
  ['--barrier=waits', '--barrierAlgorithm=pairwise'],
  ['--barrier=waits', '--barrierAlgorithm=gather-broadcast:2'],
];

describe.each(WAYS)('BSPlib with %s %s', (...args) => {
  for (const { kind, size } of rankRuns([1, 2, 5]))
    describeCases(`on ${size} ranks as ${kind}`, 'bsp', {
      kind,
      size,
      args: ['--delivery=shared', ...args.filter(Boolean), `--seed=${seedOfRun()}`, '--programs=10'],
    });
});

for (const { kind, size } of rankRuns([3]))
  describeCases(`on ${size} ranks as ${kind}`, 'bsp-barriers', { kind, size });

const begun = (options: object, fabric = 'infinihost-64') =>
  runTasks(2, async (world) => void (await (await begin(world, options as BspOptions)).end()), { fabric });

test.each([
  [{ barrier: 'adapter' }, /barrier: 'adapter' is for supersteps that end with a barrier, .*those of 'auto' end/],
  [{ barrier: 'messages', delivery: 'packed' }, /leave it out, since those of 'packed' end when all counts/],
  [{ barrier: 'adapters' }, /bsp.begin: barrier: unknown name "adapters"; did you mean "adapter"\?/],
  [{ barrier: 3 }, /barrier must be a string, not 3/],
  [{ barrierAlgorithm: 3 }, /barrierAlgorithm must be a string, not 3/],
  [{ barrierAlgorithm: 'ring' }, /there is no barrier algorithm "ring"/],
])('%o is refused', async (options, message) => {
  await expect(begun(options)).rejects.toThrow(message);
});

test('auto is the default wherever there is no barrier', async () => {
  await expect(begun({ barrier: 'auto', barrierAlgorithm: 'pairwise' })).resolves.toHaveLength(2);
});
