/** Communicators of ranks that share memory, and shared windows on them. */
import { describe, expect, test } from 'vitest';
import { runTasks } from '../../src/start/tasks.ts';
import { describeCases } from '../support/cases.ts';
import { RANK_KINDS } from '../support/ranks.ts';

describe("splitType('shared')", () => {
  for (const kind of RANK_KINDS) {
    for (const [debug, host] of [
      ['', 4],
      ['requests', 1],
      ['requests,neighbours', 2],
    ] as const) {
      const title = `gives groups of ${host} on four ranks as ${kind}${debug && ` by ${debug}`}`;
      const args = [`--host=${host}`];
      describeCases(title, 'comm-shared', { kind, size: 4, env: { ONESIDED_DEBUG: debug }, args });
    }
  }

  test('gives each task by itself: nobody maps memory on a modelled fabric', async () => {
    const sizes = await runTasks(3, async (world) => (await world.splitType('shared')).size, {
      fabric: 'infinihost-64',
    });
    expect(sizes).toEqual([1, 1, 1]);
  });
});
