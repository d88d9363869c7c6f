/**
 * BSPlib on a real device, with every way of counting; with datagrams to a multicast group, and with questions for each
 * of them, as if all were late. Run by `npm run test:rdma`.
 */
import { expect, test } from 'vitest';
import { runRanks } from '../support/ranks.ts';

/** The guest's processor is emulated. */
const LONG = { timeout: 180_000 };

test.each([
  ['--counts=all-to-all'],
  ['--counts=tree', '--headers=plain'],
  ['--counts=multicast', '--nackAfter=1000'],
  ['--counts=multicast', '--nackAfter=0'],
])('%s %s', LONG, async (...args) => {
  const ranks = await runRanks<{ cases: string[] }>('bsp', {
    kind: 'processes',
    size: 3,
    env: { ONESIDED_PROVIDER: 'rdma-core' },
    args: [
      ...args.filter((arg) => arg !== undefined),
      '--programs=2',
      '--matching=sync ends|put: |get: |send: |random',
    ],
    timeout: 150,
  });
  for (const { cases } of ranks) expect(cases.length).toBeGreaterThan(10);
});

test('on a device the counts come by multicast, and nobody asks', LONG, async () => {
  const ranks = await runRanks<{ supersteps: number; multicasts: number; nacks: number }>('bsp-multicast', {
    kind: 'processes',
    size: 3,
    env: { ONESIDED_PROVIDER: 'rdma-core' },
    timeout: 150,
  });
  for (const { supersteps, multicasts, nacks } of ranks) {
    expect(multicasts + nacks).toBeGreaterThanOrEqual(supersteps);
    // A datagram or two may be lost on a busy machine, also here.
    expect(multicasts).toBeGreaterThan(0.9 * supersteps);
  }
});
