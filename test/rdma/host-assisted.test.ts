/**
 * Layouts that a thread of the addon serves on a real device (`noncontiguous: host-assisted`), with two ranks and with
 * three: while the target computes, all at once, threads that end with their windows, and ranks that die. Run by
 * `npm run test:rdma`, alone by `npm run test:rdma -- --only host-assisted`.
 */
import { describe, expect, test, vi } from 'vitest';
import { onesided } from '../launcher/command.ts';
import { describeCases } from '../support/cases.ts';
import { programOf } from '../support/ranks.ts';

const ON_DEVICE = { ONESIDED_PROVIDER: 'rdma-core' };

// The guest's processor is emulated, and all cases of a job run in its first hook. Against hanging only.
vi.setConfig({ testTimeout: 300_000, hookTimeout: 600_000 });

for (const size of [2, 3]) {
  describeCases(`on ${size} ranks`, 'window-helper', { kind: 'processes', size, env: ON_DEVICE, timeout: 500 });
}

describe.each([2, 3])('of %i ranks, one ends with its helper', (size) => {
  test.each(['kill', 'exit', 'throw'])('by %s: an error of all that ask it', async (how) => {
    const job = ['run', '-n', `${size}`, '--provider', 'rdma-core', '--timeout', '200'];
    const { code, stdout, stderr } = await onesided(...job, programOf('robust-helper'), '--', `--how=${how}`);
    const told = [...stdout.matchAll(/^(?:\[ *\d+\] )?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json!));
    expect(
      told.sort((a, b) => a.rank - b.rank),
      stdout + stderr,
    ).toEqual(Array.from({ length: size - 1 }, (_, rank) => ({ rank, code: 'ERR_RMA_RANK_FAILED' })));
    expect(code, stdout + stderr).not.toBe(0);
  });
});
