/** Hostile calls by seed (test/ranks/attack-calls.ts) where each goes by requests. Run by `npm run test:tcp`. */
import { expect, test } from 'vitest';
import { runRanks, seedOfRun } from '../support/ranks.ts';
import { ON_DEVICE } from './device.ts';

test('hostile calls do what their arrays really are or fail with an error of the library', async () => {
  const args = [`--seed=${seedOfRun()}`, '--count=600'];
  const how = { kind: 'processes', env: ON_DEVICE, size: 3, args, timeout: 180 } as const;
  const ranks = await runRanks<{ calls: number; refused: number }>('attack-calls', how);
  for (const { calls, refused } of ranks) {
    expect(calls).toBeGreaterThanOrEqual(600);
    expect(refused).toBeGreaterThan(60);
  }
});
