/**
 * Barriers that a thread of the addon carries out on a real device (`barrier: 'adapter'`): with each algorithm, with
 * packets that are lost, and with ranks that die. Run by `npm run test:rdma`, alone by
 * `npm run test:rdma -- --only barriers`.
 */
import { describe, expect, test, vi } from 'vitest';
import { onesided } from '../launcher/command.ts';
import { describeCases } from '../support/cases.ts';
import { programOf } from '../support/ranks.ts';

const ON_DEVICE = { ONESIDED_PROVIDER: 'rdma-core', ONESIDED_BARRIER: 'adapter' };

// The guest's processor is emulated, and all cases of a job run in its first hook. Against hanging only.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 });

const CASES = [
  { size: 2, env: {} },
  { size: 3, env: {} },
  { size: 4, env: { ONESIDED_BARRIER_ALGORITHM: 'dissemination' } },
];

for (const { size, env } of CASES) {
  const options = { kind: 'processes', size, env: { ...ON_DEVICE, ...env }, timeout: 500 } as const;
  describeCases(`on ${size} ranks`, 'comm-adapter-barriers', options);
  describeCases(`on ${size} ranks, with one packet in ten lost`, 'comm-adapter-barriers', {
    ...options,
    args: ['--lossy=yes', '--rounds=10'],
    env: { ...options.env, ONESIDED_DEBUG: 'drop:0.1' },
  });
}

for (const algorithm of ['pairwise', 'gather-broadcast:2']) {
  describeCases(`on 3 ranks, by ${algorithm}`, 'comm-adapter-barriers', {
    ...{ kind: 'processes', size: 3, timeout: 500, args: ['--rounds=10'] },
    env: { ...ON_DEVICE, ONESIDED_BARRIER_ALGORITHM: algorithm },
  });
}

describe('a rank that waits for one that has died', () => {
  test.each(['kill', 'exit', 'throw'])('by %s: is told', async (how) => {
    const job = ['run', '-n', '3', '--provider', 'rdma-core', '--timeout', '200'];
    const program = [programOf('robust-adapter-barriers'), '--', `--how=${how}`];
    const { code, stdout, stderr } = await onesided(...job, ...program);
    const told = [...stdout.matchAll(/^(?:\[ *\d+\] )?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json!));
    // The first one that ends with this error ends the job, and perhaps the other one before it has looked.
    expect(told.length, stdout + stderr).toBeGreaterThan(0);
    for (const { code: why } of told) expect(why).toBe('ERR_RMA_RANK_FAILED');
    expect(code, stdout + stderr).not.toBe(0);
  });
});
