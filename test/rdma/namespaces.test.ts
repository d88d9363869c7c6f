/**
 * Ranks that share neither control memory nor process numbers, as on several hosts: in PID namespaces of their own,
 * connected by the device. Run by `npm run test:rdma`, and on libfabric by `npm run test:tcp`.
 */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { endMembers, failuresOf, follow, type Member, PROGRAM } from '../robustness/members.ts';
import { ON_DEVICE } from './device.ts';

const LONG = { timeout: 600_000 };

afterEach(endMembers);

let port = 7100;

/** Each rank on a host of its own, or two on one. */
function ranks(size: number, how: string): Member[] {
  port++;
  return Array.from({ length: size }, (_, rank) => {
    const child = spawn(
      'unshare',
      ['--pid', '--fork', '--mount-proc', '--kill-child', process.execPath, PROGRAM, `--how=${how}`],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: {
          ...process.env,
          ...ON_DEVICE,
          ONESIDED_RANK: String(rank),
          ONESIDED_SIZE: String(size),
          ONESIDED_ROOT_ADDRESS: `127.0.0.1:${port}`,
          ONESIDED_SECRET: 'a secret of these tests',
        },
      },
    );
    return follow(child);
  });
}

test('four ranks on four hosts are one world', LONG, async () => {
  const members = ranks(4, 'work');
  await Promise.all(members.map(({ said }) => said('done')));
  const joined = members.map(({ lines }) => lines.find(({ rank }) => rank !== undefined)!);
  expect(joined.map(({ rank }) => rank)).toEqual([0, 1, 2, 3]);
  expect(await Promise.all(members.map(({ ended }) => ended))).toEqual(members.map(() => ({ code: 0, signal: null })));
});

test('one host that is gone is an error of all others', LONG, async () => {
  const members = ranks(3, 'loop');
  await Promise.all(members.map(({ said }) => said('working')));
  await sleep(200);
  const killed = Date.now();
  members[1].child.kill('SIGKILL');
  const failures = await failuresOf([members[0], members[2]]);
  for (const failure of failures) {
    expect(failure.code).toBe('ERR_RMA_RANK_FAILED');
    expect(failure.message).toMatch(/rank 1 \(process \d+ on /);
    expect(failure.at - killed).toBeLessThan(15_000);
  }
});
