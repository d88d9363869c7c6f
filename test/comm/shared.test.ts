/** Communicators of ranks that share memory, and shared windows on them. */
import { describe, expect, test } from 'vitest';
import { runTasks } from '../../src/comm/tasks.ts';
import { RANK_KINDS, runRanks } from '../support/ranks.ts';

describe("splitType('shared')", () => {
  for (const kind of RANK_KINDS) {
    for (const [debug, host] of [
      ['', 4],
      ['requests', 1],
      ['requests,neighbours', 2],
    ] as const) {
      test(`gives groups of ${host} on four ranks as ${kind}${debug && ` by ${debug}`}`, async () => {
        const env = { ONESIDED_DEBUG: debug };
        const ranks = await runRanks<{ cases: string[] }>('comm-shared', {
          kind,
          size: 4,
          env,
          args: [`--host=${host}`],
        });
        for (const { cases } of ranks) expect(cases).toContain('strangers');
      });
    }
  }

  test('gives each task by itself: nobody maps memory on a modelled fabric', async () => {
    const sizes = await runTasks(3, async (world) => (await world.splitType('shared')).size, {
      fabric: 'infinihost-64',
    });
    expect(sizes).toEqual([1, 1, 1]);
  });
});
