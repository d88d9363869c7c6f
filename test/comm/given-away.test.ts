/**
 * Buffers that are transferred while a collective is under way; test/comm/mismatch-ranks.test.ts has the same on real
 * ranks.
 */
import { expect, test } from 'vitest';
import { runTasks } from '../../src/start/tasks.ts';
import { giveAway } from '../ranks/support/given-away.ts';

test('a buffer that is transferred during a collective is an error at all ranks that need it', async () => {
  const results = await runTasks(3, giveAway, { fabric: 'infinihost-64' });
  for (const { wrong } of results) expect(wrong).toEqual([]);
  for (const { ended } of results) expect(ended).toBeGreaterThan(30);
});
